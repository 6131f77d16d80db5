"""Every example is read, linted, drawn, accepted by Graphviz's own dot, and run with the simulated backend."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from attractor_nb import Pipeline
from tests.examples.example_table import TABLE

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
every_example = pytest.mark.parametrize("example", TABLE, ids=lambda example: example.name)


def load(example, **options):
    return Pipeline(EXAMPLES / f"{example.name}.dot", **options)


def test_every_file_has_a_row():
    assert {example.name for example in TABLE} == {path.stem for path in EXAMPLES.glob("*.dot")}


def test_every_file_is_in_the_table_of_contents():
    contents = (EXAMPLES / "README.md").read_text()
    assert [example.name for example in TABLE if f"]({example.name}.dot)" not in contents] == []


@every_example
def test_an_example_has_exactly_the_expected_findings(example):
    found = [(finding.rule, finding.node_id or " -> ".join(finding.edge or ())) for finding in load(example).lint()]
    assert sorted(found) == sorted(example.findings)


@every_example
def test_an_example_is_drawn_with_all_its_nodes(example):
    pipeline = load(example)
    drawing = ET.fromstring(pipeline.to_svg())
    children = {element.get("data-child"): element for element in drawing.iter() if element.get("data-child")}
    below = {id(element) for child in children.values() for element in child.iter()}
    assert set(nodes_in(element for element in drawing.iter() if id(element) not in below)) == set(pipeline.graph.nodes)
    assert {name: set(nodes_in(child.iter())) for name, child in children.items()} == {
        name: set(child.nodes) for name, child in pipeline.graph.children.items()
    }


def nodes_in(elements):
    return [element.get("data-node") for element in elements if element.get("data-node")]


@every_example
@pytest.mark.parametrize("written_by", ["the author", "our writer"])
def test_graphviz_accepts_an_example(example, written_by):
    path = EXAMPLES / f"{example.name}.dot"
    source = path.read_text() if written_by == "the author" else load(example).to_dot()
    done = subprocess.run(["dot", "-Tcanon"], input=source, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@every_example
def test_an_example_runs_simulated_with_every_gate_approved(example, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "test_here.py").write_text("def test_that_passes(): pass\n")  # for the one that runs pytest
    pipeline = load(example, backend="simulated", interviewer="auto")
    result = pipeline.run(wait=True, logs_root=tmp_path / "run", trust=True, params=example.params)
    assert (result.status, result.reason) == ("success", "")
    assert " ".join(result.completed_nodes) == example.path


@every_example
def test_an_example_says_where_it_comes_from(example):
    assert (EXAMPLES / f"{example.name}.dot").read_text().startswith("// ")


@pytest.mark.campaign
@pytest.mark.real_llm
@pytest.mark.timeout(600)
def test_the_list_of_files_is_reviewed_by_the_model_on_this_machine(tmp_path):
    (example,) = (example for example in TABLE if example.name == "review_files")
    result = load(example, backend="local").run(
        wait=True, logs_root=tmp_path / "run", trust=True, params=example.params
    )
    assert (result.status, result.reason) == ("success", "")
    reviews = result.context["review.outputs"]
    assert len(reviews) == 2
    assert all(review.strip() for review in reviews)
    assert result.context["sum_up.response"].strip()


@pytest.mark.campaign
@pytest.mark.real_llm
@pytest.mark.timeout(600)
def test_the_model_on_this_machine_routes_a_ticket_by_the_fields_of_its_answer(tmp_path):
    (example,) = (example for example in TABLE if example.name == "route_ticket")
    result = load(example, backend="local").run(wait=True, logs_root=tmp_path / "run", params=example.params)
    assert (result.status, result.reason) == ("success", "")
    verdict = result.context["sort.verdict"]
    team = "call" if verdict["urgent"] else verdict["team"]
    assert result.completed_nodes == ("start", "sort", team, "done")
    assert result.context[f"{team}.response"].strip()
