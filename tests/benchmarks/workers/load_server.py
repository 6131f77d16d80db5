"""The server of the load, a process of its own: ``load_server.py ROOT TOKEN MAX_RUNS MAX_STREAMS``; its first line is its address."""

import sys
from pathlib import Path

from attractor_nb.server import serve

serve(
    Path(sys.argv[1]),
    port=0,
    token=sys.argv[2],
    max_runs=int(sys.argv[3]),
    max_streams=int(sys.argv[4]),
    on_ready=lambda url: print(url, flush=True),
)
