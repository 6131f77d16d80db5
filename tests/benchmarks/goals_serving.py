"""P12 and L1: streams of events, and the server under load."""

from __future__ import annotations

from typing import Any

from goals import Goal, Row, Scale, compared
from measuring import Figures, MissingPeer, worker

MOST_GROWTH = 1.1
MOST_LATENCY_MS = 1000
MB = 1e6


def load(scale: Scale) -> list[Row]:
    runs, clients, waves = scale.load
    subject = f"{runs:,} runs and {clients:,} clients at once, {waves} times"
    try:
        found: dict[str, Any] = worker("load", runs, clients, waves)
    except MissingPeer as missing:
        return [Row(subject, 0, unit="", missing=str(missing))]
    rss, files = found["rss"], found["files"]
    first = f"{found['events']:,} events on {found['connections']:,.0f} connections"
    problems = "; ".join(found["problems"])
    return [
        Row(
            f"{subject}: events lost, duplicated or different from the log",
            0,
            found["wrong"],
            unit="",
            detail=f"{first} {problems}".strip(),
        ),
        Row(
            "memory of the server after the last wave, relative to after the first",
            MOST_GROWTH,
            rss[-1] / rss[1],
            detail=f"{rss[-1] / MB:.0f} MB / {rss[1] / MB:.0f} MB, idle {rss[0] / MB:.0f} MB, at most {found['peak_rss'] / MB:.0f} MB",
        ),
        Row(
            "open files of the server after the last wave, beyond those before the first",
            0,
            max(0, files[-1] - files[0]),
            unit="",
            detail=f"at most {found['peak_files']:,}",
        ),
        Row(
            "threads of the server at most: its pools, and none for a run or a stream",
            found["pool_threads"],
            found["peak_threads"],
            unit="",
            detail=f"after each wave {', '.join(map(str, found['threads'][1:]))}",
        ),
        Row(
            "an event from the log to its client, 99 of 100 within",
            MOST_LATENCY_MS,
            found["p99"] * 1e3,
            unit="ms",
            detail=f"half within {found['p50'] * 1e3:.3g} ms; {found['events_per_second']:,.0f} events and "
            f"{found['submitted_per_second']:,.0f} submissions a second",
        ),
    ]


def streams(scale: Scale) -> list[Row]:
    sizes = ((10, scale.steps // 2), (100, max(1, scale.steps // 7)))
    measured: dict[str, Any] = worker("events_load", scale.rounds, *(f"{a}:{b}" for a, b in sizes))
    rows: list[Row] = []
    for clients, events in sizes:
        found = measured[f"{clients}:{events}"]
        ours, peer = (Figures(tuple(found[name])) for name in ("ours", "peer"))
        subject = f"an event to one of {clients} clients, against sse-starlette with a dict for each, CPU"
        rows.append(compared(subject, 0.6, ours, peer, per=clients * events))
    return rows


GOALS = [
    Goal(
        "P12",
        "server-sent events",
        streams,
        "Both make the same events one by one and let the loop turn after each, under the same uvicorn. Nothing is gathered: of a run's "
        "events those of 20 ms go out together, which costs less. `python tests/benchmarks --only P12`.",
    ),
    Goal(
        "L1",
        "the server under load",
        load,
        "A server in a process of its own, its clients in one other, on the processors named below. Every run of several stages is submitted "
        'over HTTP with durability="full"; a quarter has branches, a quarter a loop, a quarter a restart. Each stands at its gate until all '
        "stand there, and is answered over HTTP. A client hangs up behind one event in twenty, a third of all hang up at once while the runs "
        "wait, and each comes back with Last-Event-ID. The first time warms the server up. A latency has the flush of the log, "
        "the server and the client in it. `python tests/benchmarks --only L1`.",
    ),
]
