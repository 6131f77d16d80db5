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
    """An edge, ready for selection.

    Attributes:
        edge: The edge itself.
        index: Its position among the graph's edges.
        condition: Its parsed guard, or None for an unconditional edge.
        label: Its label in the form in which labels are compared; empty without one.
        target: Id of the node it enters.
        weight: Its priority.
        fidelity: Fidelity mode of a model stage that is entered by it (spec 5.4).
        is_restart: Taking it starts over in a fresh run directory.
    """

    edge: Edge
    index: int
    condition: Condition | None
    label: str
    target: str
    weight: int
    fidelity: str
    is_restart: bool


class PlannedNode(msgspec.Struct, frozen=True):
    """A node, ready to be executed and left.

    Attributes:
        node: The node itself.
        id: Its id.
        handler_type: What executes it.
        edges: All outgoing edges, in source order.
        conditional: Those with a condition, best first: weight descending, then target id.
        tells_partial: One of these conditions names ``partial_success`` (ruling 35).
        bare_keys: Context keys that stand alone in these conditions.
        unconditional: Those without, best first; ``default=true`` edges are not among them.
        defaults: Unconditional ``default=true`` edges, best first (ruling 12).
        by_label: Unconditional and default edges by their label, best first.
        by_target: The best unconditional or default edge by its target.
        only_step: The next step when nothing but one unconditional edge leads out and no hint asks for it.
        to_conditional: The best unconditional edge that enters a diamond (ruling 15), or None.
        retry: Attempts and delays.
        timeout_seconds: Time one attempt may take, or None.
        is_exit: The run ends here.
        is_conditional: A diamond: it routes on what the stage before it reported (ruling 16).
        is_goal_gate: It must have succeeded before the run may end.
        allow_partial: Exhausted retries end in partial success.
        auto_status: Silence counts as success.
        retry_targets: Existing ones among ``retry_target`` and ``fallback_retry_target``, in this order.
        subgraph_class: The class of the innermost group that derives one, or empty.
        fidelity: Its fidelity mode when no edge says another (spec 5.4).
        on_interrupted: What a resume does with a cut-off attempt: ``rerun``, ``ask`` or ``fail``.
        branches: Of a fan-out: the edges that begin its branches, in source order.
        join: Of a fan-out: where its branches meet, or empty (ruling 22).
        is_fan_out: Its edges begin branches.
        asks_model: A model answers its prompt: that of a task, or of a fan-in that has one (spec 4.5, 4.9).
        carry: What its prompt must have whole of the context.
        bounds: Its own bounds on spending, over all its attempts and visits; None without one.
    """

    node: Node
    id: str
    handler_type: str
    edges: tuple[PlannedEdge, ...]
    conditional: tuple[PlannedEdge, ...]
    tells_partial: bool
    unconditional: tuple[PlannedEdge, ...]
    defaults: tuple[PlannedEdge, ...]
    by_label: Mapping[str, tuple[PlannedEdge, ...]]
    by_target: Mapping[str, PlannedEdge]
    only_step: Step | None
    to_conditional: PlannedEdge | None
    retry: RetryPolicy
    timeout_seconds: float | None
    is_exit: bool
    is_conditional: bool
    is_goal_gate: bool
    allow_partial: bool
    auto_status: bool
    retry_targets: tuple[str, ...]
    subgraph_class: str
    fidelity: str
    on_interrupted: str
    branches: tuple[PlannedEdge, ...] = ()
    join: str = ""
    is_fan_out: bool = False
    asks_model: bool = False
    carry: tuple[str, ...] = ()
    bare_keys: tuple[str, ...] = ()
    bounds: RunBounds | None = None


class Plan(msgspec.Struct, frozen=True):
    """A graph, ready to run.

    Attributes:
        graph: The graph, as lint passed it.
        name: Its name.
        goal: Its goal, or empty.
        nodes: All nodes by id.
        edges: All edges by their position among the graph's edges.
        handler_types: What executes each node, by its id.
        start: Id of the start node.
        bounds: How far the run may go.
        graph_retry_targets: Existing ones among the graph's ``retry_target`` and ``fallback_retry_target``.
        is_fail_continued: A failed stage may leave by any edge (``on_fail=continue``).
        are_diamonds_own: Diamonds route on their own outcome (``conditional_outcome=own``).
        is_gate_strict: A goal gate that was never visited fails the run.
        goal_gates: Ids of all goal gates, in source order; diamonds count for none (ruling 16).
        surroundings: Of each fan-out what lies within its branches, and what before it.
        cyclic: Gives the nodes that lie on a cycle of edges.
    """

    graph: Graph
    name: str
    goal: str
    nodes: Mapping[str, PlannedNode]
    edges: Mapping[int, PlannedEdge]
    handler_types: Mapping[str, str]
    start: str
    bounds: RunBounds
    graph_retry_targets: tuple[str, ...]
    is_fail_continued: bool
    are_diamonds_own: bool
    is_gate_strict: bool
    goal_gates: tuple[str, ...]
    surroundings: Mapping[str, BranchBorders]
    cyclic: Callable[[], frozenset[str]]

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
