"""Rules about what executes a node: shapes, types, and what each type needs (spec 2.8, 4)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from attractor_nb.lint.entailed_findings import with_value
from attractor_nb.lint.survey import BUILT_IN_TYPES, Finding, Survey, replacing_value, rule, unregistered, value_span
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.texts import nearest, suggestion
from attractor_nb.model.vocabulary.attribute_table import Scope
from attractor_nb.model.vocabulary.shapes import (
    DEFAULT_SHAPE,
    DEFAULT_TYPE,
    FUNCTION_TYPE,
    SHAPE_ALIASES,
    SHAPE_TO_TYPE,
    type_of_shape,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.graph import Node

TOOL_TYPE: Final = "tool"
_NOT_RUN: Final = "a run is refused"

_QUOTED: Final = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.", re.DOTALL)
_PIPE: Final = re.compile(r"(?<![|>])\|(?!\|)")
_ALWAYS: Final = re.compile(r"(?:\|\||[;\n])[ \t]*(?:true|:|(?:echo|printf)\b[^;&|<>\n]*)\s*\Z|(?<!&)&\s*\Z")
"""The end of a command line that succeeds always."""
_STOPS: Final = re.compile(r"\bset -[a-z]*e|\bexit\b")
"""The shell ends at the first command that fails, or where the command says."""


@rule(Severity.WARNING)
def shape_known(survey: Survey) -> Iterator[Finding]:
    """A node's shape stands for a handler type, or the node says its type itself.

    A shape that stands for nothing makes the node a model stage, which is seldom meant (spec 4.2,
    ruling 6).

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
        if near and near != DEFAULT_SHAPE:  # whoever wrote it says what a node is (ruling 40)
            fix = Fix(f"write shape={near}, or shape={DEFAULT_SHAPE} for a model stage")
        suffix = suggestion(near)
        if node.shape in SHAPE_ALIASES:
            suffix = f', since a node has the shape "{SHAPE_ALIASES[node.shape]}"'
        meant = with_value(Scope.NODE, "shape", shape, near) if near else None
        yield Finding(message + suffix, value_span(node, "shape"), node.id, fix=fix, meant=meant)


def _is_read_as_end(survey: Survey, node: Node) -> bool:
    """Whether a node is a start or exit by a shape that only stands for one of these (ruling 6a)."""
    canonical = SHAPE_ALIASES.get(node.shape, "")
    return bool(canonical) and not node.type and survey.types[node.id] == type_of_shape(canonical)


@rule(Severity.WARNING)
def shape_alias(survey: Survey) -> Iterator[Finding]:
    """Start and exit have the shapes of the specification.

    `circle` and `doublecircle` are read as start and exit where no node has `Mdiamond` or `Msquare`, because
    many files have them; other tools for these pipelines read them as model stages (rulings 6, 6a). Where a
    node has the shape itself, they stand for nothing, and `shape_known` says so.

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
    """A node's `type` names a handler.

    A type that no handler is registered for leaves the node to the handler of its shape (spec 7.2, 4.2).

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
    # Nobody who misspelt the type of a stage meant an end of the run (ruling 40).
    near = nearest(node.type, sorted(survey.options.known_types - {"start", "exit"}))
    suffix = suggestion(near)
    meant = with_value(Scope.NODE, "type", node.type, near) if near else None
    fix = _registering(survey, node.type)
    return Finding(message + suffix, value_span(node, "type"), node.id, fix=fix, meant=meant)


def _registering(survey: Survey, handler_type: str) -> Fix:
    known = sorted(survey.options.runnable_types or survey.options.known_types)
    return Fix(f'register a handler for "{handler_type}", or use one of the types {", ".join(known)}')


def _has_no_handler(survey: Survey, node: Node) -> bool:
    """Whether a node that is about to run has an unknown type, and a shape whose handler cannot take its place.

    A model would answer in its place, and a tool without a command would fail after everything before it was paid for.
    """
    runnable = survey.options.runnable_types
    if runnable is None or not node.type or node.type in runnable or node.type in BUILT_IN_TYPES:
        return False
    kind = type_of_shape(node.shape)
    return kind == DEFAULT_TYPE or (kind == TOOL_TYPE and not node.tool_command.strip())


@rule(Severity.WARNING)
def handler_missing(survey: Survey) -> Iterator[Finding]:
    """Every node has a handler here.

    The text is valid, for a handler may be registered before a run (spec 7.2, `type_known`). A run is
    refused before anything of it is made, unless the caller gives this rule another severity. A built-in type
    without a handler would fail at that node, after everything before it was paid for. A type that nobody
    registered, on a shape that is a model's, would be answered by a model: a success although nothing was executed
    (spec 4.2, task-verification 1); on the shape of a tool that has no command, it would fail there. The command
    line has the built-in handlers alone, so there `validate` reports an error, as `run` does.

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
    """A function stage names a `function` that was registered, and a node that names one calls it.

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
    """A model stage has a prompt.

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
    """A tool stage has a command.

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
    """A goal gate's command fails when its check fails.

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
