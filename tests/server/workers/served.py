"""A server as a process of its own: ``served.py ROOT TOKEN [OPTIONS]``; its first line is its address."""

import json
import sys
from pathlib import Path

from attractor_nb.server import serve

options = json.loads(sys.argv[3]) if len(sys.argv) > 3 else {}
serve(Path(sys.argv[1]), port=0, token=sys.argv[2], on_ready=lambda url: print(url, flush=True), **options)
