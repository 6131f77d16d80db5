"""Rules about what models must answer, and what is run around their tool calls (spec 9.7; ruling 26)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.answers.response_schemas import is_schema_name, schema_problem
from attractor_nb.lint.rule import Finding, rule
from attractor_nb.lint.source_places import replacing_value, value_span
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.nearest_name import nearest
from attractor_nb.model.vocabulary.shapes import BUILT_IN_TYPES, DEFAULT_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.lint.survey import Survey
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.source import Span

_HOOKS: Final = ("tool_hooks.pre", "tool_hooks.post")
_FIX: Final = Fix("add allowed_tools, or remove it")


@rule(Severity.ERROR)
def schema_valid(survey: Survey) -> Iterator[Finding]:
    r"""A `response_schema` is a JSON Schema, or the name of a registered pydantic model.

    Else the stage fails after its model was paid for (ruling 26). Whether a name is registered is only
    checked by who is about to run the pipeline.

    Bad:

        digraph { start [shape=Mdiamond] rate [prompt="Rate it", response_schema="{\"type\": \"objekt\"}"]
            exit [shape=Msquare]  start -> rate -> exit }

    Good:

        digraph { start [shape=Mdiamond] rate [prompt="Rate it", response_schema="{\"type\": \"object\"}"]
            exit [shape=Msquare]  start -> rate -> exit }
    """
    for node in survey.graph.nodes.values():
        text = node.get("response_schema", str, "").strip()
        if not text:
            continue
        if is_schema_name(text):
            yield from _unknown_name(survey, node, text)
        elif problem := schema_problem(text):
            message = f'the response_schema of "{node.id}" is not a valid JSON Schema: {problem}'
            fix = Fix('write a schema such as {"type": "object"}, or the name of a registered model')
            yield Finding(message, value_span(node, "response_schema"), node.id, fix=fix)


def _unknown_name(survey: Survey, node: Node, name: str) -> Iterator[Finding]:
    known = survey.options.schemas
    if known is None or name in known:
        return
    message = f'"{node.id}" names the schema "{name}", which is not registered'
    fix = Fix(f'register it: Pipeline(…, schemas={{"{name}": {name}}})')
    if near := nearest(name, sorted(known)):
        message += f'; did you mean "{near}"?'
        fix = replacing_value(node, "response_schema", near, f'write "{near}"')
    yield Finding(message, value_span(node, "response_schema"), node.id, fix=fix)


@rule(Severity.WARNING)
def hooks_called(survey: Survey) -> Iterator[Finding]:
    """Hooks stand where a model may call tools: `tool_hooks.*` beside `allowed_tools` of a model stage.

    Nothing else calls them, tool stages included: a check that is never made protects nothing (spec 9.7).
    Agents in programs of their own (`claude`, `codex`, `gemini`) call their tools themselves, without these
    hooks, which lint cannot know.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", tool_hooks.pre="./allow.sh"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            work [prompt="Do it", allowed_tools="read,write", tool_hooks.pre="./allow.sh"]
            start -> work -> exit }
    """
    nodes = survey.graph.nodes.values()
    callers = [node for node in nodes if _calls_tools(survey, node)]
    used = {_place(node, name) for node in callers for name in _HOOKS} - {None}
    for node, name in ((node, name) for node in nodes for name in _HOOKS if name in node.attrs):
        if _is_hooked(node, name) and not _may_call(survey, node) and _place(node, name) not in used:
            message = f'"{node.id}" has {name}, but its handler makes no tool calls of a model'
            yield Finding(message, value_span(node, name), node.id, fix=_FIX)
    for name in _HOOKS if not any(_may_call(survey, node) for node in nodes) else ():
        if _is_hooked(survey.graph, name):
            message = f"the graph has {name}, but no node has allowed_tools"
            yield Finding(message, value_span(survey.graph, name), fix=_FIX)


def _is_hooked(thing: Graph | Node, name: str) -> bool:
    return bool(thing.get(name, str, "").strip())


def _may_call(survey: Survey, node: Node) -> bool:
    """Whether a node's handler calls tools, as far as anybody can know: those of a user's own may."""
    kind = survey.types[node.id]
    return _calls_tools(survey, node) or kind not in BUILT_IN_TYPES or kind in survey.options.taken_over


def _calls_tools(survey: Survey, node: Node) -> bool:
    return survey.types[node.id] == DEFAULT_TYPE and bool(node.get("allowed_tools", str, "").strip())


def _place(thing: Node, name: str) -> Span | None:
    """Where a hook is written: a default block gives it to many nodes."""
    span = value_span(thing, name)
    return None if span is None else span.outermost()


RULES: Final = (schema_valid, hooks_called)
