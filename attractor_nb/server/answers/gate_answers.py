"""The questions of runs as values, and the way of an answer to its gate."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from attractor_nb.decisions.open_questions import open_questions
from attractor_nb.errors import AlreadyAnswered, AttractorError, NoSuchGate
from attractor_nb.model.events import InterviewCompleted, InterviewStarted
from attractor_nb.redaction import redacted
from attractor_nb.runtime.answers_from_elsewhere import answer_elsewhere, can_be_answered
from attractor_nb.server.response_models import AnswerTaken, Choice, WaitingQuestion
from attractor_nb.server.server_runs import locked_elsewhere
from attractor_nb.server.streams.event_reader import EventReader
from attractor_nb.storage.log.event_log import read_log
from attractor_nb.storage.log.lock import process_of
from attractor_nb.views.shown_questions import plain_question

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attractor_nb.engine.gate import Gate
    from attractor_nb.pipeline.run import Run
    from attractor_nb.server.desk import RunDesk
    from attractor_nb.server.requests import Answer
    from attractor_nb.storage.run_lists.listing import RunSummary


def questions_of(desk: RunDesk, run_id: str) -> list[WaitingQuestion]:
    """The questions of a run that wait, oldest first; of a run that stands still those that it left open."""
    if run := desk.live(run_id):
        return [_here(run_id, run, gate) for gate in run.gates]
    return _stored(run_id, desk.summary(run_id))


def questions_here(desk: RunDesk) -> list[WaitingQuestion]:
    """The questions of all runs whose engine works in this process: those that can be answered here."""
    live = desk.live_runs()
    return [_here(run_id, run, gate) for run_id, run in live.items() for gate in run.gates]


def all_questions(desk: RunDesk, summaries: Sequence[RunSummary]) -> list[WaitingQuestion]:
    """The questions of all runs of the root, whose lines these are; of what cannot be read there are none."""
    live = desk.live_runs()
    found = [_here(run_id, run, gate) for run_id, run in live.items() for gate in run.gates]
    before = desk.left_open
    kept: dict[str, tuple[RunSummary, list[WaitingQuestion]]] = {}
    for summary in summaries:
        if summary.kind != "run" or not (summary.is_live or summary.is_resumable):
            continue
        run_id = summary.logs_root.name
        if run_id in live:
            continue
        known = before.get(run_id)
        if known is None or known[0] is not summary:
            known = summary, _readable(run_id, summary)
        kept[run_id] = known
        found += known[1]
    desk.left_open = kept
    return sorted(found, key=lambda asked: asked.since)


def take_answer(desk: RunDesk, run_id: str, question: str, given: Answer) -> AnswerTaken:
    """Hand an answer to its gate; when this returns it is in the log, and it is the answer."""
    answered_by = given.answered_by or "api"
    if run := desk.live(run_id):
        gate = run.answer(question, given.choice, text=given.text, form=given.form, answered_by=answered_by)
        return AnswerTaken(pipeline=run_id, question=gate.id, stage=gate.stage, status="accepted")
    summary = desk.summary(run_id)
    waiting = _stored(run_id, summary)
    asked = next((one for one in waiting if question in {one.id, one.stage}), None)
    if asked is None or not summary.is_live:
        raise _not_waiting(desk, run_id, question, summary, is_left=asked is not None)
    if not _takes_answers(summary):
        raise locked_elsewhere(run_id, summary.owner)
    answer_elsewhere(
        summary.current_directory,
        asked.id,
        given.choice,
        owner=summary.owner,
        text=given.text,
        form=given.form,
        answered_by=answered_by,
    )
    return AnswerTaken(pipeline=run_id, question=asked.id, stage=asked.stage, status="accepted")


def _not_waiting(desk: RunDesk, run_id: str, question: str, summary: RunSummary, *, is_left: bool) -> AttractorError:
    if not is_left and (answered := _answer_in_log(desk.place(run_id), question)):
        return AlreadyAnswered(
            f"gate {question[:80]} was answered by {answered.answered_by or 'somebody'}", hint="the first answer counts"
        )
    if summary.is_live:
        hint = f"GET /pipelines/{run_id}/questions lists those that wait"
    elif summary.is_resumable:
        hint = f"resume it first: POST /pipelines/{run_id}/resume; the same question is then asked again"
    else:
        hint = f"the run is {summary.status}"
    return NoSuchGate(f"no gate {question[:80]} is waiting", hint=hint)


def _answer_in_log(place: Path, question: str) -> InterviewCompleted | None:
    """The latest answer to a question that is over, by the question's id or its node's."""
    for recorded in reversed(EventReader(place).read()):
        event = recorded.event
        if isinstance(event, InterviewCompleted) and question in {event.question_id, event.stage}:
            return event
    return None


def _here(run_id: str, run: Run, gate: Gate) -> WaitingQuestion:
    event = gate.as_event()
    event.time = gate.since
    return _question(run_id, run.pipeline.name, event, how="")


def _readable(run_id: str, summary: RunSummary) -> list[WaitingQuestion]:
    try:
        return _stored(run_id, summary)
    except AttractorError:  # its own pages say what is wrong with it
        return []


def _stored(run_id: str, summary: RunSummary) -> list[WaitingQuestion]:
    """What the log of a run that nobody works on here has open."""
    if not (summary.is_live or summary.is_resumable) or summary.kind != "run":
        return []
    how = f"POST /pipelines/{run_id}/resume asks it again"
    if summary.is_live:
        how = "" if _takes_answers(summary) else f"it is asked by {process_of(summary.owner)}"
    waiting = open_questions(read_log(summary.current_directory).events)
    return [_question(run_id, summary.pipeline_name, event, how=how) for event in waiting.values()]


def _takes_answers(summary: RunSummary) -> bool:
    """Whether another process works at a run and takes answers; runs of this one that just begin do not yet."""
    return summary.owner.get("pid") != os.getpid() and can_be_answered(summary.owner, summary.current_directory)


def _question(run_id: str, name: str, event: InterviewStarted, *, how: str) -> WaitingQuestion:
    plain = plain_question(event)
    return WaitingQuestion(
        id=event.question_id,
        pipeline=run_id,
        name=redacted(name),
        stage=event.stage,
        text=plain["title"],
        type=plain["kind"],
        options=[Choice(key=choice["key"], label=choice["label"]) for choice in plain["choices"]],
        detail=plain["detail"],
        form=plain["form"],
        materials=plain["materials"],
        branch=event.branch,
        since=event.time,
        deadline=event.deadline,
        is_answerable=not how,
        how=how,
    )
