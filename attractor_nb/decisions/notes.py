"""Notes of a run's events for later stages (spec 5.4): one line each, the same in equal runs.

There are two kinds. Notable events are results: a failure, an answer, a way back. Incidents are steps towards
a result: a retried attempt, a tool call. Warnings to users are neither: they concern keys, prices and files,
not the work. A note names neither the person who answered nor the time that it took.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.model.events import (
    GoalGateUnsatisfied,
    InterviewCompleted,
    InterviewTimeout,
    StageFailed,
    ToolCallEnded,
)

if TYPE_CHECKING:
    from attractor_nb.model.events import Event

FAILURE: Final = "failure"
ANSWER: Final = "answer"
SENT_BACK: Final = "way back"
RETRY: Final = "retry"
TOOL_CALL: Final = "tool call"
INCIDENTS: Final = frozenset({RETRY, TOOL_CALL})
OBSERVED: Final = (InterviewCompleted, InterviewTimeout, ToolCallEnded)
"""Of the kinds that ``note_of`` knows those that no traversal announces: the run's stream is listened to."""
MAX_NOTES: Final = 40
MAX_CHARACTERS: Final = 400
_MAX_ARGUMENT: Final = 60


class Note(NamedTuple):
    """A line that later stages may be told."""

    kind: str  #: ``failure``, ``answer``, ``way back``, ``retry`` or ``tool call``.
    text: str  #: The line.


def note_of(event: Event) -> Note | None:
    """The line of an event; None for one that is not notable."""
    if isinstance(event, StageFailed):
        reason = f": {event.error}" if event.error else ""
        if event.will_retry:
            return _note(RETRY, f"{event.name}, attempt {event.attempt} failed{reason}")
        return _note(FAILURE, f"{event.name} failed{reason}")
    if isinstance(event, InterviewCompleted):
        return _note(ANSWER, f"{event.stage} was answered: {event.label or event.text or event.answer}")
    if isinstance(event, InterviewTimeout):
        return _note(ANSWER, f"{event.stage} got no answer in time")
    if isinstance(event, GoalGateUnsatisfied):
        return _note(SENT_BACK, f"goal gate `{event.gate}` was not satisfied: back to {event.target}")
    return _note(TOOL_CALL, _tool_line(event)) if isinstance(event, ToolCallEnded) else None


def with_note(notes: tuple[Note, ...], event: Event) -> tuple[Note, ...]:
    """The newest notes, that of an event included."""
    note = note_of(event)
    return notes if note is None else (*notes, note)[-MAX_NOTES:]


def _note(kind: str, text: str) -> Note:
    flat = " ".join(text[: 4 * MAX_CHARACTERS].split())
    return Note(kind, flat if len(flat) <= MAX_CHARACTERS else f"{flat[: MAX_CHARACTERS - 1]}…")


def _tool_line(event: ToolCallEnded) -> str:
    """A tool call as a line: tool, arguments and result."""
    given = ", ".join(f"{name}={_shown(value)}" for name, value in event.arguments.items())
    line = f"{event.name}: {event.tool}({given})"
    if event.skipped:
        return f"{line} was skipped: {event.skipped}"
    if event.error:
        return f"{line} failed: {event.error}"
    return f"{line}: {event.result}" if event.result else line


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MAX_ARGUMENT else f"{text[: _MAX_ARGUMENT - 1]}…"
