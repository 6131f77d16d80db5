"""A graph made ready to run: conditions parsed, edges sorted, policies and targets resolved.

Everything that can be refused is refused before the first stage. What leads out of a node is sorted once,
when the node is first looked up: a run that continues near its end needs few of them. Knows nothing of any run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from attractor_nb.decisions.bounds import SPENDING, RunBounds, bounds_of, node_bounds
from attractor_nb.decisions.branch_policies import (
    FAN_IN_TYPE,
    PARALLEL_TYPE,
    BranchBorders,
    Join,
    joins_of,
    surroundings_of,
)
from attractor_nb.decisions.fidelity import resolve_fidelity
from attractor_nb.decisions.retries import RetryPolicy, build_retry_policy
from attractor_nb.decisions.routing import ConditionOutcome, Step, match_condition, match_default, match_weight
from attractor_nb.errors import OptionError
from attractor_nb.languages.condition.parser import Condition, Lookup, Operator, parse_condition
from attractor_nb.model.branch import parts_of
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.vocabulary.shapes import DEFAULT_TYPE, HUMAN_TYPE
from attractor_nb.model.vocabulary.value_forms import FOR_EACH_TYPE, comma_list, normalize_label

if TYPE_CHECKING:
    from attractor_nb.model.checkpoint import EdgeKey
    from attractor_nb.model.graph import Edge, Graph, Node


CONDITIONAL_TYPE = "conditional"
TOOL_TYPE = "tool"
K = TypeVar("K")
V = TypeVar("V")


class OnDemand(dict[K, V]):
    """Values that are made when they are first looked up, and kept: the next look is that of a dict.

    A run of a large graph would wait for nodes that it may never reach, and a resume for those behind it.
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
    max_taken: int | None = None  #: Number of times that it may be taken in a run; None for any number.


class PlannedNode(msgspec.Struct, frozen=True):
    """A node, ready to be executed and left."""

    node: Node  #: The node itself.
    id: str  #: Its id.
    handler_type: str  #: Type of its handler.
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
    on_interrupted: str  #: Rule of a resume for an interrupted attempt: ``rerun``, ``ask`` or ``fail``.
    branches: tuple[PlannedEdge, ...] = ()  #: Of a fan-out: the edges that begin its branches, in source order.
    join: str = ""  #: Of a fan-out: where its branches meet, or empty (ruling 22).
    is_fan_out: bool = False  #: Its edges begin branches.
    #: A model answers its prompt: that of a task, or of a fan-in that has one (spec 4.5, 4.9).
    asks_model: bool = False
    carry: tuple[str, ...] = ()  #: Context values that its prompt must contain completely.
    bare_keys: tuple[str, ...] = ()  #: Context keys that are alone in these conditions.
    bounds: RunBounds | None = None  #: Its own bounds on spending, over all its attempts and visits; None without one.
    bounded: tuple[PlannedEdge, ...] = ()  #: Edges with ``max_taken``; not those that begin branches.
    spent: tuple[PlannedEdge, ...] = ()  #: Those that were taken that often in a run (see ``eligible``); else empty.


class Plan(msgspec.Struct, frozen=True):
    """A graph, ready to run."""

    graph: Graph  #: The graph, as lint passed it.
    name: str  #: Its name.
    goal: str  #: Its goal, or empty.
    nodes: Mapping[str, PlannedNode]  #: All nodes by id.
    edges: Mapping[int, PlannedEdge]  #: All edges by their position among the graph's edges.
    handler_types: Mapping[str, str]  #: Handler type of each node, by its id.
    start: str  #: Id of the start node.
    bounds: RunBounds  #: Bounds of the run.
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


# From a graph to a plan.

_OF_AN_ITEM: Final = frozenset({"timeout", "allow_partial", "auto_status", "on_interrupted", "tool_command"})
"""Attributes of a node with `for_each` that hold for each of its items."""


