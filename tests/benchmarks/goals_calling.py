"""P13: what a model call costs beside the call."""

from __future__ import annotations

import sys
from typing import Any

from environments import python_of
from goals import Goal, Row, Scale, compared
from measuring import Figures, MissingPeer, worker

PEER = "langgraph-llm"
OWN = ("direct", "bare", "ours:none", "ours:full")
THEIRS = ("bare", "langgraph:async", "langgraph:sync")
Measured = dict[str, dict[str, Figures]]


def measured(contenders: tuple[str, ...], calls: int, rounds: int, python: str = sys.executable) -> Measured:
    """CPU and wall seconds of contenders that take turns in one process."""
    found: dict[str, Any] = worker("model_calls", ",".join(contenders), calls, rounds, python=python)
    return {name: {kind: Figures(tuple(run[kind])) for kind in ("cpu", "wall")} for name, run in found.items()}


def without_the_call(whole: Figures, call: Figures) -> Figures:
    """The seconds around the call, round by round."""
    return Figures(tuple(all_of_it - own for all_of_it, own in zip(whole.values, call.values, strict=True)))


def model_calls(scale: Scale) -> list[Row]:
    calls, rounds = max(5, scale.steps // 10), scale.rounds
    own = measured(OWN, calls, rounds)
    rows = [
        compared(f"{subject}, against {peer}, streamed, CPU", limit, own[name]["cpu"], own[other]["cpu"], per=calls)
        for other, peer, limits in (
            ("bare", "an agent of pydantic-ai", (0.4, 0.4)),
            ("direct", "its bare direct request", (2.5, 4.0)),
        )
        for name, subject, limit in (
            ("ours:none", "a call, nothing stored", limits[0]),
            ("ours:full", 'a call, durability="full"', limits[1]),
        )
    ]
    return [*rows, *against_langgraph(own, calls, rounds)] if scale.with_peers else rows


def against_langgraph(own: Measured, calls: int, rounds: int) -> list[Row]:
    subject = "all but the call, durable, against LangGraph with AsyncSqliteSaver"
    try:
        theirs = measured(THEIRS, calls, rounds, python_of(PEER))
    except MissingPeer as missing:
        return [Row(subject, 0.3, missing=str(missing))]
    return [
        around_the_call(f"{subject}, `{mode}`, {title}", kind, own, theirs, f"langgraph:{mode}", calls)
        for mode in ("async", "sync")
        for kind, title in (("cpu", "CPU"), ("wall", "wall"))
    ]


def around_the_call(subject: str, kind: str, own: Measured, theirs: Measured, peer: str, calls: int) -> Row:
    """A row of two differences; where the noise is larger than one of them there is no figure.

    Ours makes a bare request, LangGraph's node has the agent: each is without the call that it makes.
    """
    ours = without_the_call(own["ours:full"][kind], own["direct"][kind])
    other = without_the_call(theirs[peer][kind], theirs["bare"][kind])
    if min(*ours.values, *other.values) <= 0:
        return Row(subject, 0.3, missing="the machine was too busy to tell")
    return compared(subject, 0.3, ours, other, per=calls)


GOALS = [
    Goal(
        "P13",
        "model calls",
        model_calls,
        "The model is a function that answers at once in pieces, the same for everybody, so that what is measured is pydantic-ai and what is around it. "
        "Ours is the provider backend with that model in place of a client: stage directory, prompt and response files, events, streaming and prices included. "
        "Against LangGraph the call that each makes, measured in the same process and round, is taken off: ours makes a bare request, LangGraph's node runs the agent.",
    )
]
