"""Rules about nodes and edges as such: start, exit, ways between them, retry targets, stages for each item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.languages.dot.parser import arrowless
from attractor_nb.lint.entailed_findings import with_edge, with_ends, with_node_named, with_value
from attractor_nb.lint.rules.variable_rules import VariableNames, complaint, texts_with_variables, written_text
from attractor_nb.lint.survey import (
    Finding,
    Survey,
    appending,
    name_span,
    replacing,
    replacing_value,
    rule,
    source_span,
    target_span,
    value_span,
)
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.texts import suggestion
from attractor_nb.model.vocabulary.attribute_table import AttrValue, Scope
from attractor_nb.model.vocabulary.attributes import literal_text
from attractor_nb.model.vocabulary.shapes import MANAGER_TYPE
from attractor_nb.model.vocabulary.value_forms import (
    CONTEXT_PREFIX,
    FOR_EACH,
    ITEM,
    ITEM_KEYS,
    MAX_ITEMS,
    UNREPEATABLE,
    list_key,
    meant_form,
)
from attractor_nb.model.vocabulary.variables import NAMING_ATTRIBUTES, Variable, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.graph import Edge, Graph, Node
    from attractor_nb.source import Span


@rule(Severity.ERROR)
def start_node(survey: Survey) -> Iterator[Finding]:
    """The pipeline has no start node, or more than one.

    A run must know where it begins. The start is the node of shape `Mdiamond`; the ids `start` and `Start` count only
    if no node has that shape (spec 7.2, ruling 7).

    Bad:

        digraph { work [prompt="Do it"] exit [shape=Msquare]  work -> exit }

    Good:

        digraph { start [shape=Mdiamond]  exit [shape=Msquare]  start -> exit }
    """
    starts = survey.graph.start_nodes
    if not starts:
        entered = {edge.target for edge in survey.graph.edges}
        roots = [node_id for node_id in survey.graph.nodes if node_id not in entered]
        if len(roots) == 1 and "start" not in survey.graph.nodes:
            statement = f"start [shape=Mdiamond]; start -> {roots[0]}"
            fix = appending(survey.graph, statement, f'add a start node before "{roots[0]}": {statement}')
        else:
            fix = Fix("give one node shape=Mdiamond, as in: start [shape=Mdiamond]")
        yield Finding("the pipeline has no start node: no node has shape=Mdiamond", fix=fix)
    for node in starts[1:]:
        message = f'"{node.id}" is a second start node; "{starts[0].id}" is the first'
        yield Finding(message, node.span, node.id, fix=Fix("keep shape=Mdiamond on one node only"))


@rule(Severity.ERROR)
def terminal_node(survey: Survey) -> Iterator[Finding]:
    """The pipeline has no exit node, or more than one.

    A run succeeds only at an exit, where the goal gates are checked. The exit is the node of shape `Msquare`; the ids
    `exit` and `end` count only if no node has that shape (spec 7.2, ruling 7). Several exits are accepted with
    `allow_many_exits=true` on the graph, or `Pipeline(..., allow_many_exits=True)`.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it"]  start -> work }

    Good:

        digraph { start [shape=Mdiamond]  exit [shape=Msquare]  start -> exit }
    """
    exits = survey.graph.exit_nodes
    if not exits:
        sources = {edge.source for edge in survey.graph.edges}
        ends = [node_id for node_id in survey.graph.nodes if node_id not in sources]
        if len(ends) == 1 and "exit" not in survey.graph.nodes:
            statement = f"exit [shape=Msquare]; {ends[0]} -> exit"
            fix = appending(survey.graph, statement, f'add an exit node after "{ends[0]}": {statement}')
        else:
            fix = Fix("give one node shape=Msquare, as in: done [shape=Msquare]")
        yield Finding("the pipeline has no exit node: no node has shape=Msquare", fix=fix)
    if not (survey.options.allow_many_exits or survey.graph.get("allow_many_exits", bool, False)):
        for node in exits[1:]:
            message = f'"{node.id}" is a second exit node; "{exits[0].id}" is the first'
            fix = Fix("lead all paths to one exit, or set allow_many_exits=true on the graph")
            yield Finding(message, node.span, node.id, fix=fix)


@rule(Severity.ERROR)
def start_no_incoming(survey: Survey) -> Iterator[Finding]:
    """An edge enters the start node.

    A run begins at the start node and never returns to it: the node does nothing and counts for no gate (spec 7.2). Let
    a loop enter the first stage after it.

    Bad:

        digraph { start [shape=Mdiamond] work exit [shape=Msquare]  start -> work -> exit  work -> start }

    Good:

        digraph { start [shape=Mdiamond] work exit [shape=Msquare]  start -> work -> exit }
    """
    for node in survey.graph.start_nodes:
        for edge in survey.graph.incoming_edges(node.id):
            message = f'the edge from "{edge.source}" enters the start node "{node.id}"'
            fix = Fix("enter the first stage after the start instead")
            yield Finding(message, edge.span, node.id, (edge.source, edge.target), fix)


@rule(Severity.ERROR)
def exit_no_outgoing(survey: Survey) -> Iterator[Finding]:
    """An edge leaves the exit node.

    A run that reaches the exit has ended; the edge could never be taken (spec 7.2).

    Bad:

        digraph { start [shape=Mdiamond] work exit [shape=Msquare]  start -> work -> exit  exit -> work }

    Good:

        digraph { start [shape=Mdiamond] work exit [shape=Msquare]  start -> work -> exit }
    """
    for node in survey.graph.exit_nodes:
        for edge in survey.graph.outgoing_edges(node.id):
            message = f'the edge to "{edge.target}" leaves the exit node "{node.id}"'
            fix = Fix("decide at a stage before the exit")
            yield Finding(message, edge.span, node.id, (edge.source, edge.target), fix)


@rule(Severity.ERROR)
def edge_target_exists(survey: Survey) -> Iterator[Finding]:
    """An edge names a node that does not exist.

    An id that appears only as the target of an edge, or that differs from a declared one by a letter or two, is treated
    as a misspelling, not as a new stage (spec 7.2, ruling 4).

    Bad:

        digraph { start [shape=Mdiamond] implement exit [shape=Msquare]
            start -> implment  implement -> exit }

    Good:

        digraph { start [shape=Mdiamond] implement exit [shape=Msquare]
            start -> implement  implement -> exit }
    """
    nodes = survey.graph.nodes
    mentions: dict[str, list[tuple[Edge, Span | None]]] = {}
    for edge in survey.graph.edges:
        if edge.target not in nodes:
            mentions.setdefault(edge.target, []).append((edge, target_span(edge)))
        if edge.source not in nodes and edge.source != edge.target:
            mentions.setdefault(edge.source, []).append((edge, source_span(edge)))
    for name, found in mentions.items():
        places = {span.outermost().start for _, span in found if span is not None}
        near = survey.nearest_node(name)
        is_alone = near and not (survey.graph.outgoing_edges(near) or survey.graph.incoming_edges(near))
        if is_alone and len(places) > 1:
            yield _misspelt_declaration(nodes[near], name, len(places))
            continue
        yield from (_unknown_end(survey, edge, name, span) for edge, span in found)


def _misspelt_declaration(node: Node, name: str, count: int) -> Finding:
    """Finding about a node without edges, whose name is almost that of several edges' ends."""
    message = f'"{node.id}" is in no edge, but edges name "{name}" in {count} places; did you mean "{name}"?'
    span = node.span
    if span is not None and span.text.startswith(node.id):
        span = span.source.span(span.start, span.start + len(node.id))
    fix = replacing(span, name, f'write "{name}"')
    if span is None or span.text != node.id:
        fix = Fix(fix.title)
    return Finding(message, span, node.id, fix=fix, meant=with_node_named(node.id, name))