def compile_plan(graph: Graph, *, bounds: RunBounds | None = None) -> Plan:
    """Make a graph that has passed lint ready to run.

    Retry targets that name no node are left out, as lint warned.

    Args:
        graph: The graph.
        bounds: Bounds in place of the graph's own.
    """
    if not graph.start_nodes:
        raise OptionError(
            "the pipeline has no start node", hint="add one: start [shape=Mdiamond], and lint before running"
        )
    conditions: dict[str, Condition] = {}
    leaving: dict[str, list[int]] = {}
    for index, edge in enumerate(graph.edges):
        if edge.target not in graph.nodes:
            raise OptionError(
                f'the edge {edge.source} -> {edge.target} enters "{edge.target}", which is not a node',
                hint="declare the node, and lint before running",
            )
        leaving.setdefault(edge.source, []).append(index)
        if "condition" in edge.attrs and (text := edge.condition).strip() and text not in conditions:
            conditions[text] = parse_condition(text)
    handler_types = graph.handler_types
    edges = OnDemand(range(len(graph.edges)), partial(_planned_edge, graph, conditions))
    joins = cache(partial(joins_of, graph))
    fan_outs = {name for name, handler_type in handler_types.items() if handler_type == PARALLEL_TYPE}
    nodes = OnDemand(graph.nodes, partial(_planned_node, graph, edges, leaving, handler_types, joins))
    return Plan(
        graph=graph,
        name=graph.name,
        goal=graph.goal,
        nodes=nodes,
        edges=edges,
        handler_types=handler_types,
        start=graph.start_nodes[0].id,
        bounds=bounds_of(graph) if bounds is None else bounds,
        graph_retry_targets=_existing(
            graph, graph.get("retry_target", str, ""), graph.get("fallback_retry_target", str, "")
        ),
        is_fail_continued=graph.get("on_fail", str, "") == "continue",
        are_diamonds_own=graph.get("conditional_outcome", str, "") == "own",
        is_gate_strict=graph.get("strict_gates", bool, default=False),
        goal_gates=tuple(node.id for node in graph.nodes.values() if "goal_gate" in node.attrs and _is_goal_gate(node)),
        surroundings=OnDemand(fan_outs, lambda name: surroundings_of(graph, name, joins()[name].node_id)),
        cyclic=cache(partial(_cyclic, graph)),
    )


def _cyclic(graph: Graph) -> frozenset[str]:
    onward = {name: [edge.target for edge in graph.outgoing_edges(name)] for name in graph.nodes}
    back = {name: [edge.source for edge in graph.incoming_edges(name)] for name in graph.nodes}
    return frozenset(name for cycle in find_cycles(onward, back) for name in cycle)


def _planned_edge(graph: Graph, conditions: Mapping[str, Condition], index: int) -> PlannedEdge:
    edge = graph.edges[index]
    return PlannedEdge(
        edge,
        index,
        conditions.get(edge.condition),
        normalize_label(edge.label),
        edge.target,
        edge.weight,
        resolve_fidelity(edge, graph.nodes[edge.target], graph),
        edge.loop_restart,
        edge.max_taken,
    )


def _is_goal_gate(node: Node) -> bool:
    return node.goal_gate and node.handler_type != CONDITIONAL_TYPE


def _planned_node(
    graph: Graph,
    planned: Mapping[int, PlannedEdge],
    leaving: Mapping[str, Sequence[int]],
    handler_types: Mapping[str, str],
    joins: Callable[[], Mapping[str, Join]],
    node_id: str,
) -> PlannedNode:
    node = graph.nodes[node_id]
    edges = tuple(planned[index] for index in leaving.get(node_id, ()))
    handler_type = handler_types[node_id]
    is_fan_out = handler_type == PARALLEL_TYPE
    single = _as_one_attempt(node) if handler_type == FOR_EACH_TYPE else node
    timeout = single.timeout
    return PlannedNode(
        node=node,
        id=node.id,
        handler_type=handler_type,
        **_ways_out(graph, edges, is_fan_out=is_fan_out),
        retry=build_retry_policy(single, graph),
        timeout_seconds=None if timeout is None else timeout.seconds,
        is_exit=any(node_id == end.id for end in graph.exit_nodes),
        is_conditional=node.handler_type == CONDITIONAL_TYPE,
        is_goal_gate=_is_goal_gate(node),
        allow_partial=single.allow_partial,
        auto_status=single.auto_status,
        retry_targets=_existing(graph, node.retry_target, node.fallback_retry_target),
        subgraph_class=node.derived_classes[-1] if node.derived_classes else "",
        fidelity=resolve_fidelity(None, node, graph),
        on_interrupted=_on_interrupted(single),
        branches=tuple(edge for edge in edges if edge.condition is None) if is_fan_out else (),
        join=joins().get(node_id, Join()).node_id if is_fan_out else "",
        is_fan_out=is_fan_out,
        asks_model=handler_type == DEFAULT_TYPE or (handler_type == FAN_IN_TYPE and bool(node.prompt)),
        carry=comma_list(node.get("carry", str, "")),
        bounds=None if SPENDING.isdisjoint(node.attrs) else node_bounds(node),
        bounded=tuple(
            edge for edge in edges if edge.max_taken is not None and not (is_fan_out and edge.condition is None)
        ),
    )


