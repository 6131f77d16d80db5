"""What lint says of forms and material at human gates."""

import pytest
from pydantic import BaseModel

from attractor_nb import Pipeline, ValidationError
from attractor_nb.languages.dot import parse_dot
from attractor_nb.lint import LintOptions, validate

FRAME = 'digraph d {{ start [shape=Mdiamond] plan [prompt="Plan"] ask [shape=hexagon, {attrs}] exit [shape=Msquare] start -> plan -> ask -> exit }}'


class Review(BaseModel):
    score: int


class Inner(BaseModel):
    inner: Review


def found(rule, attrs, **options):
    parsed = parse_dot(FRAME.format(attrs=attrs))
    return [each for each in validate(parsed, options=LintOptions(**options)) if each.rule == rule]


def test_a_form_that_is_not_registered_is_an_error_for_who_is_about_to_run():
    assert not found("form_valid", "human.form=Reviw")
    (finding,) = found("form_valid", "human.form=Reviw", schemas=frozenset({"Review"}))
    assert (
        finding.message.endswith('which "ask" names; did you mean "Review"?')
        or "did you mean" in finding.message
    )
    assert finding.fix.edits[0].text == "Review"
    (finding,) = found("form_valid", "human.form=Reviw", schemas=frozenset())
    assert "register it: Pipeline(…, schemas=" in finding.fix.title


def test_a_form_that_is_no_name_is_an_error():
    (finding,) = found("form_valid", 'human.form="{}"')
    assert "is no name" in finding.message


def test_a_model_that_cannot_be_a_form_is_found_before_anything_runs():
    source = FRAME.format(attrs="human.form=Inner")
    with pytest.raises(ValidationError, match="field 'inner' of form 'Inner' is of a type that no form has"):
        Pipeline(source, schemas={"Inner": Inner}).refuse_errors()
    assert not [each for each in Pipeline(source, schemas={"Inner": Review}).diagnostics if each.is_error]


@pytest.mark.parametrize("review", ["plan/response.md", "plan", " plan , ask/x ", ""])
def test_material_of_the_graphs_own_stages_is_fine(review):
    assert not found("review_exists", f'human.review="{review}"')


@pytest.mark.parametrize(
    ("review", "words"),
    [("plna/response.md, plan", '"plna"; did you mean "plan"?'), ("a1, b1/c", '"a1", "b1"')],
)
def test_material_of_a_stage_that_there_is_not_is_a_warning(review, words):
    (finding,) = found("review_exists", f'human.review="{review}"')
    assert finding.message == f'the human.review of "ask" names what is no stage of the graph: {words}'
