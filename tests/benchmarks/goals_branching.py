"""P5: branches side by side, against the bare loop and against a peer."""

from __future__ import annotations

from environments import python_of
from goals import Goal, Row, Scale, compared
from measuring import MissingPeer, in_turns, worker

AT_ONCE = 64
REPEATS = 3


def fan_outs(scale: Scale) -> list[Row]:
    """Processor time of a branch: its own 10 ms are slept, so what is counted is overhead alone."""
    wide, narrow = scale.branches, max(1, scale.branches // 10)
    ours = ("fan_out", "ours")
    floor, bare = ("fan_out", "floor"), ("fan_out", "bare")
    subject = "a branch against a bare task and a semaphore, CPU"
    rows = [_row(subject, 4.5, scale, ours, bare, wide), _row(f"the floor of {subject}", 4.5, scale, floor, bare, wide)]
    if scale.with_peers:
        subject = "a branch against LangGraph's Send, CPU"
        try:
            peer = ("peer_fan_out", "langgraph", python_of("langgraph"))
            rows.append(_row(subject, 0.35, scale, ours, peer, wide))
        except MissingPeer as missing:
            rows.append(Row(subject, 0.35, missing=str(missing)))
    subject = f"a branch of {wide} against one of {narrow}, CPU"
    rows.append(_row(subject, 1.3, scale, ours, ours, wide, narrow))
    return rows


def _row(
    subject: str,
    limit: float,
    scale: Scale,
    ours: tuple[str, ...],
    other: tuple[str, ...],
    wide: int,
    other_wide: int = 0,
) -> Row:
    """Two contenders in turn; seconds are for as many branches as the first has."""
    other_wide = other_wide or wide
    figures = in_turns(
        {"ours": lambda _: _cpu(ours, wide), "other": lambda _: _cpu(other, other_wide) * wide / other_wide},
        scale.slow_rounds,
        warm_ups=0,
    )
    return compared(subject, limit, figures["ours"], figures["other"], per=wide)


def _cpu(contender: tuple[str, ...], branches: int) -> float:
    script, name, *python = contender
    options = {"python": python[0]} if python else {}
    return worker(script, name, branches, AT_ONCE, REPEATS, **options)["cpu"]


GOALS = [
    Goal(
        "P5",
        f"a branch of a fan-out, {AT_ONCE} at a time, nothing stored",
        fan_outs,
        "A branch begins and ends with a record, and in between it is a whole step (P1) with a context and a"
        " state of its own; its result is copied into the run's context and looked through for secrets. The bare"
        " contender is a task that sleeps. The floor is that of P1 in a task for each branch, with the two records of the"
        " branch, a context and a state of its own.",
    )
]