def _ways_out(graph: Graph, edges: tuple[PlannedEdge, ...], *, is_fan_out: bool) -> dict[str, Any]:
    """The fields of a ``PlannedNode`` about the edges by which it may be left."""
    ranked = sorted(edges, key=_rank)
    conditional = tuple(edge for edge in ranked if edge.condition is not None)
    free = tuple(edge for edge in ranked if edge.condition is None)
    unconditional = tuple(edge for edge in free if not edge.edge.is_default)
    by_label: dict[str, tuple[PlannedEdge, ...]] = {}
    by_target: dict[str, PlannedEdge] = {}
    for edge in free:
        if edge.label:
            by_label[edge.label] = (*by_label.get(edge.label, ()), edge)
        by_target.setdefault(edge.target, edge)
    return {
        "edges": edges,
        "conditional": conditional,
        "tells_partial": any(_tells_partial(edge.condition) for edge in conditional),
        "unconditional": unconditional,
        "defaults": tuple(edge for edge in free if edge.edge.is_default),
        "by_label": by_label,
        "by_target": by_target,
        "only_step": match_weight(unconditional) if len(edges) == len(unconditional) == 1 and not is_fan_out else None,
        "to_conditional": next(
            (edge for edge in unconditional if graph.nodes[edge.target].handler_type == CONDITIONAL_TYPE), None
        ),
        "bare_keys": tuple(_bare_keys(conditional)),
    }


# Edges with `max_taken`: how often a run may take them.


def eligible(plan: Plan, planned: PlannedNode, taken: Mapping[EdgeKey, int]) -> PlannedNode:
    """The node without the edges that a run has taken `max_taken` times; most nodes have no such edge.

    Args:
        plan: The plan.
        planned: The node.
        taken: Number of times that each edge was taken, in the run or in the branch that is at the node.
    """
    spent = tuple(edge for edge in planned.bounded if _times_taken(planned, edge, taken) >= (edge.max_taken or 0))
    if not spent:
        return planned
    left = tuple(edge for edge in planned.edges if edge not in spent)
    return replace(planned, spent=spent, **_ways_out(plan.graph, left, is_fan_out=planned.is_fan_out))


def eligible_graph(plan: Plan, planned: PlannedNode) -> Graph:
    """The graph as the handler of a node sees it: a gate offers no choice, and a model no label, of a spent edge."""
    if not planned.spent:
        return plan.graph
    spent = {edge.index for edge in planned.spent}
    return plan.graph.with_edges(edge for index, edge in enumerate(plan.graph.edges) if index not in spent)


def _times_taken(planned: PlannedNode, edge: PlannedEdge, taken: Mapping[EdgeKey, int]) -> int:
    """The number of times that a run took an edge: of parallel edges that one, by its position in the graph.

    An edge without a parallel one is known by its ends alone, so its count survives a change of the graph.
    """
    is_alone = [other.target for other in planned.edges].count(edge.target) == 1
    return sum(
        times
        for (source, target, index), times in taken.items()
        if (source, target) == (planned.id, edge.target) and (is_alone or index == edge.index)
    )


