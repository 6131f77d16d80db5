"""A run as answers: its status, its files and its questions."""

from __future__ import annotations

import os
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.log_history import open_questions
from attractor_nb.engine.time_limits import SystemClock
from attractor_nb.errors import (
    AlreadyAnswered,
    AttractorError,
    NoSuchGate,
    OptionError,
    RunError,
    SessionNotFound,
    StorageError,
)
from attractor_nb.model.events import InterviewCompleted, InterviewStarted
from attractor_nb.model.states import RunStatus, run_word
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.runtime.answers_from_elsewhere import can_be_answered, deliver_answer
from attractor_nb.server.event_channel import EventReader
from attractor_nb.server.replies import Problem, Reply
from attractor_nb.server.request_words import in_requests, reason_in_requests, view_in_requests
from attractor_nb.server.response_models import (
    AnswerTaken,
    ArtifactLine,
    ArtifactList,
    CheckpointState,
    Choice,
    ContextState,
    PipelineLine,
    PipelineStatus,
    Progress,
    QuestionList,
    StageFileText,
    WaitingQuestion,
)
from attractor_nb.server.server_runs import is_row, locked_elsewhere, map_of, row_id, way_to_resume
from attractor_nb.storage.checkpoint_file import read_checkpoint
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.log.event_log import read_log
from attractor_nb.storage.log.lock import process_of
from attractor_nb.storage.run_directory import RunDirectory
from attractor_nb.storage.run_index import waiting_rows
from attractor_nb.storage.stages.artifact_store import ArtifactStore
from attractor_nb.views.shown_questions import plain_question
from attractor_nb.views.summary_line import status_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attractor_nb.engine.gates import Gate
    from attractor_nb.model.graph import Graph
    from attractor_nb.pipeline.run import Run
    from attractor_nb.server.requests import Answer, InspectionQuery, StageQuery
    from attractor_nb.server.run_service import RunService
    from attractor_nb.storage.run_listing import RunSummary
    from attractor_nb.studio.inspect.inspection import StageInspection


# The status of a run as answers: its line, its status, its graph, checkpoint and context.

SVG_TYPE: Final = "image/svg+xml"
DOT_TYPE: Final = "text/vnd.graphviz"
MERMAID_TYPE: Final = "text/vnd.mermaid"
_SVG_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"


def links_of(run_id: str) -> dict[str, str]:
    """The links to a run's resources, relative to the server's own address."""
    here = f"pipelines/{run_id}"
    parts = ("events", "graph", "questions", "checkpoint", "context", "artifacts", "cancel", "resume", "fork")
    return {"self": here, **{part: f"{here}/{part}" for part in parts}}


def line_of(service: RunService, summary: RunSummary) -> PipelineLine:
    """A run as a line of the list."""
    run_id = summary.logs_root.name
    return PipelineLine(**_facts(run_id, summary, service.live(run_id)))


def status_of(service: RunService, run_id: str) -> PipelineStatus:
    """The status of a run; for one that cannot be read, the status of its line."""
    live = service.live(run_id)
    summary = service.summary(run_id)
    facts = _facts(run_id, summary, live)
    run = live or _readable(service, run_id, summary)
    view = run.view if run is not None else None
    return PipelineStatus(
        **facts,
        outcome=found.value if (found := RunStatus.of(facts["status"])).is_over else None,
        reason=reason_in_requests(view.reason) if view else "",
        next_node=view.next_node if view else "",
        active_nodes=list(view.active_nodes) if view and facts["is_live"] else [],
        progress=Progress(
            stages=view.stages if view else 0,
            nodes=len(run.graph.nodes) if run else 0,
            visited=len(run.visits) if run else 0,
        ),
        states=view_in_requests(view.to_plain()) if view else {},
        line=_line(run, summary, is_live=facts["is_live"]),
        questions=_question_count(service, run_id),
        links=links_of(run_id),
        map_id=map_of(run_id),
    )


def graph_of(run: Run, form: str) -> Reply:
    """The graph with its present states, in one of four forms."""
    if form == "svg":
        return Reply(run.to_svg(), media_type=SVG_TYPE, headers={"Content-Security-Policy": _SVG_POLICY})
    if form == "dot":
        return Reply(redacted(run.pipeline.to_dot()), media_type=DOT_TYPE)
    if form == "mermaid":
        return Reply(run.to_mermaid(), media_type=MERMAID_TYPE)
    return Reply({**plain_graph(run.graph), "states": view_in_requests(run.view.to_plain())})


def plain_graph(graph: Graph) -> dict[str, Any]:
    """Nodes and edges with what was written of them."""
    return {
        "name": graph.name,
        "goal": redacted(graph.goal),
        "nodes": [
            {
                "id": node.id,
                "label": redacted(node.label),
                "shape": node.shape,
                "type": graph.handler_types[node.id],
                "attributes": _plain(node.attrs),
            }
            for node in graph.nodes.values()
        ],
        "edges": [
            {"source": edge.source, "target": edge.target, "attributes": _plain(edge.attrs)} for edge in graph.edges
        ],
    }


