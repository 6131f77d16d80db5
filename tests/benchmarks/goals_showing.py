"""P8 to P11: loading, showing a change, the first drawing, an event."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections import deque
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from zlib import crc32

import texts
from goals import Goal, Row, Scale, compared
from measuring import Figures, cpu_of, in_turns, precise_cpu_of, worker

CHANGES = 2000
EVENTS = 2000


def loading(scale: Scale) -> list[Row]:
    found: list[dict[str, float]] = []

    def figures(_: int) -> float:
        found.append(worker("loading"))
        return found[-1]["extension"]

    in_turns({"ours": figures}, scale.rounds)
    ours, theirs = (Figures(tuple(entry[name] for entry in found)) for name in ("extension", "ipython"))
    heavy = found[-1]["heavy"]
    return [
        compared("%load_ext attractor_nb against import IPython, CPU", 0.5, ours, theirs, unit="ms"),
        Row("heavy modules loaded by it", 0, len(heavy), unit="", detail=", ".join(heavy)),
    ]


def changes(scale: Scale) -> list[Row]:
    """An event folded, its delta added to a batch and written as JSON, in views of two sizes."""
    from attractor_nb.model.events import StageCompleted, StageStarted
    from attractor_nb.model.outcome import Outcome
    from attractor_nb.views.folding import fold_event
    from attractor_nb.views.state import RunView

    outcome = Outcome.success("Stage completed")

    def events(size: int) -> list[object]:
        return [
            kind
            for number in range(CHANGES // 2)
            for kind in (
                StageStarted(name=f"n{number % size}", time=1.7e9),
                StageCompleted(name=f"n{number % size}", outcome=outcome, edge=number % size, time=1.7e9),
            )
        ]

    def folding(size: int):
        view, batch = RunView(), events(size)
        for event in events(size):
            fold_event(view, event)
        return lambda _: precise_cpu_of(lambda: [json.dumps(fold_event(view, event)[1]) for event in batch])

    sizes = (10, 10 * scale.nodes)
    figures = in_turns({str(size): folding(size) for size in sizes}, scale.rounds)
    small, large = (figures[str(size)] for size in sizes)
    view = RunView()
    widest = max(len(json.dumps(fold_event(view, event)[1]).encode()) for event in events(sizes[1]))
    subject = f"a change in a graph of {sizes[1]} nodes, to its JSON, CPU"
    return [
        Row(subject, 10, large.median / CHANGES * 1e6, large.minimum / CHANGES * 1e6, unit="µs"),
        Row("size of a change", 200, widest, unit="B"),
        compared(f"a graph of {sizes[1]} nodes against one of {sizes[0]}, CPU", 1.3, large, small, per=CHANGES),
    ]


def drawing(scale: Scale) -> list[Row]:
    if shutil.which("dot") is None:
        return [Row("against dot -Tsvg", 1.3, missing="dot is not installed")]
    rows = []
    for size in (*scale.pictures, *scale.large_pictures):
        is_large = size in scale.large_pictures
        limit = 0.3 if is_large else 1.3
        figures = in_turns({"ours": _drawing(size), "dot": _dot(size)}, scale.slow_rounds if is_large else scale.rounds)
        subject = f"{size} nodes against dot -Tsvg, CPU"
        rows.append(compared(subject, limit, figures["ours"], figures["dot"], unit="ms"))
    return rows


def _drawing(size: int):
    from attractor_nb import parse_dot
    from attractor_nb.views.drawings.svg import render_svg

    def draw(number: int) -> float:
        graph = parse_dot(texts.drawn_pipeline(size, number))
        return cpu_of(lambda: render_svg(graph))

    return draw


def _dot(size: int):
    def draw(number: int) -> float:
        text = texts.drawn_pipeline(size, number)
        command = ["dot", "-Tsvg"]
        return cpu_of(lambda: subprocess.run(command, input=text, capture_output=True, text=True, check=True))

    return draw


def events(scale: Scale) -> list[Row]:
    """An event made, stamped, appended to the log of a run and handed to one sink; and the floor of that."""
    from attractor_nb.engine.event_stream import EventStream
    from attractor_nb.engine.time_limits import SystemClock
    from attractor_nb.model.events import StageStarted
    from attractor_nb.model.record import encode
    from attractor_nb.redaction import may_hold
    from attractor_nb.storage.run_store import DirectoryRunStore

    def made(number: int) -> StageStarted:
        return StageStarted(name="implement", index=number, handler_type="codergen", fidelity="compact")

    seen: deque[object] = deque(maxlen=1)
    lock = Lock()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as opened:
        clock = SystemClock()
        store = DirectoryRunStore.create(
            Path(folder) / "run", durability="fast", source_text="", manifest={}, clock=clock
        )
        opened.callback(store.close)
        stream = EventStream(store, clock, "abcd2345")
        opened.callback(stream.close)
        stream.add_sink(seen.append)
        log = os.open(Path(folder) / "bare.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        opened.callback(os.close, log)

        def announce() -> None:
            for number in range(EVENTS):
                stream.announce(made(number))

        announce()
        line = (Path(folder) / "run" / "events.jsonl").read_bytes().splitlines(keepends=True)[-1]

        def keep() -> None:
            for number in range(EVENTS):
                event = made(number)
                with lock:
                    event.run_id, event.time, event.sequence = "abcd2345", clock.time(), number
                    payload = encode(event)
                    if may_hold(payload):
                        raise AssertionError
                    os.write(log, payload[:-1] + b',"crc":"%08x"}\n' % crc32(payload))
                    seen.append(event)

        def write() -> None:
            for _ in range(EVENTS):
                os.write(log, line)

        contenders = {"ours": announce, "floor": keep, "bare": write}
        figures = in_turns(
            {name: lambda _, work=work: precise_cpu_of(work) for name, work in contenders.items()}, 2 * scale.rounds
        )
    subjects = {
        "ours": "made, logged and dispatched against os.write of its line, CPU",
        "floor": "the floor of an event against os.write of its line, CPU",
    }
    return [compared(subjects[name], 4, figures[name], figures["bare"], per=EVENTS) for name in subjects]


GOALS = [
    Goal("P8", "%load_ext attractor_nb", loading),
    Goal(
        "P9",
        "a state change, kernel side",
        changes,
        "Fold and JSON of one event. The widget's own memory of all states is copied at each painting and"
        " is not in the figure: that part grows with the graph.",
    ),
    Goal(
        "P10",
        "the first drawing",
        drawing,
        "Half as many skips as nodes, the density for which the goal was set. With a quarter as many, which"
        " dot lays out faster, 500 nodes were at 0.65: not met.",
    ),
    Goal(
        "P11",
        "an event",
        events,
        "Handed to one bare sink; each line is looked through for secrets. The floor is a loop that makes, stamps,"
        " encodes, searches, checks by sum, writes and hands on, without an owner's look and without an error's care.",
    ),
]
