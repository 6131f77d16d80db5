"""The state of a run for drawings: of each node and edge, of its fan-outs and of its child runs.

Values only; ``views/folding.py`` says what each event makes of them. The module knows nothing of drawing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct, field

from attractor_nb.decisions.log_folds import MarkFold
from attractor_nb.model.events import (
    ChildEvent,
    ModelCallEnded,
    ModelCallWaiting,
    StageEnd,
    StageEvent,
    StageOutput,
    ToolCallEnded,
)
from attractor_nb.model.outcome import Usage
from attractor_nb.model.states import PAUSED, WAITING, NodeStatus, RunStatus, run_word, shown_run_status
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Mapping


# The usage of a run for its views: by attempt, by call, and by stages still running.
#
# The end of an attempt says what it consumed in all. Until then its calls do: so a live view sees the price
# grow while a stage goes on, and nothing is counted twice.

_NOTHING: Final = Usage()


class AttemptSpending(NamedTuple):
    """The usage of one attempt."""

    visit: int  #: Number of the visit to its node.
    attempt: int  #: Number of the try within the visit.
    status: str  #: Final status.
    usage: Usage  #: Its usage.
    branch: str = ""  #: Path of the branch that it was in, or empty.


class CallCount(NamedTuple):
    """Calls that a stage has made."""

    model: int = 0  #: Requests to models, those that failed too.
    tools: int = 0  #: Calls of tools, those that a hook skipped too.

    def plus(self, event: StageEvent) -> CallCount:
        """With one call more."""
        is_model = isinstance(event, ModelCallEnded)
        return CallCount(self.model + is_model, self.tools + (not is_model))

    @property
    def words(self) -> str:
        """For people; a single request is what everybody expects, and is not said.

        >>> CallCount(3, 2).words, CallCount(1, 1).words, CallCount(1).words
        ('3 requests, 2 tool calls', '1 tool call', '')
        """
        parts = [f"{self.model} requests"] if self.model > 1 else []
        return ", ".join([*parts, f"{self.tools} tool call{'s' * (self.tools != 1)}"] if self.tools else parts)


_NO_CALL: Final = CallCount()


class OpenSpending(Struct):
    """The usage of an attempt that is still running."""

    calls: CallCount = _NO_CALL
    usage: Usage = _NOTHING  #: Their usage.
    child: Usage = _NOTHING  #: Usage of its child run so far.


def so_far(view: RunView) -> Usage:
    """The known usage up to now, including attempts and child runs that are still running."""
    usage = view.usage
    for part in tuple(view.under_way.values()):  # the engine's thread may be at it
        usage = usage + part.usage + part.child
    return usage


def fold_call(view: RunView, event: ModelCallEnded | ToolCallEnded) -> tuple[str, ...]:
    """A model or a tool was called; the node says how often."""
    view.calls_by_node[event.name] = view.calls_by_node.get(event.name, _NO_CALL).plus(event)
    part = view.under_way.setdefault((event.branch, event.name), OpenSpending())
    part.calls = part.calls.plus(event)
    if isinstance(event, ModelCallEnded) and event.usage is not None:
        part.usage += event.usage
    state = view.nodes.get(event.name)
    if state is None or not state.status.is_active:
        return ()
    view.nodes[event.name] = state._replace(note=part.calls.words)
    return (event.name,)


def fold_waiting(view: RunView, event: ModelCallWaiting) -> tuple[str, ...]:
    """A request waits for its provider's rates; the node says so until it is made."""
    state = view.nodes.get(event.name)
    if state is None or not state.status.is_active:
        return ()
    view.nodes[event.name] = state._replace(note=f"waits for {event.rates}")
    return (event.name,)


def note_child(view: RunView, event: ChildEvent, child: RunView) -> None:
    """Take what the child run of a stage under way has consumed so far."""
    if isinstance(event.event, StageOutput):
        return
    state = view.nodes.get(event.name)
    if state is not None and state.status.is_active and (usage := so_far(child)) != _NOTHING:
        view.under_way.setdefault((event.branch, event.name), OpenSpending()).child = usage


