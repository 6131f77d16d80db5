"""Runs a pipeline whose only stage is a hostile program, and says ``ready`` when the program does."""

import sys
from pathlib import Path

from attractor_nb import Pipeline

run = Pipeline(Path(sys.argv[1]).read_text()).run(logs_root=sys.argv[2], durability="fast", trust=True)
for event in run.events():
    if "ready" in getattr(event, "text", ""):
        print("ready", flush=True)
