"""Runs a stage that returns something large: ``hostile_results.py KIND MEGABYTES DIRECTORY``."""

import json
import resource
import sys
from pathlib import Path

from attractor_nb import Outcome, Pipeline

KIND, SIZE, ROOT = sys.argv[1], int(sys.argv[2]) * 1_000_000, Path(sys.argv[3])
SOURCE = """digraph g {
    start [shape=Mdiamond] work [type=own] next [type=next] done [shape=Msquare]
    start -> work work -> next [condition="outcome=fail"] work -> next [condition="outcome=success"] next -> done
}"""
RESULTS = {
    "text": lambda text: Outcome.success(context_updates={"big": text}),
    "bytes": lambda text: text.encode(),
    "notes": Outcome.success,
    "label": lambda text: Outcome("success", preferred_label=text),
    "reason": Outcome.fail,
}


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


before = peak()
handlers = {"own": lambda *_: RESULTS[KIND]("x" * SIZE), "next": lambda *_: Outcome.success()}
result = Pipeline(SOURCE, handlers=handlers).run(wait=True, logs_root=ROOT, durability="fast")
told = {
    "path": result.completed_nodes,
    "grown_bytes": peak() - before,
    "log_bytes": (ROOT / "events.jsonl").stat().st_size,
}
print(json.dumps(told))
