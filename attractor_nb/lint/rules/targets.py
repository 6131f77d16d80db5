"""Rules about retry targets and goal gates (spec 3.4, 3.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.lint.entailed_findings import with_value
from attractor_nb.lint.survey import Finding, Survey, replacing_value, rule, value_span
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.texts import suggestion
from attractor_nb.model.vocabulary.attribute_table import Scope
from attractor_nb.model.vocabulary.attributes import literal_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.graph import Graph, Node

_TARGETS: Final = ("retry_target", "fallback_retry_target")
_GATELESS_TYPES: Final = frozenset({"start", "exit", "conditional"})


@rule(Severity.WARNING)
def retry_target_exists(survey: Survey) -> Iterator[Finding]:
    """A retry target names a node.

    A target that is not there is passed over, and the failure goes to the next one or ends the run
    (spec 7.2, 3.7).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", retry_target=wrok] exit [shape=Msquare]
            start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", retry_target=work] exit [shape=Msquare]
            start -> work -> exit }
    """
    yield from _unknown_targets(survey, survey.graph, "")
    for node_id in survey.jumps:
        yield from _unknown_targets(survey, survey.graph.nodes[node_id], node_id)


def _unknown_targets(survey: Survey, thing: Graph | Node, node_id: str) -> Iterator[Finding]:
    for name in _TARGETS:
        target = literal_text(thing.attrs.get(name, ""))
        if not target or target in survey.graph.nodes:
            continue
        near = survey.nearest_node(target)
        message = f'{name} names "{target}", which is not a node'
        if near:
            fix = replacing_value(thing, name, near, f'write "{near}"')
            message += suggestion(near)
        else:
            fix = Fix("name a node of the pipeline")
        scope = Scope.NODE if node_id else Scope.GRAPH
        meant = with_value(scope, name, thing.attrs[name], near) if near else None
        yield Finding(message, value_span(thing, name), node_id, fix=fix, meant=meant)


@rule(Severity.WARNING)
def goal_gate_has_retry(survey: Survey) -> Iterator[Finding]:
    """A goal gate says where to go when it is not satisfied.

    Without a `retry_target` on the node or the graph, a gate that fails can only fail the run at the exit
    (spec 7.2, 3.4).

    Bad:

        digraph { start [shape=Mdiamond] test [prompt="Run the tests", goal_gate=true]
            exit [shape=Msquare]  start -> test -> exit }

    Good:

        digraph { start [shape=Mdiamond]
            test [prompt="Run the tests", goal_gate=true, retry_target=test]
            exit [shape=Msquare]  start -> test -> exit }
    """
    if survey.graph_jumps:
        return
    for node in _gates(survey):
        if not node.retry_target and not node.fallback_retry_target:
            message = f'the goal gate "{node.id}" has no retry_target; unsatisfied, it fails the run'
            fix = Fix("add retry_target to the node or the graph")
            yield Finding(message, value_span(node, "goal_gate"), node.id, fix=fix)


@rule(Severity.WARNING)
def gate_without_effect(survey: Survey) -> Iterator[Finding]:
    """A goal gate is a stage that can fail.

    Start, exit and conditional nodes do no work of their own and count for no gate (ruling 16): a gate
    there promises a check that never happens.

    Bad:

        digraph { start [shape=Mdiamond] ok [shape=diamond, goal_gate=true, retry_target=start]
            exit [shape=Msquare]  start -> ok -> exit }

    Good:

        digraph { start [shape=Mdiamond] ok [shape=diamond]
            exit [shape=Msquare]  start -> ok -> exit }
    """
    for node in _gates(survey):
        handler_type = survey.types[node.id]
        if handler_type in _GATELESS_TYPES:
            message = f'"{node.id}" is a {handler_type} node, so its goal_gate has no effect'
            fix = Fix("move goal_gate to the stage that does the work")
            yield Finding(message, value_span(node, "goal_gate"), node.id, fix=fix)


def _gates(survey: Survey) -> list[Node]:
    return [node for node in survey.having("goal_gate") if node.attrs["goal_gate"] is True]


RULES: Final = (retry_target_exists, goal_gate_has_retry, gate_without_effect)