def _unknown_end(survey: Survey, edge: Edge, name: str, span: Span | None) -> Finding:
    near, ends = survey.nearest_node(name), (edge.source, edge.target)
    message = f'the edge {edge.source} -> {edge.target} names "{name}", which is not declared'
    if near:
        message, fix = f'{message}; did you mean "{near}"?', replacing(span, near, f'write "{near}"')
        return Finding(message, span, name, ends, fix, meant=with_ends(name, near))
    return Finding(message, span, name, ends, _declaring(survey, name))


@rule(Severity.WARNING)
def missing_arrow(survey: Survey) -> Iterator[Finding]:
    """Two nodes side by side on a line have no arrow between them.

    Statements need no separator, so `start plan -> build` is read as the node `start` and an edge from
    `plan`: an arrow was left out. Reported only if the left node has no outgoing edge and the right one is unreachable.

    Bad:

        digraph { start [shape=Mdiamond] plan exit [shape=Msquare]
            start plan -> exit }

    Good:

        digraph { start [shape=Mdiamond] plan exit [shape=Msquare]
            start -> plan -> exit }
    """
    source, graph = survey.graph.source, survey.graph
    if source is None or all(node_id in survey.reachable for node_id in graph.nodes):
        return
    for gap in arrowless(source):
        source_id, target_id = gap.source.text, gap.target.text
        known = source_id in graph.nodes and target_id in graph.nodes
        if (
            known
            and survey.types[source_id] != "exit"
            and not graph.outgoing_edges(source_id)
            and target_id not in survey.reachable
        ):
            message = f'there is no arrow between "{source_id}" and "{target_id}"'
            span = source.span(gap.source.start, gap.target.end)
            between = source.span(gap.source.end, gap.target.start)
            fix = replacing(between, " -> ", f"write {source_id} -> {target_id}")
            yield Finding(message, span, source_id, fix=fix, meant=with_edge(source_id, target_id))