def _as_one_attempt(node: Node) -> Node:
    """A node with `for_each`, of which each item has the node's attempts and time, and the stage itself one attempt."""
    attrs = {name: value for name, value in node.attrs.items() if name not in _OF_AN_ITEM}
    return replace(node, attrs=MappingProxyType({**attrs, "type": FOR_EACH_TYPE, "max_retries": 0}))


def _tells_partial(condition: Condition | None) -> bool:
    clauses = () if condition is None else condition.clauses
    return any(clause.key == "outcome" and clause.literal == StageStatus.PARTIAL_SUCCESS for clause in clauses)


def _bare_keys(conditional: Iterable[PlannedEdge]) -> Iterator[str]:
    for edge in conditional:
        for clause in () if edge.condition is None else edge.condition.clauses:
            if clause.operator is Operator.IS_TRUE and clause.key not in {"outcome", "preferred_label"}:
                yield clause.key


def _rank(planned: PlannedEdge) -> tuple[int, str, str, str, str]:
    """Best first (spec 3.3); all after the target only so that source order never matters."""
    others = repr(sorted((name, str(value)) for name, value in planned.edge.attrs.items()))
    return (-planned.weight, planned.target, planned.label, planned.edge.condition, others)


def _existing(graph: Graph, *targets: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(target for target in targets if target in graph.nodes))


def _on_interrupted(node: Node) -> str:
    written = node.get("on_interrupted", str, "")
    if written in {"rerun", "ask", "fail"}:
        return written
    runs_command = node.handler_type == TOOL_TYPE or bool(node.tool_command)
    return "ask" if runs_command and not node.get("idempotent", bool, default=False) else "rerun"


# Estimated visits of each node: the likely path of a run, and its most visits. `estimates.py` adds the prices.

_SUCCEEDED: Final = ConditionOutcome(StageStatus.SUCCESS)
_ENDS: Final = frozenset({"start", "exit"})


class Visit(msgspec.Struct, frozen=True):
    """A visit on the likely path."""

    node_id: str  #: The node.
    edge: PlannedEdge | None  #: The edge by which it is entered; None at the start.
    before: tuple[Visit, ...]  #: The visits that come before it on its way: of a branch not those of the others.


def likely_path(plan: Plan, lookup: Lookup) -> list[Visit]:
    """The visits of a run in which nothing goes wrong, each node visited once.

    Every stage succeeds at its first attempt, every gate takes its first choice, every fan-out runs all its
    branches. Where a condition asks the context, it sees the run's inputs. Where the way leads back to where
    it was already, the best way that leads on is taken instead, whatever its condition.

    Args:
        plan: The plan.
        lookup: The value of a context key as the run begins; empty for one that is not there.
    """
    found: dict[str, Visit] = {}
    work: list[tuple[str, PlannedEdge | None, tuple[Visit, ...], str]] = [(plan.start, None, (), "")]
    while work:
        node_id, edge, before, stop = work.pop()
        if node_id in found or node_id == stop:
            continue
        planned = plan.nodes[node_id]
        visit = found[node_id] = Visit(node_id, edge, before)
        if planned.is_exit:
            continue
        path = (*before, visit)
        if planned.is_fan_out:
            if planned.join and planned.join != stop:
                work.append((planned.join, None, path, stop))  # taken up when all branches have been walked
            work += [(branch.target, branch, path, planned.join) for branch in reversed(planned.branches)]
        elif onward := _onward(planned, found, lookup):
            work.append((onward.target, onward, path, stop))
    return list(found.values())


def _onward(planned: PlannedNode, found: Mapping[str, Visit], lookup: Lookup) -> PlannedEdge | None:
    """The edge by which the likely path leaves a node, or None at its end."""
    ranked: list[PlannedEdge] = []
    if planned.handler_type == HUMAN_TYPE:
        ranked += planned.edges
    else:
        steps = (
            match_condition(planned, _SUCCEEDED, lookup),
            match_default(planned),
            match_weight(planned.unconditional),
        )
        ranked += [step.edge for step in steps if step is not None and step.edge is not None]
        ranked += [*planned.unconditional, *planned.defaults, *planned.conditional]
    return next((edge for edge in ranked if edge.target not in found), None)


