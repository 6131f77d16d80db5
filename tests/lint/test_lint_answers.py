"""Findings about response schemas and about hooks around tool calls."""

import pytest

from attractor_nb.languages.dot import parse_dot
from attractor_nb.lint import LintOptions, validate
from attractor_nb.model.diagnostic import Severity

FRAME = "digraph d {{ {graph} start [shape=Mdiamond] exit [shape=Msquare] {body} start -> work -> exit }}"


def found(rule, body, graph="", **options):
    parsed = parse_dot(FRAME.format(graph=graph, body=body))
    return [each for each in validate(parsed, options=LintOptions(**options)) if each.rule == rule]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("{", "is not a valid JSON Schema: Expecting property name"),
        ('{\\"type\\": \\"objekt\\"}', "is not a valid JSON Schema: 'objekt' is not valid"),
        ("[1]", "is not a valid JSON Schema"),
        ("a b", "is not a valid JSON Schema"),
        ("[" * 100_000, "is not a valid JSON Schema"),
    ],
    ids=["half", "type", "list", "words", "deep"],
)
def test_a_schema_that_is_none_is_an_error(schema, message):
    (finding,) = found("schema_valid", f'work [prompt=x, response_schema="{schema}"]')
    assert finding.severity is Severity.ERROR
    assert message in finding.message
    assert finding.span is not None


@pytest.mark.parametrize("schema", ['{\\"type\\": \\"object\\"}', "{}", "true", "", "Review"])
def test_a_schema_or_a_name_that_may_be_registered_is_none(schema):
    assert not found("schema_valid", f'work [prompt=x, response_schema="{schema}"]')


def test_a_name_that_is_not_registered_is_an_error_for_who_is_about_to_run():
    body = 'work [prompt=x, response_schema="Reveiw"]'
    (finding,) = found("schema_valid", body, schemas=frozenset({"Review"}))
    assert finding.message == '"work" names the schema "Reveiw", which is not registered; did you mean "Review"?'
    assert finding.fix.edits[0].text == "Review"
    (finding,) = found("schema_valid", body, schemas=frozenset())
    assert "register it: Pipeline(…, schemas=" in finding.fix.title
    assert not found("schema_valid", body, schemas=frozenset({"Reveiw"}))


@pytest.mark.parametrize(
    ("body", "graph", "count"),
    [
        ('work [prompt=x, tool_hooks.pre="./a"]', "", 1),
        ('work [prompt=x, tool_hooks.pre="./a", tool_hooks.post="./b"]', "", 2),
        ('work [prompt=x, allowed_tools=read, tool_hooks.pre="./a"]', "", 0),
        ('work [prompt=x, tool_hooks.pre=" "]', "", 0),
        ('work [shape=parallelogram, tool_command=make, tool_hooks.pre="./a"]', "", 1),
        ('work [type="my.own", tool_hooks.pre="./a"]', "", 0),
        ("work [prompt=x]", 'tool_hooks.pre="./a"', 1),
        ("work [prompt=x, allowed_tools=read]", 'tool_hooks.pre="./a"', 0),
        ('work [type="my.own"]', 'tool_hooks.pre="./a"', 0),
        ("work [prompt=x]", 'node [tool_hooks.pre="./a"]', 1),
        ("work [prompt=x, allowed_tools=read]", 'node [tool_hooks.pre="./a"]', 0),
    ],
)
def test_hooks_that_nothing_calls_are_a_warning(body, graph, count):
    findings = found("hooks_called", body, graph)
    assert len(findings) == count
    assert all(each.severity is Severity.WARNING for each in findings)


def test_hooks_of_a_type_that_the_callers_own_handler_executes_are_its_own_business():
    assert not found("hooks_called", 'work [prompt=x, tool_hooks.pre="./a"]', taken_over=frozenset({"codergen"}))