def _declaring(survey: Survey, name: str) -> Fix:
    """The fix that declares a node as what it is without: a stage whose label, its id, is its prompt."""
    return appending(survey.graph, f'{name} [label="{name}"]', f'declare node "{name}"')


@rule(Severity.ERROR)
def reachability(survey: Survey) -> Iterator[Finding]:
    """A node cannot be reached from the start.

    An unreachable stage is never executed, so an edge is probably missing. Jumps to a `retry_target` count as edges
    (spec 7.2, ruling 8).

    Bad:

        digraph { start [shape=Mdiamond] work review exit [shape=Msquare]
            start -> work -> exit  review -> exit }

    Good:

        digraph { start [shape=Mdiamond] work review exit [shape=Msquare]
            start -> work -> review -> exit }
    """
    if not survey.graph.start_nodes:
        return
    for node in survey.graph.nodes.values():
        if node.id not in survey.reachable:
            message = f'node "{node.id}" is unreachable from the start: an orphan'
            fix = Fix(f'add an edge to "{node.id}", or remove it')
            yield Finding(message, node.span, node.id, fix=fix)


@rule(Severity.WARNING)
def implicit_node(survey: Survey) -> Iterator[Finding]:
    """A node is named in edges but never declared.

    Such a node is run as a model stage whose prompt is the id itself, which is seldom intended (ruling 4).

    Bad:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]  start -> ship_it  ship_it -> exit }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare] ship_it
            start -> ship_it  ship_it -> exit }
    """
    for node in survey.graph.nodes.values():
        if node.is_implicit:
            message = f'node "{node.id}" is not declared; it runs as a model stage with its id as prompt'
            fix = _declaring(survey, node.id)
            yield Finding(message, node.span, node.id, fix=fix)


