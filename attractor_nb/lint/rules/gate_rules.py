"""Rules about what a human gate asks for and shows (spec 4.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.answers.gate_choices import YES_OR_NO, choices_of, default_answer, side_of
from attractor_nb.decisions.answers.response_schemas import is_schema_name
from attractor_nb.lint.rule import Finding, rule
from attractor_nb.lint.source_places import replacing_value, value_span
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.nearest_name import did_you_mean, nearest
from attractor_nb.model.question import AnswerValue, QuestionType
from attractor_nb.model.vocabulary.comma_lists import comma_list
from attractor_nb.model.vocabulary.shapes import BUILT_IN_TYPES, HUMAN_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attractor_nb.decisions.answers.gate_choices import GateChoice
    from attractor_nb.lint.survey import Survey
    from attractor_nb.model.graph import Node

_TYPE: Final = "human.type"
_DEFAULT: Final = "human.default_choice"
_FORM: Final = "human.form"
_REVIEW: Final = "human.review"


@rule(Severity.ERROR)
def form_valid(survey: Survey) -> Iterator[Finding]:
    """A `human.form` stands at a human gate and names a registered pydantic model of flat fields.

    Anywhere else nobody would be asked to fill it in. Whether a name is registered, and whether its model can
    be a form, is only checked by who is about to run the pipeline.

    Bad:

        digraph { start [shape=Mdiamond] ask [prompt="Ask", human.form=Review] exit [shape=Msquare]
            start -> ask -> exit }

    Good:

        digraph { start [shape=Mdiamond] exit [shape=Msquare]
            ask [shape=hexagon, label="Good?", human.form=Review]  start -> ask -> exit }
    """
    for node in survey.graph.nodes.values():
        name = node.get(_FORM, str, "").strip()
        if name and (found := _form_problem(survey, node, name)):
            message, fix = found
            yield Finding(message, value_span(node, _FORM), node.id, fix=fix)


def _form_problem(survey: Survey, node: Node, name: str) -> tuple[str, Fix] | None:
    kind = survey.types[node.id]
    if kind in BUILT_IN_TYPES and kind != HUMAN_TYPE and kind not in survey.options.taken_over:
        return f'"{node.id}" has {_FORM}, but is not a human gate', Fix(
            "make it a gate, shape=hexagon, or remove it"
        )
    if not is_schema_name(name):
        return f'the {_FORM} of "{node.id}" is not a name', Fix(
            "write the name of a registered pydantic model"
        )
    known = survey.options.schemas
    if known is None:
        return None
    if name in known:
        problem = survey.options.unfit_forms.get(name)
        return (problem, Fix("use a model with flat fields")) if problem else None
    fix = Fix(f'register it: Pipeline(…, schemas={{"{name}": {name}}})')
    if near := nearest(name, sorted(known)):
        fix = replacing_value(node, _FORM, near, f'write "{near}"')
    return f'"{node.id}" names the schema "{name}", which is not registered{did_you_mean(name, known)}', fix


@rule(Severity.WARNING)
def review_exists(survey: Survey) -> Iterator[Finding]:
    """What a `human.review` names are files of stages that the graph has: `plan/response.md`.

    Of another stage there is nothing to show beside the question.

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
    for node in nodes.values():
        named = comma_list(node.get(_REVIEW, str, ""))
        missing = dict.fromkeys(stage for name in named if (stage := name.partition("/")[0]) not in nodes)
        if missing:
            listed = ", ".join(f'"{stage}"{did_you_mean(stage, nodes)}' for stage in missing)
            message = f'the {_REVIEW} of "{node.id}" names unknown stages:  {listed}'
            yield Finding(message, value_span(node, _REVIEW), node.id, fix=Fix("name a stage of the graph"))


@rule(Severity.ERROR)
def gate_can_work(survey: Survey) -> Iterator[Finding]:
    """A human gate has a choice that can be taken, and what its attributes name is among the choices.

    A gate fails, before anybody is asked, when its `human.default_choice` is none of its choices, or when
    its `human.type` asks for yes or no and no edge is labelled Yes. One without an edge for No is a WARNING:
    that answer fails the gate. So is a time limit without a default, where nothing leads on from a failure.

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
            f'the gate "{node.id}" offers no choice: its edges only handle a failure',
            node.span,
            node.id,
            fix=fix,
        )
        return
    written = node.get(_TYPE, str, "")
    kind = QuestionType(written) if written in set(QuestionType) else QuestionType.MULTIPLE_CHOICE
    listed = ", ".join(f'"{choice.label}"' for choice in choices)
    wanted = node.get(_DEFAULT, str, "")
    if wanted and default_answer(kind, wanted, choices) is None:
        message = f'the {_DEFAULT} "{wanted}" of "{node.id}" is not one of its choices {listed}'
        near = nearest(wanted, [choice.label for choice in choices])
        fix = (
            replacing_value(node, _DEFAULT, near, f'write "{near}"') if near else Fix(f"name one of {listed}")
        )
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
    """Whether something leads on from a failure of a node, or it is tried again (ruling 15)."""
    edges = survey.graph.outgoing_edges(node.id)
    leads_on = any(edge.condition.strip() or edge.is_default for edge in edges)
    is_retried = {"max_retries", "retry_policy"} & node.attrs.keys() or {
        "default_max_retries",
        "default_max_retry",
        "retry_policy",
        "on_fail",
    } & survey.graph.attrs.keys()
    return leads_on or bool(is_retried) or bool(survey.graph_jumps) or node.id in survey.jumps


RULES: Final = (form_valid, review_exists, gate_can_work)
