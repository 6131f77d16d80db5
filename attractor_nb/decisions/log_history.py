"""The events of a log that count: a rewind sets the events after its target aside, and they stay in the log.

The log is append-only and the truth, so a rewind is a record too (``PipelineRewound``). Every fold of events,
to a state, a context or a picture, folds ``counted_events(events)``: no other place knows the effect of a
rewind. Totals that a rewind does not undo (spending, used visit numbers) are in the record itself. The module
knows the events of one run directory, and not where they are stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from attractor_nb.errors import RunError
from attractor_nb.model.branch import parts_of
from attractor_nb.model.events import (
    Event,
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    PipelineResumed,
    PipelineRewound,
    StageEnd,
    StageStarted,
)
from attractor_nb.model.events.logged_events import LoggedEvents

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


MAX_LISTED = 20


class Point(msgspec.Struct, frozen=True):
    """A place in the events that count: just before a visit."""

    node_id: str  #: The node that was visited.
    visit: int  #: Number of the visit.
    sequence: int  #: The last event before it.
    stages: int  #: Number of stages committed since.


def counted_events(events: Iterable[Event]) -> LoggedEvents:
    """The events that count, in order: all but those that a later rewind went behind.

    Args:
        events: Events of one directory, in order; all of them, or the last ones if no rewind among
            them goes behind the first.
    """
    events = LoggedEvents.of(events)
    if not events.select(PipelineRewound):
        return events
    kept: list[Event] = []
    for event in events:
        if isinstance(event, PipelineRewound):
            while kept and kept[-1].sequence > event.to_sequence:
                kept.pop()
        kept.append(event)
    return LoggedEvents(kept)


def later_sessions(events: Iterable[Event], last: Event) -> list[PipelineResumed | PipelineRewound]:
    """The records with which a run continued after an event: of resumes and rewinds, oldest first.

    Args:
        events: Events of one directory, in order.
        last: An event of that directory, or of another one of the same run.
    """
    sessions = LoggedEvents.of(events).select(PipelineResumed, PipelineRewound)
    if sessions and any(event.sequence == last.sequence and event.time == last.time for event in events):
        return [event for event in sessions if event.sequence > last.sequence]
    return [event for event in sessions if event.time > last.time]


def reaches_behind(events: Iterable[Event], sequence: int) -> bool:
    """True if a rewind among the events goes behind event ``sequence``, so that nothing until there holds."""
    return any(isinstance(event, PipelineRewound) and event.to_sequence < sequence for event in events)


def find_points(counted: Iterable[Event], node_id: str) -> list[Point]:
    """The places just before each visit of a node that counts, oldest first."""
    before, stages = 0, 0
    found: dict[int, tuple[int, int]] = {}
    for event in counted:
        if isinstance(event, StageStarted) and event.name == node_id and not event.branch:
            found.setdefault(event.visit, (before, stages))
        stages += isinstance(event, StageEnd) and event.is_commit
        before = event.sequence
    return [Point(node_id, visit, sequence, stages - committed) for visit, (sequence, committed) in found.items()]


def pick(points: Sequence[Point], visit: int | None) -> Point | None:
    """The place before visit number ``visit``, or before the latest; None when there is none."""
    return next((point for point in reversed(points) if visit in (None, point.visit)), None)


def missing_visit(points: Sequence[Point], counted: Iterable[Event], node_id: str, visit: int | None) -> RunError:
    """The error that there is no such visit; says which there are.

    Args:
        points: The places before the visits of the node.
        counted: The events that count.
        node_id: The node.
        visit: The number that was asked for, or None.
    """
    if points:
        listed = ", ".join(str(point.visit) for point in points[-MAX_LISTED:])
        return RunError(f"the run has no visit {visit} of {node_id}", hint=f"visits of {node_id}: {listed}")
    counted = tuple(counted)
    if fan_out := _fan_out_of(counted, node_id):
        return RunError(
            f"{node_id} was visited in a branch only, and a run goes back as a whole",
            hint=f"go back to {fan_out}, where its branches begin",
        )
    started = (event for event in counted if isinstance(event, StageStarted) and not event.branch)
    visited = list(dict.fromkeys(event.name for event in started))
    listed = ", ".join(visited[:MAX_LISTED]) + (" …" if len(visited) > MAX_LISTED else "")
    return RunError(
        f"the run never visited {node_id}",
        hint=f"visited: {listed}" if listed else "nothing was visited yet: resume the run",
    )


def _fan_out_of(counted: Iterable[Event], node_id: str) -> str:
    """The outermost fan-out in whose branches a node was visited, or empty."""
    for event in counted:
        if isinstance(event, StageStarted) and event.name == node_id and event.branch:
            return parts_of(event.branch)[0]
    return ""


def displaced(events: LoggedEvents, counted: LoggedEvents) -> dict[str, tuple[int, int] | None]:
    """Nodes whose latest files are of a visit that was set aside.

    Returns:
        For each the visit and attempt whose files count, which are kept beside them, or None.
    """
    if counted is events:
        return {}
    there, valid = latest_attempts(events), latest_attempts(counted)
    return {name: valid.get(name) for name, attempt in there.items() if valid.get(name) != attempt}


def latest_attempts(events: LoggedEvents) -> dict[str, tuple[int, int]]:
    """Visit and attempt of each stage outside of branches that was begun latest."""
    started = events.select(StageStarted)
    return {event.name: (event.visit, event.attempt) for event in started if not event.branch}


# The open questions of a run: one fold of its log for inbox, server, command line and resume.


def interviews_under_way(events: Iterable[Event]) -> tuple[InterviewStarted | InterviewCompleted, ...]:
    """Questions and answers since the last attempt that ended: those of gates that were cut off.

    In a branch it is the last attempt of the branch that counts: several gates may wait at a time.

    An attempt that was cut off as well does not hide them: the answer that one resume took and could
    not commit is there for the next.
    """
    found: list[InterviewStarted | InterviewCompleted] = []
    ended: set[str] = set()
    for event in reversed(counted_events(events).select(InterviewStarted, InterviewCompleted, StageEnd)):
        if isinstance(event, InterviewStarted | InterviewCompleted):
            if event.branch not in ended:
                found.append(event)
        elif not event.branch:
            break
        else:
            ended.add(event.branch)
    return tuple(reversed(found))


def fold_question(waiting: dict[str, InterviewStarted], event: Event) -> None:
    """Take an event into the questions that wait, by id; the end of an attempt closes those of its branch."""
    match event:
        case InterviewStarted():
            waiting[event.question_id] = event
        case InterviewCompleted() | InterviewTimeout():
            waiting.pop(event.question_id, None)
        case StageEnd() if waiting:
            for over in [key for key, asked in waiting.items() if event.branch in {"", asked.branch}]:
                del waiting[over]
        case _:
            pass


def open_questions(events: Iterable[Event]) -> dict[str, InterviewStarted]:
    """The questions that wait for an answer, by id, as they were asked last.

    Args:
        events: The log of a run.
    """
    waiting: dict[str, InterviewStarted] = {}
    for event in counted_events(events).select(InterviewStarted, InterviewCompleted, InterviewTimeout, StageEnd):
        fold_question(waiting, event)
    return waiting
