"""A graph made ready to run: conditions parsed, edges sorted, policies and targets resolved.

Everything that can be refused is refused before the first stage. What leads out of a node is sorted once,
when the node is first looked up: a run that goes on near its end needs few of them. Knows nothing of any run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import msgspec

from attractor_nb.model.branch import parts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from attractor_nb.decisions.fan_outs.joins import BranchBorders
    from attractor_nb.decisions.limits.bounds import RunBounds
    from attractor_nb.decisions.retries import RetryPolicy
    from attractor_nb.decisions.routing import Step
    from attractor_nb.languages.condition.syntax import Condition
    from attractor_nb.model.graph import Edge, Graph, Node


CONDITIONAL_TYPE = "conditional"
TOOL_TYPE = "tool"
K = TypeVar("K")
V = TypeVar("V")


class OnDemand(dict[K, V]):
    """Values that are made when they are first looked up, and kept: the next look is that of a dict.

    A run of a large graph would wait for nodes that it may never come to, and a resume for those behind it.
    """

    __slots__ = ("_keys", "_make")
    if not TYPE_CHECKING:  # of all keys, not of those that are made
        get, keys, values, items = Mapping.get, Mapping.keys, Mapping.values, Mapping.items

    def __init__(self, keys: Collection[K], make: Callable[[K], V]) -> None:
        """Have a value for each of ``keys``; ``make`` gives it, always the same, and never fails."""
        super().__init__()
        self._keys = keys
        self._make = make

    def __missing__(self, key: K) -> V:
        if key not in self._keys:
            raise KeyError(key)
        value = self[key] = self._make(key)
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __iter__(self) -> Iterator[K]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


class PlannedEdge(msgspec.Struct, frozen=True):
    """An edge, ready for selection."""

    edge: Edge  #: The edge itself.
    index: int  #: Its position among the graph's edges.
    condition: Condition | None  #: Its parsed guard, or None for an unconditional edge.
    label: str  #: Its label in the form in which labels are compared; empty without one.
    target: str  #: Id of the node it enters.
    weight: int  #: Its priority.
    fidelity: str  #: Fidelity mode of a model stage that is entered by it (spec 5.4).
    is_restart: bool  #: Taking it starts over in a fresh run directory.


class PlannedNode(msgspec.Struct, frozen=True):
    """A node, ready to be executed and left."""

    node: Node  #: The node itself.
    id: str  #: Its id.
    handler_type: str  #: What executes it.
    edges: tuple[PlannedEdge, ...]  #: All outgoing edges, in source order.
    conditional: tuple[PlannedEdge, ...]  #: Those with a condition, best first: weight descending, then target id.
    tells_partial: bool  #: One of these conditions names ``partial_success`` (ruling 35).
    unconditional: tuple[PlannedEdge, ...]  #: Those without, best first; ``default=true`` edges are not among them.
    defaults: tuple[PlannedEdge, ...]  #: Unconditional ``default=true`` edges, best first (ruling 12).
    by_label: Mapping[str, tuple[PlannedEdge, ...]]  #: Unconditional and default edges by their label, best first.
    by_target: Mapping[str, PlannedEdge]  #: The best unconditional or default edge by its target.
    only_step: Step | None  #: The next step when nothing but one unconditional edge leads out and no hint asks for it.
    to_conditional: PlannedEdge | None  #: The best unconditional edge that enters a diamond (ruling 15), or None.
    retry: RetryPolicy  #: Attempts and delays.
    timeout_seconds: float | None  #: Time one attempt may take, or None.
    is_exit: bool  #: The run ends here.
    is_conditional: bool  #: A diamond: it routes on what the stage before it reported (ruling 16).
    is_goal_gate: bool  #: It must have succeeded before the run may end.
    allow_partial: bool  #: Exhausted retries end in partial success.
    auto_status: bool  #: Silence counts as success.
    #: Existing ones among ``retry_target`` and ``fallback_retry_target``, in this order.
    retry_targets: tuple[str, ...]
    subgraph_class: str  #: The class of the innermost group that derives one, or empty.
    fidelity: str  #: Its fidelity mode when no edge says another (spec 5.4).
    on_interrupted: str  #: What a resume does with a cut-off attempt: ``rerun``, ``ask`` or ``fail``.
    branches: tuple[PlannedEdge, ...] = ()  #: Of a fan-out: the edges that begin its branches, in source order.
    join: str = ""  #: Of a fan-out: where its branches meet, or empty (ruling 22).
    is_fan_out: bool = False  #: Its edges begin branches.
    #: A model answers its prompt: that of a task, or of a fan-in that has one (spec 4.5, 4.9).
    asks_model: bool = False
    carry: tuple[str, ...] = ()  #: What its prompt must have whole of the context.
    bare_keys: tuple[str, ...] = ()  #: Context keys that stand alone in these conditions.
    bounds: RunBounds | None = None  #: Its own bounds on spending, over all its attempts and visits; None without one.


class Plan(msgspec.Struct, frozen=True):
    """A graph, ready to run."""

    graph: Graph  #: The graph, as lint passed it.
    name: str  #: Its name.
    goal: str  #: Its goal, or empty.
    nodes: Mapping[str, PlannedNode]  #: All nodes by id.
    edges: Mapping[int, PlannedEdge]  #: All edges by their position among the graph's edges.
    handler_types: Mapping[str, str]  #: What executes each node, by its id.
    start: str  #: Id of the start node.
    bounds: RunBounds  #: How far the run may go.
    #: Existing ones among the graph's ``retry_target`` and ``fallback_retry_target``.
    graph_retry_targets: tuple[str, ...]
    is_fail_continued: bool  #: A failed stage may leave by any edge (``on_fail=continue``).
    are_diamonds_own: bool  #: Diamonds route on their own outcome (``conditional_outcome=own``).
    is_gate_strict: bool  #: A goal gate that was never visited fails the run.
    goal_gates: tuple[str, ...]  #: Ids of all goal gates, in source order; diamonds count for none (ruling 16).
    surroundings: Mapping[str, BranchBorders]  #: Of each fan-out what lies within its branches, and what before it.
    cyclic: Callable[[], frozenset[str]]  #: Gives the nodes that lie on a cycle of edges.

    def left_fan_out(self, target: str, branch: str, *, by_edge: bool = False) -> str:
        """The fan-out that a branch leaves on a way to a node, or empty when it stays within (ruling 36).

        Args:
            target: Where the way leads.
            branch: The path of the branch.
            by_edge: The way is an edge, so it can lead back only to a node on a cycle; most are on none.
        """
        if by_edge and target not in self.cyclic():
            return ""
        for fan_out in reversed(parts_of(branch)[::2]):
            if fan_out in self.surroundings and target in self.surroundings[fan_out].before:
                return fan_out
        return ""