def forget_under_way(view: RunView, event: StageEvent) -> None:
    """An attempt begins, or has ended: its end says the whole."""
    if view.under_way:
        view.under_way.pop((event.branch, event.name), None)


def count_attempt(view: RunView, event: StageEnd, usage: Usage) -> None:
    """Add what an attempt consumed that has ended."""
    view.usage += usage
    own = view.usage_by_node.get(event.name)
    view.usage_by_node[event.name] = usage if own is None else own + usage
    spent = AttemptSpending(event.visit, event.attempt, event.outcome.status.value, usage, event.branch)
    view.attempts.setdefault(event.name, []).append(spent)


def count_cut_off(view: RunView, cut_off: Mapping[str, Any]) -> None:
    """Add what attempts had consumed that were cut off with their process: no end of theirs will say it."""
    for (_, node_id), part in view.under_way.items():
        if node_id in cut_off:
            part.usage = _NOTHING
    for node_id, plain in cut_off.items():
        usage = Usage.from_plain(plain)
        view.usage += usage
        own = view.usage_by_node.get(node_id)
        view.usage_by_node[node_id] = usage if own is None else own + usage


def count_saved(view: RunView, event: StageEnd) -> None:
    """Add what a stage had consumed that came from the cache."""
    view.cached.append(event.name)
    if event.saved is not None:
        view.saved += event.saved


Delta = dict[str, Any]
"""A change as JSON: ``nodes`` (id to the changed fields), ``edges`` (index to passes), ``run``, and
``children`` (node id to the same of its child run)."""

REASON_CHARS: Final = 60


class NodeState(NamedTuple):
    """The state of one node; two are made for each step, and a frozen dataclass takes five times as long."""

    status: NodeStatus = NodeStatus.PENDING  #: Its state in the drawing.
    attempt: int = 1  #: Try within the latest visit, from 1.
    visits: int = 0  #: Number of visits.
    reason: str = ""  #: First words of why it failed, or empty.
    since: float = 0.0  #: When the status began, in seconds since 1970; 0 when unknown.
    until: float | None = None  #: When a wait ends on its own, in seconds since 1970, or None.
    progress: str = ""  #: Of a fan-out how many branches have ended: ``2/4``; else empty.
    #: State of its branches or its child run, or the number of model and tool calls of a running stage, in a few
    #: words; else empty.
    note: str = ""

    @property
    def css_classes(self) -> tuple[str, ...]:
        """Classes of its node in a drawing; ``state-begun`` for a stage that the end of the run cut off.

        >>> NodeState(NodeStatus.SUCCESS, visits=1).css_classes, NodeState(visits=1).css_classes
        (('state-success',), ('state-pending', 'state-begun'))
        """
        is_begun = self.status is NodeStatus.PENDING and self.visits > 0
        return (f"state-{self.status}", "state-begun") if is_begun else (f"state-{self.status}",)

    def to_plain(self) -> dict[str, Any]:
        """JSON values without secrets, defaults left out; the status is always there."""
        plain: dict[str, Any] = {"status": self.status.value}
        if self.attempt > 1:
            plain["attempt"] = self.attempt
        if self.visits:
            plain["visits"] = self.visits
        if self.reason:
            plain["reason"] = redacted(self.reason)
        if self.since and self.status.is_active:
            plain["since"] = round(self.since, 3)
        if self.until is not None:
            plain["until"] = round(self.until, 3)
        if self.progress:
            plain["progress"] = self.progress
        if self.note:
            plain["note"] = self.note
        return plain


class EdgeState(Struct, frozen=True):
    """The number of passes of an edge."""

    passes: int = 0


class BranchView(Struct):
    """A branch of a fan-out."""

    id: str  #: Its id among the branches of its fan-out.
    path: str  #: Its path in the run.
    start_node: str = ""  #: First node.
    edge: int | None = None  #: Position of the edge that leads there in ``Graph.edges``, or None.
    since: float = 0.0  #: When it began, in seconds since 1970.
    #: ``running``, or how it ended: ``success``, ``partial_success``, ``fail``, or ``skipped``, when it was cancelled.
    status: str = "running"
    duration: float = 0.0  #: Seconds, once it has ended.
    reason: str = ""  #: Reason of the failure or cancellation, or empty.
    #: Its visited nodes, in order of first visit, with the number of the latest visit.
    nodes: dict[str, int] = field(default_factory=dict[str, int])


