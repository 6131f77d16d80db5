"""Every example is read, linted, drawn, accepted by Graphviz's own dot, and run with the simulated backend.

A finding that is expected stands in the table below; every other example has none at all.
"""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from attractor_nb import Attachment, Pipeline

INVOICE = Attachment(b"%PDF-1.7 an invoice", "march.pdf")
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@dataclass(frozen=True)
class Example:
    """The expectations for one file.

    Attributes:
        name: The file's stem.
        path: The stages that a simulated run completes, in order, every gate auto-approved.
        findings: Rule and node or edge of each diagnostic.
        params: The inputs that it cannot do without.
    """

    name: str
    path: str
    findings: tuple[tuple[str, str], ...] = ()
    params: dict[str, object] = field(default_factory=dict)


TABLE = [
    Example(
        "spec_2_10_subgraph",
        "start Plan Implement exit",
        (("prompt_on_llm_nodes", "Plan"), ("prompt_on_llm_nodes", "Implement")),
    ),
    Example("models_of_two_providers", "start plan write review done"),
    Example("spec_2_13_simple", "start run_tests report exit"),
    Example("release_notes", "start changes breaking upgrade highlights notes translate done"),
    Example("spec_2_13_branch", "start plan implement validate gate exit"),
    Example(
        "spec_2_13_human_gate",
        "start review_gate ship_it exit",
        (("implicit_node", "ship_it"), ("implicit_node", "fixes")),
    ),
    Example(
        "spec_8_6_stylesheet",
        "start plan implement critical_review exit",
        (
            ("prompt_on_llm_nodes", "plan"),
            ("prompt_on_llm_nodes", "implement"),
            ("prompt_on_llm_nodes", "critical_review"),
            ("unused_class", "plan"),
        ),
    ),
    Example("spec_11_13_smoke", "start plan implement review done", (("goal_gate_has_retry", "implement"),)),
    Example("verification_3_goal_gate", "start implement test done"),
    Example("verification_4_multi_path", "start check next_step done"),
    Example("demo", "start plan implement measure long_enough review done"),
    Example("code_review_loop", "start plan implement review is_accepted merge_gate summarize done"),
    Example("hand_over", "start answer review done"),
    Example("fix_loop", "start write test done"),
    Example(
        "ticket_to_release",
        "start research reviewers plan judge test approve done",
        params={"ticket": "0.1 + 0.2 is printed as 0.30000000000000004"},
    ),
    Example("research_fact_check", "start questions research draft check_claims polish done"),
    Example("data_pipeline", "start extract clean check report comment done"),
    Example("release_approval", "start draft_notes seal product_gate operations_gate verify announce finished"),
    Example("measure_texts", "start measure is_counted summarize done", params={"text": "One day."}),
    Example("answer_ticket", "start sort answer is_good done", params={"ticket": "It blinks.", "product": "LX-4"}),
    Example("read_invoice", "start read check done", params={"invoice": INVOICE}),
    Example("bug_triage", "start classify triage_gate ask_reporter done"),
    Example("spec_to_code", "start requirements completeness tests_first implement no_placeholders audit done"),
    Example("write_article", "start outline draft check done"),
    Example("supervised_article", "start editor publish done"),
    Example("article_and_summary", "start choose article summary done"),
    Example(
        "review_files",
        "start review sum_up done",
        params={"files": [{"name": "a.py", "text": "x = 1"}, {"name": "b.py", "text": "import os"}]},
    ),
    Example("route_ticket", "start sort support done", params={"ticket": "I was charged twice."}),
    Example("fan_out", "start readers best summary done"),
    Example("first_success", "start ways explain done", (("branch_condition", "ways"),)),
]
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