def most_visits(plan: Plan) -> dict[str, int]:
    """The most visits of each node that a run can make, taken alone; all together are bound by `max_steps`.

    A node on a way that leads back to it, by edges or by retry targets, can be visited until
    `max_node_visits` or `max_steps` ends the run; one that only edges with `max_taken`, a goal gate's redirect
    or a restart lead back to, as often as those are allowed; any other as often as branches reach it.
    """
    bounds = plan.bounds
    most = bounds.max_steps if bounds.max_node_visits is None else bounds.max_node_visits
    restarts = {
        node_id: {edge.target for edge in plan.nodes[node_id].edges if edge.is_restart} for node_id in plan.nodes
    }
    jumps = {
        node_id: {edge.target for edge in plan.nodes[node_id].edges if not edge.is_restart}
        | _retry_targets(plan, node_id)
        for node_id in plan.nodes
    }
    gates = {target for gate in plan.goal_gates for target in _retry_targets(plan, gate)}
    redirected = {node_id: found | gates if plan.nodes[node_id].is_exit else found for node_id, found in jumps.items()}
    anew = {node_id: found | restarts[node_id] for node_id, found in redirected.items()}
    cyclic, by_gates, by_restarts = (
        _on_cycles({node_id: found - _bounded_targets(plan, node_id) for node_id, found in ways.items()})
        for ways in (jumps, redirected, anew if any(restarts.values()) else {})
    )
    passes = _bounded_passes(plan, anew)
    branches = _branches_coming(plan, jumps)
    result: dict[str, int] = {}
    for node_id in plan.nodes:
        visits = branches.get(node_id, 0) * passes.get(node_id, 1)
        if node_id in cyclic:
            visits = most
        elif node_id in by_gates:
            visits *= 1 + bounds.max_goal_gate_redirects
        if node_id in by_restarts and node_id not in cyclic:
            visits *= 1 + bounds.max_restarts
        result[node_id] = min(visits, most)
    return result


def has_loops(plan: Plan) -> bool:
    """True if a way without `max_taken` leads back to a node, so that bounds of the run alone end it."""
    edges = {
        node_id: ({edge.target for edge in plan.nodes[node_id].edges} | _retry_targets(plan, node_id))
        - _bounded_targets(plan, node_id)
        for node_id in plan.nodes
    }
    return bool(_on_cycles(edges))


def _retry_targets(plan: Plan, node_id: str) -> set[str]:
    """The targets of a failure of a node (ruling 15)."""
    planned = plan.nodes[node_id]
    if planned.handler_type in _ENDS:
        return set()
    return {*planned.retry_targets, *plan.graph_retry_targets}


def _bounded_targets(plan: Plan, node_id: str) -> set[str]:
    """The targets to which only edges with `max_taken` lead from a node."""
    planned = plan.nodes[node_id]
    if not planned.bounded:
        return set()
    free = {edge.target for edge in planned.edges if edge not in planned.bounded}
    return {edge.target for edge in planned.bounded} - free - _retry_targets(plan, node_id)