@rule(Severity.WARNING)
def dead_end(survey: Survey) -> Iterator[Finding]:
    """No edge leaves a node that is not the exit.

    A run that reaches this node ends there, with the outcome of that stage and without reaching the exit (spec 3.2,
    ruling 14).

    Bad:

        digraph { start [shape=Mdiamond] work notes exit [shape=Msquare]
            start -> work -> exit  work -> notes [condition="outcome=fail"] }

    Good:

        digraph { start [shape=Mdiamond] work notes exit [shape=Msquare]
            start -> work -> exit  work -> notes [condition="outcome=fail"]  notes -> exit }
    """
    exits = survey.graph.exit_nodes
    exit_ids = {node.id for node in exits}
    for node in survey.graph.nodes.values():
        if node.id not in exit_ids and not survey.graph.outgoing_edges(node.id):
            message = f'no edge leaves "{node.id}": a run that reaches it ends there'
            yield Finding(message, node.span, node.id, fix=_leading_on(survey, node, exits))


def _leading_on(survey: Survey, node: Node, exits: tuple[Node, ...]) -> Fix:
    if len(exits) != 1:
        return Fix("add an edge that leads on")
    statement = f"{node.id} -> {exits[0].id}"
    return appending(survey.graph, statement, f"add {statement}")


@rule(Severity.WARNING)
def duplicate_edge(survey: Survey) -> Iterator[Finding]:
    """An edge is written twice.

    Two edges with the same ends and the same attributes never differ in a run. One of them was probably meant to go
    elsewhere or to have a condition.

    Bad:

        digraph { start [shape=Mdiamond] work exit [shape=Msquare]  start -> work -> exit  work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work exit [shape=Msquare]  start -> work -> exit }
    """
    for node_id in survey.forks:
        edges = survey.graph.outgoing_edges(node_id)
        if len({edge.target for edge in edges}) == len(edges):
            continue
        seen: set[tuple[str, frozenset[tuple[str, AttrValue]]]] = set()
        for edge in edges:
            written = (edge.target, frozenset(edge.attrs.items()))
            if written in seen:
                message = f"the edge {edge.source} -> {edge.target} is written twice"
                fix = Fix("remove one of them, or give them different conditions")
                yield Finding(message, edge.span, edge=(edge.source, edge.target), fix=fix)
            seen.add(written)


RULES: Final = (
    start_node,
    terminal_node,
    start_no_incoming,
    exit_no_outgoing,
    edge_target_exists,
    missing_arrow,
    reachability,
    implicit_node,
    dead_end,
    duplicate_edge,
)


# Rules about retry targets and goal gates (spec 3.4, 3.7).

_TARGETS: Final = ("retry_target", "fallback_retry_target")
_GATELESS_TYPES: Final = frozenset({"start", "exit", "conditional"})


