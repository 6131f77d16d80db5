"""Which questions of a run are open: one fold of its log for inbox, server, command line and resume."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.decisions.log_history import counted_events
from attractor_nb.model.events import InterviewCompleted, InterviewStarted, InterviewTimeout, StageEnd

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attractor_nb.model.events import Event


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
