"""What holds for all runs: `pipeline.analyse()`, as a picture, as tables and as JSON values."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import OptionError, ValidationError

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.dot"))
REVIEW = """digraph Review {
    start [shape=Mdiamond] done [shape=Msquare]
    fan [shape=component] join [shape=tripleoctagon]
    short [prompt="A", "llm.max_tokens"=50] long [prompt="B"] longer [prompt="C"]
    check [prompt="Is it good?"] gate [shape=hexagon, label="And now?"]
    start -> fan  fan -> short  fan -> long -> longer -> join  short -> join  join -> check
    check -> done [condition="outcome=success"]  check -> gate [default=true]
    gate -> done [label="[P] Publish"]  gate -> fan [label="[A] Again"]
}"""


@pytest.fixture(scope="module")
def review():
    return Pipeline(REVIEW).analyse()


def test_what_every_run_passes(review):
    assert review.must_pass == ("start", "fan", "short", "long", "longer", "join", "check", "done")


def test_the_critical_path_takes_the_branch_that_writes_most(review):
    assert review.critical_path == ("start", "fan", "long", "longer", "join", "check", "done")
    assert review.usage.calls == 3


def test_loops_say_what_ends_them(review):
    assert [loop.nodes for loop in review.loops] == [
        ("fan", "short", "join", "check", "gate"),
        ("fan", "long", "longer", "join", "check", "gate"),
    ]
    assert review.loops[0].ends == ("a person at gate", "outcome=success at check", "[P] Publish at gate")


def test_findings_are_diagnostics_with_their_places(review):
    (found,) = review.findings
    assert (found.rule, found.node_id, found.severity.value) == ("gate_avoidable", "gate", "info")
    assert found.span.line == 5


def test_lint_does_not_apply_the_rules_on_demand():
    assert not Pipeline(REVIEW).diagnostics


def test_a_notebook_shows_the_picture_then_tables(review):
    bundle = review._repr_mimebundle_()
    picture, table, findings = (
        bundle["text/html"].index(mark) for mark in ("<img ", "attractor-table", "attractor-findings")
    )
    assert picture < table < findings
    root = ET.fromstring(review.to_svg())
    marked = {each.get("data-node"): each.get("class").split() for each in root.iter() if each.get("data-node")}
    assert {"passed", "critical"} <= set(marked["long"])
    assert "critical" not in marked["short"]
    edges = [classes for each in root.iter() if "edge" in (classes := each.get("class", "").split())]
    assert sum("critical" in each for each in edges) == 6
    assert sum("loop" in each for each in edges) == 4
    assert {"every run passes it", "critical path", "loop"} <= {each.text for each in root.iter()}


def test_a_terminal_shows_lines(review):
    shown = str(review).splitlines()
    assert shown[:2] == ["every run passes: 8 of 9 nodes", "  start, fan, short, long, longer, join, check, done"]
    assert "  fan -> short -> join -> check -> gate -> fan" in shown
    assert all(len(line) < 80 for line in shown[:-1])
    assert "[gate_avoidable]" in str(review)


def test_inputs_decide_the_likely_path():
    text = """digraph { inputs="lang=en"
        start [shape=Mdiamond] done [shape=Msquare] a b
        start -> a [condition="context.lang=en"]  start -> b [condition="context.lang!=en"]  a -> done  b -> done }"""
    assert Pipeline(text).analyse().critical_path == ("start", "a", "done")
    assert Pipeline(text).analyse({"lang": "de"}).critical_path == ("start", "b", "done")
    with pytest.raises(OptionError):
        Pipeline(text).analyse({"langg": "de"})


def test_a_graph_with_errors_is_refused():
    with pytest.raises(ValidationError):
        Pipeline("digraph { start [shape=Mdiamond] a start -> a }").analyse()


def test_the_loops_of_a_dense_graph_are_cut_and_the_table_says_so():
    edges = " ".join(f"n{at} -> n{(at + step) % 200}" for at in range(200) for step in range(1, 31))
    text = f"digraph {{ start [shape=Mdiamond] done [shape=Msquare] start -> n0 {edges} n7 -> done [label=Out] }}"
    found = Pipeline(text, severity={"implicit_node": "off", "edge_target_exists": "off"}).analyse()
    assert len(found.loops) == 100
    assert "There are more than 100 loops" in str(found)
    assert found.to_plain()["are_loops_cut"] is True


EXPECTED = {
    "bug_triage": [("gate_avoidable", "triage_gate")],
    "hand_over": [("gate_avoidable", "person")],  # a good answer needs no person
    "supervised_article": [("gate_avoidable", "give_up")],
    "spec_to_code": [("goal_gate_avoidable", "completeness")],  # the retry_target of the graph leads past it
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_have_few_findings_and_each_is_meant(path):
    assert [(found.rule, found.node_id) for found in Pipeline(path).analyse().findings] == EXPECTED.get(path.stem, [])
