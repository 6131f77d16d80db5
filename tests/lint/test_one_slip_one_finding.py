"""One slip in a pipeline that people have is one finding, and that one names the slip."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attractor_nb import Pipeline, Severity
from attractor_nb.errors import DotSyntaxError
from attractor_nb.lint.entailed_findings import MAX_APART

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
REVIEW, FAN_OUT, BUGS = "code_review_loop", "fan_out", "bug_triage"


def text_of(name):
    return re.sub(r"^//.*$", "", (EXAMPLES / f"{name}.dot").read_text("utf-8"), flags=re.MULTILINE)


def slip(name, right, wrong):
    text = text_of(name)
    assert right in text
    return text.replace(right, wrong, 1)


SLIPS = [
    pytest.param(REVIEW, "-> review ->", "-> revew ->", "edge_target_exists", "revew", id="a node in a chain"),
    pytest.param(REVIEW, "summarize -> done", "sumarize -> done", "edge_target_exists", "sumarize", id="where an edge begins"),
    pytest.param(REVIEW, "-> summarize [", "-> sumarize [", "edge_target_exists", "sumarize", id="where an edge ends"),
    pytest.param(REVIEW, "    implement [\n", "    implemnt [\n", "edge_target_exists", "implemnt", id="the declaration of a node"),
    pytest.param(BUGS, "    find_data [", "    fnd_data [", "edge_target_exists", "fnd_data", id="another declaration"),
    pytest.param(REVIEW, 'prompt="You are', 'promt="You are', "attribute_typo", "promt", id="an attribute"),
    pytest.param(REVIEW, "is_accepted [shape=", "is_accepted [shpe=", "attribute_typo", "shpe", id="the word shape"),
    pytest.param(REVIEW, "shape=diamond", "shape=dimond", "shape_known", '"dimond"', id="a diamond"),
    pytest.param(REVIEW, "shape=hexagon", "shape=hexgon", "shape_known", '"hexgon"', id="a gate"),
    pytest.param(REVIEW, "shape=Msquare", "shape=Msqare", "shape_known", '"Msqare"', id="the exit"),
    pytest.param(FAN_OUT, "shape=component", "shape=componnt", "shape_known", '"componnt"', id="a fan-out"),
    pytest.param("fix_loop", "shape=parallelogram", "shape=paralelogram", "shape_known", '"paralelogram"', id="a tool"),
    pytest.param("supervised_article", "shape=house", "shape=hose", "shape_known", '"hose"', id="a manager"),
    pytest.param("fix_loop", "tool_command", "tool_comand", "attribute_typo", "tool_comand", id="a command"),
    pytest.param("supervised_article", "stack.child_dotfile", "stack.child_dotfil", "attribute_typo", "stack.child_dotfil", id="a child"),
    pytest.param(REVIEW, '"outcome=success"', '"outcome=sucess"', "outcome_unknown", "sucess", id="an outcome"),
    pytest.param(REVIEW, '"outcome=success"', '"outcom=success"', "condition_key", "outcom", id="a key"),
    pytest.param(REVIEW, '"outcome=success"', '"outcome==success"', "condition_syntax", "==", id="an operator"),
    pytest.param(REVIEW, '[label="Yes", condition', '[label="Yes", conditon', "attribute_typo", "conditon", id="the word condition"),
    pytest.param(REVIEW, ".judge {", ".juge {", "unused_class", ".juge", id="a selector"),
    pytest.param(REVIEW, ".judge { reasoning_effort", ".judge { reasoning_efort", "unknown_property", "reasoning_efort", id="a property"),
    pytest.param(REVIEW, "effort: high", "effort: hihg", "style_value", "hihg", id="a value of the sheet"),
    pytest.param(REVIEW, 'verdict="json"', 'verdict="jsn"', "bad_value", '"jsn"', id="a verdict"),
    pytest.param(REVIEW, 'timeout="30m"', 'timeout="30 minuts"', "bad_duration", '"30 minuts"', id="a duration"),
    pytest.param(REVIEW, "start -> plan", "start plan", "missing_arrow", "start plan", id="an arrow"),
    pytest.param(REVIEW, "Mdiamond, label", "Mdiamond label", "attr_separator", "label", id="a comma"),
    pytest.param(FAN_OUT, 'retry_target="readers"', 'retry_target="reders"', "retry_target_exists", '"reders"', id="a retry target"),
    pytest.param(FAN_OUT, '"k_of_n"', '"k_of_m"', "bad_value", '"k_of_m"', id="a policy"),
    pytest.param(BUGS, "default=true", "defalt=true", "attribute_typo", "defalt", id="a default"),
    pytest.param("answer_ticket", "inputs=", "input=", "attribute_typo", "input", id="inputs"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "right", "wrong", "rule", "marked"), SLIPS)
def test_one_slip_is_one_finding_that_stands_where_the_slip_is(name, right, wrong, rule, marked):
    before = {(each.rule, each.message) for each in Pipeline(text_of(name)).diagnostics}
    pipeline = Pipeline(slip(name, right, wrong))
    new = [each for each in pipeline.diagnostics if (each.rule, each.message) not in before]
    assert [each.rule for each in new] == [rule], pipeline.lint()
    place = new[0].span.outermost()
    assert place.source.text[place.start : place.end].strip('"') == marked.strip('"')


@pytest.mark.parametrize(
    ("right", "wrong", "message", "line"),
    [
        ('label="Accepted?"', 'label="Accepted?', "the string is not closed on its line", 47),
        ('label="Accepted?"', 'label=Accepted?"', "this value needs double quotes", 47),
        ("summarize -> done", "summarize -- done", "undirected edges are not supported", 61),
        ('label="Start"]', 'label="Start"', '"[" is never closed', 16),
        ("    summarize -> done\n}", "    summarize -> done\n", '"{" is never closed', 5),
    ],
    ids=["no closing quote", "no opening quote", "a line for an arrow", "no bracket", "no brace"],
)
def test_a_slip_that_ends_the_reading_is_one_message_at_its_place(right, wrong, message, line):
    with pytest.raises(DotSyntaxError, match=re.escape(message)) as caught:
        Pipeline(slip(REVIEW, right, wrong))
    assert caught.value.span.line == line


def test_what_a_slip_entails_makes_its_finding_as_bad_and_is_told():
    (found,) = Pipeline(slip("fix_loop", "tool_command", "tool_comand")).lint().errors
    assert found.rule == "attribute_typo"
    assert found.message.endswith('As it stands, the tool stage "test" has no tool_command')


def test_a_finding_that_has_another_cause_stays():
    text = slip(REVIEW, "-> review ->", "-> revew ->").replace('timeout="1h"', 'timeout="soon"')
    assert [each.rule for each in Pipeline(text).lint()] == ["bad_duration", "edge_target_exists"]


def test_two_slips_are_two_findings():
    text = slip(REVIEW, "-> review ->", "-> revew ->").replace("shape=hexagon", "shape=hexgon")
    found = Pipeline(text).lint()
    assert [(each.rule, each.severity) for each in found] == [
        ("shape_known", Severity.WARNING),
        ("edge_target_exists", Severity.ERROR),
    ]


def test_many_slips_are_a_finding_each():
    count = MAX_APART + 2
    nodes = "\n".join(f"stage_number_{n}_of_all [promt=p]" for n in range(count))
    chain = " -> ".join(f"stage_number_{n}_of_all" for n in range(count))
    text = f"digraph {{ start [shape=Mdiamond] done [shape=Msquare]\n{nodes}\nstart -> {chain} -> done }}"
    assert [each.rule for each in Pipeline(text).lint()] == ["attribute_typo"] * count


def test_whose_severity_the_caller_chose_hides_nothing():
    text = slip(REVIEW, "-> review ->", "-> revew ->")
    found = Pipeline(text, severity={"edge_target_exists": Severity.INFO}).lint()
    assert [each.rule for each in found.of(Severity.INFO)] == ["edge_target_exists"]
    assert {each.rule for each in found.errors} == {"reachability"}


def test_the_fix_of_the_finding_leaves_none():
    for name, right, wrong, rule, _ in (each.values for each in SLIPS):
        if rule in {"shape_known", "bad_duration", "unused_class"}:
            continue
        pipeline = Pipeline(slip(name, right, wrong))
        left = {(each.rule, each.message) for each in pipeline.fixed().diagnostics}
        assert left <= {(each.rule, each.message) for each in Pipeline(text_of(name)).diagnostics}, rule
