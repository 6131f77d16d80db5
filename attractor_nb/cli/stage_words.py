"""The stages of a run in lines: what they are called, what they do at this moment, and how they end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from attractor_nb.cli.command_words import reason_in_options
from attractor_nb.model.branch import parts_of
from attractor_nb.model.events import StageEnd, StageFailed
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.question import who_answered
from attractor_nb.model.vocabulary.labels import label_text, normalize_label
from attractor_nb.views.columns import cells, one_line
from attractor_nb.views.drawings.marks import AGAIN, TIMES
from attractor_nb.views.state import RunView, first_words
from attractor_nb.views.summary_line import usage_words

if TYPE_CHECKING:
    from attractor_nb.model.events import StageOutput, StageStarted
    from attractor_nb.model.graph import Graph

NAME_COLUMNS: Final = 24
REASON_CHARS: Final = 100
_NOBODY: Final = {"auto-approve": "auto-approved", "default": "no answer in time: default"}

TAIL_CHARS: Final = 2_000
KEPT_CHARS: Final = 20_000


class StageWords:
    """Words about the stages of a graph."""

    def __init__(self, graph: Graph, view: RunView) -> None:
        self._graph = graph
        self._view = view

    def of(self, event: StageEnd, answered_by: str = "") -> str:
        """Why it failed, or its label; the edge taken where there was a choice; how often it was tried."""
        outcome = event.outcome
        if isinstance(event, StageFailed) or outcome.status is StageStatus.RETRY:
            error = event.error if isinstance(event, StageFailed) else ""
            parts = [first_words(reason_in_options(error or outcome.failure_reason), REASON_CHARS)]
        else:
            parts = [self.label(event.name)]
        if fan_out := self._view.fan_outs.get((event.branch, event.name)):
            parts.append(f"({fan_out.note})")
        if route := self._route(event):
            parts.append(f"→ {route}")
        if answered_by:
            parts.append(f"({_NOBODY.get(answered_by) or f'by {one_line(who_answered(answered_by))}'})")
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
        return one_line(node.label) if node and normalize_label(node.label) != normalize_label(node_id) else ""

    def _route(self, event: StageEnd) -> str:
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


@dataclass(slots=True)
class ActiveStage:
    """A stage under way."""

    event: StageStarted  #: Its latest attempt.
    since: float  #: When that began, by the monotonic clock.
    tail: str = ""  #: The end of what it writes.
    text: str = ""  #: What it answered.


class ActiveStages:
    """The stages under way: one in each branch, and one outside of all."""

    def __init__(self) -> None:
        self._of: dict[str, ActiveStage] = {}
        self._text = ""

    def begin(self, event: StageStarted) -> None:
        """An attempt begins."""
        self._of[event.branch] = ActiveStage(event, time.monotonic())

    def add_output(self, event: StageOutput) -> None:
        """Take in what a stage writes."""
        if stage := self._of.get(event.branch):
            stage.tail = (stage.tail + event.text)[-TAIL_CHARS:]
            if event.channel == "response":
                stage.text = (stage.text + event.text)[-KEPT_CHARS:]

    def end(self, branch: str) -> None:
        """The stage in a branch, or outside of all, has ended; what it answered is the latest response."""
        stage = self._of.pop(branch, None)
        if stage is not None and stage.event.handler_type == "codergen":
            self._text = stage.text

    def end_within(self, path: str) -> None:
        """A branch is over, and whatever is within it."""
        for branch in [name for name in self._of if name == path or name.startswith(f"{path}/")]:
            self.end(branch)

    @property
    def stages(self) -> tuple[ActiveStage, ...]:
        """Those under way, in the order in which they began; at any moment they may have become others."""
        return tuple(self._of.values())

    @property
    def latest_text(self) -> str:
        """The response of the model stage that ended last."""
        return self._text
