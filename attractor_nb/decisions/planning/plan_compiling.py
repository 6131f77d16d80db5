"""How a graph becomes a plan: conditions parsed, edges sorted, policies and targets resolved, once."""

from __future__ import annotations

from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from attractor_nb.decisions.fan_outs.joins import FAN_IN_TYPE, PARALLEL_TYPE, Join, joins_of, surroundings_of
from attractor_nb.decisions.fidelity import resolve_fidelity
from attractor_nb.decisions.limits.bounds import SPENDING, RunBounds, bounds_of, node_bounds
from attractor_nb.decisions.planning.cycles import find_cycles
from attractor_nb.decisions.planning.plan import CONDITIONAL_TYPE, TOOL_TYPE, OnDemand, Plan, PlannedEdge, PlannedNode
from attractor_nb.decisions.retries import build_retry_policy
from attractor_nb.decisions.routing import match_weight
from attractor_nb.errors import OptionError
from attractor_nb.languages.condition.parser import parse_condition
from attractor_nb.languages.condition.syntax import Operator
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.vocabulary.comma_lists import comma_list
from attractor_nb.model.vocabulary.labels import normalize_label
from attractor_nb.model.vocabulary.repetition import FOR_EACH_TYPE
from attractor_nb.model.vocabulary.shapes import DEFAULT_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from attractor_nb.languages.condition.syntax import Condition
    from attractor_nb.model.graph import Graph, Node

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
    handler_type = handler_types[node_id]
    is_fan_out = handler_type == PARALLEL_TYPE
    single = _as_one_attempt(node) if handler_type == FOR_EACH_TYPE else node
    timeout = single.timeout
    return PlannedNode(
        node=node,
        id=node.id,
        handler_type=handler_type,
        edges=edges,
        conditional=conditional,
        tells_partial=any(_tells_partial(edge.condition) for edge in conditional),
        unconditional=unconditional,
        defaults=tuple(edge for edge in free if edge.edge.is_default),
        by_label=by_label,
        by_target=by_target,
        only_step=match_weight(unconditional) if len(edges) == len(unconditional) == 1 and not is_fan_out else None,
        to_conditional=next(
            (edge for edge in unconditional if graph.nodes[edge.target].handler_type == CONDITIONAL_TYPE), None
        ),
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
        bare_keys=tuple(_bare_keys(conditional)),
        bounds=None if SPENDING.isdisjoint(node.attrs) else node_bounds(node),
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
