"""Rules about answers: of models (spec 9.7; ruling 26), and of users at a gate (spec 4.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.gate_choices import YES_OR_NO, GateChoice, choices_of, default_answer, side_of
from attractor_nb.decisions.response_schemas import is_schema_name, schema_problem
from attractor_nb.lint.survey import Finding, Survey, replacing_value, rule, unregistered, value_span
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.question import AnswerValue, QuestionType
from attractor_nb.model.texts import nearest
from attractor_nb.model.vocabulary.shapes import BUILT_IN_TYPES, DEFAULT_TYPE, HUMAN_TYPE
from attractor_nb.model.vocabulary.value_forms import comma_list

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.source import Span

_HOOKS: Final = ("tool_hooks.pre", "tool_hooks.post")
_FIX: Final = Fix("add allowed_tools, or remove it")

_TYPE: Final = "human.type"
_DEFAULT: Final = "human.default_choice"
_FORM: Final = "human.form"
_REVIEW: Final = "human.review"


@rule(Severity.ERROR, is_local=True)
def schema_valid(survey: Survey) -> Iterator[Finding]:
    r"""A `response_schema` is neither a valid JSON Schema nor the name of a registered pydantic model.

    Otherwise the stage fails after its model was paid for (ruling 26). Whether a name is registered is checked only
    before a run.

    Bad:

        digraph { start [shape=Mdiamond] rate [prompt="Rate it", response_schema="{\"type\": \"objekt\"}"]
            exit [shape=Msquare]  start -> rate -> exit }

    Good:

        digraph { start [shape=Mdiamond] rate [prompt="Rate it", response_schema="{\"type\": \"object\"}"]
            exit [shape=Msquare]  start -> rate -> exit }
    """
    for node in survey.having("response_schema"):
        text = node.get("response_schema", str, "").strip()
        if not text:
            continue
        if is_schema_name(text):
            if (known := survey.options.schemas) is not None and text not in known:
                yield unregistered(node, "response_schema", f'"{node.id}" names the schema', text, "schemas", known)
        elif problem := schema_problem(text):
            message = f'the response_schema of "{node.id}" is not a valid JSON Schema: {problem}'
            fix = Fix('write a schema such as {"type": "object"}, or the name of a registered model')
            yield Finding(message, value_span(node, "response_schema"), node.id, fix=fix)


@rule(Severity.WARNING)
def hooks_called(survey: Survey) -> Iterator[Finding]:
    """`tool_hooks.*` are set where no model can call a tool, so they never run.

    Only the tools of a model call hooks, so they need `allowed_tools` on a model stage; tool stages do not call them
    (spec 9.7). Agents in programs of their own (`claude`, `codex`, `gemini`) call their tools without these hooks,
    which lint cannot know.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", tool_hooks.pre="./allow.sh"]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            work [prompt="Do it", allowed_tools="read,write", tool_hooks.pre="./allow.sh"]
            start -> work -> exit }
    """
    callers = [node for node in survey.having("allowed_tools") if _calls_tools(survey, node)]
    used = {_place(node, name) for node in callers for name in _HOOKS} - {None}
    for name, node in ((each, node) for each in _HOOKS for node in survey.having(each)):
        if _is_hooked(node, name) and not _may_call(survey, node) and _place(node, name) not in used:
            message = f'"{node.id}" has {name}, but its handler makes no tool calls of a model'
            yield Finding(message, value_span(node, name), node.id, fix=_FIX)
    for name in _HOOKS:
        if _is_hooked(survey.graph, name) and not any(_may_call(survey, node) for node in survey.graph.nodes.values()):
            message = f"the graph has {name}, but no node has allowed_tools"
            yield Finding(message, value_span(survey.graph, name), fix=_FIX)


def _is_hooked(thing: Graph | Node, name: str) -> bool:
    return bool(thing.get(name, str, "").strip())


def _may_call(survey: Survey, node: Node) -> bool:
    """True if a node's handler calls tools, as far as is known: those of a user's own may."""
    kind = survey.types[node.id]
    return _calls_tools(survey, node) or kind not in BUILT_IN_TYPES or kind in survey.options.taken_over


def _calls_tools(survey: Survey, node: Node) -> bool:
    return survey.types[node.id] == DEFAULT_TYPE and bool(node.get("allowed_tools", str, "").strip())


def _place(thing: Node, name: str) -> Span | None:
    """Place of a hook: a default block gives it to many nodes."""
    span = value_span(thing, name)
    return None if span is None else span.outermost()


@rule(Severity.ERROR)
def form_valid(survey: Survey) -> Iterator[Finding]:
    """A `human.form` is not on a human gate, or names no registered pydantic model of flat fields.

    On any other node no one is asked to fill it in. Whether a name is registered, and whether its model can be a form,
    is checked only before a run.

    Bad:

        digraph { start [shape=Mdiamond] ask [prompt="Ask", human.form=Review] exit [shape=Msquare]
            start -> ask -> exit }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            ask [shape=hexagon, label="Good?", human.form=Review]  start -> ask -> exit }
    """
    for node in survey.having(_FORM):
        name = node.get(_FORM, str, "").strip()
        if name and (found := _form_problem(survey, node, name)):
            yield found


def _form_problem(survey: Survey, node: Node, name: str) -> Finding | None:
    kind, known = survey.types[node.id], survey.options.schemas
    if kind in BUILT_IN_TYPES and kind != HUMAN_TYPE and kind not in survey.options.taken_over:
        message, remedy = (
            f'"{node.id}" has {_FORM}, but is not a human gate',
            "make it a gate, shape=hexagon, or remove it",
        )
    elif not is_schema_name(name):
        message, remedy = f'the {_FORM} of "{node.id}" is not a name', "write the name of a registered pydantic model"
    elif known is not None and name not in known:
        return unregistered(node, _FORM, f'"{node.id}" names the schema', name, "schemas", known)
    elif problem := survey.options.invalid_forms.get(name):
        message, remedy = problem, "use a model with flat fields"
    else:
        return None
    return Finding(message, value_span(node, _FORM), node.id, fix=Fix(remedy))


@rule(Severity.WARNING)
def review_exists(survey: Survey) -> Iterator[Finding]:
    """A `human.review` names a stage that the graph does not have.

    The gate shows files of stages beside its question: `plan/response.md`. A stage that does not exist has no files.

    Bad:

        digraph { start [shape=Mdiamond] plan [prompt="Plan"] exit [shape=Msquare]
            good [shape=hexagon, label="Good?", human.review="plam/response.md"]
            start -> plan -> good -> exit }

    Good:

        digraph { start [shape=Mdiamond] plan [prompt="Plan"] exit [shape=Msquare]
            good [shape=hexagon, label="Good?", human.review="plan/response.md"]
            start -> plan -> good -> exit }
    """
    nodes = survey.graph.nodes
    for node in survey.having(_REVIEW):
        named = comma_list(node.get(_REVIEW, str, ""))
        missing = dict.fromkeys(stage for name in named if (stage := name.partition("/")[0]) not in nodes)
        if missing:
            listed = ", ".join(_with_suggestion(stage, survey.nearest_node(stage)) for stage in missing)
            message = f'the {_REVIEW} of "{node.id}" names unknown stages:  {listed}'
            yield Finding(message, value_span(node, _REVIEW), node.id, fix=Fix("name a stage of the graph"))


def _with_suggestion(name: str, near: str) -> str:
    return f'"{name}"; did you mean "{near}"?' if near else f'"{name}"'


@rule(Severity.ERROR)
def gate_can_work(survey: Survey) -> Iterator[Finding]:
    """A human gate offers no choice that can be taken, or an attribute of it names none of its choices.

    A gate fails, before anyone is asked, if its `human.default_choice` is not one of its choices, or if its
    `human.type` asks for yes or no and no edge is labelled Yes. A gate without an edge for No is a WARNING: that answer
    fails the gate. So is a time limit without a default, if no edge leads on from a failure.

    Bad:

        digraph { start [shape=Mdiamond] ok [shape=hexagon, label="OK?", human.default_choice=later]
            exit [shape=Msquare]  start -> ok  ok -> exit [label="Approve"] }

    Good:

        digraph { start [shape=Mdiamond] ok [shape=hexagon, label="OK?", human.default_choice=approve]
            exit [shape=Msquare]  start -> ok  ok -> exit [label="Approve"] }
    """
    if HUMAN_TYPE in survey.options.taken_over:
        return
    for node_id in survey.of_type(HUMAN_TYPE):
        edges = survey.graph.outgoing_edges(node_id)
        if edges and all(survey.conditions.get(edge.condition, True) for edge in edges):
            yield from _unworkable(survey, survey.graph.nodes[node_id], choices_of(edges))


def _unworkable(survey: Survey, node: Node, choices: Sequence[GateChoice]) -> Iterator[Finding]:
    if not choices:
        fix = Fix("draw an edge without a condition for each choice")
        yield Finding(
            f'the gate "{node.id}" offers no choice: its edges only handle a failure', node.span, node.id, fix=fix
        )
        return
    written = node.get(_TYPE, str, "")
    kind = QuestionType(written) if written in set(QuestionType) else QuestionType.MULTIPLE_CHOICE
    listed = ", ".join(f'"{choice.label}"' for choice in choices)
    wanted = node.get(_DEFAULT, str, "")
    if wanted and default_answer(kind, wanted, choices) is None:
        message = f'the {_DEFAULT} "{wanted}" of "{node.id}" is not one of its choices {listed}'
        near = nearest(wanted, [choice.label for choice in choices])
        fix = replacing_value(node, _DEFAULT, near, f'write "{near}"') if near else Fix(f"name one of {listed}")
        yield Finding(message, value_span(node, _DEFAULT), node.id, fix=fix)
    if kind in YES_OR_NO:
        for value, severity in ((AnswerValue.YES, None), (AnswerValue.NO, Severity.WARNING)):
            if side_of(choices, value) is None:
                word = value.title()
                message = f'"{node.id}" asks for yes or no, but no edge is labelled "{word}", only {listed}'
                fix = Fix(f'label an edge "{word}", or remove {_TYPE}')
                yield Finding(message, value_span(node, _TYPE), node.id, fix=fix, severity=severity)
                break  # at one place there is one finding
    if "human.timeout" in node.attrs and not wanted and not _survives_failure(survey, node):
        message = f'when the gate "{node.id}" times out, the run fails: it has no {_DEFAULT}'
        fix = Fix(f"set {_DEFAULT} to one of {listed}, or add an edge for a failure")
        yield Finding(message, value_span(node, "human.timeout"), node.id, fix=fix, severity=Severity.WARNING)


def _survives_failure(survey: Survey, node: Node) -> bool:
    """True if something leads on from a failure of a node, or it is tried again (ruling 15)."""
    edges = survey.graph.outgoing_edges(node.id)
    leads_on = any(edge.condition.strip() or edge.is_default for edge in edges)
    is_retried = {"max_retries", "retry_policy"} & node.attrs.keys() or {
        "default_max_retries",
        "default_max_retry",
        "retry_policy",
        "on_fail",
    } & survey.graph.attrs.keys()
    return leads_on or bool(is_retried) or bool(survey.graph_jumps) or node.id in survey.jumps


RULES: Final = (schema_valid, hooks_called, form_valid, review_exists, gate_can_work)
