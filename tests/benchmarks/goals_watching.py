"""V1 to V6: the live view, in a browser with and without Jupyter, what the kernel keeps of it, and opening what has ended."""

from __future__ import annotations

import importlib.util
import statistics
from pathlib import Path

from goals import Goal, Row, Scale
from measuring import worker

CHROMIUM = Path("/usr/bin/chromium")


def _missing(*modules: str) -> str:
    if not CHROMIUM.exists():
        return f"there is no {CHROMIUM}"
    lacking = [name for name in ("playwright", *modules) if not importlib.util.find_spec(name)]
    return f"{lacking[0]} is not installed" if lacking else ""


def _row(subject: str, limit: float, values: list[float], unit: str = "ms", detail: str = "") -> Row:
    return Row(subject, limit, statistics.median(values), min(values), unit=unit, detail=detail)


def first_drawing(scale: Scale) -> list[Row]:
    subject = "a cell of 50 nodes, from the graph to its first frame"
    if missing := _missing():
        return [Row(subject, 500, unit="ms", missing=missing)]
    found = worker("watching", "first_drawing", 50, scale.rounds)
    parts = " + ".join(f"{statistics.median(found[name]):.0f} ms {name}" for name in ("drawn", "shown"))
    return [_row(subject, 500, found["whole"], detail=parts)]


def clicks(scale: Scale) -> list[Row]:
    subject = "a click in 50 nodes to the frame with its panel"
    if missing := _missing():
        return [Row(subject, 100, unit="ms", missing=missing)]
    return [_row(subject, 100, worker("watching", "clicks", 50, scale.rounds)["taken"])]


def changes(scale: Scale) -> list[Row]:
    workers = {
        "a change to its frame, at 400 a second in 200 nodes": ("watching", "changes"),
        "the same through a kernel and JupyterLab": ("following",),
    }
    if missing := _missing("jupyterlab"):
        return [Row(subject, 50, unit="ms", missing=missing) for subject in workers]
    rows = []
    for subject, (name, *part) in workers.items():
        found = worker(name, *part, 200, scale.rounds)
        lags = sorted(found["lags"])
        within = lags[int(len(lags) * 0.95)]
        detail = f"{found['applied'][0]:.0f} a second shown, 95 % within {within:.0f} ms"
        rows.append(_row(subject, 50, lags, detail=detail))
    return rows


def memory(scale: Scale) -> list[Row]:
    events = 100 * scale.steps
    found = worker("remembering", events, 200)
    subject = f"kept by the live view for an event of the second half of {events:,}"
    return [Row(subject, 1, found["per_event"], unit="B", detail=f"{found['kept'] / 1e3:.0f} kB in all")]


def large_graphs(scale: Scale) -> list[Row]:
    if missing := _missing():
        return [Row("a step of zooming in 500 nodes", 50, unit="ms", missing=missing)]
    found = worker("watching", "zooms", max(scale.large_pictures), scale.slow_rounds)
    return [
        _row("a step of zooming in 500 nodes", 50, found["zoomed"]),
        _row("a step of moving in 500 nodes", 50, found["moved"]),
    ]


def opening(scale: Scale) -> list[Row]:
    steps = 10 * scale.steps
    subjects = {
        "cell": f"a finished run of {steps:,} steps as a cell's value, to its first picture",
        "replay": "its replay",
        "page": "its page of the server",
    }
    if missing := _missing("jupyterlab"):
        return [Row(subject, 500, unit="ms", missing=missing) for subject in subjects.values()]
    found = worker("finished", steps, scale.slow_rounds)
    return [
        _row(subject, 500, found[name][1:], detail=f"the first time {found[name][0]:.0f} ms")
        for name, subject in subjects.items()
    ]


GOALS = [
    Goal(
        "V1", "the first drawing of a cell", first_drawing, "Chromium without a GPU; what JupyterLab adds is not in it."
    ),
    Goal("V2", "a click", clicks, "The texts of the stage follow from the kernel."),
    Goal(
        "V3", "state changes in the browser", changes, "Changes are sent 50 times a second, so 10 ms of it are waiting."
    ),
    Goal(
        "V4",
        "memory of the live view",
        memory,
        "Every stage says how much it used, and every node is visited again and again.",
    ),
    Goal("V5", "large graphs stay fluid", large_graphs),
    Goal(
        "V6",
        "opening a finished run",
        opening,
        "In JupyterLab from running the cell, with reading the log; a loop of 8 nodes.",
    ),
]