def _bounded_passes(plan: Plan, successors: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """The most passes of each node through the loops that edges with `max_taken` close.

    Each time such an edge is taken, the nodes of its loops can be visited once more. Around a fan-out, each pass of
    its branches counts their edges anew.
    """
    found: dict[str, int] = {}
    for cycle in _cycles(successors):
        members = set(cycle)
        times = [
            edge.max_taken or 0 for node_id in cycle for edge in plan.nodes[node_id].bounded if edge.target in members
        ]
        is_parallel = any(plan.nodes[node_id].is_fan_out for node_id in cycle)
        passes = math.prod(1 + most for most in times) if is_parallel else 1 + sum(times)
        found.update(dict.fromkeys(cycle, passes))
    return found


def _on_cycles(successors: Mapping[str, Iterable[str]]) -> set[str]:
    return {node_id for cycle in _cycles(successors) for node_id in cycle}


def _cycles(successors: Mapping[str, Iterable[str]]) -> list[list[str]]:
    targets = {node_id: sorted(found) for node_id, found in successors.items()}
    sources: dict[str, list[str]] = {node_id: [] for node_id in targets}
    for node_id, found in targets.items():
        for target in found:
            sources[target].append(node_id)
    return find_cycles(targets, sources)


def _branches_coming(plan: Plan, successors: Mapping[str, Iterable[str]]) -> dict[str, int]:
    """The number of parallel paths that reach each node, each counted once; 0 for none."""
    regions: list[tuple[str, set[str]]] = [("", set(_region(plan, successors, plan.start, "")))]
    regions += [
        (node_id, set(_region(plan, successors, branch.target, plan.nodes[node_id].join)))
        for node_id in plan.nodes
        for branch in plan.nodes[node_id].branches
    ]
    counted: dict[str, int] = {}

    def count(node_id: str, within: frozenset[str]) -> int:
        if node_id not in counted:
            inner = within | {node_id}
            counted[node_id] = sum(
                1 if not fan_out or fan_out in inner else count(fan_out, inner)
                for fan_out, region in regions
                if node_id in region
            )
        return counted[node_id]

    return {node_id: count(node_id, frozenset()) for node_id in plan.nodes}


def _region(plan: Plan, successors: Mapping[str, Iterable[str]], start: str, stop: str) -> Iterator[str]:
    """The nodes that one path reaches until ``stop``; a fan-out on it leads to its join, not into its branches."""
    seen: set[str] = set()
    work = [start]
    while work:
        node_id = work.pop()
        if node_id in seen or node_id == stop:
            continue
        seen.add(node_id)
        yield node_id
        planned = plan.nodes[node_id]
        onward = set(successors[node_id])
        if planned.is_fan_out:
            onward -= {branch.target for branch in planned.branches}
            onward |= {planned.join} if planned.join else set[str]()
        work += sorted(onward)


# Cycles of a directed graph, as its strongly connected components.


def find_cycles(
    successors: Mapping[str, Collection[str]], predecessors: Mapping[str, Collection[str]]
) -> list[list[str]]:
    """The components in which each node can be reached from each other one, or a node from itself.

    Kosaraju's algorithm without recursion: linear, and no depth of graph can exhaust the stack.
    networkx has such a function too, but takes half a second to import.

    Args:
        successors: The targets of every node; each target is a key too.
        predecessors: The same edges by target.

    >>> find_cycles({"a": ["a", "b"], "b": []}, {"a": ["a"], "b": ["a"]})
    [['a']]
    """
    # What only leads to cycles, or is only led to, is on none: in most pipelines that is nearly all.
    core = _without_ends(_without_ends(successors.keys(), successors), predecessors)
    inner = {node: [target for target in successors[node] if target in core] for node in core}
    cycles: list[list[str]] = []
    seen: set[str] = set()
    for root in reversed(_finishing_order(inner)):
        if root in seen:
            continue
        seen.add(root)
        component = [root]
        for node in component:
            for source in predecessors[node]:
                if source in core and source not in seen:
                    seen.add(source)
                    component.append(source)
        if len(component) > 1 or root in inner[root]:
            cycles.append(component)
    return cycles


def _without_ends(nodes: Collection[str], targets: Mapping[str, Collection[str]]) -> set[str]:
    """The nodes without those that no other node, or only one so left out, leads to."""
    entering = dict.fromkeys(nodes, 0)
    for node in nodes:
        for target in targets[node]:
            if target in entering:
                entering[target] += 1
    ends = [node for node, count in entering.items() if not count]
    for node in ends:
        for target in targets[node]:
            if target in entering:
                entering[target] -= 1
                if not entering[target]:
                    ends.append(target)
    return {node for node, count in entering.items() if count}


def _finishing_order(successors: Mapping[str, Collection[str]]) -> list[str]:
    """All nodes, each after everything that a depth-first walk finds from it."""
    order: list[str] = []
    seen: set[str] = set()
    for root in successors:
        if root in seen:
            continue
        seen.add(root)
        work = [(root, iter(successors[root]))]
        while work:
            node, targets = work[-1]
            target = next((each for each in targets if each not in seen), None)
            if target is None:
                work.pop()
                order.append(node)
            else:
                seen.add(target)
                work.append((target, iter(successors[target])))
    return order
