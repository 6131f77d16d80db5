"""How a run stands, as answers: its line, its status, its graph, checkpoint and context."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import RunError, StorageError
from attractor_nb.model.states import RunStatus
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.server.answers.gate_answers import questions_of
from attractor_nb.server.replies import Problem, Reply
from attractor_nb.server.response_models import CheckpointState, ContextState, PipelineLine, PipelineStatus, Progress
from attractor_nb.storage.checkpoint_file import read_checkpoint
from attractor_nb.views.summary_line import status_line

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.model.graph import Graph
    from attractor_nb.pipeline.run import Run
    from attractor_nb.server.desk import RunDesk
    from attractor_nb.storage.run_lists.listing import RunSummary

SVG_TYPE: Final = "image/svg+xml"
DOT_TYPE: Final = "text/vnd.graphviz"
MERMAID_TYPE: Final = "text/vnd.mermaid"
_SVG_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"


def links_of(run_id: str) -> dict[str, str]:
    """Where more is to be had of a run, relative to the server's own address."""
    here = f"pipelines/{run_id}"
    parts = ("events", "graph", "questions", "checkpoint", "context", "artifacts", "cancel", "resume", "fork")
    return {"self": here, **{part: f"{here}/{part}" for part in parts}}


def line_of(desk: RunDesk, summary: RunSummary) -> PipelineLine:
    """A run as a line of the list."""
    return PipelineLine(**_facts(summary, desk.live(summary.logs_root.name)))


def status_of(desk: RunDesk, run_id: str) -> PipelineStatus:
    """How a run stands; of one that cannot be read what its line says."""
    live = desk.live(run_id)
    summary = desk.summary(run_id)
    facts = _facts(summary, live)
    run = live or _readable(desk, run_id, summary)
    view = run.view if run is not None else None
    return PipelineStatus(
        **facts,
        outcome=found.value if (found := RunStatus.of(facts["status"])).is_over else None,
        reason=view.reason if view else "",
        next_node=view.next_node if view else "",
        active_nodes=list(view.active_nodes) if view and facts["is_live"] else [],
        progress=Progress(
            stages=view.stages if view else 0,
            nodes=len(run.graph.nodes) if run else 0,
            visited=len(run.visits) if run else 0,
        ),
        states=view.to_plain() if view else {},
        line=_line(run, summary, is_live=facts["is_live"]),
        questions=_question_count(desk, run_id),
        links=links_of(run_id),
    )


def graph_of(run: Run, form: str) -> Reply:
    """The graph with its present states, in one of four forms."""
    if form == "svg":
        return Reply(run.to_svg(), media_type=SVG_TYPE, headers={"Content-Security-Policy": _SVG_POLICY})
    if form == "dot":
        return Reply(redacted(run.pipeline.to_dot()), media_type=DOT_TYPE)
    if form == "mermaid":
        return Reply(run.to_mermaid(), media_type=MERMAID_TYPE)
    return Reply({**plain_graph(run.graph), "states": run.view.to_plain()})


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


def checkpoint_of(desk: RunDesk, run_id: str) -> CheckpointState:
    """The newest valid checkpoint of a run."""
    checkpoint, _ = read_checkpoint(current_place(desk, run_id))
    if checkpoint is None:
        raise Problem(
            404,
            "no-checkpoint",
            "There is no checkpoint yet",
            f"pipeline {run_id} has not written one",
            hint="the context is available: GET /pipelines/ID/context",
        )
    return CheckpointState(id=run_id, checkpoint=checkpoint)


def context_of(desk: RunDesk, run_id: str) -> ContextState:
    """The context of a run behind the last record of its log."""
    journal = stored_run(desk, run_id).journal()
    last = journal.events[-1].sequence if journal.events else 0
    return ContextState(id=run_id, sequence=last, context=journal.values_at(last))


def stored_run(desk: RunDesk, run_id: str) -> Run:
    """A run as the disk has it: a live handle keeps the directory of its beginning until it ends."""
    live = desk.live(run_id)
    return desk.run(run_id) if live is None else type(live).load(desk.place(run_id), live.pipeline)


def current_place(desk: RunDesk, run_id: str) -> Path:
    """The directory in which a run is now: its own, or that of its latest restart."""
    live = desk.live(run_id)
    if live is None:
        return desk.run(run_id).logs_root
    restarts = sorted(
        (place for place in desk.place(run_id).glob("restart-*") if place.is_dir()),
        key=lambda place: int(place.name.rpartition("-")[2]) if place.name[8:].isdecimal() else 0,
    )
    return restarts[-1] if restarts else desk.place(run_id)


def _line(run: Run | None, summary: RunSummary, *, is_live: bool) -> dict[str, Any]:
    """The status line of a front-end; a run's time goes from when its present owner took it."""
    if run is None:
        return {}
    since = summary.owner.get("since", "")
    line = status_line(run.view, run.graph, started=_seconds(str(since)), now=time.time())
    if not is_live and not run.view.status.is_ended:  # whoever ran it is gone: no time goes by in it
        line |= {"status": "interrupted", "is_ended": True, "elapsed": summary.duration or 0.0}
    return line


def _seconds(moment: str) -> float:
    """Seconds since 1970 of an ISO time; 0 for what is none."""
    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return 0.0


def _readable(desk: RunDesk, run_id: str, summary: RunSummary) -> Run | None:
    if summary.kind != "run":
        return None
    try:
        return desk.run(run_id)
    except (RunError, StorageError):  # the line says what is wrong
        return None


def _question_count(desk: RunDesk, run_id: str) -> int:
    try:
        return len(questions_of(desk, run_id))
    except (RunError, StorageError):
        return 0


def _facts(summary: RunSummary, live: Run | None) -> dict[str, Any]:
    status = summary.status
    if live is not None and not live.is_done:
        status = live.status
    marks = summary.marks if live is None else live.view.marks.marks
    return {
        "id": summary.logs_root.name,
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
        "mark": redacted(marks.words),
        **redacted_value(marks.to_facts()),
        "lineage": summary.lineage,
        "note": redacted(summary.note),
        "is_here": live is not None,
        "is_live": summary.is_live or live is not None,
        "is_resumable": summary.is_resumable and live is None,
    }


def _plain(attrs: Any) -> dict[str, Any]:
    kept = (str, int, float, bool)
    return {
        name: redacted(value) if isinstance(value, str) else value if isinstance(value, kept) else str(value)
        for name, value in attrs.items()
    }