class FanOutView(Struct):
    """A fan-out on its latest pass."""

    node: str
    within: str  #: Path of the branch that it is in, or empty.
    policy: str  #: Its join policy.
    total: int  #: Number of branches.
    branches: dict[str, BranchView] = field(default_factory=dict[str, BranchView])  #: Those that have begun, by id.
    ended: dict[str, int] = field(default_factory=dict[str, int])
    """Number of ended branches by status."""
    winner: str = ""
    is_over: bool = False  #: Its stage has ended, so the next pass begins with nothing.

    @property
    def progress(self) -> str:
        """The number of its branches that have ended."""
        return f"{sum(self.ended.values())}/{self.total}"

    @property
    def note(self) -> str:
        """The join policy and how far it is met.

        >>> FanOutView("fan", "", "wait_all", 4, ended={"success": 2, "fail": 1}).note
        'wait_all: 2 of 4, 1 failed'
        """
        if self.policy == "first_success" and self.winner:
            return f"{self.policy}: won by {self.winner}"
        succeeded = self.ended.get("success", 0) + self.ended.get("partial_success", 0)
        parts = [f"{self.policy}: {succeeded} of {self.total}"]
        for status, word in (("fail", "failed"), ("skipped", "cancelled")):
            if count := self.ended.get(status, 0):
                parts.append(f"{count} {word}")
        return ", ".join(parts)


class ChildView(Struct):
    """The child run of a node: its latest."""

    id: str  #: Run id.
    pipeline: str  #: Name of its pipeline, or empty.
    view: RunView  #: Its known state; only its end where its events were not received.

    @property
    def note(self) -> str:
        """The state of the child run, in a few words."""
        view = self.view
        count = f"{view.stages} stage{'s' * (view.stages != 1)}"
        word = run_word(view.shown_status)
        if view.status.is_ended:
            return f"{word}, {count}" if view.stages else word
        active = view.active_nodes
        return f"at {active[-1]}, {count}" if active else f"{word}, {count}"


_NOTED_ITEMS: Final = (RunStatus.FAIL, RunStatus.INTERRUPTED)


class ItemsView(Struct):
    """The items of a stage with `for_each`, on its latest visit."""

    visit: int  #: The visit.
    total: int  #: Number of items.
    #: Status of the ended runs, by index.
    ended: dict[int, RunStatus] = field(default_factory=dict[int, RunStatus])

    @property
    def note(self) -> str:
        """The number of ended items, and the numbers of those that failed or stopped.

        >>> ItemsView(1, 40, {0: RunStatus.SUCCESS, 1: RunStatus.FAIL, 2: RunStatus.INTERRUPTED}).note
        '3 of 40, 1 failed, 1 stopped'
        """
        parts = [f"{len(self.ended)} of {self.total}"]
        counts = [(sum(one is status for one in self.ended.values()), status) for status in _NOTED_ITEMS]
        parts += [f"{count} {run_word(status)}" for count, status in counts if count]
        return ", ".join(parts)