def checkpoint_of(service: RunService, run_id: str) -> CheckpointState:
    """The newest valid checkpoint of a run."""
    checkpoint, _ = read_checkpoint(current_place(service, run_id))
    if checkpoint is None:
        raise Problem(
            404,
            "no-checkpoint",
            "There is no checkpoint yet",
            f"pipeline {run_id} has not written one",
            hint="the context is available: GET /pipelines/ID/context",
        )
    return CheckpointState(id=run_id, checkpoint=checkpoint)


def context_of(service: RunService, run_id: str) -> ContextState:
    """The context of a run behind the last record of its log."""
    journal = stored_run(service, run_id).journal()
    last = journal.events[-1].sequence if journal.events else 0
    return ContextState(id=run_id, sequence=last, context=journal.values_at(last))


def stored_run(service: RunService, run_id: str) -> Run:
    """A run as it is stored: a live handle keeps the directory of its beginning until it ends."""
    live = service.live(run_id)
    return service.run(run_id) if live is None else type(live).load(service.place(run_id), live.pipeline)


def current_place(service: RunService, run_id: str) -> Path:
    """The directory in which a run is now: its own, or that of its latest restart."""
    live = service.live(run_id)
    if live is None:
        return service.run(run_id).logs_root
    restarts = sorted(
        (place for place in service.place(run_id).glob("restart-*") if place.is_dir()),
        key=lambda place: int(place.name.rpartition("-")[2]) if place.name[8:].isdecimal() else 0,
    )
    return restarts[-1] if restarts else service.place(run_id)


def _line(run: Run | None, summary: RunSummary, *, is_live: bool) -> dict[str, Any]:
    """The status line of a front-end; a run's time goes from when its present owner took it."""
    if run is None:
        return {}
    since = summary.owner.get("since", "")
    line = status_line(run.view, run.graph, started=_seconds(str(since)), now=time.time())
    if not is_live and not run.view.status.is_ended:  # its process is gone: its time has stopped
        line |= {"status": "interrupted", "is_ended": True, "elapsed": summary.duration or 0.0}
    if not is_live:
        line["is_over"] = True
    return line | {"node": reason_in_requests(line.get("node", ""))}


def _seconds(moment: str) -> float:
    """Seconds since 1970 of an ISO time; 0 for what is none."""
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return 0.0


def _readable(service: RunService, run_id: str, summary: RunSummary) -> Run | None:
    if summary.is_map:
        return None
    try:
        return service.run(run_id)
    except (RunError, StorageError):  # the line says what is wrong
        return None


def _question_count(service: RunService, run_id: str) -> int:
    try:
        return len(questions_of(service, run_id))
    except (RunError, StorageError):
        return 0


def _facts(run_id: str, summary: RunSummary, live: Run | None) -> dict[str, Any]:
    status = summary.status
    if live is not None and not live.is_done:
        status = live.status
    marks = summary.marks if live is None else live.view.marks.marks
    return {
        "id": run_id,
        "run_id": summary.run_id,
        "name": redacted(summary.pipeline_name),
        "kind": summary.kind,
        "status": status,
        "start_time": summary.start_time,
        "end_time": summary.end_time,
        "duration": summary.duration,
        "stages": summary.stages,
        "usage": summary.usage.to_plain() if summary.usage is not None else None,
        "tags": list(summary.tags),
        "inputs": redacted(summary.inputs),
        "mark": redacted(marks.words),
        **redacted_value(marks.to_facts()),
        "lineage": summary.lineage,
        "note": redacted(reason_in_requests(summary.note)),
        "is_here": live is not None,
        "is_live": summary.is_live or live is not None,
        "is_resumable": summary.is_resumable and live is None and not is_row(run_id),
    }


def _plain(attrs: Any) -> dict[str, Any]:
    kept = (str, int, float, bool)
    return {
        name: redacted(value) if isinstance(value, str) else value if isinstance(value, kept) else str(value)
        for name, value in attrs.items()
    }


# The records of a run: stages, their files, artifacts, the session of its branches. They are only read.

MAX_FILE_BYTES: Final = 1024 * 1024
MAX_ARTIFACT_BYTES: Final = 16 * 1024 * 1024


def stage_of(run: Run, node: str, asked: StageQuery) -> StageInspection:
    """One attempt of one visit of a stage."""
    from attractor_nb.studio.inspect.inspect_run import inspect_stage  # noqa: PLC0415 - see serving.py

    try:
        return inspect_stage(run, node, asked.visit, asked.attempt, asked.branch)
    except OptionError as error:
        hint = in_requests(error.hint)
        raise Problem(404, "no-such-stage", "There is no such stage", error.message, hint=hint) from None


