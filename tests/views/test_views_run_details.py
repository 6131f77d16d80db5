"""The details of a run: a text where text is shown, tables where HTML is."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest
from msgspec.structs import replace

from attractor_nb import FunctionBackend, Outcome, Pipeline, Usage
from attractor_nb.model.calls.call_content import Response

TEXT = """digraph g { start [shape=Mdiamond] done [shape=Msquare]
  plan [label="Plan <it>", prompt="x", max_retries=1, retry_policy="patient"] write [prompt="y"]
  start -> plan -> write -> done }"""
HOSTILE = "<img src=x onerror=hit()>"


@pytest.fixture
def run(tmp_path):
    failures = [HOSTILE]

    def answer(node, prompt, context):
        if node.id == "plan" and failures:
            return replace(Outcome.retry(failures.pop()), usage=Usage(3))
        return Response("ok", usage=Usage(400, 120, 0.004, 1))

    source = TEXT.replace(', retry_policy="patient"', "")
    made = Pipeline(source, backend=FunctionBackend(answer)).run(logs_root=tmp_path / "run", is_shown=False)
    made.result(30)
    return made


def tables_of(html):
    """The cells of each table, by its label."""
    root = ET.fromstring(f"<div>{html}</div>")
    return {
        table.get("aria-label"): [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
        for table in root.iter("table")
    }


def test_details_are_a_text_with_facts_and_a_line_for_each_node(run):
    details = run.details()
    assert isinstance(details, str)
    assert repr(details) == details, "a shell shows it without quotation marks"
    lines = details.splitlines()
    assert lines[0] == f"run {run.id}"
    assert "status completed" in lines
    assert any(line.startswith("used 1,043 tokens") for line in lines)
    assert any(line.startswith("✓ success") and "plan" in line for line in lines)


def test_a_notebook_shows_them_as_tables(run):
    bundle = run.details()._repr_mimebundle_()
    assert bundle["text/plain"] == run.details()
    tables = tables_of(bundle["text/html"])
    facts, nodes, attempts = tables.values()
    assert dict(facts)["run"] == run.id
    assert dict(facts)["directory"] == str(run.logs_root)
    assert nodes[0] == ["state", "node", "type", "label", "used", "leads to"]
    assert [row[1] for row in nodes[1:]] == ["start", "done", "plan", "write"]
    assert nodes[3][1:5] == ["plan", "codergen", "Plan <it>", "523 tokens, ≥ $0.004 (1 call unpriced)"]
    assert nodes[3][0].startswith("✓ success")
    assert [row[:4] for row in attempts[1:]] == [["plan", "1", "1", "retry"], ["plan", "1", "2", "success"]]


def test_a_huge_graph_shows_its_beginning():
    many = " ".join(f"n{number} [shape=diamond]" for number in range(600))
    way = " -> ".join(["start", *(f"n{number}" for number in range(600)), "done"])
    source = f"digraph g {{ start [shape=Mdiamond] done [shape=Msquare] {many} {way} }}"
    run = Pipeline(source).run(durability="none", is_shown=False)
    run.result(60)
    html = run.details()._repr_mimebundle_()["text/html"]
    assert len(tables_of(html)["States of the nodes"]) == 501
    assert "… and 102 more nodes" in html
