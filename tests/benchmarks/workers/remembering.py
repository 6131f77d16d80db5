"""Memory that the live view keeps of a run of many events: ``remembering.py EVENTS NODES``, bytes for each event."""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

from attractor_nb import parse_dot
from attractor_nb.model.events import ModelCallEnded, PipelineStarted, StageCompleted, StageOutput, StageStarted
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.notebook.live.live_run import LiveRun
from attractor_nb.views.state import RunView

BATCH = 100


def main(count: int, nodes: int) -> None:
    names = [f"n{number}" for number in range(nodes)]
    chain = " -> ".join(["start", *names, "done"])
    graph = parse_dot(f"digraph g {{ start [shape=Mdiamond] done [shape=Msquare] {chain} }}")
    run = SimpleNamespace(
        graph=graph, view=RunView(), logs_root=Path("run"), children={}, is_done=False,
        on_event=lambda observer: lambda: None, cancel=lambda: None,
        debugger=SimpleNamespace(to_plain=dict),
    )  # fmt: skip
    live = LiveRun(run)
    live.graph_view._on_message(live.graph_view, {"kind": "ready"}, [])
    live.paint([PipelineStarted(name="g", id="1")])
    tracemalloc.start()
    at_half, at_end = (kept_after(live, names, part * count // 2, count // 2) for part in (0, 1))
    print(json.dumps({"kept": at_end, "per_event": max(0.0, (at_end - at_half) / (count // 2))}))


def kept_after(live: LiveRun, names: list[str], first: int, count: int) -> int:
    """Bytes in use after that many more events."""
    paint(live, names, first, first + count)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def paint(live: LiveRun, names: list[str], first: int, end: int) -> None:
    """Four events a stage, in batches, as a painter hands them on; every stage is visited again and again."""
    usage = Usage(input_tokens=100, output_tokens=20, cost_usd=0.001, calls=1)
    for start in range(first // 4, end // 4, BATCH // 4):
        batch = []
        for number in range(start, min(start + BATCH // 4, end // 4)):
            name, visit = names[number % len(names)], number // len(names) + 1
            outcome = Outcome(StageStatus.SUCCESS, usage=usage)
            batch += (
                StageStarted(name=name, index=number, visit=visit, time=1.7e9),
                StageOutput(name=name, index=number, text=f"words {number} " * 10),
                ModelCallEnded(name=name, index=number, model="m", usage=usage),
                StageCompleted(name=name, index=number, visit=visit, outcome=outcome, edge=number % len(names), time=1.7e9),
            )  # fmt: skip
        live.paint(batch)


main(int(sys.argv[1]), int(sys.argv[2]))
