"""Rules about nodes that run other pipelines: managers and sub-pipelines (spec 4.11, 9.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.errors import ConditionSyntaxError, MappingSyntaxError
from attractor_nb.languages.condition import parse_condition
from attractor_nb.lint.survey import Finding, Survey, embedded_text, rule, value_span
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.inputs import Input, input_problems, is_engine_key
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.shapes import CHILD_TYPES, MANAGER_TYPE, PIPELINE_TYPE, child_attributes
from attractor_nb.model.vocabulary.variables import parse_mapping

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attractor_nb.model.graph import Graph, Node

ACTIONS: Final = ("observe", "steer", "wait")
_INPUTS: Final = "pipeline.inputs"
_OUTPUTS: Final = "pipeline.outputs"
_MAPPINGS: Final = (_INPUTS, _OUTPUTS)


@rule(Severity.ERROR)
def child_pipeline(survey: Survey) -> Iterator[Finding]:
    """A stage that runs another pipeline names one that can run.

    By a file (`stack.child_dotfile`, `pipeline.dotfile`) or by the name of a registered pipeline
    (`stack.child_pipeline`, `pipeline.name`), not by both. Before anything runs the file is read: it must be
    there, parse, have no errors of its own, not include itself, and be below the directory of the file that
    names it, below the working directory, or below one of `child_roots`; links are followed (spec 4.11, 9.4).
    `pipeline.inputs` gives it the inputs that it declares, and no others; a manager gives its child none, so
    all of them need defaults there.

    Bad:

        digraph { start [shape=Mdiamond] boss [shape=house] exit [shape=Msquare]  start -> boss -> exit }

    Good:

        digraph { start [shape=Mdiamond] boss [shape=house, stack.child_pipeline=worker]
            exit [shape=Msquare]  start -> boss -> exit }
    """
    for node_id in _of_types(survey, CHILD_TYPES):
        yield from _unnamed(survey.graph, survey.graph.nodes[node_id])
    for problem in survey.options.child_problems:
        if problem.lacks_handler:  # handler_missing tells it
            continue
        holder = survey.graph if problem.is_of_graph else survey.graph.nodes[problem.node_id]
        span = value_span(holder, problem.attribute)
        yield Finding(problem.message, span, problem.node_id, fix=Fix(problem.remedy))
    for node_id, declared in survey.options.child_inputs.items():
        yield from _missing_inputs(survey.graph.nodes[node_id], declared)


def _unnamed(graph: Graph, node: Node) -> Iterator[Finding]:
    names, holders = child_attributes(node.handler_type)
    for holder in (node, graph)[:holders]:
        given = [name for name in names if holder.get(name, str, "").strip()]
        if len(given) > 1:
            message = f'"{node.id}" names its child twice: by {given[0]} and by {given[1]}'
            yield Finding(message, value_span(holder, given[1]), node.id, fix=Fix("remove one of them"))
        if given:
            return
    if node.handler_type == PIPELINE_TYPE or node.get("stack.child_autostart", bool, True):
        fix = Fix(f'add {names[0]}="child.dot" or {names[1]}="name"')
        yield Finding(f'"{node.id}" names no child pipeline', node.span, node.id, fix=fix)


def _missing_inputs(node: Node, declared: Sequence[Input]) -> Iterator[Finding]:
    """What a child would be refused for when its stage begins."""
    if not node.get("stack.child_autostart", bool, True):
        return
    is_manager = node.handler_type == MANAGER_TYPE
    try:
        given = () if is_manager else parse_mapping(node.get(_INPUTS, str, ""))
    except MappingSyntaxError:  # pipeline_mappings tells it
        return
    fix = Fix(f"its inputs: {', '.join(map(str, declared))}")
    if is_manager:
        fix = Fix("give its inputs defaults, or use type=pipeline")
    for problem in input_problems(declared, [each.name for each in given]):
        span = value_span(node, _INPUTS) if _INPUTS in node.attrs else node.span
        yield Finding(f'the child of "{node.id}": {problem}', span, node.id, fix=fix)


@rule(Severity.ERROR)
def manager_actions(survey: Survey) -> Iterator[Finding]:
    """A manager's actions are `observe`, `steer` and `wait`, and it can do what it is told to.

    An unknown action is an error. A WARNING: `steer` without `manager.instructions` and without a prompt,
    which has nothing to say; and no `wait`, for a manager waits in any case and never spins (spec 4.11).

    Bad:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            boss [shape=house, stack.child_pipeline=worker, manager.actions="observe,stear,wait"]
            start -> boss -> exit }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            boss [shape=house, stack.child_pipeline=worker, manager.actions="observe,steer,wait",
                manager.instructions="Keep it short."]
            start -> boss -> exit }
    """
    for node_id in _of_types(survey, {MANAGER_TYPE}):
        node = survey.graph.nodes[node_id]
        span = value_span(node, "manager.actions")
        actions = [word.strip() for word in (node.get("manager.actions", str, "") or "observe,wait").split(",")]
        for name in actions:
            if name not in ACTIONS:
                message = f'manager.actions of "{node_id}" has no "{name}"{did_you_mean(name, ACTIONS)}'
                yield Finding(message, span, node_id, fix=Fix(f"use {', '.join(ACTIONS)}"))
                return
        if "wait" not in actions:
            message = f'"{node_id}" does not name the action wait, but always waits'
            yield Finding(message, span, node_id, fix=Fix("add wait"), severity=Severity.WARNING)
        elif "steer" in actions and not (node.get("manager.instructions", str, "") or node.prompt).strip():
            message = f'"{node_id}" steers, but has no instructions'
            fix = Fix("add manager.instructions, or a prompt for the model that writes them")
            yield Finding(message, span, node_id, fix=fix, severity=Severity.WARNING)


@rule(Severity.ERROR)
def manager_conditions(survey: Survey) -> Iterator[Finding]:
    """A manager's conditions parse.

    `manager.stop_condition`, `manager.guard` and `manager.escalate` are conditions as on edges. What the
    manager sees of its child is in `context.stack.child.*` (spec 4.11, 10).

    Bad:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            boss [shape=house, stack.child_pipeline=worker, manager.stop_condition="retries > 3"]
            start -> boss -> exit }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            boss [shape=house, stack.child_pipeline=worker,
                manager.stop_condition="context.stack.child.active_stage=polish"]
            start -> boss -> exit }
    """
    for node, name, text in survey.manager_conditions:
        if survey.conditions[text] is None:
            try:
                parse_condition(embedded_text(node, name, text))
            except ConditionSyntaxError as error:
                fix = Fix(error.hint) if error.hint else None
                yield Finding(f"{name}: {error.message}", error.span, node.id, fix=fix)


@rule(Severity.ERROR)
def pipeline_mappings(survey: Survey) -> Iterator[Finding]:
    """What goes into a sub-pipeline and what comes back is a list of assignments.

    `name=context.key`, or a constant: a quoted text, a number, `true`, `false`, `null`; commas between. In
    `pipeline.inputs` the key is the parent's, in `pipeline.outputs` the child's (spec 9.4). What comes back
    has a name of its own: keys that the engine sets, such as `tool.exit_code` and `review.verdict`, are refused.

    Bad:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            sub [type=pipeline, pipeline.name=worker, pipeline.inputs="topic=last_response"]
            start -> sub -> exit }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            sub [type=pipeline, pipeline.name=worker, pipeline.inputs="topic=context.last_response, n=3"]
            start -> sub -> exit }
    """
    for node_id in _of_types(survey, {PIPELINE_TYPE}):
        node = survey.graph.nodes[node_id]
        for name in _MAPPINGS:
            try:
                assignments = parse_mapping(embedded_text(node, name, node.get(name, str, "")))
            except MappingSyntaxError as error:
                yield Finding(f"{name}: {error.message}", error.span, node_id, fix=Fix(error.hint))
                continue
            for each in assignments if name == _OUTPUTS else ():
                if is_engine_key(each.name, survey.graph.nodes):
                    message = f'{name}: "{each.name}" is a key that the engine sets'
                    yield Finding(message, value_span(node, name), node_id, fix=Fix("name the value otherwise"))


def _of_types(survey: Survey, types: frozenset[str] | set[str]) -> list[str]:
    """Ids of the nodes of these types, unless the caller's own handlers execute them."""
    wanted = types - survey.options.taken_over
    return [node_id for node_id, kind in survey.types.items() if kind in wanted]


RULES: Final = (child_pipeline, manager_actions, manager_conditions, pipeline_mappings)
