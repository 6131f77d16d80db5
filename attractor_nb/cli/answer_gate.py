"""``answer``: the answer to a question that waits, in a run directory.

If the run is not active, it is recorded and nothing is run: the question's stage takes it when the run continues.
Where a process of this user works at it, that process is handed the answer and takes it at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from attractor_nb.account import signed_here
from attractor_nb.cli.option_choices import ANSWERED_BY, GivenAnswer
from attractor_nb.cli.reporting import ExitCode, print_json
from attractor_nb.cli.run_summary import resume_command, shown_path
from attractor_nb.decisions.gate_choices import check_answer
from attractor_nb.decisions.log_history import interviews_under_way, open_questions
from attractor_nb.engine.gates import already_answered, check_texts, given_answer, node_of, question_of
from attractor_nb.engine.time_limits import SystemClock
from attractor_nb.errors import AnswerRefused, NoSuchGate, RunLocked
from attractor_nb.model.events import Event, InterviewCompleted, InterviewStarted
from attractor_nb.model.redacted import redact_event
from attractor_nb.model.vocabulary.value_forms import label_text
from attractor_nb.runtime.answers_from_elsewhere import deliver_answer
from attractor_nb.storage.log.event_log import read_log
from attractor_nb.storage.map_directory import is_map, map_is_no_run
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stored_run import check_directory, current_directory
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def answer_directory(logs_root: Path, given: GivenAnswer, *, is_json: bool) -> ExitCode:
    """Record an answer, and print how the run continues with it."""
    check_directory(logs_root)
    if is_map(logs_root):
        raise map_is_no_run(logs_root)
    check_texts(gate=given.gate, choice=given.choice, text=given.text)
    try:
        recorded, resume = record_answer(logs_root, given), resume_command(logs_root)
    except RunLocked as locked:
        recorded, resume = _hand_over(logs_root, given, locked.owner), None
    choice = label_text(recorded.label) if recorded.label else recorded.text or recorded.answer
    if is_json:
        print_json(
            {
                "gate": recorded.stage,
                "question_id": recorded.question_id,
                "answer": recorded.answer,
                "label": recorded.label or None,
                "text": recorded.text or None,
                "logs_root": str(logs_root),
                "resume": resume,
            }
        )
    else:
        print(f"✓ {one_line(recorded.stage)}: {one_line(choice)}")
        goes_on = f"continue the run with `{resume}`" if resume else "its process continues the run"
        print(f"  recorded in {shown_path(logs_root)}; {goes_on}")
    return ExitCode.SUCCESS


def _hand_over(logs_root: Path, given: GivenAnswer, owner: Mapping[str, Any]) -> InterviewCompleted:
    """Hand an answer to the process that works at the run; what its log then has of it."""
    place = current_directory(logs_root)
    asked = find_question(read_log(place).events, given.gate)
    return deliver_answer(
        place,
        asked.question_id,
        given.choice,
        owner=owner,
        text=given.text,
        form=given.fields,
        answered_by=signed_here(ANSWERED_BY),
    )


def record_answer(logs_root: Path, given: GivenAnswer) -> InterviewCompleted:
    """Make an answer durable; the run is inactive before and after."""
    clock = SystemClock()
    store = _own(logs_root, clock)
    try:
        events = store.read_events()
        question = find_question(events, given.gate)
        event = _answer_to(question, given, clock.time())
        event.run_id = question.run_id
        event.sequence = store.scan.sequence + 1
        redact_event(event)
        store.append(event, is_synced=True)
    finally:
        store.close()
    return event


def _own(logs_root: Path, clock: SystemClock) -> DirectoryRunStore:
    """Own the directory in which the run is now: its latest restart's, where there was one."""
    return DirectoryRunStore.open(current_directory(logs_root), durability="full", clock=clock)


def find_question(events: Sequence[Event], gate: str) -> InterviewStarted:
    """The question of a gate that waits, by the gate's node or the question's id."""
    waiting = open_questions(events)
    found = [asked for asked in waiting.values() if gate in {asked.question_id, asked.stage}]
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        ids = ", ".join(asked.question_id for asked in found)
        raise NoSuchGate(f"gate {gate} has {len(found)} open questions", hint=f"name one by its id: {ids}")
    for event in reversed(interviews_under_way(events)):
        if isinstance(event, InterviewCompleted) and gate in {event.question_id, node_of(event.question_id)}:
            raise already_answered(gate, event.description.removeprefix(f"{event.stage}: "))
    names = ", ".join(dict.fromkeys(asked.stage for asked in waiting.values()))
    hint = f"waiting: {names}" if names else "attractor-nb watch RUN_DIR --once shows the state of the run"
    raise NoSuchGate(f"no gate {gate} waits in this run", hint=hint)


def _answer_to(asked: InterviewStarted, given: GivenAnswer, now: float) -> InterviewCompleted:
    """The record of an answer."""
    if asked.form:
        raise AnswerRefused(
            f"gate {asked.stage} has a form, which can only be validated while the run is active",
            hint="run attractor-nb resume RUN_DIR at a terminal: it asks for the fields",
        )
    if given.fields:
        raise AnswerRefused("the question has no form", hint="answer without --field")
    if asked.deadline is not None and now >= asked.deadline:
        raise AnswerRefused(
            f"the time of gate {asked.stage} has run out",
            hint="attractor-nb resume RUN_DIR continues with the timeout rule of the gate",
        )
    question = question_of(asked)
    answer = replace(
        check_answer(question, given_answer(question, given.choice, given.text)), answered_by=signed_here(ANSWERED_BY)
    )
    option = answer.selected_option
    return InterviewCompleted(
        question=question.text,
        answer=answer.value or answer.text,
        duration=max(0.0, now - asked.time),
        question_id=asked.question_id,
        stage=asked.stage,
        label=option.label if option else "",
        keys=tuple(chosen.key for chosen in answer.selected_options),
        text=answer.text,
        answered_by=answer.answered_by,
        branch=asked.branch,
        time=now,
    )
