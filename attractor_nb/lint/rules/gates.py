"""Rules about what a human gate asks for and shows (spec 4.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.response_schemas import is_schema_name
from attractor_nb.lint.places import replacing_value, value_span
from attractor_nb.lint.rule import Finding, rule
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.shapes import BUILT_IN_TYPES
from attractor_nb.model.spelling import did_you_mean, nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.lint.survey import Survey
    from attractor_nb.model.graph import Node

_GATE: Final = "wait.human"
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
    if kind in BUILT_IN_TYPES and kind != _GATE and kind not in survey.options.taken_over:
        return f'"{node.id}" has {_FORM} and is no human gate', Fix(
            "make it a gate, shape=hexagon, or remove it"
        )
    if not is_schema_name(name):
        return f'the {_FORM} of "{node.id}" is no name', Fix("write the name of a registered pydantic model")
    known = survey.options.schemas
    if known is None:
        return None
    if name in known:
        problem = survey.options.unfit_forms.get(name)
        return (problem, Fix("give it flat fields, or a model of its own")) if problem else None
    fix = Fix(f'register it: Pipeline(…, schemas={{"{name}": {name}}})')
    if near := nearest(name, sorted(known)):
        fix = replacing_value(node, _FORM, near, f'write "{near}"')
    return f'no schema is registered as "{name}", which "{node.id}" names{did_you_mean(name, known)}', fix


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
        named = [part.strip() for part in node.get(_REVIEW, str, "").split(",") if part.strip()]
        missing = dict.fromkeys(stage for name in named if (stage := name.partition("/")[0]) not in nodes)
        if missing:
            listed = ", ".join(f'"{stage}"{did_you_mean(stage, nodes)}' for stage in missing)
            message = f'the {_REVIEW} of "{node.id}" names what is no stage of the graph: {listed}'
            yield Finding(message, value_span(node, _REVIEW), node.id, fix=Fix("name a stage that there is"))


RULES: Final = (form_valid, review_exists)