@rule(Severity.WARNING)
def retry_target_exists(survey: Survey) -> Iterator[Finding]:
    """A retry target names a node that does not exist.

    A missing target is skipped, and the failure goes to the next target or ends the run (spec 7.2, 3.7).

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
    """A goal gate has no `retry_target`.

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
    """A goal gate is a stage that cannot fail.

    Start, exit and conditional nodes do no work of their own and are not counted by gates (ruling 16), so the gate
    would never be checked.

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


TARGET_RULES: Final = (retry_target_exists, goal_gate_has_retry, gate_without_effect)


# Rules about stages that are run once for each item of a list (`for_each`).


@rule(Severity.ERROR)
def for_each(survey: Survey) -> Iterator[Finding]:
    """`for_each` names no list, or is on a stage that cannot be repeated.

    It is written `item in KEY`; KEY is a key of the context and may continue into a structured value. Starts, exits,
    human gates, diamonds, fan-outs and fan-ins cannot be repeated: put them into their own pipeline, and repeat
    the node that runs it. A WARNING: a key that certainly nothing sets; a manager that does not name `${item}` in its
    instructions, because its child has no inputs and so no item; and `max_items` without `for_each`.

    Bad:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            review [prompt="Review ${item}", for_each="files"]
            start -> review -> exit }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            review [prompt="Review ${item}", for_each="item in files"]
            start -> review -> exit }
    """
    names: VariableNames | None = None
    for node in survey.having(FOR_EACH):
        kind, written = survey.types[node.id], node.get(FOR_EACH, str, "")
        if kind in UNREPEATABLE:
            message = f'"{node.id}" is a {kind} node, which cannot be run for each item of a list'
            fix = Fix("remove for_each, or repeat a pipeline that has the node (type=pipeline)")
            yield Finding(message, name_span(node, FOR_EACH), node.id, fix=fix)
        elif key := list_key(written):
            names = names or VariableNames(survey)
            yield from _unknown_list(survey, node, key, names)
            if kind == MANAGER_TYPE and not _names_item(node):
                message = f'"{node.id}" is a manager, whose child has no item: the child runs of all items do the same'
                fix = Fix("repeat a sub-pipeline (type=pipeline, pipeline.inputs), or name ${item} in its instructions")
                yield Finding(message, name_span(node, FOR_EACH), node.id, fix=fix, severity=Severity.WARNING)
        else:
            near = meant_form(written)
            fix = replacing_value(node, FOR_EACH, near, f'write "{near}"') if near else None
            message = f'for_each of "{node.id}" is "{written}", not of the form "{ITEM} in KEY"'
            yield Finding(message, value_span(node, FOR_EACH), node.id, fix=fix or Fix(f'write "{ITEM} in KEY"'))
    for node in survey.having(MAX_ITEMS):
        if FOR_EACH not in node.attrs:
            message = f'max_items of "{node.id}" changes nothing: it is not run for each item of a list'
            fix = Fix('add for_each="item in KEY", or remove max_items')
            yield Finding(message, name_span(node, MAX_ITEMS), node.id, fix=fix, severity=Severity.WARNING)


def _names_item(node: Node) -> bool:
    texts = (node.get(name, str, "") for name in NAMING_ATTRIBUTES)
    return any(_root(variable) in ITEM_KEYS for text in texts for variable in variables(text))


def _root(variable: Variable) -> str:
    return variable.name.removeprefix(CONTEXT_PREFIX).partition(".")[0]


def _unknown_list(survey: Survey, node: Node, key: str, names: VariableNames) -> Iterator[Finding]:
    message = complaint(survey, node, key, names, f'for_each: "{key}"')
    if not message:
        return
    near = names.suggested(key)
    fix = replacing_value(node, FOR_EACH, f"{ITEM} in {near}", f'write "{ITEM} in {near}"') if near else None
    fix = fix or Fix("declare it: inputs=… on the graph; or name what a stage before it leaves")
    yield Finding(message, value_span(node, FOR_EACH), node.id, fix=fix, severity=Severity.WARNING)


@rule(Severity.WARNING)
def item_variable(survey: Survey) -> Iterator[Finding]:
    """`${item}` or `${item_index}` is used outside of a node with `for_each`.

    Only a node with `for_each` has an item. After the stage, `${node.outputs}` is the list of the results of the items
    and `${node.results}` of their outcomes. Not reported in a graph without `for_each`, or with an input of that name.

    Bad:

        digraph { inputs="files" start [shape=Mdiamond] exit [shape=Msquare]
            review [prompt="Review ${item}", for_each="item in files"]
            sum_up [prompt="Sum up the review of ${item}"]
            start -> review -> sum_up -> exit }

    Good:

        digraph { inputs="files" start [shape=Mdiamond] exit [shape=Msquare]
            review [prompt="Review ${item}", for_each="item in files"]
            sum_up [prompt="Sum up: ${review.outputs}"]
            start -> review -> sum_up -> exit }
    """
    if not (repeated := survey.having(FOR_EACH)):
        return
    inputs = VariableNames(survey).inputs
    near = f"{repeated[0].id}.outputs"
    for node, name in texts_with_variables(survey):
        for variable in variables(node.get(name, str, "")):
            root = _root(variable)
            if root not in ITEM_KEYS or root in inputs or FOR_EACH in node.attrs:
                continue
            text = written_text(survey, node, name)
            span = text.span(variable.start, variable.end) if text.host else value_span(node, name)
            message = f'${{{variable.name}}} names nothing: "{node.id}" is not run for each item of a list'
            yield Finding(message, span, node.id, fix=Fix(f"add for_each to it, or write ${{{near}}}"))


REPETITION_RULES: Final = (for_each, item_variable)
