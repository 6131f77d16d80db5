"""The result of a run and of each of its stages, as values."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec import field as msgspec_field

from attractor_nb.decisions.carried import CARRIED_FILE, is_of_thread
from attractor_nb.lazy_imports import later
from attractor_nb.model.events import (
    CheckpointSaved,
    ChildStarted,
    Event,
    PipelineStarted,
    StageEnd,
    StageOutput,
    StageStarted,
)
from attractor_nb.model.states import NodeStatus, stage_word
from attractor_nb.model.texts import no_such_key
from attractor_nb.runtime.handles.presenters import name_of
from attractor_nb.runtime.prepare.run_options import BackendSpec, as_dict
from attractor_nb.views.display import DisplayedPicture
from attractor_nb.views.folding import take_event
from attractor_nb.views.state import AttemptSpending, RunView

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.cassettes import CassetteReport
    from attractor_nb.context import Context
    from attractor_nb.decisions.log_folds import Pin
    from attractor_nb.model.graph import Graph
    from attractor_nb.model.outcome import Outcome, ResultMarks, StageStatus, Usage
    from attractor_nb.runtime.handles import cache_verdict
    from attractor_nb.runtime.handles.cache_verdict import Why
    from attractor_nb.runtime.workspace import worktree
    from attractor_nb.views import summary_line
    from attractor_nb.views.changes_view import Changes
    from attractor_nb.views.drawings import svg
else:
    worktree = later("attractor_nb.runtime.workspace.worktree")
    cache_verdict = later("attractor_nb.runtime.handles.cache_verdict")
    svg = later("attractor_nb.views.drawings.svg")
    summary_line = later("attractor_nb.views.summary_line")


StageReader = Callable[[str, str], str | None]
"""Reads a file of a stage: node id and file name to its text, or None."""


@dataclass(frozen=True, slots=True)
class StageView:
    """The latest visit of a stage."""

    node_id: str  #: The node.
    prompt: str | None  #: Prompt sent to the model, or None.
    response: str | None  #: Response, or None.
    carried: str | None  #: Context received from earlier stages (``carried.md``); None when there was none.
    outcome: Outcome | None  #: Its outcome; None while it has not ended.
    visits: int  #: Number of commits.
    usage: Usage | None  #: Usage of all its attempts of all visits; None when it did not say.
    attempts: tuple[AttemptSpending, ...]  #: The same by attempt, in the order of their ends.
    #: Reads any other file of the stage's directory by name.
    files: Callable[[str], str | None] = field(repr=False, compare=False)
    state: str = NodeStatus.PENDING  #: Its state now.

    def __str__(self) -> str:
        status = stage_word(self.outcome.status if self.outcome else self.state)
        parts = [f"{self.node_id}: {status}"]
        if self.outcome and self.outcome.failure_reason:
            parts.append(f"reason: {self.outcome.failure_reason}")
        if self.usage is not None and (words := summary_line.usage_words(self.usage)):
            parts.append(f"used: {', '.join(words)}")
        if len(self.attempts) > 1:
            parts += [
                f"  visit {each.visit}, attempt {each.attempt}: " + ", ".join(summary_line.usage_words(each.usage))
                for each in self.attempts
            ]
        carried = self.carried if is_of_thread(self.carried or "") else None  # a preamble is in the prompt
        for title, text in (("carried", carried), ("prompt", self.prompt), ("response", self.response)):
            if text:
                parts.append(f"--- {title}\n{text.rstrip()}")
        return "\n".join(parts)

    __repr__ = __str__


def view_stage(
    node_id: str,
    graph: Graph,
    outcomes: Mapping[str, Outcome],
    visits: Mapping[str, int],
    view: RunView,
    read: StageReader,
) -> StageView:
    """The view of one stage."""
    if not isinstance(node_id, str) or node_id not in graph.nodes:  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise no_such_key("the pipeline", "node", node_id, graph.nodes)
    return StageView(
        node_id,
        read(node_id, "prompt.md"),
        read(node_id, "response.md"),
        read(node_id, CARRIED_FILE),
        outcomes.get(node_id),
        visits.get(node_id, 0),
        view.usage_by_node.get(node_id),
        tuple(view.attempts.get(node_id, ())),
        lambda name: read(node_id, name),
        view.nodes[node_id].status if node_id in view.nodes else NodeStatus.PENDING,
    )


@dataclass(frozen=True, slots=True, repr=False)
class RunResult(DisplayedPicture):
    """The result of a run: status, reason, outcomes and usage (ruling 30). ``result["plan"]`` is a stage.

    Attributes:
        status: ``success``, ``fail``, ``interrupted`` or ``paused``.
        reason: Why, unless success.
        run_id: The run.
        logs_root: Its directory.
        completed_nodes: Committed stages in order.
        node_outcomes: Latest status of each node that was executed.
        visits: Committed visits of each node.
        context: The final context, a mapping.
        usage: What all model calls consumed, those of failed attempts too; of an attempt that was cut off
            it is not known.
        usage_by_node: The same by node, for those that said.
        duration: Running time in seconds.
        next_node: The node at which a resume continues, or empty.
        bound: Name of the bound that ended it, such as ``max_steps``, or empty: with a higher one it goes
            on, ``run.resume(max_steps=…)``.
        graph: The graph that ran.
        followed: What its events told.
        read: Reads a file of a stage.
        cassette: What it had of its cassette; None without one.
        workdir: Where its commands, agents and tools worked; None for a run with an executor.
        branch: With ``isolation="worktree"``: the branch that has its changes; else empty.
    """

    status: str
    reason: str
    run_id: str
    logs_root: Path
    completed_nodes: tuple[str, ...]
    node_outcomes: Mapping[str, StageStatus]
    visits: Mapping[str, int]
    context: Context = field(repr=False)
    usage: Usage
    usage_by_node: Mapping[str, Usage]
    duration: float
    next_node: str
    bound: str
    graph: Graph = field(repr=False)
    followed: FollowedRun = field(repr=False)
    read: StageReader = field(repr=False)
    cassette: CassetteReport | None = None
    workdir: Path | None = None
    branch: str = ""

    @property
    def view(self) -> RunView:
        """States of nodes and edges, for drawings."""
        return self.followed.known.view

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """Latest outcome of each node."""
        return self.followed.known.outcomes

    @property
    def is_success(self) -> bool:
        """True if the pipeline succeeded."""
        return self.status == "success"

    @property
    def is_unmeasured(self) -> bool:
        """True if it is interrupted because a stage could not be executed for a reason outside the pipeline."""
        return self.view.is_unmeasured

    @property
    def mark(self) -> str:
        """``simulated``, ``partly simulated``, ``pinned: NODE``; empty for a result without a mark (ruling 48)."""
        return self.marks.words

    @property
    def is_simulated(self) -> bool:
        """True if answers in it are made up, at least in part."""
        return self.marks.is_simulated

    @property
    def marks(self) -> ResultMarks:
        """The sources of its answers, and the nodes that did not reach their outcome by themselves."""
        return self.view.marks.marks

    @property
    def cached_nodes(self) -> tuple[str, ...]:
        """Nodes whose results came from the cache, in order; one visited twice may be in it twice."""
        return tuple(self.view.cached)

    @property
    def saved(self) -> Usage:
        """The usage of those when they were executed; not included in ``usage``."""
        return self.view.saved

    def changes(self) -> Changes:
        """The changes in its worktree; see ``Run.changes``."""
        return worktree.changes_of(self.logs_root)

    def why(self, node_id: str) -> Why:
        """The reason a stage was executed, or was not; see ``Run.why``.

        Args:
            node_id: The node.
        """
        return cache_verdict.why(node_id, self.graph, self.view, self.read)

    def __getitem__(self, node_id: str) -> StageView:
        return view_stage(node_id, self.graph, self.outcomes, self.visits, self.view, self.read)

    def __contains__(self, node_id: object) -> bool:
        return node_id in self.graph.nodes

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.graph.nodes)

    def to_svg(self) -> str:
        """The graph with the states in which the run left it."""
        view = self.view
        return svg.render_svg(
            self.graph, states=view.nodes, edges=view.edges, children=view.children, is_ended=True, is_whole=False
        )

    def __str__(self) -> str:
        own, run = name_of(self), name_of(self, of_run=True)
        name = own if own.strip("_") or not run else run  # `_` is its name until the next cell only
        return summary_line.run_summary(self.view, self.graph, name=name, handle=run or "run", has_usage=True)


# Options that the handle of a run keeps for runs that continue from it: its backend, and pins set after its end.


class KeptOptions(Struct):
    """Options that forks, rewinds and resumes of a handle keep unless the caller overrides them."""

    pins: dict[str, Pin] = msgspec_field(default_factory=dict[str, "Pin"])  #: Pins since the end of the run, by node.
    backend: BackendSpec = None  #: Backend of its prompts, if that is an object of the caller.

    def added_to(self, options: Mapping[str, Any], *, has_own_backend: bool = False) -> dict[str, Any]:
        """The options of a call that continues a run, with the kept ones.

        Args:
            options: As they were given; a pin that is given as None is taken out.
            has_own_backend: The pipeline that continues is another one, with its own backend.
        """
        given = as_dict("pins", options.get("pins") or {}, hint='pins={"plan": "the text of its response"}')
        pins = {node: pin for node, pin in {**self.pins, **given}.items() if pin is not None}
        whole: dict[str, Any] = {**options, "pins": pins} if pins or "pins" in options else dict(options)
        if self.backend is not None and options.get("backend") is None and not has_own_backend:
            whole["backend"] = self.backend
        return whole


# The state of a run so far, folded from its events for ``Run``.

_TELL_NOTHING = frozenset({CheckpointSaved, StageOutput})
MOST_WAITING = 10_000
"""Events buffered before they are folded: a few megabytes."""


class Known(Struct):
    """The known state of a run, folded from its events."""

    view: RunView = msgspec_field(default_factory=RunView)  #: States of nodes and edges.
    #: Latest outcome of each committed node.
    outcomes: dict[str, Outcome] = msgspec_field(default_factory=dict[str, "Outcome"])
    visits: dict[str, int] = msgspec_field(default_factory=dict[str, int])  #: Committed visits of each node.
    #: Directories of the stages whose own one holds a visit that was set aside.
    kept: dict[str, str | None] = msgspec_field(default_factory=dict[str, "str | None"])
    branches: dict[str, str] = msgspec_field(
        default_factory=dict[str, str]
    )  #: In which branch each stage was executed latest.
    #: The directories of child runs, by the stage that has them.
    child_roots: dict[str, str] = msgspec_field(default_factory=dict[str, str])
    last: Event | None = None  #: The latest event that is numbered in the log.

    def take(self, event: Event) -> None:
        """Fold an event in."""
        take_event(self.view, event)
        if event.sequence:
            self.last = event
        if isinstance(event, StageEnd):
            if event.is_commit:
                self.outcomes[event.name] = event.outcome
                self.visits[event.name] = self.visits.get(event.name, 0) + 1
        elif isinstance(event, ChildStarted):
            self.child_roots[event.stage_path] = event.child_root
        elif isinstance(event, StageStarted):
            self.kept.pop(event.name, None)
            self.branches[event.name] = event.branch
        elif isinstance(event, PipelineStarted):
            self.kept, self.visits = {}, {}


class FollowedRun:
    """The events of a run, folded when they are read."""

    def __init__(self) -> None:
        self._known = Known()
        self._recorded: tuple[Iterable[Event], Mapping[str, str | None], Mapping[str, int]] | None = None
        self._waiting: deque[Event] = deque()
        self._lock = threading.Lock()

    @property
    def known(self) -> Known:
        """The state known so far. Safe to call from any thread."""
        with self._lock:
            if self._recorded is not None:
                counted, kept, visits = self._recorded
                known = Known()  # an interrupted fold starts again
                for event in counted:
                    known.take(event)
                known.kept, known.visits = dict(kept), {**known.visits, **visits}
                self._known, self._recorded = known, None
            while self._waiting:
                self._known.take(self._waiting.popleft())
        return self._known

    def take(self, event: Event) -> None:
        """Take an event; a sink of the run's stream."""
        if type(event) in _TELL_NOTHING:
            return
        self._waiting.append(event)
        if len(self._waiting) >= MOST_WAITING:
            _ = self.known

    def recall(self, counted: Iterable[Event], kept: Mapping[str, str | None], visits: Mapping[str, int]) -> None:
        """Take what was recorded before.

        Args:
            counted: The events that count.
            kept: As the attribute of ``Known``.
            visits: Committed visits of each node.
        """
        self._recorded = counted, dict(kept), dict(visits)
