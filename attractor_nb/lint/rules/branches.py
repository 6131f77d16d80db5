"""Rules about fan-outs, their branches, policies and joins (spec 4.8, 4.9; rulings 22, 36, 39)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.branch_policies import (
    BRANCHES,
    ERROR_POLICIES,
    FAN_IN_TYPE,
    ITEMS,
    JOIN_POLICIES,
    K_OF_N,
    PARALLEL_TYPE,
    QUORUM,
    branch_edges,
    continues_without,
    policy_of,
    surroundings_of,
    walked,
)
from attractor_nb.errors import OptionError
from attractor_nb.lint.survey import Finding, Survey, name_span, rule, value_span
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.vocabulary.shapes import HUMAN_TYPE
from attractor_nb.model.vocabulary.value_forms import DEFAULT_MAX_ITEMS, FOR_EACH, MAX_ITEMS, is_repeated

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.graph import Edge, Node


@rule(Severity.WARNING)
def branch_leaves_fan_out(survey: Survey) -> Iterator[Finding]:
    """A branch of a fan-out leads back to the fan-out or to a node before it.

    A branch never enters these nodes (ruling 36). An edge to one ends the branch with the outcome of the stage that it
    leaves. A retry target among them is taken by the run: the other branches are cancelled, the fan-out fails, and the
    run goes back. Under `error_policy=ignore` the retry target is not taken.

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
    """A branch of a fan-out restarts the run.

    A branch that takes an edge with `loop_restart=true` fails, because the other branches still work in the run
    directory that the restart would leave (ruling 22).

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
    """A branch of a fan-out reaches a fan-in that is not the join of all branches.

    At another fan-in there are no results to choose from yet. A branch that reaches it fails, and so does the fan-out,
    under any policy. If the branch has no other path, this is an ERROR. Branches that should meet among themselves need
    a fan-out of their own (ruling 22).

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
    """A fan-out can complete without an answer to a human gate in one of its branches.

    A fan-out continues without some of its branches unless it needs them all (`error_policy=fail_fast` under
    `wait_all`, or a `join_k` of all branches). With `strict_gates=true` such a fan-out fails (ruling 39).

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


# Rules about fan-outs and fan-ins: their branches, policies and joins (spec 4.8, 4.9; ruling 22).

_PARAMETERS: Final = {K_OF_N: "join_k", QUORUM: "join_quorum"}
"""Attribute that a join policy reads."""


@rule(Severity.WARNING)
def no_join(survey: Survey) -> Iterator[Finding]:
    """The branches of a fan-out never meet again.

    They meet at the nearest fan-in that all of them lead to, else at the nearest common node. Branches that
    have no node in common run to their ends, and no stage ever sees all their results (ruling 22).

    Bad:

        digraph { start [shape=Mdiamond] fan [shape=component] a [prompt="A"] b [prompt="B"]
            exit [shape=Msquare]  start -> fan  fan -> a  fan -> b  a -> exit }

    Good:

        digraph { start [shape=Mdiamond] fan [shape=component] a [prompt="A"] b [prompt="B"]
            join [shape=tripleoctagon] exit [shape=Msquare]
            start -> fan  fan -> a  fan -> b  a -> join  b -> join  join -> exit }
    """
    for node_id, join in survey.joins.items():
        if not join.node_id and len(branch_edges(survey.graph, node_id)) > 1:
            message = f'the branches of "{node_id}" have no common node as join: they run to their ends'
            fix = Fix("lead all branches to a node of shape tripleoctagon")
            yield Finding(message, survey.graph.nodes[node_id].span, node_id, fix=fix)


@rule(Severity.ERROR)
def fan_out_branches(survey: Survey) -> Iterator[Finding]:
    """A fan-out has no branches: every edge that leaves it has a condition.

    Each edge without a condition starts a branch. An edge with a condition starts none: it says where the run goes
    after the branches. So a fan-out without any other edge has nothing to run (spec 4.8).

    Bad:

        digraph { start [shape=Mdiamond] fan [shape=component] exit [shape=Msquare]
            start -> fan  fan -> exit [condition="outcome=success"] }

    Good:

        digraph { start [shape=Mdiamond] fan [shape=component] a [prompt="A"] b [prompt="B"]
            exit [shape=Msquare]  start -> fan  fan -> a -> exit  fan -> b -> exit }
    """
    for node_id in survey.joins:
        if not branch_edges(survey.graph, node_id):
            message = f'the fan-out "{node_id}" has no branches'
            fix = Fix("draw an edge without a condition for each branch")
            yield Finding(message, survey.graph.nodes[node_id].span, node_id, fix=fix)


@rule(Severity.ERROR)
def fan_out_policy(survey: Survey) -> Iterator[Finding]:
    """The branches of a fan-out can never satisfy its join policy.

    `k_of_n` needs `join_k`, at most as many as there are branches; `quorum` needs `join_quorum`, a fraction
    above 0 and at most 1. One that the policy does not read is a WARNING: it changes nothing (spec 4.8). The same holds
    for the items of a stage with `for_each`, of which there are at most `max_items`.

    Bad:

        digraph { start [shape=Mdiamond] fan [shape=component, join_policy=k_of_n, join_k=3]
            a [prompt="A"] b [prompt="B"] exit [shape=Msquare]
            start -> fan  fan -> a -> exit  fan -> b -> exit }

    Good:

        digraph { start [shape=Mdiamond] fan [shape=component, join_policy=k_of_n, join_k=2]
            a [prompt="A"] b [prompt="B"] exit [shape=Msquare]
            start -> fan  fan -> a -> exit  fan -> b -> exit }
    """
    counts = {node_id: (len(branch_edges(survey.graph, node_id)), BRANCHES) for node_id in survey.joins}
    for node in survey.having(FOR_EACH):
        if is_repeated(node.attrs, survey.types[node.id]):
            counts[node.id] = node.get(MAX_ITEMS, int, DEFAULT_MAX_ITEMS), ITEMS
    for node_id, (count, noun) in counts.items():
        node = survey.graph.nodes[node_id]
        yield from _unread(node)
        if not count or not _is_readable(node):
            continue  # other rules say so
        try:
            policy_of(node, count, noun)
        except OptionError as error:
            name = _PARAMETERS[node.get("join_policy", str, "")]
            span = value_span(node, name if name in node.attrs else "join_policy")
            yield Finding(error.message, span, node_id, fix=Fix(error.hint))


def _is_readable(node: Node) -> bool:
    """True if the values of its policies are of their types; else ``bad_value`` speaks of them."""
    if node.get("join_policy", str, JOIN_POLICIES[0]) not in JOIN_POLICIES:
        return False
    if node.get("error_policy", str, ERROR_POLICIES[0]) not in ERROR_POLICIES:
        return False
    join_k, quorum = node.get("join_k", int), node.get("join_quorum", float)
    is_count = "join_k" not in node.attrs or (join_k is not None and join_k >= 1)
    return is_count and ("join_quorum" not in node.attrs or quorum is not None)


def _unread(node: Node) -> Iterator[Finding]:
    policy = node.get("join_policy", str, JOIN_POLICIES[0])
    for reader, name in _PARAMETERS.items():
        if name in node.attrs and policy != reader and policy in JOIN_POLICIES:
            message = f'{name} of "{node.id}" changes nothing: its join_policy is {policy}'
            fix = Fix(f"set join_policy={reader}, or remove {name}")
            yield Finding(message, name_span(node, name), node.id, fix=fix, severity=Severity.WARNING)


@rule(Severity.WARNING)
def branch_start(survey: Survey) -> Iterator[Finding]:
    """Branches of a fan-out begin at the same node, or at the join.

    A branch that begins at the join is empty and counts as a success at once, which satisfies `first_success` before
    anything ran. Two branches with the same first node do the same work twice. A branch that begins at the fan-out
    itself is an ERROR: it starts the fan-out again and again (ruling 22).

    Bad:

        digraph { start [shape=Mdiamond] fan [shape=component] a [prompt="A"]
            join [shape=tripleoctagon] exit [shape=Msquare]
            start -> fan  fan -> a -> join  fan -> join  join -> exit }

    Good:

        digraph { start [shape=Mdiamond] fan [shape=component] a [prompt="A"] b [prompt="B"]
            join [shape=tripleoctagon] exit [shape=Msquare]
            start -> fan  fan -> a -> join  fan -> b -> join  join -> exit }
    """
    for node_id, join in survey.joins.items():
        begun: set[str] = set()
        for edge in branch_edges(survey.graph, node_id):
            target, severity = edge.target, None
            if target == node_id:
                what, severity = (
                    f'a branch of "{node_id}" leads back to the fan-out itself, without end',
                    Severity.ERROR,
                )
            elif target == join.node_id:
                what = f'the branch of "{node_id}" to "{target}" is empty: the branches meet there'
            elif target in begun:
                what = f'two branches of "{node_id}" begin at "{target}" and do the same work'
            else:
                begun.add(target)
                continue
            fix = Fix("lead the edge to the first node of a branch, or remove it")
            yield Finding(what, edge.span, node_id, (node_id, target), fix, severity)


@rule(Severity.INFO)
def branch_condition(survey: Survey) -> Iterator[Finding]:
    """An edge of a fan-out has a condition, so it starts no branch.

    The condition is evaluated after the branches. If it holds, the edge is taken instead of the path to the join: it
    can say, for example, what happens when the fan-out fails (ruling 22).

    Bad, if `b` was meant to be a branch:

        digraph { start [shape=Mdiamond] fan [shape=component] a [prompt="A"] b [prompt="B"]
            exit [shape=Msquare]
            start -> fan  fan -> a -> exit  fan -> b [condition="context.wanted=yes"]  b -> exit }

    Good, with the decision in the branch:

        digraph { start [shape=Mdiamond] fan [shape=component] a [prompt="A"] b [prompt="B"]
            wanted [shape=diamond] exit [shape=Msquare]
            start -> fan  fan -> a -> exit  fan -> wanted
            wanted -> b [condition="context.wanted=yes"]  wanted -> exit  b -> exit }
    """
    for edge, text in survey.conditional_edges:
        if edge.source in survey.joins:
            message = (
                f"the edge {edge.source} -> {edge.target} starts no branch: it is taken after the branches "
                f"when `{text.strip()}` holds"
            )
            ends = (edge.source, edge.target)
            fix = Fix("remove the condition if the edge should start a branch")
            yield Finding(message, value_span(edge, "condition"), edge.source, ends, fix)


@rule(Severity.WARNING)
def fan_in_without_fan_out(survey: Survey) -> Iterator[Finding]:
    """No fan-out precedes a fan-in.

    Such a fan-in has no results to choose from and fails, unless a handler of your own has written `parallel.results`
    (spec 4.9).

    Bad:

        digraph { start [shape=Mdiamond] a [prompt="A"] join [shape=tripleoctagon] exit [shape=Msquare]
            start -> a -> join -> exit }

    Good:

        digraph { start [shape=Mdiamond] fan [shape=component] a [prompt="A"] b [prompt="B"]
            join [shape=tripleoctagon] exit [shape=Msquare]
            start -> fan  fan -> a -> join  fan -> b -> join  join -> exit }
    """
    fan_ins = survey.of_type(FAN_IN_TYPE)
    if not fan_ins:
        return
    after = walked(survey.of_type(PARALLEL_TYPE), survey.onward, ())
    for node_id in fan_ins:
        if node_id not in after:
            message = f'no fan-out leads to the fan-in "{node_id}": it has no results to choose from'
            fix = Fix("put a node of shape component before it, or give it another shape")
            yield Finding(message, survey.graph.nodes[node_id].span, node_id, fix=fix)


FAN_OUT_RULES: Final = (
    no_join,
    fan_out_branches,
    fan_out_policy,
    branch_start,
    branch_condition,
    fan_in_without_fan_out,
)
