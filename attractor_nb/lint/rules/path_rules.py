"""Rules about all ways that a run can take: what it can go around, loops without an end, results without a reader.

They are applied on demand, by `pipeline.analyse()`: they load networkx, and most of their findings are facts to know
rather than mistakes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.bounds import bounds_of
from attractor_nb.decisions.branch_policies import walked
from attractor_nb.decisions.fidelity import resolve_fidelity
from attractor_nb.lint.paths import Paths
from attractor_nb.lint.rules.routing_rules import can_be_taken
from attractor_nb.lint.survey import Finding, Survey, rule, value_span
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.vocabulary.shapes import CONDITIONAL_TYPE, DEFAULT_TYPE, HUMAN_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from attractor_nb.model.graph import Edge, Node

BOUNDS: Final = ("max_steps", "max_node_visits", "max_budget_usd", "max_tokens_total", "max_duration")
"""Attributes of a graph that end a loop."""
_OF_NODES: Final = ("max_budget_usd", "max_tokens_total")
_SHOWN: Final = 6
_WITHOUT_RESULT: Final = frozenset({"start", "exit", CONDITIONAL_TYPE, "parallel", HUMAN_TYPE})
"""Types whose stages only route; an answer at a gate chooses an edge."""
_READING_NOTHING: Final = frozenset({"start", "exit", CONDITIONAL_TYPE, "parallel"})


@lru_cache(maxsize=1)
def paths_of(survey: Survey) -> Paths:
    """The ways through a graph, found once for all rules."""
    return Paths(survey)


def way(nodes: Iterable[str]) -> str:
    """Nodes as a way, the middle of a long one left out.

    >>> way(["start", "plan", "done"])
    'start -> plan -> done'
    """
    names = list(nodes)
    if len(names) > _SHOWN + 1:
        names[_SHOWN - 1 : -1] = ["…"]
    return " -> ".join(names)


@rule(Severity.INFO)
def gate_avoidable(survey: Survey) -> Iterator[Finding]:
    """A run can end without the question of a human gate.

    The finding names such a way. An exception, such as a report that fits no class, need not be asked of a person in
    every run; an approval must lie on every way. Gates in branches of a fan-out that need not complete are found by
    `gate_may_be_skipped`.

    Bad:

        digraph { start [shape=Mdiamond] check [prompt="Check"] ok [shape=hexagon, label="Publish?"]
            publish [prompt="Publish"] exit [shape=Msquare]
            start -> check  check -> publish [condition="outcome=success"]  check -> ok [default=true]
            ok -> publish [label="Yes"]  publish -> exit }

    Good:

        digraph { start [shape=Mdiamond] check [prompt="Check"] ok [shape=hexagon, label="Publish?"]
            publish [prompt="Publish"] exit [shape=Msquare]
            start -> check -> ok  ok -> publish [label="Yes"]  publish -> exit }
    """
    for node_id in survey.of_type(HUMAN_TYPE):
        if detour := paths_of(survey).detour(node_id):
            message = f'a run can go around the gate "{node_id}": {way(detour)}'
            fix = Fix("lead every way through it, if it is an approval")
            yield Finding(message, survey.graph.nodes[node_id].span, node_id, fix=fix)


@rule(Severity.WARNING)
def goal_gate_avoidable(survey: Survey) -> Iterator[Finding]:
    """A run can end without visiting a goal gate.

    The gate is not checked in such a run, which ends with a warning, or fails under `strict_gates=true` (ruling 17).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Work"] test [prompt="Test", goal_gate=true, retry_target=work]
            exit [shape=Msquare]
            start -> work  work -> test [label="Changed"]  work -> exit [label="Nothing to do"]  test -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Work"] test [prompt="Test", goal_gate=true, retry_target=work]
            exit [shape=Msquare]
            start -> work -> test -> exit }
    """
    for node in survey.having("goal_gate"):
        if node.goal_gate and (detour := paths_of(survey).detour(node.id)):
            end = "the run fails" if survey.graph.get("strict_gates", bool, default=False) else "it is not checked"
            message = f'a run can go around the goal gate "{node.id}", and then {end}: {way(detour)}'
            fix = Fix("lead every way to the exit through it")
            yield Finding(message, value_span(node, "goal_gate"), node.id, fix=fix)


@rule(Severity.WARNING)
def endless_loop(survey: Survey) -> Iterator[Finding]:
    """A loop inside a larger cycle has no exit that a run would choose.

    The larger cycle has one, so `unbounded_cycle` says nothing. Not reported where the graph has a bound (`max_steps`,
    `max_node_visits`, `max_budget_usd`, `max_tokens_total`, `max_duration`), a node of the loop a budget, or the loop
    a human gate, a `loop_restart` edge (`max_restarts`) or an edge with `max_taken`.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Work"] check [prompt="Check"] tidy [prompt="Tidy"]
            exit [shape=Msquare]
            start -> work -> check  check -> work [weight=1]  check -> tidy  tidy -> work  tidy -> exit [label="Done"] }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Work"] check [prompt="Check"] tidy [prompt="Tidy"]
            exit [shape=Msquare]
            start -> work -> check  check -> work [condition="outcome=fail"]  check -> tidy
            tidy -> work [label="Again"]  tidy -> exit [label="Done"] }
    """
    paths = paths_of(survey)
    components = [set(cycle) for cycle in survey.cycles]
    for cycle in paths.cycles:
        if set(cycle) in components or ways_out(survey, cycle) or bounds_of_loop(survey, cycle):
            continue
        if all(any(can_be_taken(survey, edge) for edge in edges) for edges in edges_of_loop(survey, cycle)):
            node = survey.graph.nodes[cycle[0]]
            message = f"nothing but max_steps ends the loop {way((*cycle, cycle[0]))}"
            fix = Fix("add an edge out of it with a condition, or a human gate, or set max_node_visits")
            yield Finding(message, node.span, node.id, fix=fix)


def edges_of_loop(survey: Survey, cycle: tuple[str, ...]) -> list[list[Edge]]:
    """The edges of each step of a loop; several where edges are parallel."""
    return [
        [edge for edge in survey.graph.outgoing_edges(source) if edge.target == target]
        for source, target in pairwise((*cycle, cycle[0]))
    ]


def bounds_of_loop(survey: Survey, cycle: tuple[str, ...]) -> list[str]:
    """The written bounds of a loop, and the persons that can end it."""
    graph = survey.graph
    found = [f"a person at {node_id}" for node_id in cycle if survey.types[node_id] == HUMAN_TYPE]
    if any(all(edge.loop_restart for edge in edges) for edges in edges_of_loop(survey, cycle)):
        found.append(f"max_restarts={bounds_of(graph).max_restarts}")
    found += [
        f"max_taken={max(edge.max_taken or 0 for edge in edges)} of {edges[0].source} -> {edges[0].target}"
        for edges in edges_of_loop(survey, cycle)
        if all(edge.max_taken is not None for edge in edges)
    ]
    found += [f"{name}={graph.attrs[name]}" for name in BOUNDS if name in graph.attrs]
    nodes = [graph.nodes[node_id] for node_id in cycle]
    return found + [f"{name} of {node.id}" for node in nodes for name in _OF_NODES if name in node.attrs]


def ways_out(survey: Survey, cycle: tuple[str, ...]) -> list[Edge]:
    """The edges by which a run may leave a loop."""
    deciding = [node_id for node_id in cycle if survey.types[node_id] != "parallel"]
    leaving = [edge for node_id in deciding for edge in survey.graph.outgoing_edges(node_id)]
    return [edge for edge in leaving if edge.target not in cycle and can_be_taken(survey, edge)]


@rule(Severity.INFO)
def result_unseen(survey: Survey) -> Iterator[Finding]:
    """No later stage receives the result of a stage.

    The result of a stage is seen if it chooses among edges, is a goal gate, or is the last one before an exit; or if a
    later stage is a command, a function or a person, is a model whose prompt contains earlier stages (any fidelity but
    `truncate`), or names one of its values. A `loop_restart` edge drops the context. Files that the stage wrote are
    not looked at.

    Bad:

        digraph { start [shape=Mdiamond] plan [prompt="Plan"] write [prompt="Write", fidelity=truncate]
            exit [shape=Msquare]  start -> plan -> write -> exit }

    Good:

        digraph { start [shape=Mdiamond] plan [prompt="Plan"]
            write [prompt="Write it as planned: ${plan.response}", fidelity=truncate]
            exit [shape=Msquare]  start -> plan -> write -> exit }
    """
    for node in survey.graph.nodes.values():
        if node.id in survey.reachable and not _is_seen(survey, node):
            message = f'no later stage receives the result of "{node.id}"'
            fix = Fix(f"name it in a later prompt: ${{{node.id}.response}}, or give that stage another fidelity")
            yield Finding(message, node.span, node.id, fix=fix)


def _is_seen(survey: Survey, node: Node) -> bool:
    leaving = survey.graph.outgoing_edges(node.id)
    if survey.types[node.id] in _WITHOUT_RESULT or node.goal_gate or len(leaving) != 1:
        return True
    (edge,) = leaving
    kind = survey.types.get(edge.target)
    if edge.condition.strip() or kind == CONDITIONAL_TYPE or (kind == "exit" and not edge.loop_restart):
        return True
    later = walked(_keeping(survey, node.id), lambda name: _keeping(survey, name), ())
    return any(_reads(survey, survey.graph.nodes[name], node.id) for name in later)


def _keeping(survey: Survey, node_id: str) -> list[str]:
    """The next nodes that still have the values of a node in their context."""
    onward = [edge.target for edge in survey.graph.outgoing_edges(node_id) if not edge.loop_restart]
    onward += [*survey.jumps.get(node_id, ()), *survey.graph_jumps]
    return [target for target in onward if target in survey.graph.nodes]


def _reads(survey: Survey, reader: Node, node_id: str) -> bool:
    """True if a stage receives the result of an earlier one; all but models receive the whole context."""
    kind = survey.types[reader.id]
    if kind != DEFAULT_TYPE:
        return kind not in _READING_NOTHING
    entering = survey.graph.incoming_edges(reader.id)
    if any(resolve_fidelity(edge, reader, survey.graph) != "truncate" for edge in entering):
        return True
    named = re.compile(rf"\b(?:{re.escape(node_id)}\.|last_response\b|tool\.|parallel\.)")
    return any(isinstance(value, str) and named.search(value) for value in reader.attrs.values())


RULES: Final = (gate_avoidable, goal_gate_avoidable, endless_loop, result_unseen)
"""The rules on demand, in the order in which they are applied."""
