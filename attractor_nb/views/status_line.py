"""The one line under the live graph: what the run is doing, how long, at what price (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.views.spending_fold import so_far
from attractor_nb.views.state import NodeStatus, RunStatus, RunView
from attractor_nb.views.summary_line import cached_words, price_text

if TYPE_CHECKING:
    from attractor_nb.model.graph import Graph


def status_line(view: RunView, graph: Graph, *, started: float, now: float) -> dict[str, Any]:
    """The line as JSON for the front-end, which lets the seconds run by itself.

    Args:
        view: The state of the run.
        graph: What runs.
        started: When the run began, in seconds since 1970.
        now: The clock of who runs it at this moment; sent as ``at``, so that the browser can tell its skew.
    """
    line: dict[str, Any] = {"status": view.status.value, "at": round(now, 3)}
    active = view.active_nodes
    if view.status.is_ended:
        line["is_ended"] = True
        line["elapsed"] = round(view.duration, 3)
        if view.status is not RunStatus.SUCCESS:
            line["node"] = view.next_node or view.reason
    else:
        line["elapsed"] = round(max(0.0, now - started), 3) if started else 0.0
    if active and not view.status.is_ended:
        shown = next((name for name in active if view.nodes[name].status is NodeStatus.WAITING), active[-1])
        state = view.nodes[shown]
        line["status"] = state.status.value
        line["node"] = shown
        if len(active) > 1:
            line["more"] = len(active) - 1
        line["attempt"] = state.attempt
        if shown in graph.nodes:
            line["attempts"] = attempts_allowed(graph, shown)
    if view.stages:
        line["stages"] = view.stages
    usage = so_far(view)
    if usage.total_tokens:
        line["tokens"] = usage.total_tokens
    if price := price_text(usage):
        line["price"] = price
    if view.cached:
        line["cached"] = cached_words(view)
    return line


def attempts_allowed(graph: Graph, node_id: str) -> int:
    """How many tries a node has: its ``max_retries``, else the graph's, plus one (ruling 13)."""
    default = graph.get("default_max_retries", int, graph.get("default_max_retry", int, 0))
    return graph.nodes[node_id].get("max_retries", int, default) + 1
