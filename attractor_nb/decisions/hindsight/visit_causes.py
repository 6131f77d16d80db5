"""What brought a run to a visit: an edge, a jump, a goal gate, a branch's beginning, a rewind, a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from attractor_nb.decisions.hindsight.route_explanation import because
from attractor_nb.model.events import (
    DebuggerChanged,
    Event,
    GoalGateUnsatisfied,
    ParallelBranchStarted,
    PipelineForked,
    PipelineRewound,
    PipelineStarted,
    StageEnd,
)

if TYPE_CHECKING:
    from attractor_nb.decisions.hindsight.journal import Journal, VisitRecord


class Arrival(msgspec.Struct, frozen=True):
    """How a run came to a visit."""

    node: str  #: The stage that it came from; empty for the first.
    visit: int  #: Which visit of that.
    edge: int | None  #: Position of the edge in ``Graph.edges``, or None.
    words: str  #: The same as a sentence.


def arrival_of(journal: Journal, visit: VisitRecord) -> Arrival:
    """What brought the run to a visit, by the last event before it that says where the run goes on."""
    found: Event | None = None
    by_hand: list[str] = []
    for event in journal.events_before(visit.sequence):
        if _leads(event, visit.branch):
            found = event
            break
        if event.branch == visit.branch and (words := _by_hand(event, visit.node_id)):
            by_hand.insert(0, words)
    arrival = _arrival(found, visit)
    return replace(arrival, words="; ".join([arrival.words, *by_hand]))


def _by_hand(event: Event, node_id: str) -> str:
    """What a person did between the stage before and a visit, in words; empty for what only happened."""
    changed = ""
    if isinstance(event, PipelineRewound | PipelineForked):
        parts = [*event.context, *(["the prompt"] if event.prompt else [])]
        changed = f" with {', '.join(parts)} changed" if parts else ""
    match event:
        case PipelineRewound() if event.node == node_id:
            return f"the run was rewound to just before it{changed}"
        case PipelineForked():
            return f"the run began as a fork just before it{changed}"
        case DebuggerChanged(change="context"):
            return f"{', '.join(event.context)} set by hand"
        case _:
            return ""


def _leads(event: Event, branch: str) -> bool:
    """Whether an event says where the run, or one of its branches, goes on."""
    if isinstance(event, ParallelBranchStarted | StageEnd):
        return event.branch == branch and (not isinstance(event, StageEnd) or event.is_commit)
    return not branch and isinstance(event, PipelineStarted | GoalGateUnsatisfied)


def _arrival(event: Event | None, visit: VisitRecord) -> Arrival:
    match event:
        case StageEnd():
            words = f"from {event.name}, visit {event.visit}: {because(event.route, event.route_detail)}"
            return Arrival(event.name, event.visit, event.edge, words)
        case GoalGateUnsatisfied():
            words = f"goal gate {event.gate} was not satisfied at the end, and sent the run back here"
            return Arrival(event.gate, 0, None, words)
        case ParallelBranchStarted():
            words = f"branch {event.id} of {event.name} begins here"
            return Arrival(event.name, event.visit, event.edge, words)
        case PipelineStarted() if event.restart_of:
            return Arrival("", 0, None, "a loop_restart edge began the run anew here")
        case PipelineStarted():
            return Arrival("", 0, None, "the run begins here")
        case _:
            return Arrival("", 0, None, f"nothing recorded says how the run came to {visit.node_id}")
