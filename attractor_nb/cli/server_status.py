"""A run of a server as it stands at this moment, from what the server says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.cli.run_watched import WatchedRun
from attractor_nb.cli.server_client import as_mapping, as_mappings, in_commands
from attractor_nb.model.events import InterviewStarted
from attractor_nb.model.outcome import Usage
from attractor_nb.views.columns import one_line
from attractor_nb.views.state import NodeState, NodeStatus, RunStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.graph import Graph

_STATUSES: Final = {
    "running": RunStatus.RUNNING,
    "resumed": RunStatus.RUNNING,
    "waiting": RunStatus.RUNNING,
    "completed": RunStatus.SUCCESS,
    "failed": RunStatus.FAIL,
}


def run_on_server(graph: Graph, status: Mapping[str, Any], questions: Mapping[str, Any]) -> WatchedRun:
    """A run to be shown once.

    Args:
        graph: What runs.
        status: The answer to ``GET /pipelines/{id}``.
        questions: The answer to ``GET /pipelines/{id}/questions``.
    """
    run = WatchedRun(graph, is_simulated=status.get("is_simulated") is True)
    view = run.view
    view.status = _STATUSES.get(str(status.get("status")), RunStatus.INTERRUPTED)
    view.reason = str(status.get("reason") or "")
    view.next_node = str(status.get("next_node") or "")
    view.duration = float(status.get("duration") or 0.0)
    view.stages = int(as_mapping(status.get("progress")).get("stages") or status.get("stages") or 0)
    view.usage = Usage.from_plain(as_mapping(status.get("usage")))
    for name, plain in as_mapping(as_mapping(status.get("states")).get("nodes")).items():
        view.nodes[name] = _state(as_mapping(plain))
    for plain in as_mappings(questions.get("questions")):
        gate = _question(plain)
        run.gates[gate.question_id] = gate
    return run


def answered_elsewhere(questions: Mapping[str, Any], url: str) -> dict[str, str]:
    """How questions are answered that the server itself cannot take an answer to, by id.

    Args:
        questions: The answer to ``GET /pipelines/{id}/questions``.
        url: The server.
    """
    return {
        str(plain.get("id", "")): in_commands(one_line(str(plain.get("how", ""))), url)
        for plain in as_mappings(questions.get("questions"))
        if plain.get("how")
    }


def _state(plain: Mapping[str, Any]) -> NodeState:
    """The inverse of ``NodeState.to_plain``; a status that we do not know looks like none."""
    known = {status.value: status for status in NodeStatus}
    return NodeState(
        known.get(str(plain.get("status")), NodeStatus.PENDING),
        int(plain.get("attempt", 1)),
        int(plain.get("visits", 0)),
        str(plain.get("reason", "")),
        float(plain.get("since", 0.0)),
        plain.get("until"),
        str(plain.get("progress", "")),
        str(plain.get("note", "")),
    )


def _question(plain: Mapping[str, Any]) -> InterviewStarted:
    return InterviewStarted(
        question=str(plain.get("text", "")),
        stage=str(plain.get("stage", "")),
        question_id=str(plain.get("id", "")),
        kind=str(plain.get("type", "")),
        options=tuple(
            (str(option.get("key", "")), str(option.get("label", "")))
            for option in as_mappings(plain.get("options"))
        ),
        branch=str(plain.get("branch", "")),
    )
