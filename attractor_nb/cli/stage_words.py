"""What a line of progress calls a stage, and what it says of its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.model.branch import parts_of
from attractor_nb.model.events import StageEnd, StageFailed
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.vocabulary.labels import label_text, normalize_label
from attractor_nb.views.columns import cells, one_line
from attractor_nb.views.drawings.marks import AGAIN, TIMES
from attractor_nb.views.state import RunView, first_words
from attractor_nb.views.summary_line import usage_words

if TYPE_CHECKING:
    from attractor_nb.model.graph import Graph

NAME_COLUMNS: Final = 24
REASON_CHARS: Final = 100
_PEOPLE: Final = {
    "console": "by you",
    "auto-approve": "auto-approved",
    "default": "no answer in time: default",
}


class StageWords:
    """Words about the stages of a graph."""

    def __init__(self, graph: Graph, view: RunView) -> None:
        self._graph = graph
        self._view = view

    def of(self, event: StageEnd, answered_by: str = "") -> str:
        """Why it failed, or its label; the way taken where there was a choice; how often it was tried."""
        outcome = event.outcome
        if isinstance(event, StageFailed) or outcome.status is StageStatus.RETRY:
            error = event.error if isinstance(event, StageFailed) else ""
            parts = [first_words(error or outcome.failure_reason, REASON_CHARS)]
        else:
            parts = [self.label(event.name)]
        if fan_out := self._view.fan_outs.get((event.branch, event.name)):
            parts.append(f"({fan_out.note})")
        if way := self._way(event):
            parts.append(f"→ {way}")
        if answered_by:
            parts.append(f"({_PEOPLE.get(answered_by, answered_by)})")
        if event.attempt > 1:
            parts.append(f"{TIMES}{event.attempt}")
        if event.visit > 1:
            parts.append(f"{AGAIN}{event.visit}")
        parts.append(self.spent(event))
        return " ".join(part for part in parts if part)

    def spent(self, event: StageEnd) -> str:
        """What this attempt consumed, or what the cache saved, in brackets; empty when it did not say."""
        if event.is_cached:
            saved = usage_words(event.saved) if event.saved else ()
            return f"(cached, saved {', '.join(saved)})" if saved else "(cached)"
        words = usage_words(event.outcome.usage) if event.outcome.usage else ()
        return f"({', '.join(words)})" if words else ""

    def label(self, node_id: str) -> str:
        """The label of a node, when it says more than its id."""
        node = self._graph.nodes.get(node_id)
        return (
            one_line(node.label) if node and normalize_label(node.label) != normalize_label(node_id) else ""
        )

    def _way(self, event: StageEnd) -> str:
        is_fan_out = (event.branch, event.name) in self._view.fan_outs
        if len(self._graph.outgoing_edges(event.name)) < 2 or not event.next_node:
            return ""
        if is_fan_out and event.edge is None:
            return ""
        label = self._graph.edges[event.edge].label if event.edge is not None else ""
        return one_line(label_text(label)) or event.next_node

    def is_instant(self, node_id: str) -> bool:
        """Whether nobody asks how long it took."""
        return self._graph.handler_types.get(node_id) in {"start", "exit", "conditional"}


def shown_path(path: str) -> str:
    """The path of a branch as people read it, on one line.

    >>> shown_path("fan/a%20b")
    'fan/a b'
    """
    return one_line("/".join(parts_of(path)))


def stage_path(branch: str, node_id: str) -> str:
    """A stage with the branch that it is in; the first node of a branch has the branch's own name.

    >>> stage_path("", "plan"), stage_path("fan/a", "a"), stage_path("fan/a", "x")
    ('plan', 'fan/a', 'fan/a/x')
    """
    if not branch:
        return node_id
    parts = parts_of(branch)
    return shown_path(branch) if parts[-1] == node_id else f"{shown_path(branch)}/{one_line(node_id)}"


def name_columns(graph: Graph) -> int:
    """Width of the column of names: that of the longest, with its branch where it begins one."""
    names = list(graph.nodes)
    for name, handler_type in graph.handler_types.items():
        if handler_type == "parallel":
            names += [f"{name}/{edge.target}" for edge in graph.outgoing_edges(name)]
    return min(NAME_COLUMNS, max(map(cells, names), default=0))
