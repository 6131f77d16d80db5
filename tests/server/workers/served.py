"""A server as a process of its own: ``served.py ROOT``; its first line is its address."""

import sys
from pathlib import Path

from attractor_nb.server import serve

serve(Path(sys.argv[1]), port=0, token=sys.argv[2], on_ready=lambda url: print(url, flush=True))