def plain_stage(run: Run, node: str, asked: StageQuery) -> dict[str, Any]:
    """The same as the inspector shows it; where it lies on this machine is left out."""
    return view_in_requests(stage_of(run, node, asked).to_plain(with_place=False))


def inspection_of(run: Run, asked: InspectionQuery) -> dict[str, Any]:
    """The answer to a front-end's inspector; ``problems`` names the parts that cannot be answered."""
    from attractor_nb.pipeline.run_actions import InspectorActions  # noqa: PLC0415 - see serving.py
    from attractor_nb.studio.inspect.inspect_run import answer_inspection  # noqa: PLC0415 - as above

    plain = answer_inspection(run, asked.model_dump(), with_place=False)
    if plain.get("failure"):  # what the page does with a failed stage; the calls are those of Python
        found = InspectorActions(run).with_actions(plain)["actions"]
        found.pop("save", None)  # a row is a file beside a notebook
        calls = {name: {**found[name], "call": ""} for name in ("fork", "rewind")}
        plain["actions"] = {**found, **calls, "is_pinned": False, "pin": None}
    return view_in_requests(plain)


def stage_file(run: Run, node: str, name: str, asked: StageQuery) -> StageFileText:
    """The beginning of a file of a stage, without secrets."""
    stage = stage_of(run, node, asked)
    try:
        found = stage.read(name, MAX_FILE_BYTES)
    except StorageError as error:
        raise _no_file(error.message) from None
    if found is None:
        raise _no_file(f"stage {node} has no file {name[:100]}")
    text, size = found
    return StageFileText(name=name, text=text, bytes=size, is_cut=size > MAX_FILE_BYTES)


def artifacts_of(run_id: str, logs_root: Path) -> ArtifactList:
    """The artifacts that lie in a run's directory."""
    with _Artifacts(logs_root) as store:
        lines = [ArtifactLine(id=info.id, bytes=info.size_bytes, stored_at=info.stored_at) for info in store.list()]
    return ArtifactList(id=run_id, artifacts=lines)


def artifact_of(logs_root: Path, artifact_id: str) -> Any:
    """The value of an artifact."""
    with _Artifacts(logs_root) as store:
        known = {info.id: info for info in store.list()}
        info = known.get(artifact_id)
        if info is None:
            raise Problem(
                404, "no-such-artifact", "There is no such artifact", f"there is no artifact {artifact_id[:80]}"
            )
        if info.size_bytes > MAX_ARTIFACT_BYTES:
            raise Problem(
                409,
                "artifact-too-large",
                "The artifact is too large to send",
                f"{artifact_id} has {info.size_bytes} bytes",
                hint=f"read the file: artifacts/{artifact_id}.json in the run directory",
            )
        return store.retrieve(artifact_id)


def session_of(place: Path) -> dict[str, Any]:
    """The status of a run's branches as a session of agents (status-schema)."""
    from attractor_nb.sessions.tracker import session_to_watch, stored_plain  # noqa: PLC0415 - for this alone

    plain = stored_plain(session_to_watch(None, place))
    if plain is None:
        raise SessionNotFound("this run has no session", hint='submit it with "session": true')
    return plain


class _Artifacts:
    """The artifacts of a directory that is held open meanwhile."""

    def __init__(self, logs_root: Path) -> None:
        self._logs_root = logs_root

    def __enter__(self) -> ArtifactStore:
        disk = Disk()
        self._root = RunDirectory(disk, self._logs_root)
        try:
            return ArtifactStore(SystemClock(), disk=disk, root=self._root)
        except BaseException:  # an interrupt, too: no other code closes it
            self._root.close()
            raise

    def __exit__(self, *ended: object) -> None:
        self._root.close()


def _no_file(detail: str) -> Problem:
    return Problem(404, "no-such-file", "There is no such file", detail)


# The questions of runs as values, and the way of an answer to its gate.


def questions_of(service: RunService, run_id: str) -> list[WaitingQuestion]:
    """The questions of a run that wait, oldest first; of a run that is inactive those that it left open."""
    if run := service.live(run_id):
        return [_here(run_id, run, gate) for gate in run.gates]
    return _stored(service, run_id, service.summary(run_id))


def questions_here(service: RunService) -> list[WaitingQuestion]:
    """The questions of all runs whose engine works in this process: those that can be answered here."""
    live = service.live_runs()
    return [_here(run_id, run, gate) for run_id, run in live.items() for gate in run.gates]


MOST_QUESTIONS: Final = 500
"""Questions in one answer, the oldest; of those beyond them only the number is told."""


