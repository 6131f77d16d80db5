"""Findings about forms and material at human gates."""

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
    assert finding.message == '"ask" names the schema "Reviw", which is not registered; did you mean "Review"?'
    assert finding.fix.edits[0].text == "Review"
    (finding,) = found("form_valid", "human.form=Reviw", schemas=frozenset())
    assert "register it: Pipeline(…, schemas=" in finding.fix.title


def test_a_form_that_is_no_name_is_an_error():
    (finding,) = found("form_valid", 'human.form="{}"')
    assert "is not a name" in finding.message


def test_a_model_that_cannot_be_a_form_is_found_before_anything_runs():
    source = FRAME.format(attrs="human.form=Inner")
    with pytest.raises(ValidationError, match="field 'inner' of form 'Inner' has a type that no form field has"):
        Pipeline(source, schemas={"Inner": Inner}).refuse_errors()
    assert not [each for each in Pipeline(source, schemas={"Inner": Review}).diagnostics if each.is_error]


@pytest.mark.parametrize("review", ["plan/response.md", "plan", " plan , ask/x ", ""])
def test_material_of_the_graphs_own_stages_is_fine(review):
    assert not found("review_exists", f'human.review="{review}"')


@pytest.mark.parametrize(
    ("review", "words"), [("plna/response.md, plan", '"plna"; did you mean "plan"?'), ("a1, b1/c", '"a1", "b1"')]
)
def test_material_of_a_stage_that_there_is_not_is_a_warning(review, words):
    (finding,) = found("review_exists", f'human.review="{review}"')
    assert finding.message == f'the human.review of "ask" names unknown stages:  {words}'


GATE = """digraph d {{ start [shape=Mdiamond] ask [shape=hexagon, label="Go?", {attrs}] a [prompt="A"]
    exit [shape=Msquare] start -> ask {edges} a -> exit }}"""
YES_NO = 'ask -> exit [label="[Y] Yes"] ask -> a [label="[N] No"]'


@pytest.mark.parametrize(
    ("attrs", "edges", "severity", "words"),
    [
        (
            "human.default_choice=zzz",
            YES_NO,
            "error",
            'the human.default_choice "zzz" of "ask" is not one of its choices "[Y] Yes", "[N] No"',
        ),
        ("human.type=multi_select, human.default_choice=zzz", YES_NO, "error", "is not one of its choices"),
        ("human.type=yes_no, human.default_choice=zzz", YES_NO, "error", "is not one of its choices"),
        (
            "human.type=yes_no",
            'ask -> exit [label="Ship"] ask -> a [label="No"]',
            "error",
            'no edge is labelled "Yes", only "Ship", "No"',
        ),
        (
            "human.type=confirmation",
            'ask -> exit [label="Ship"] ask -> a [label="No"]',
            "error",
            'no edge is labelled "Yes"',
        ),
        (
            "human.type=yes_no",
            'ask -> exit [label="Yes"] ask -> a [label="Later"]',
            "warning",
            'no edge is labelled "No"',
        ),
        (
            "",
            'ask -> exit [condition="outcome=fail"] ask -> a [condition="outcome!=success"]',
            "error",
            "offers no choice",
        ),
        ("human.timeout=5m", YES_NO, "warning", "when the gate"),
    ],
)
def test_a_gate_that_cannot_work_is_found_before_anybody_is_asked(attrs, edges, severity, words):
    report = validate(parse_dot(GATE.format(attrs=attrs, edges=edges)))
    (finding,) = [each for each in report if each.rule == "gate_can_work"]
    assert str(finding.severity) == severity
    assert words in finding.message


@pytest.mark.parametrize(
    "attrs",
    [
        "",
        "human.default_choice=Y",
        "human.default_choice=no",
        "human.default_choice=a",
        "human.type=yes_no, human.default_choice=yes",
        "human.type=freeform, human.default_choice=anything",
        "human.timeout=5m, human.default_choice=no",
        "human.timeout=5m, retry_target=a",
        "human.timeout=5m, max_retries=2",
    ],
)
def test_a_gate_that_can_work_is_fine(attrs):
    report = validate(parse_dot(GATE.format(attrs=attrs, edges=YES_NO)))
    assert not [each for each in report if each.rule == "gate_can_work"]
