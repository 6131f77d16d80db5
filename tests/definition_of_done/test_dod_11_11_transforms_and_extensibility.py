"""Section 11.11 of the specification, row by row; the rows of transforms once more in short."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from attractor_nb import Pipeline

_PLACE = Path(__file__).resolve().parents[1] / "server" / "conftest.py"
_SPEC = importlib.util.spec_from_file_location("attractor_tests_server_of_the_checklist", _PLACE)
served = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(served)


@pytest.fixture
def client(tmp_path):
    with served.running(tmp_path / "runs") as found:
        yield found


class Shout:
    """A transform as in the specification: a graph in, a changed copy out."""

    def __init__(self, word="!"):
        self.word = word

    def apply(self, graph):
        nodes = {
            name: node.with_attrs({"prompt": f"{node.prompt}{self.word}"}) if node.prompt else node
            for name, node in graph.nodes.items()
        }
        return replace(graph, nodes=nodes)


def test_11_11_a_transform_changes_the_graph_between_parsing_and_validation():
    class Break:
        def apply(self, graph):
            return replace(graph, edges=())

    pipeline = Pipeline(served.PLAIN)
    assert not pipeline.lint().errors
    pipeline.register_transform(Break())
    assert pipeline.parsed.edges
    assert pipeline.lint().errors


def test_11_11_goal_is_replaced_in_prompts():
    source = served.FRAME.format(body='graph [goal="rest"]\n plan [prompt="Plan $goal"]\n start -> plan -> done')
    assert Pipeline(source).graph.nodes["plan"].prompt == "Plan rest"


def test_11_11_custom_transforms_run_in_the_order_in_which_they_were_registered():
    pipeline = Pipeline(served.PLAIN)
    pipeline.register_transform(Shout("1"))
    pipeline.register_transform(Shout("2"))
    assert pipeline.graph.nodes["plan"].prompt == "Plan it12"


def test_11_11_post_run_starts_get_status_checks_post_answer_submits(client):
    started = client.post("/run", {"source": served.GATE})
    assert started.status_code == 201
    run_id = started.json()["id"]
    client.wait_for(run_id, "InterviewStarted")
    assert client.get("/status", params={"id": run_id}).json()["status"] == "waiting"
    assert client.get("/status").json()["id"] == run_id
    assert client.post("/answer", {"choice": "A"}).status_code == 200
    client.events(run_id)
    assert client.get("/status", params={"id": run_id}).json()["outcome"] == "success"


def test_11_11_an_answer_that_fits_several_questions_is_not_guessed(client):
    runs = [client.post("/run", {"source": served.GATE}).json()["id"] for _ in range(2)]
    for run_id in runs:
        client.wait_for(run_id, "InterviewStarted")
    refused = client.post("/answer", {"choice": "A"})
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:attractor-nb:problem:many-questions")
    named = {"pipeline": runs[0], "question": "review", "choice": "A"}
    assert client.post("/answer", named).status_code == 200
    again = client.post("/answer", named)
    assert again.status_code == 409
    assert client.post("/answer", {"choice": "A"}).json()["pipeline"] == runs[1]
    assert client.post("/answer", {"choice": "A"}).status_code == 404
