"""``answer``: the answer to a question that waits, in a run directory at which nobody works.

It is recorded and nothing is run: the question's stage takes it when the run goes on. A run that somebody
works at takes answers there: at its console, in its notebook, or over its server.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from attractor_nb.cli.exit_codes import ExitCode
from attractor_nb.cli.given_answer import ANSWERED_BY
from attractor_nb.cli.reporting import print_json
from attractor_nb.cli.run_summary import resume_command, shown_path
from attractor_nb.decisions.answers.gate_choices import check_answer
from attractor_nb.decisions.open_questions import interviews_under_way, open_questions
from attractor_nb.engine.handed_in import already_answered, check_texts, given_answer, node_of
from attractor_nb.engine.system_clock import SystemClock
from attractor_nb.errors import AnswerRefused, NoSuchGate, RunLocked
from attractor_nb.model.events import InterviewCompleted, InterviewStarted
from attractor_nb.model.question import Option, Question, QuestionType
from attractor_nb.model.redacted import redact_event
from attractor_nb.model.vocabulary.labels import label_text
from attractor_nb.storage.manifest_file import read_manifest
from attractor_nb.storage.run_status import standing_of
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stored_run import check_directory
from attractor_nb.views.columns import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attractor_nb.cli.given_answer import GivenAnswer
    from attractor_nb.model.events import Event


def answer_directory(logs_root: Path, given: GivenAnswer, *, is_json: bool) -> ExitCode:
    """Record an answer, and print how the run goes on with it.

    Raises:
        RunNotFound, RunLocked, CheckpointCorrupt: There is no run, or none that can be answered here.
        NoSuchGate, AlreadyAnswered, AnswerRefused: As of ``Run.answer``.
    """
    recorded = record_answer(logs_root, given)
    said = label_text(recorded.label) if recorded.label else recorded.text or recorded.answer
    if is_json:
        print_json(
            {
                "gate": recorded.stage,
                "question_id": recorded.question_id,
                "answer": recorded.answer,
                "label": recorded.label or None,
                "text": recorded.text or None,
                "logs_root": str(logs_root),
                "resume": resume_command(logs_root),
            }
        )
    else:
        print(f"✓ {one_line(recorded.stage)}: {one_line(said)}")
        print(f"  recorded in {shown_path(logs_root)}; continue the run with `{resume_command(logs_root)}`")
    return ExitCode.SUCCESS


def record_answer(logs_root: Path, given: GivenAnswer) -> InterviewCompleted:
    """Make an answer durable; the run stands still before and after.

    Raises:
        RunNotFound, RunLocked, CheckpointCorrupt, StorageError: Nothing can be recorded there.
        NoSuchGate, AlreadyAnswered, AnswerRefused: The answer does not count.
    """
    check_directory(logs_root)
    check_texts(gate=given.gate, choice=given.choice, text=given.text)
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
    """Own the directory in which the run stands: its latest restart's, where there was one."""
    manifest, _ = read_manifest(logs_root)
    place = standing_of(logs_root, manifest or {}).logs_root
    try:
        return DirectoryRunStore.open(place, durability="full", clock=clock)
    except RunLocked as locked:
        raise RunLocked(
            locked.message,
            owner=locked.owner,
            hint="answer it there: at its console, in its notebook, or over its server with --server URL",
        ) from None


def find_question(events: Sequence[Event], gate: str) -> InterviewStarted:
    """The question of a gate that waits, by the gate's node or the question's id.

    Raises:
        NoSuchGate: None waits, or several.
        AlreadyAnswered: It has its answer.
    """
    waiting = open_questions(events)
    found = [asked for asked in waiting.values() if gate in {asked.question_id, asked.stage}]
    if len(found) == 1:
        return found[0]
    if len(found) > 1:
        ids = ", ".join(asked.question_id for asked in found)
        raise NoSuchGate(f"{len(found)} questions of gate {gate} wait", hint=f"name one by its id: {ids}")
    for event in reversed(interviews_under_way(events)):
        if isinstance(event, InterviewCompleted) and gate in {event.question_id, node_of(event.question_id)}:
            raise already_answered(gate, event.description.removeprefix(f"{event.stage}: "))
    names = ", ".join(dict.fromkeys(asked.stage for asked in waiting.values()))
    hint = f"waiting: {names}" if names else "attractor-nb watch RUN_DIR --once shows the state of the run"
    raise NoSuchGate(f"no gate {gate} waits in this run", hint=hint)


def _answer_to(asked: InterviewStarted, given: GivenAnswer, now: float) -> InterviewCompleted:
    """The record of an answer.

    Raises:
        AnswerRefused: It will not do, or it comes too late, or the gate has a form: whoever judges what is
            filled in is there only when the run is.
    """
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
    question = Question(
        asked.question,
        QuestionType(asked.kind or QuestionType.MULTIPLE_CHOICE),
        options=tuple(Option(key, label) for key, label in asked.options),
        stage=asked.stage,
        metadata=asked.metadata,
        id=asked.question_id,
        branch=asked.branch,
    )
    answer = replace(
        check_answer(question, given_answer(question, given.choice, given.text)), answered_by=ANSWERED_BY
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
