"""Rules about the handlers of nodes: shapes, types, what each type needs, child pipelines (spec 2.8, 4)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import ConditionSyntaxError, MappingSyntaxError
from attractor_nb.languages.condition import parse_condition
from attractor_nb.lint.entailed_findings import with_value
from attractor_nb.lint.structured_keys import StructuredKeys
from attractor_nb.lint.survey import (
    BUILT_IN_TYPES,
    Finding,
    Survey,
    embedded_text,
    outward,
    replacing,
    replacing_value,
    rule,
    unregistered,
    value_span,
)
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.inputs import Input, input_problems, is_engine_key
from attractor_nb.model.texts import did_you_mean, nearest, suggestion
from attractor_nb.model.vocabulary.attribute_table import Scope
from attractor_nb.model.vocabulary.shapes import (
    CHILD_TYPES,
    DEFAULT_SHAPE,
    DEFAULT_TYPE,
    FUNCTION_TYPE,
    MANAGER_TYPE,
    PIPELINE_TYPE,
    SHAPE_ALIASES,
    SHAPE_TO_TYPE,
    child_attributes,
    type_of_shape,
)
from attractor_nb.model.vocabulary.value_forms import CONTEXT_PREFIX
from attractor_nb.model.vocabulary.variables import Assignment, parse_mapping

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attractor_nb.model.graph import Graph, Node


TOOL_TYPE: Final = "tool"
_NOT_RUN: Final = "a run is refused"

_QUOTED: Final = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.", re.DOTALL)
_PIPE: Final = re.compile(r"(?<![|>])\|(?!\|)")
_ALWAYS: Final = re.compile(r"(?:\|\||[;\n])[ \t]*(?:true|:|(?:echo|printf)\b[^;&|<>\n]*)\s*\Z|(?<!&)&\s*\Z")
"""The end of a command line that succeeds always."""
_STOPS: Final = re.compile(r"\bset -[a-z]*e|\bexit\b")
"""The shell ends at the first command that fails, or where the command says."""


@rule(Severity.WARNING, is_local=True)
def shape_known(survey: Survey) -> Iterator[Finding]:
    """A node's shape is unknown, and the node sets no `type`.

    An unknown shape makes the node a model stage, which is seldom intended (spec 4.2, ruling 6).

    Bad:

        digraph { start [shape=Mdiamond] ask [shape=hexagn] exit [shape=Msquare]  start -> ask -> exit }

    Good:

        digraph { start [shape=Mdiamond] ask [shape=hexagon] exit [shape=Msquare]  start -> ask -> exit }
    """
    for node in survey.graph.nodes.values():
        shape = node.attrs.get("shape")
        if shape is None or shape in SHAPE_TO_TYPE or node.type or _is_read_as_end(survey, node):
            continue
        near = nearest(node.shape, SHAPE_TO_TYPE)
        message = f'the shape "{node.shape}" has no handler; "{node.id}" runs as a model stage'
        fix = replacing_value(node, "shape", DEFAULT_SHAPE, f"write shape={DEFAULT_SHAPE}")
        if near and near != DEFAULT_SHAPE:  # the author decides what a node is (ruling 40)
            fix = Fix(f"write shape={near}, or shape={DEFAULT_SHAPE} for a model stage")
        suffix = suggestion(near)
        if node.shape in SHAPE_ALIASES:
            suffix = f', since a node has the shape "{SHAPE_ALIASES[node.shape]}"'
        meant = with_value(Scope.NODE, "shape", shape, near) if near else None
        yield Finding(message + suffix, value_span(node, "shape"), node.id, fix=fix, meant=meant)


def _is_read_as_end(survey: Survey, node: Node) -> bool:
    """True if a node is a start or exit by a shape that only stands for one of these (ruling 6a)."""
    canonical = SHAPE_ALIASES.get(node.shape, "")
    return bool(canonical) and not node.type and survey.types[node.id] == type_of_shape(canonical)


@rule(Severity.WARNING)
def shape_alias(survey: Survey) -> Iterator[Finding]:
    """A start or exit node has another shape than the specification's.

    `circle` and `doublecircle` are read as start and exit if no node has `Mdiamond` or `Msquare`, because many files
    use them; other tools for these pipelines read them as model stages (rulings 6, 6a). If a node has the shape itself,
    they have no meaning, and `shape_known` reports them.

    Bad:

        digraph { start [shape=circle] exit [shape=Msquare]  start -> exit }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]  start -> exit }
    """
    for node in survey.having("shape"):
        if _is_read_as_end(survey, node):
            canonical = SHAPE_ALIASES[node.shape]
            message = f'the shape "{node.shape}" of "{node.id}" is read as "{canonical}"'
            fix = replacing_value(node, "shape", canonical, f"write shape={canonical}")
            yield Finding(message, value_span(node, "shape"), node.id, fix=fix)


@rule(Severity.WARNING)
def type_known(survey: Survey) -> Iterator[Finding]:
    """A node's `type` names no known handler.

    A node of an unknown type is executed by the handler of its shape (spec 7.2, 4.2).

    Bad:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            ask [shape=hexagon, type="wait.humann"]  start -> ask -> exit }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            ask [shape=hexagon, type="wait.human"]  start -> ask -> exit }
    """
    for node in survey.graph.nodes.values():
        is_known = not node.type or node.type in survey.options.known_types
        if is_known or _has_no_handler(survey, node):
            continue
        yield _unknown_type(survey, node, f'there is no handler for the type "{node.type}" of "{node.id}"')


def _unknown_type(survey: Survey, node: Node, message: str) -> Finding:
    # A misspelt type of a stage was not meant as an end of the run (ruling 40).
    near = nearest(node.type, sorted(survey.options.known_types - {"start", "exit"}))
    suffix = suggestion(near)
    meant = with_value(Scope.NODE, "type", node.type, near) if near else None
    fix = _registering(survey, node.type)
    return Finding(message + suffix, value_span(node, "type"), node.id, fix=fix, meant=meant)


def _registering(survey: Survey, handler_type: str) -> Fix:
    known = sorted(survey.options.runnable_types or survey.options.known_types)
    return Fix(f'register a handler for "{handler_type}", or use one of the types {", ".join(known)}')


def _has_no_handler(survey: Survey, node: Node) -> bool:
    """True if a node that is about to run has an unknown type, and a shape whose handler cannot take its place.

    A model would answer in its place, and a tool without a command would fail after everything before it was paid for.
    """
    runnable = survey.options.runnable_types
    if runnable is None or not node.type or node.type in runnable or node.type in BUILT_IN_TYPES:
        return False
    kind = type_of_shape(node.shape)
    return kind == DEFAULT_TYPE or (kind == TOOL_TYPE and not node.tool_command.strip())


@rule(Severity.WARNING)
def handler_missing(survey: Survey) -> Iterator[Finding]:
    """No handler is registered here for a node.

    The text is valid, because a handler may be registered before a run (spec 7.2, `type_known`). A run is refused
    before it creates anything, unless the caller gives this rule another severity. A built-in type without a handler
    would fail at that node, after all earlier stages were paid for. An unregistered type on the shape of a model stage
    would be answered by a model: a success although nothing was executed (spec 4.2, task-verification 1); on the shape
    of a tool without a command, it would fail there. The command line has only the built-in handlers, so `validate`
    reports an error there, as `run` does.

    Bad, where no handler for `team.review` is registered:

        digraph { start [shape=Mdiamond] check [type="team.review", prompt="Review it"]
            exit [shape=Msquare]  start -> check -> exit }

    Good:

        digraph { start [shape=Mdiamond] check [prompt="Review it"] exit [shape=Msquare]
            start -> check -> exit }
    """
    runnable = survey.options.runnable_types
    if runnable is None:
        return
    missing = BUILT_IN_TYPES - runnable
    for node_id, handler_type in survey.types.items():
        if handler_type in missing:
            node = survey.graph.nodes[node_id]
            name = "type" if node.type else "shape"
            message = f'"{node_id}" needs a "{handler_type}" handler, and none is registered: {_NOT_RUN}'
            fix = _registering(survey, handler_type)
            yield Finding(message, value_span(node, name), node_id, fix=fix)
    for node in survey.graph.nodes.values():
        if _has_no_handler(survey, node):
            message = f'no handler is registered for the type "{node.type}" of "{node.id}": {_NOT_RUN}'
            yield _unknown_type(survey, node, message)
    for problem in survey.options.child_problems:
        if problem.lacks_handler:
            holder = survey.graph if problem.is_of_graph else survey.graph.nodes[problem.node_id]
            span = value_span(holder, problem.attribute)
            yield Finding(problem.message, span, problem.node_id, fix=Fix(problem.remedy))


@rule(Severity.ERROR)
def function_known(survey: Survey) -> Iterator[Finding]:
    """A function stage names no registered `function`, or a node with `function` is not a function stage.

    The caller registers functions in Python: `Pipeline(…, functions={"count": count})`. The command line and the
    server have none, so a pipeline with functions runs from a notebook or a script. A node with another `type` calls
    its handler and not the function. A node with `type=function` alone has nothing to call, and its stage would fail
    after everything before it was paid for.

    Bad, where no function `count` is registered:

        digraph { start [shape=Mdiamond] lines [function=count] exit [shape=Msquare]
            start -> lines -> exit }

    Good:

        digraph { start [shape=Mdiamond] lines [shape=parallelogram, tool_command="wc -l notes.md"]
            exit [shape=Msquare]  start -> lines -> exit }
    """
    known, is_ours = survey.options.functions, FUNCTION_TYPE not in survey.options.taken_over
    for node_id in survey.of_type(FUNCTION_TYPE) if is_ours else ():
        node = survey.graph.nodes[node_id]
        if not node.get("function", str, "").strip():
            span = value_span(node, "function" if "function" in node.attrs else "type")
            message = f'the function stage "{node_id}" names no function'
            yield Finding(message, span, node_id, fix=Fix("add function=NAME"))
    for node in survey.having("function"):
        name, kind = node.get("function", str, "").strip(), survey.types[node.id]
        if kind in BUILT_IN_TYPES:
            message = f'"{node.id}" has the type "{kind}", so its function "{name}" is not called'
            yield Finding(message, value_span(node, "function"), node.id, fix=Fix("remove the type, or the function"))
        elif is_ours and known is not None and name and name not in known and kind == FUNCTION_TYPE:
            yield unregistered(node, "function", f'"{node.id}" calls the function', name, "functions", known)


@rule(Severity.WARNING)
def prompt_on_llm_nodes(survey: Survey) -> Iterator[Finding]:
    """A model stage has no prompt.

    Without one the model gets the label, and without a label the bare id. No prompt and no label is a
    WARNING (spec 7.2); a label in place of a prompt is an INFO (spec 11.2, 4.5).

    Bad:

        digraph { start [shape=Mdiamond] work exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Write the tests"] exit [shape=Msquare]
            start -> work -> exit }
    """
    for node in survey.graph.nodes.values():
        if node.attrs.get("prompt") or node.is_implicit or survey.types[node.id] != DEFAULT_TYPE:
            continue
        if label := node.attrs.get("label"):
            message = f'"{node.id}" has no prompt; the model gets its label, "{label}"'
            severity = Severity.INFO
        else:
            message = f'"{node.id}" has neither prompt nor label; the model gets its id'
            severity = Severity.WARNING
        yield Finding(message, node.span, node.id, fix=Fix("add a prompt"), severity=severity)


@rule(Severity.ERROR)
def tool_without_command(survey: Survey) -> Iterator[Finding]:
    """A tool stage has no command.

    Without `tool_command` there is nothing to execute and the stage fails every time (spec 4.10).

    Bad:

        digraph { start [shape=Mdiamond] test [shape=parallelogram] exit [shape=Msquare]
            start -> test -> exit }

    Good:

        digraph { start [shape=Mdiamond] test [shape=parallelogram, tool_command="make test"]
            exit [shape=Msquare]  start -> test -> exit }
    """
    for node_id in survey.of_type(TOOL_TYPE):
        node = survey.graph.nodes[node_id]
        if not node.tool_command.strip():
            message = f'the tool stage "{node_id}" has no tool_command'
            yield Finding(message, node.span, node_id, fix=Fix("add tool_command"))


@rule(Severity.WARNING)
def pipe_hides_failure(survey: Survey) -> Iterator[Finding]:
    """A pipe hides the failure of a goal gate's command.

    A shell's pipeline has the exit code of its last command: `make test | tail -5` succeeds whatever `make` does, and
    so does a command that ends in `|| true`, in `; echo done` without `set -e`, or in the background (`&`).

    Bad:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            test [shape=parallelogram, tool_command="make test | tail -5", goal_gate=true]
            start -> test -> exit }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            test [shape=parallelogram, tool_command="make test | tail -5", tool_shell=bash, goal_gate=true]
            start -> test -> exit }
    """
    for node_id in survey.of_type(TOOL_TYPE):
        node = survey.graph.nodes[node_id]
        command = node.tool_command
        if not node.get("goal_gate", bool, False) or "pipefail" in command:
            continue
        bare = _QUOTED.sub("x", command)
        if _PIPE.search(bare) and node.get("tool_shell", str, "sh") != "bash":
            message = f'the goal gate "{node_id}" has the exit code of the last command of its pipe'
            fix = Fix("add tool_shell=bash, whose pipes fail with their first failure, or leave the pipe out")
        elif _ALWAYS.search(bare) and not _STOPS.search(bare):
            message = f'the command of the goal gate "{node_id}" succeeds whatever its check does'
            fix = Fix("leave out what hides the exit code of the check")
        else:
            continue
        yield Finding(message, value_span(node, "tool_command"), node_id, fix=fix)


HANDLER_MISSING: Final = handler_missing.name
"""The rule whose findings refuse a run and not the text."""

RULES: Final = (
    shape_known,
    shape_alias,
    type_known,
    handler_missing,
    function_known,
    prompt_on_llm_nodes,
    tool_without_command,
    pipe_hides_failure,
)


# Rules about nodes that run other pipelines: managers and sub-pipelines (spec 4.11, 9.4).

ACTIONS: Final = ("observe", "steer", "wait")
_INPUTS: Final = "pipeline.inputs"
_OUTPUTS: Final = "pipeline.outputs"
_MAPPINGS: Final = (_INPUTS, _OUTPUTS)


@rule(Severity.ERROR)
def child_pipeline(survey: Survey) -> Iterator[Finding]:
    """A stage runs a pipeline that is missing or invalid.

    A child is named by a file (`stack.child_dotfile`, `pipeline.dotfile`) or by the name of a registered pipeline
    (`stack.child_pipeline`, `pipeline.name`), not by both. The file is read before anything runs: it must exist, parse,
    have no errors of its own, not include itself, and be below the directory of the file that names it, below the
    working directory, or below one of `child_roots`; links are followed (spec 4.11, 9.4). `pipeline.inputs` gives it
    the inputs that it declares, and no others; a manager gives its child none, so all of them need defaults there.

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
    """Inputs that a child lacks, for which its stage would be refused."""
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
    """A manager has an unknown action, or cannot perform one that it has.

    The actions are `observe`, `steer` and `wait`; an unknown action is an error. A WARNING: `steer` without
    `manager.instructions` and without a prompt, because there is no instruction to give; and a missing `wait`, because
    a manager always waits between its checks (spec 4.11).

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
    """A manager's condition cannot be parsed.

    `manager.stop_condition`, `manager.guard` and `manager.escalate` are conditions as on edges. They read what the
    manager observed of its child in `context.stack.child.*` (spec 4.11, 10).

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
    """The inputs or outputs of a sub-pipeline are not a list of assignments.

    An assignment is `name=context.key`, or `name=` and a constant: a quoted text, a number, `true`, `false`, `null`;
    commas separate them. In `pipeline.inputs` the key is the parent's, in `pipeline.outputs` the child's (spec 9.4). An
    output has its own name: keys that the engine sets, such as `tool.exit_code` and `review.verdict`, are refused.
    A WARNING reports an input that names a field which a structured value does not have.

    Bad:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            sub [type=pipeline, pipeline.name=worker, pipeline.inputs="topic=last_response"]
            start -> sub -> exit }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            sub [type=pipeline, pipeline.name=worker, pipeline.inputs="topic=context.last_response, n=3"]
            start -> sub -> exit }
    """
    structured: StructuredKeys | None = None
    for node_id in _of_types(survey, {PIPELINE_TYPE}):
        node, structured = survey.graph.nodes[node_id], structured or StructuredKeys(survey)
        for name in _MAPPINGS:
            try:
                assignments = parse_mapping(embedded_text(node, name, node.get(name, str, "")))
            except MappingSyntaxError as error:
                yield Finding(f"{name}: {error.message}", error.span, node_id, fix=Fix(error.hint))
                continue
            if name == _INPUTS:
                yield from _unknown_fields(node, assignments, structured)
            for each in assignments if name == _OUTPUTS else ():
                if is_engine_key(each.name, survey.graph.nodes):
                    message = f'{name}: "{each.name}" is a key that the engine sets'
                    yield Finding(message, value_span(node, name), node_id, fix=Fix("name the value otherwise"))


