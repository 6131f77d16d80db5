"""All events by name, and the way back from a record of the log."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any, cast

from attractor_nb.model.events.calls import (
    ModelCallEnded,
    ModelCallWaiting,
    ToolCallEnded,
)
from attractor_nb.model.events.children import (
    ChildEnded,
    ChildEvent,
    ChildStarted,
    ChildSteered,
    InstructionGiven,
)
from attractor_nb.model.events.debugging import DebuggerChanged, DebuggerMoved, DebuggerStopped
from attractor_nb.model.events.event import Event, field_names
from attractor_nb.model.events.fan_outs import (
    ParallelBranchCompleted,
    ParallelBranchStarted,
    ParallelCompleted,
    ParallelStarted,
)
from attractor_nb.model.events.interviews import (
    InterviewCompleted,
    InterviewInformed,
    InterviewStarted,
    InterviewTimeout,
)
from attractor_nb.model.events.pipelines import (
    CheckpointSaved,
    EventsDropped,
    GoalGateUnsatisfied,
    PipelineCompleted,
    PipelineFailed,
    PipelineForked,
    PipelineInterrupted,
    PipelineRestarted,
    PipelineResumed,
    PipelineRewound,
    PipelineStarted,
    RunWarning,
)
from attractor_nb.model.events.stages import (
    StageCompleted,
    StageFailed,
    StageOutput,
    StageRetrying,
    StageStarted,
)
from attractor_nb.model.outcome import Outcome, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

EVENT_TYPES: Mapping[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        PipelineStarted,
        PipelineResumed,
        PipelineRewound,
        PipelineForked,
        PipelineCompleted,
        PipelineFailed,
        PipelineInterrupted,
        PipelineRestarted,
        StageStarted,
        StageCompleted,
        StageFailed,
        StageRetrying,
        StageOutput,
        ModelCallEnded,
        ModelCallWaiting,
        ToolCallEnded,
        GoalGateUnsatisfied,
        RunWarning,
        InterviewStarted,
        InterviewCompleted,
        InterviewTimeout,
        InterviewInformed,
        CheckpointSaved,
        EventsDropped,
        ParallelStarted,
        ParallelBranchStarted,
        ParallelBranchCompleted,
        ParallelCompleted,
        ChildStarted,
        ChildEnded,
        ChildSteered,
        ChildEvent,
        InstructionGiven,
        DebuggerStopped,
        DebuggerChanged,
        DebuggerMoved,
    )
}
"""All events by name: the page where every signal can be seen."""

_REQUIRED_TEXTS: dict[type[Event], dict[str, Any]] = {
    kind: {entry.name: "" for entry in fields(kind) if entry.type == "str" and entry.default is MISSING}
    for kind in EVENT_TYPES.values()
}
"""Texts without a default: an empty one was left out all the same, such as the name of a graph."""


def _tuple_from_plain(value: list[Any]) -> tuple[Any, ...]:
    return tuple(tuple(cast("list[str]", item)) if isinstance(item, list) else item for item in value)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "options": _tuple_from_plain,
    "keys": _tuple_from_plain,
    "logs": _tuple_from_plain,
    "passed_over": _tuple_from_plain,
    "outcome": Outcome.from_plain,
    "hooks": _tuple_from_plain,
    "usage": Usage.from_plain,
    "node_usage": Usage.from_plain,
    "run_usage": Usage.from_plain,
    "saved": Usage.from_plain,
    "spent": Usage.from_plain,
    "event": lambda plain: event_from_plain(plain),  # noqa: PLW0108 - it is defined below
}
_READERS_OF: dict[type[Event], tuple[tuple[str, Callable[[Any], Any]], ...]] = {
    kind: tuple((name, _READERS[name]) for name in field_names(kind) if name in _READERS)
    for kind in EVENT_TYPES.values()
}
"""The fields of an event whose value is not what JSON has, and what makes it of that."""


def event_from_plain(plain: Mapping[str, Any]) -> Event:
    """The inverse of ``Event.to_plain``; what an event of that type does not have is left out.

    Raises:
        KeyError, TypeError, ValueError: The record is of no known type or shape; the reader of the
            log turns that into its own error.
    """
    kind = EVENT_TYPES[plain["type"]]
    # By our own names: a call compares names by identity first, and those of a text are others.
    values = {**_REQUIRED_TEXTS[kind], **{name: plain[name] for name in field_names(kind) if name in plain}}
    for name, read in _READERS_OF[kind]:
        if name in values:
            values[name] = read(values[name])
    return kind(**values)
