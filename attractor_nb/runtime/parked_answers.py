"""Answers to questions of runs that no process works at: they are recorded, and nothing is run.

The question's stage takes its answer when the run is resumed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from attractor_nb.decisions.gate_choices import check_answer
from attractor_nb.decisions.log_history import interviews_under_way, open_questions
from attractor_nb.engine.gates import already_answered, answered_event, check_texts, given_answer, node_of, question_of
from attractor_nb.engine.time_limits import SystemClock
from attractor_nb.errors import AnswerRefused, NoSuchGate
from attractor_nb.model.events import Event, InterviewCompleted, InterviewStarted
from attractor_nb.model.redacted import redact_event
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stored_run import current_directory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def record_answer(
    logs_root: Path,
    gate: str,
    choice: str = "",
    *,
    text: str = "",
    form: Mapping[str, Any] | None = None,
    answered_by: str,
) -> InterviewCompleted:
    """Make an answer durable; the run is inactive before and after, and takes it when it is resumed.

    Args:
        logs_root: The run directory.
        gate: The node that asks, or the question's id.
        choice: Key, label or target of a choice, or empty.
        text: Free text.
        form: What is filled in, by field; refused, because only an active run can validate it.
        answered_by: Who answers, for the record.

    Raises:
        NoSuchGate: No such gate waits, or several do.
        AlreadyAnswered: It has an answer.
        AnswerRefused: The answer matches no choice, or its time has run out.
        RunLocked: A process works at the run.
    """
    check_texts(gate=gate, choice=choice, text=text)
    clock = SystemClock()
    store = DirectoryRunStore.open(current_directory(logs_root), durability="full", clock=clock)
    try:
        question = find_question(store.read_events(), gate)
        if form and not question.form:
            raise AnswerRefused("the question has no form", hint="answer without --field")
        event = _answer_to(question, choice, text, answered_by, clock.time())
        event.run_id = question.run_id
        event.sequence = store.scan.sequence + 1
        redact_event(event)
        store.append(event, is_synced=True)
    finally:
        store.close()
    return event


def find_question(events: Sequence[Event], gate: str) -> InterviewStarted:
    """The question of a gate that waits, by the gate's node or the question's id."""
    waiting = open_questions(events)
    found = [asked for asked in waiting.values() if gate in {asked.question_id, asked.stage}]
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        ids = ", ".join(asked.question_id for asked in found)
        raise NoSuchGate(f"gate `{gate}` has {len(found)} open questions", hint=f"name one by its id: {ids}")
    for event in reversed(interviews_under_way(events)):
        if isinstance(event, InterviewCompleted) and gate in {event.question_id, node_of(event.question_id)}:
            raise already_answered(gate, event.description.removeprefix(f"{event.stage}: "))
    names = ", ".join(dict.fromkeys(asked.stage for asked in waiting.values()))
    hint = f"waiting: {names}" if names else "attractor-nb watch RUN_DIR --once shows the state of the run"
    raise NoSuchGate(f"no gate `{gate}` waits in this run", hint=hint)


def _answer_to(asked: InterviewStarted, choice: str, text: str, answered_by: str, now: float) -> InterviewCompleted:
    """The record of an answer."""
    if asked.form:
        raise AnswerRefused(
            f"gate `{asked.stage}` has a form, which can only be validated while the run is active",
            hint="run attractor-nb resume RUN_DIR at a terminal: it asks for the fields",
        )
    if asked.deadline is not None and now >= asked.deadline:
        raise AnswerRefused(
            f"the time of gate `{asked.stage}` has run out",
            hint="attractor-nb resume RUN_DIR resumes the run with the timeout rule of the gate",
        )
    question = question_of(asked)
    answer = check_answer(question, replace(given_answer(question, choice, text), answered_by=answered_by))
    event = answered_event(question, answer, max(0.0, now - asked.time))
    event.time = now
    return event