def _unknown_fields(node: Node, assignments: Sequence[Assignment], structured: StructuredKeys) -> Iterator[Finding]:
    """The inputs that name a field of a structured value which its schema does not have."""
    written = embedded_text(node, _INPUTS, node.get(_INPUTS, str, ""))
    for each in assignments:
        if each.key and (slip := structured.slip(each.key, node)):
            key = f"{CONTEXT_PREFIX}{each.key}"
            found = re.search(rf"{re.escape(key)}(?![\w.])", written.text)
            span = written.span(*found.span()) if found else None
            near = f"{CONTEXT_PREFIX}{slip.near}"
            fix = replacing(span, near, f'write "{near}"') if slip.near else Fix(slip.remedy)
            message = f'{_INPUTS}: "{key}" names nothing{slip.words}'
            yield Finding(
                message,
                span if written.host else value_span(node, _INPUTS),
                node.id,
                fix=outward(fix) if written.host else Fix(fix.title),
                severity=Severity.WARNING,
            )


def _of_types(survey: Survey, types: frozenset[str] | set[str]) -> list[str]:
    """Ids of the nodes of these types, unless the caller's own handlers execute them."""
    wanted = types - survey.options.taken_over
    return [node_id for node_id, kind in survey.types.items() if kind in wanted]


CHILD_RULES: Final = (child_pipeline, manager_actions, manager_conditions, pipeline_mappings)
