# ruff: noqa: RUF001 - the marks are what is tested
"""Tables, trees, Mermaid, findings and summaries."""

from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity
from attractor_nb.model.graph import Edge, Graph, Node, Subgraph
from attractor_nb.model.outcome import Usage
from attractor_nb.model.states import NodeStatus, RunStatus
from attractor_nb.source import SourceText
from attractor_nb.views.findings_table import findings_html, findings_text
from attractor_nb.views.mermaid import to_mermaid
from attractor_nb.views.state import EdgeState, NodeState, RunView
from attractor_nb.views.summary_line import cost_text, duration_text, run_summary
from attractor_nb.views.table import cells
from attractor_nb.views.text_table import graph_text, text_table, text_tree

REVIEW = """digraph review {
  start [shape=Mdiamond, label="Start"]
  implement [label="Implement", goal_gate=true, prompt="Write it"]
  check [shape=parallelogram, label="Run the tests", tool_command="make test"]
  passed [shape=diamond, label="Passing?"]
  done [shape=Msquare, label="Done"]
  start -> implement -> check -> passed
  passed -> done [condition="outcome=success"]
  passed -> implement [label="again", condition="outcome!=success"]
}"""


def test_a_graph_as_text():
    assert graph_text(parse_dot(REVIEW)) == snapshot("""\
pipeline review: 5 nodes, 5 edges
node       type                 label          leads to
start      start                Start          implement
implement  codergen, goal gate  Implement      check
check      tool                 Run the tests  passed
passed     conditional          Passing?       done if outcome=success; implement "again" if outcome!=success
done       exit                 Done\
""")


def test_states_lead_the_table():
    states = {"implement": NodeState(NodeStatus.FAIL, 2, 3, "no model"), "start": NodeState(NodeStatus.SUCCESS, 1, 1)}
    assert text_table(parse_dot(REVIEW), states, {1: EdgeState(2)}) == snapshot("""\
state                      node       type                 label          leads to
✓ success                  start      start                Start          implement
✕ failed ×2 ↻3 (no model)  implement  codergen, goal gate  Implement      check (×2)
– pending                  check      tool                 Run the tests  passed
– pending                  passed     conditional          Passing?       done if outcome=success; implement "again" if outcome!=success
– pending                  done       exit                 Done\
""")


def test_a_graph_as_a_tree():
    assert text_tree(parse_dot(REVIEW), {"check": NodeState(NodeStatus.FAIL, 1, 1, "exit code 2")}) == snapshot("""\
– start  (start)
– implement  (model)
✕ check: exit code 2
– passed  (condition)
├─ outcome=success → – done  (exit)
└─ again → ↩ implement\
""")


def test_a_tree_names_every_node():
    graph = Graph("g", nodes={"a": Node("a"), "lonely": Node("lonely")}, edges=(Edge("a", "nowhere"),))
    assert text_tree(graph).splitlines() == ["a  (model)", "nowhere (not declared)", "lonely  (model)"]


def test_a_deep_tree_is_no_deep_recursion():
    text = ";".join(f"n{k}; n{k} -> n{k + 1}; n{k} -> end" for k in range(1500))
    assert len(text_tree(parse_dot(f"digraph g {{ end; {text}; n1500 }}")).splitlines()) == 3002


@given(st.text(max_size=30))
def test_a_label_cannot_break_out_of_its_row(text):
    graph = Graph("g", nodes={"a": Node("a", {"label": text})})
    assert len(text_table(graph).splitlines()) == 2


def test_columns_line_up_under_wide_characters():
    graph = Graph(
        "g",
        nodes={"a": Node("a", {"label": "計画"}), "b": Node("b", {"label": "plan"})},
        edges=(Edge("a", "b"), Edge("b", "a")),
    )
    rows = text_table(graph).splitlines()[1:]
    assert len({cells(row) for row in rows}) == 1


def test_mermaid():
    graph = parse_dot(
        'digraph g { rankdir=LR; start [shape=Mdiamond]; end [shape=Msquare, label="End"]\n'
        'subgraph cluster_x { label="Work"; a [label="Say \\"hi\\" & <b>"]; h [shape=hexagon] }\n'
        'start -> a -> h; h -> end [label="[A] Approve"]; h -> a [condition="outcome=fail"] }'
    )
    assert to_mermaid(graph) == snapshot("""\
flowchart LR
  start(["start"])
  end_(["End"])
  subgraph group0["Work"]
    a["Say #34;hi#34; #38; #60;b#62;"]
    h{{"h"}}
  end
  start --> a
  a --> h
  h -->|"[A] Approve"| end_
  h -->|"outcome=fail"| a
""")


@given(st.text(max_size=30))
def test_mermaid_labels_cannot_end_their_quotes(text):
    graph = Graph("g", nodes={"a": Node("a", {"label": text})}, edges=(Edge("a", "a", {"label": text}),))
    lines = to_mermaid(graph).rstrip("\n").split("\n")
    assert len(lines) == 3
    for line in lines[1:]:
        assert line.count('"') in {0, 2}
        assert not set(line.split('"')[1]) & set("<>`\\") - set("<br/>") if '"' in line else True