class RunView(Struct):
    """Everything that views show of a run. ``fold_event`` changes it in place.

    Of a log it is folded from the events that count (``decisions.log_history.counted_events``). The view of a live run
    grows in the engine's thread while others look: who iterates over one of its mappings takes a copy.
    """

    #: States of the nodes that something happened to.
    nodes: dict[str, NodeState] = field(default_factory=dict[str, NodeState])
    #: States of the edges that were taken, by position in ``Graph.edges``.
    edges: dict[int, EdgeState] = field(default_factory=dict[int, EdgeState])
    status: RunStatus = RunStatus.READY  #: Status of the run.
    reason: str = ""  #: Reason of the failure or stop, or empty.
    #: It is interrupted because a stage could not be executed for a reason outside the pipeline.
    is_unmeasured: bool = False
    next_node: str = ""  #: Node where a resume continues, or empty.
    stages: int = 0  #: Stages committed so far.
    duration: float = 0.0  #: Seconds of running time, known when it has ended.
    usage: Usage = field(default_factory=Usage)  #: Usage of model calls so far, those of failed attempts too.
    usage_by_node: dict[str, Usage] = field(default_factory=dict[str, Usage])  #: The same by node, for those that said.
    #: The same by node and attempt, in the order of their ends. What lies before a restart is in the sums only.
    attempts: dict[str, list[AttemptSpending]] = field(default_factory=dict[str, list[AttemptSpending]])
    #: Calls of models and tools by node, those of attempts under way too.
    calls_by_node: dict[str, CallCount] = field(default_factory=dict[str, CallCount])
    #: Activity of running attempts so far, by the path of their branch and their node.
    under_way: dict[tuple[str, str], OpenSpending] = field(default_factory=dict[tuple[str, str], OpenSpending])
    #: Nodes whose results came from the cache, in order; one visited twice may be in it twice.
    cached: list[str] = field(default_factory=list[str])
    saved: Usage = field(default_factory=Usage)  #: Usage of those when they were executed.
    bound: str = ""  #: Name of the bound that ended the run, or empty.
    #: Each fan-out on its latest pass, by the path of the branch that it is in and its node.
    fan_outs: dict[tuple[str, str], FanOutView] = field(default_factory=dict[tuple[str, str], FanOutView])
    branches: dict[str, BranchView] = field(default_factory=dict[str, BranchView])  #: Their branches, by path.
    #: Running stage of each branch: node and state, by path.
    active_by_branch: dict[str, tuple[str, NodeState]] = field(default_factory=dict[str, tuple[str, NodeState]])
    #: The latest child run of each node that had one; of one with `for_each` that of the item begun last.
    children: dict[str, ChildView] = field(default_factory=dict[str, ChildView])
    #: The items of each node with `for_each`, on its latest visit.
    items: dict[str, ItemsView] = field(default_factory=dict[str, ItemsView])
    #: Mark of the result: simulated, pinned (ruling 48).
    marks: MarkFold = field(default_factory=MarkFold)

    @property
    def is_paused(self) -> bool:
        """True if it was paused, after a number of stages or at a gate."""
        return self.status is RunStatus.INTERRUPTED and self.reason == PAUSED

    @property
    def is_waiting(self) -> bool:
        """True while a person is waited for, in the run or in a child run of it."""
        if self.status.is_ended:
            return False
        return any(state.status is NodeStatus.WAITING for state in self.nodes.copy().values()) or any(
            child.view.is_waiting for child in self.children.copy().values()
        )

    @property
    def shown_status(self) -> str:
        """The status that people read: ``waiting`` and ``paused`` are none of ``status``."""
        return WAITING if self.is_waiting else shown_run_status(self.status, self.reason)

    @property
    def active_nodes(self) -> tuple[str, ...]:
        """Ids of the nodes that are active."""
        return tuple(node_id for node_id, state in self.nodes.copy().items() if state.status.is_active)

    def to_plain(self) -> Delta:
        """The whole state in the form of a delta, for a view that is shown again."""
        return {
            "nodes": {node_id: state.to_plain() for node_id, state in self.nodes.copy().items()},
            "edges": {str(index): state.passes for index, state in self.edges.copy().items()},
            "run": self.status.value,
            **self._children_plain(),
        }

    def _children_plain(self) -> Delta:
        if not self.children:
            return {}
        children = self.children.copy()
        return {"children": {node_id: child.view.to_plain() for node_id, child in children.items()}}


def first_words(text: str, limit: int = REASON_CHARS) -> str:
    """The beginning of a text on one line, cut at a word.

    >>> first_words("the command ended with exit code 2", 20)
    'the command ended…'
    """
    line = " ".join(text[: 4 * limit].split())
    if len(line) <= limit:
        return line
    return line[:limit].rsplit(" ", 1)[0][: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"