def all_questions(service: RunService, summaries: Sequence[RunSummary]) -> QuestionList:
    """The questions of all runs of the root, whose lines these are; of what cannot be read there are none."""
    live = service.live_runs()
    found = [_here(run_id, run, gate) for run_id, run in live.items() for gate in run.gates]
    before = service.left_open
    kept: dict[str, tuple[RunSummary, list[WaitingQuestion]]] = {}
    asking: list[tuple[str, RunSummary]] = []
    more = 0
    for summary in summaries:
        run_id = summary.logs_root.name
        if not summary.is_map and run_id not in live and (summary.is_live or summary.is_resumable):
            asking.append((run_id, summary))
        elif summary.is_map:
            rows, unread = _readable_rows(summary)
            asking += [(row_id(run_id, row.logs_root.name), row) for row in rows]
            more += unread
    for run_id, summary in asking:
        known = before.get(run_id)
        if known is None or known[0] is not summary:
            known = summary, _readable_gate(service, run_id, summary)
        kept[run_id] = known
        found += known[1]
    service.left_open = kept
    found.sort(key=lambda asked: asked.since)
    return QuestionList(questions=found[:MOST_QUESTIONS], more_questions=more + len(found[MOST_QUESTIONS:]))


def _readable_rows(of_map: RunSummary) -> tuple[list[RunSummary], int]:
    try:
        return waiting_rows(of_map)
    except AttractorError:  # its own page says what is wrong with it
        return [], 0


def take_answer(service: RunService, run_id: str, question: str, given: Answer) -> AnswerTaken:
    """Hand an answer to its gate; when this returns it is in the log, and it is the answer.

    That of a paused row counts when its map is resumed, which no request does. Any other inactive run is resumed first.
    """
    details: dict[str, Any] = {"text": given.text, "form": given.form, "answered_by": given.answered_by}
    if run := service.live(run_id):
        gate = run.answer(question, given.choice, **details)
        return AnswerTaken(pipeline=run_id, question=gate.id, stage=gate.stage, status="accepted")
    summary = service.summary(run_id)
    waiting = _stored(service, run_id, summary)
    asked = next((one for one in waiting if question in {one.id, one.stage}), None)
    if asked is not None and is_row(run_id) and not summary.is_live:
        from attractor_nb.runtime.parked_answers import record_answer  # noqa: PLC0415 - see serving.py

        record_answer(summary.current_directory, asked.id, given.choice, **details)
        return AnswerTaken(pipeline=run_id, question=asked.id, stage=asked.stage, status="recorded")
    if asked is None or not summary.is_live:
        raise _not_waiting(service, run_id, question, summary, is_left=asked is not None)
    if not _takes_answers(summary):
        raise locked_elsewhere(run_id, summary.owner)
    deliver_answer(summary.current_directory, asked.id, given.choice, owner=summary.owner, **details)
    return AnswerTaken(pipeline=run_id, question=asked.id, stage=asked.stage, status="accepted")


def _not_waiting(
    service: RunService, run_id: str, question: str, summary: RunSummary, *, is_left: bool
) -> AttractorError:
    if not is_left and (answered := _answer_in_log(service.place(run_id), question)):
        return AlreadyAnswered(
            f"gate `{question[:80]}` was answered by {answered.answered_by or 'a person'}",
            hint="the first answer counts",
        )
    if summary.is_live:
        hint = f"GET /pipelines/{run_id}/questions lists those that wait"
    elif summary.is_resumable:
        hint = f"resume it first: {way_to_resume(service.root, run_id)}; the same question is then asked again"
    else:
        hint = f"the run is {run_word(summary.status)}"
    return NoSuchGate(f"no gate `{question[:80]}` is waiting", hint=hint)


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


def _readable_gate(service: RunService, run_id: str, summary: RunSummary) -> list[WaitingQuestion]:
    try:
        return _stored(service, run_id, summary)
    except AttractorError:  # its own pages say what is wrong with it
        return []


def _stored(service: RunService, run_id: str, summary: RunSummary) -> list[WaitingQuestion]:
    """The open questions in the log of a run that this server does not work on."""
    if not (summary.is_live or summary.is_resumable) or summary.is_map:
        return []
    resumed = f"{way_to_resume(service.root, run_id)} asks it again"
    if summary.is_live:
        resumed = "" if _takes_answers(summary) else f"it is asked by {process_of(summary.owner)}"
    is_parked = is_row(run_id) and not summary.is_live  # a form is validated by the engine alone
    waiting = open_questions(read_log(summary.current_directory).events).values()
    ways = [(event, "" if is_parked and not event.form else resumed) for event in waiting]
    return [_question(run_id, summary.pipeline_name, event, how=how) for event, how in ways]


def _takes_answers(summary: RunSummary) -> bool:
    """True if another process works at a run and takes answers; runs of this one that just begin do not yet."""
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
