"""The meaning of conditions (spec 10.3-10.6, 11.9; ruling 11)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.languages.condition import (
    Condition,
    evaluate_condition,
    explain_condition,
    parse_condition,
    value_text,
)


def holds(text, status="success", label="", **context):
    context = {key.replace("__", "."): value for key, value in context.items()}
    return evaluate_condition(parse_condition(text), status, label, context.get)


@pytest.mark.parametrize(
    ("text", "facts", "expected"),
    [
        pytest.param("", {}, True, id="empty-always-holds"),
        pytest.param("outcome=success", {"status": "success"}, True, id="outcome-equals"),
        pytest.param("outcome=success", {"status": "fail"}, False, id="outcome-differs"),
        pytest.param("outcome!=success", {"status": "fail"}, True, id="not-equals"),
        pytest.param("outcome!=success", {"status": "success"}, False, id="not-equals-fails"),
        pytest.param("outcome=success && context.ok=true", {"ok": True}, True, id="and-both"),
        pytest.param("outcome=success && context.ok=true", {"ok": False}, False, id="and-one"),
        pytest.param("context.x=1", {"x": "1"}, True, id="context-text"),
        pytest.param("context.x=1", {"context__x": "1"}, True, id="context-qualified"),
        pytest.param("context.x=1", {"context__x": "2", "x": "1"}, False, id="qualified-before-short"),
        pytest.param("x=1", {"x": 1}, True, id="unqualified-key"),
        pytest.param("graph.goal=ship", {"graph__goal": "ship"}, True, id="dotted-unqualified"),
        pytest.param("context.x=a", {}, False, id="missing-is-empty"),
        pytest.param('context.x=""', {}, True, id="missing-equals-empty"),
        pytest.param("context.loop_state!=exhausted", {}, True, id="missing-differs"),
        pytest.param("context.x=Yes", {"x": "yes"}, False, id="case-sensitive"),
        pytest.param("context.x=true", {"x": True}, True, id="boolean-true"),
        pytest.param("context.x=false", {"x": False}, True, id="boolean-false"),
        pytest.param("context.x=3", {"x": 3}, True, id="integer"),
        pytest.param("context.x=0.5", {"x": 0.5}, True, id="number"),
        pytest.param('context.x="[1, 2]"', {"x": [1, 2]}, True, id="list-as-json"),
        pytest.param("context.x", {"x": "yes"}, True, id="bare-key-set"),
        pytest.param("context.x", {"x": ""}, False, id="bare-key-empty"),
        pytest.param("context.x", {}, False, id="bare-key-missing"),
        pytest.param("context.x", {"x": False}, False, id="bare-key-false"),
        pytest.param("context.x", {"x": "false"}, True, id="bare-key-false-text"),
        pytest.param("context.x", {"x": 0}, False, id="bare-key-zero"),
        pytest.param("outcome=succeeded", {"status": "success"}, True, id="alias"),
        pytest.param("preferred_label=Fix", {"label": "Fix"}, True, id="label"),
        pytest.param("preferred_label=fix", {"label": "[F] Fix "}, True, id="label-normalised"),
        pytest.param('preferred_label="[F] Fix"', {"label": "fix"}, True, id="label-literal-normalised"),
        pytest.param("preferred_label!=Fix", {"label": "f) fix"}, False, id="label-differs-normalised"),
        pytest.param("preferred_label=Fix", {}, False, id="no-label"),
    ],
)
def test_11_9_conditions_are_evaluated(text, facts, expected):
    assert holds(text, **facts) is expected


LEVEL = {"rate.verdict": {"level": "high", "files": [{"name": "a.py"}], "3": "three"}}


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        ("context.x=3", {"x": 3.0}, True),
        ("context.x=3.0", {"x": 3}, True),
        ("context.x=0.90", {"x": 0.9}, True),
        ("context.x=1e3", {"x": 1000}, True),
        ("context.x=03", {"x": 3}, False),
        ("context.x=3", {"x": "3"}, True),
        ("context.x=3.0", {"x": "3"}, False),
        ("context.x=1", {"x": True}, False),
        ("context.x=true", {"x": 1}, False),
        ("context.x=True", {"x": True}, False),
        ("context.x=True", {"x": "True"}, True),
        ("context.tool.output=red", {"tool.output": "red\r\n\n"}, True),
        ("context.tool.output!=red", {"tool.output": "red\n"}, False),
        ("context.tool.output=red", {"tool.output": " red\n"}, False),
        ("context.x=9e9999", {"x": float("inf")}, False),
        ("context.rate.verdict.level=high", LEVEL, True),
        ("rate.verdict.level!=high", LEVEL, False),
        ("context.rate.verdict.files.0.name=a.py", LEVEL, True),
        ("context.rate.verdict.files.1.name", LEVEL, False),
        ("context.rate.verdict.3=three", LEVEL, True),
        ("context.rate.verdict.level.more=x", LEVEL, False),
        ("context.a.b=stored", {"a.b": "stored", "a": {"b": "inner"}}, True),
        ("context.a.b.c", {"a.b": "stored", "a": {"b": {"c": 1}}}, False),
        ("context.x", {"x": "no"}, True),
        ("context.x", {"x": []}, False),
        ("context.x", {"x": 0.0}, False),
    ],
)
def test_ruling_50_conditions_compare_by_meaning(text, context, expected):
    assert evaluate_condition(parse_condition(text), "success", "", context.get) is expected


def test_values_are_data_and_never_read_as_a_condition():
    assert not holds("context.x=1 && context.y=2", x="1 && context.y=2")
    assert holds('context.x="outcome=fail"', x="outcome=fail")


def test_explaining_names_each_clause_the_value_it_saw_and_its_verdict():
    verdicts = explain_condition(parse_condition("outcome=success && context.x=1"), "success", "", {"x": 2}.get)
    assert [(verdict.clause, verdict.value, verdict.holds) for verdict in verdicts] == [
        ("outcome=success", "success", True),
        ("context.x=1", "2", False),
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("x", "x"),
        (True, "true"),
        (1, "1"),
        (1.5, "1.5"),
        ({"a": None}, '{"a": null}'),
        ("ü", "ü"),
        (["ü"], '["ü"]'),
    ],
)
def test_values_are_compared_by_their_json_spelling(value, text):
    assert value_text(value) == text


def test_a_value_that_json_does_not_know_is_still_compared_as_text():
    assert value_text({1}) == '"{1}"'


CLAUSES = st.sampled_from(["outcome=success", "outcome!=fail", "context.a=1", "context.b!=2", "a", "preferred_label=x"])
CONTEXTS = st.dictionaries(st.sampled_from(["a", "b", "context.a"]), st.sampled_from([1, "1", "2", True, ""]))


@given(st.lists(CLAUSES, max_size=4).flatmap(lambda each: st.tuples(st.just(each), st.permutations(each))), CONTEXTS)
def test_the_order_of_clauses_does_not_matter(orders, context):
    one, other = (
        evaluate_condition(parse_condition(" && ".join(each)), "success", "x", context.get) for each in orders
    )
    assert one is other


@given(CLAUSES, CONTEXTS)
def test_explaining_agrees_with_evaluating(text, context):
    condition = parse_condition(text)
    verdicts = explain_condition(condition, "fail", "", context.get)
    assert all(verdict.holds for verdict in verdicts) is evaluate_condition(condition, "fail", "", context.get)


def test_a_condition_is_written_as_it_is_read():
    assert str(Condition(parse_condition("a = 1 &&b != 2 && c").clauses)) == "a=1 && b!=2 && c"
