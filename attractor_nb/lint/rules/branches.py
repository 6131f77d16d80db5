"""Rules about what the branches of a fan-out come to on their way (spec 4.8; rulings 22, 36, 39)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.branch_policies import (
    FAN_IN_TYPE,
    branch_edges,
    continues_without,
    policy_of,
    surroundings_of,
    walked,
)
from attractor_nb.errors import OptionError
from attractor_nb.lint.survey import Finding, Survey, rule, value_span
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.vocabulary.shapes import HUMAN_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.graph import Edge


@rule(Severity.WARNING)
def branch_leaves_fan_out(survey: Survey) -> Iterator[Finding]:
    """No branch of a fan-out leads back to the fan-out or to a node before it.

    A branch never enters those (ruling 36). An edge that leads there ends the branch with the outcome of the
    stage that it leaves. A retry target there is taken by the run: the other branches are cancelled, the
    fan-out fails, and the run goes back, unless `error_policy=ignore`: then it is not taken at all.

    Bad:

        digraph { start [shape=Mdiamond] plan [prompt="Plan"] fan [shape=component] a [prompt="A"]
            b [prompt="B"] join [shape=tripleoctagon] exit [shape=Msquare]
            start -> plan -> fan  fan -> a -> join  fan -> b -> join  join -> exit
            a -> plan [condition="outcome=fail"] }

    Good:

        digraph { start [shape=Mdiamond] plan [prompt="Plan"] fan [shape=component, error_policy=fail_fast]
            a [prompt="A"] b [prompt="B"] join [shape=tripleoctagon] exit [shape=Msquare]
            start -> plan -> fan  fan -> a -> join  fan -> b -> join  join -> exit
            fan -> plan [condition="outcome=fail"] }
    """
    nearest: dict[tuple[str, str, str], tuple[int, str]] = {}
    for node_id in survey.joins:
        for exit_edge, size in _branch_exits(survey, node_id):
            nearest[exit_edge] = min(nearest.get(exit_edge, (size, node_id)), (size, node_id))
    for (source, target, name), (_, node_id) in nearest.items():
        where = "itself" if target == node_id else f'"{target}", which is before it'
        if name:
            node = survey.graph.nodes[source]
            message = f'the {name} of "{source}", in a branch of "{node_id}", leads back to {where}'
            fix = Fix(f'set the {name} on "{node_id}", or name a node of the branch')
            yield Finding(message, value_span(node, name), source, fix=fix)
        else:
            edge = next(edge for edge in survey.graph.outgoing_edges(source) if edge.target == target)
            begins = source == node_id
            verb = (
                "begins at" if begins else f"that takes {source} -> {target} ends there, because the edge leads back to"
            )
            message = f'a branch of "{node_id}" {verb} {where}'
            fix = Fix(f'decide after the branches: {node_id} -> {target} [condition="outcome=fail"]')
            yield Finding(message, edge.span, source, (source, target), fix)


def _branch_exits(survey: Survey, node_id: str) -> Iterator[tuple[tuple[str, str, str], int]]:
    """Edges and jumps that lead out of the branches of a fan-out, and how many nodes the branches have.

    Yields:
        Source, target and, for a jump, its attribute; and that number.
    """
    nodes, leaving = survey.graph.nodes, survey.graph.outgoing_edges
    starts = [edge.target for edge in branch_edges(survey.graph, node_id) if edge.target in nodes]
    ends = {node_id, survey.joins[node_id].node_id}
    if node_id not in survey.cyclic and not walked(starts, survey.onward, ends) & survey.jumps.keys():
        return
    before = surroundings_of(survey.graph, node_id, survey.joins[node_id].node_id).before
    within = walked(starts, survey.onward, before | ends)
    for edge in (edge for name in (node_id, *within) for edge in leaving(name)):
        is_branch = edge.source in within or not (edge.condition.strip() or edge.target == node_id)
        if is_branch and edge.target in before and not edge.loop_restart:
            yield (edge.source, edge.target, ""), len(within)
    for name in within & survey.jumps.keys():
        attribute = "retry_target" if nodes[name].retry_target in nodes else "fallback_retry_target"
        if (target := nodes[name].get(attribute, str, "")) in before:
            yield (name, target, attribute), len(within)


@rule(Severity.WARNING)
def restart_in_branch(survey: Survey) -> Iterator[Finding]:
    """No branch of a fan-out restarts the run.

    A branch that takes an edge with `loop_restart=true` fails: the other branches are still at work in the
    run directory that would be left (ruling 22).

    Bad:

        digraph { start [shape=Mdiamond] fan [shape=component] a [prompt="A"] b [prompt="B"]
            join [shape=tripleoctagon] exit [shape=Msquare]
            start -> fan  fan -> a -> join  fan -> b -> join  join -> exit
            b -> again [condition="outcome=fail", loop_restart=true]  again [prompt="Again"]  again -> fan }

    Good:

        digraph { start [shape=Mdiamond] fan [shape=component] a [prompt="A"] b [prompt="B"]
            join [shape=tripleoctagon] exit [shape=Msquare]
            start -> fan  fan -> a -> join  fan -> b -> join  join -> exit
            join -> again [condition="outcome=fail", loop_restart=true]  again [prompt="Again"]
            again -> fan }
    """
    restarts = [edge for edge in survey.graph.edges if edge.loop_restart]
    if not restarts:
        return
    for node_id, join in survey.joins.items():
        branches = branch_edges(survey.graph, node_id)
        starts = [edge.target for edge in branches if not edge.loop_restart and edge.target in survey.types]
        within = walked(starts, survey.onward, {join.node_id, node_id})
        for edge in restarts:
            begins_branch = edge.source == node_id and not edge.condition.strip()
            if begins_branch or edge.source in within:
                message = (
                    f'a branch of "{node_id}" that takes {edge.source} -> {edge.target} fails: a branch '
                    "cannot restart the run"
                )
                fix = Fix("restart after the join, or go back within the branch")
                yield Finding(message, edge.span, node_id, (edge.source, edge.target), fix)


@rule(Severity.WARNING)
def fan_in_off_join(survey: Survey) -> Iterator[Finding]:
    """The branches of a fan-out come to no fan-in but the one where all of them meet.

    At another one there are no results yet to choose from. A branch that comes there fails, and the fan-out
    with it, whatever its policies say. Where a branch has no other way on that is an ERROR. Branches that
    are to meet among themselves need a fan-out of their own (ruling 22).

    Bad:

        digraph { start [shape=Mdiamond] fan [shape=component] a [prompt="A"] b [prompt="B"]
            early [shape=tripleoctagon] join [shape=tripleoctagon] exit [shape=Msquare]
            start -> fan  fan -> a -> early -> join  fan -> b -> join  join -> exit }

    Good:

        digraph { start [shape=Mdiamond] fan [shape=component] inner [shape=component] a [prompt="A"]
            b [prompt="B"] c [prompt="C"] early [shape=tripleoctagon] join [shape=tripleoctagon]
            exit [shape=Msquare]  start -> fan  fan -> inner  inner -> a -> early  inner -> b -> early
            early -> join  fan -> c -> join  join -> exit }
    """
    fan_ins = set(survey.of_type(FAN_IN_TYPE))
    ends = fan_ins | survey.joins.keys()
    for node_id, join in survey.joins.items():
        if len(fan_ins) == (join.node_id in fan_ins):
            continue
        stops = ends if join.node_id in ends else ends | {join.node_id}
        for edge in branch_edges(survey.graph, node_id):
            if edge.target not in survey.types:
                continue
            # Behind a fan-out of the branch there are results, so nothing is looked for there.
            found = walked([edge.target], survey.onward, stops)
            reached = {name for each in found for name in survey.onward(each)} | {edge.target}
            for name in sorted((reached & fan_ins) - {join.node_id}):
                yield _off_join(survey, node_id, join.node_id, edge, name)


def _off_join(survey: Survey, node_id: str, join: str, edge: Edge, name: str) -> Finding:
    around = walked([edge.target], survey.onward, {node_id, name})
    ends = {join, *(node.id for node in survey.graph.exit_nodes)}
    meet = f'meet at "{join}"' if join else "meet nowhere"
    message = f'the branch of "{node_id}" to "{edge.target}" reaches the fan-in "{name}", but the branches {meet}'
    fix = Fix("use a separate fan-out for the branches that meet there, or make it an ordinary node")
    severity = None if around & ends else Severity.ERROR
    return Finding(message, survey.graph.nodes[name].span, name, (edge.source, edge.target), fix, severity)


@rule(Severity.WARNING)
def gate_may_be_skipped(survey: Survey) -> Iterator[Finding]:
    """A human gate stands where the run cannot go on without it.

    In a branch it may: a fan-out goes on without some of its branches unless it needs them all
    (`error_policy=fail_fast` under `wait_all`, or a `join_k` of all branches), so that nobody has answered.
    With `strict_gates=true` such a fan-out fails (ruling 39).

    Bad:

        digraph { start [shape=Mdiamond] fan [shape=component, join_policy=first_success]
            ok [shape=hexagon, label="OK?"] b [prompt="B"] join [shape=tripleoctagon] exit [shape=Msquare]
            start -> fan  fan -> ok  fan -> b -> join  ok -> join [label="Yes"]  join -> exit }

    Good:

        digraph { start [shape=Mdiamond] fan [shape=component, error_policy=fail_fast]
            ok [shape=hexagon, label="OK?"] b [prompt="B"] join [shape=tripleoctagon] exit [shape=Msquare]
            start -> fan  fan -> ok  fan -> b -> join  ok -> join [label="Yes"]  join -> exit }
    """
    gates = set(survey.of_type(HUMAN_TYPE))
    if not gates or survey.graph.get("strict_gates", bool, default=False):
        return
    for node_id, join in survey.joins.items():
        branches = branch_edges(survey.graph, node_id)
        try:
            policy = policy_of(survey.graph.nodes[node_id], len(branches))
        except OptionError:
            continue  # another rule says so
        if not continues_without(policy):
            continue
        before = surroundings_of(survey.graph, node_id, join.node_id).before
        starts = [edge.target for edge in branches if edge.target in survey.types]
        within = walked(starts, survey.onward, before | {join.node_id})
        for gate in (name for name in survey.types if name in gates & within):
            message = (
                f'the fan-out "{node_id}" may complete without an answer at the gate "{gate}" in its branch: '
                f"join_policy={policy.join}, error_policy={policy.error}"
            )
            fix = Fix("set error_policy=fail_fast, ask after the branches, or set strict_gates=true")
            yield Finding(message, survey.graph.nodes[gate].span, gate, fix=fix)


RULES: Final = (branch_leaves_fan_out, fan_in_off_join, gate_may_be_skipped, restart_in_branch)