def test_mermaid_ids_stay_apart():
    graph = Graph("g", nodes={"end": Node("end"), "end_": Node("end_"), "a-b": Node("a-b")})
    names = [line.strip().split("[")[0] for line in to_mermaid(graph).splitlines()[1:]]
    assert len(set(names)) == 3
    assert "end" not in names


def test_mermaid_keeps_groups_in_groups():
    graph = Graph(
        "g",
        nodes={"a": Node("a"), "b": Node("b")},
        subgraphs=(Subgraph("o", "Outer", "o", ("a", "b")), Subgraph("i", "Inner", "i", ("b",), parent=0)),
    )
    assert to_mermaid(graph) == snapshot("""\
flowchart TB
  subgraph group0["Outer"]
    a["a"]
    subgraph group1["Inner"]
      b["b"]
    end
  end
""")


SOURCE = SourceText("digraph g {\n  a -> deplyo\n}", "g.dot")
FINDINGS = [
    Diagnostic("edge_target_exists", Severity.ERROR, "node `deplyo` is not declared", edge=("a", "deplyo"),
               fix=Fix("write `deploy`"), span=SOURCE.span(19, 25)),
    Diagnostic("prompt_on_llm_nodes", Severity.WARNING, "node `a` has no prompt", node_id="a"),
    Diagnostic("note", Severity.INFO, "a <b> & c"),
]  # fmt: skip


def test_findings_as_text():
    assert findings_text(FINDINGS) == snapshot("""\
✕  2:8  node `deplyo` is not declared [edge_target_exists]  fix: write `deploy`
!       node `a` has no prompt [prompt_on_llm_nodes]
i       a <b> & c [note]\
""")


def test_findings_as_a_table():
    root = ET.fromstring(findings_html(FINDINGS))
    rows = [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]
    assert rows == snapshot(
        [
            ["", "place", "message", "fix"],
            ["✕", "2:8", "node `deplyo` is not declared", "write `deploy`"],
            ["!", "", "node `a` has no prompt", ""],
            ["i", "", "a <b> & c", ""],
        ]
    )


@given(st.text(max_size=40))
def test_a_message_is_shown_as_text(text):
    root = ET.fromstring(findings_html([Diagnostic("r", Severity.INFO, text, fix=Fix(text))]))
    assert {item.tag for item in root.iter()} == {"div", "style", "table", "thead", "tbody", "tr", "th", "td"}


def test_no_finding_no_table():
    assert findings_text([]) == findings_html([]) == ""


GRAPH = parse_dot(REVIEW)
DONE = {
    "check": NodeState(NodeStatus.SUCCESS, 1, 1, since=3.0),
    "implement": NodeState(NodeStatus.SUCCESS, 1, 1, since=2.0),
}
FAILED = {
    "check": NodeState(NodeStatus.SUCCESS, 1, 1, since=3.0),
    "implement": NodeState(NodeStatus.FAIL, 1, 1, "no", since=2.0),
}


@pytest.mark.parametrize(
    ("view", "line"),
    [
        (RunView(status=RunStatus.SUCCESS, stages=5, nodes=DONE), '✓ completed   5 stages   see run["check"]'),
        (
            RunView(status=RunStatus.FAIL, stages=1, reason="no model", nodes=FAILED),
            '✕ failed   1 stage   no model   see run["implement"]',
        ),
        (
            RunView(status=RunStatus.INTERRUPTED, stages=2, reason="paused", next_node="b"),
            "‖ paused   2 stages   before b   resume with run.resume()",
        ),
        (
            RunView(status=RunStatus.INTERRUPTED, stages=2, reason="cancelled", next_node="b"),
            "‖ stopped   2 stages   cancelled   at b   resume with run.resume()",
        ),
        (RunView(status=RunStatus.RUNNING), "● running   0 stages"),
        (RunView(), "– ready   0 stages"),
    ],
    ids=["success", "fail", "paused", "interrupted", "running", "ready"],
)
def test_the_summary_says_how_it_stands_and_what_comes_next(view, line):
    assert run_summary(view, GRAPH) == line


def test_times_and_costs_are_shown_only_on_request():
    view = RunView(status=RunStatus.SUCCESS, stages=5, duration=12.4, usage=Usage(1000, 240, 0.0031, 4))
    assert run_summary(view, GRAPH, has_times=True) == "✓ completed   5 stages   12.4 s   1,240 tokens   $0.0031"
    assert run_summary(view, GRAPH) == "✓ completed   5 stages"


def test_long_times_and_free_calls():
    assert duration_text(59.96) == "1 min 0 s"
    assert cost_text(0.0) == "$0.00"


def test_of_a_huge_graph_the_beginning_is_shown():
    graph = parse_dot("digraph huge {" + " ".join(f"n{number};" for number in range(700)) + "}")
    lines = graph_text(graph).splitlines()
    assert lines[0] == "pipeline huge: 700 nodes, 0 edges"
    assert lines[-2].split()[0] == "n499"
    assert lines[-1] == "… and 200 more nodes"


def test_a_tree_of_nodes_that_nothing_connects_names_each_once():
    graph = parse_dot("digraph loose {" + " ".join(f"n{number};" for number in range(50)) + "}")
    assert [line.split()[0] for line in text_tree(graph).splitlines()] == list(graph.nodes)
