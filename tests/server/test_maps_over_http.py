"""A map over HTTP: its rows are runs, its page is read part by part, two of them are compared."""

import shutil

import pytest

from attractor_nb import Outcome, Pipeline

SOURCE = """digraph Triage {
    inputs="ticket"
    start [shape=Mdiamond]
    classify [prompt="Which team is this for? $ticket"]
    done [shape=Msquare]
    start -> classify -> done
}"""


def triage(node, prompt, context):
    return Outcome.fail("no such ticket") if context["ticket"] == "42" else f"<b>ticket {context['ticket']}</b>"


def made_map(root, name="triage", count=3, backend=triage):
    rows = [{"ticket": str(40 + number)} for number in range(count)]
    Pipeline(SOURCE, backend=backend).map(
        rows, map_dir=root / name, outputs=["last_response"], durability="fast", wait=True, max_parallel=1
    )
    return name


def test_a_row_of_a_map_is_a_run_with_an_id_of_its_own(root, client):
    row = f"{made_map(root)}~row-00001"
    status = client.get(f"/pipelines/{row}").json()
    assert (status["id"], status["status"], status["kind"]) == (row, "completed", "run")
    assert status["links"]["self"] == f"pipelines/{row}"
    stage = client.get(f"/pipelines/{row}/stages/classify").json()
    assert stage["response"] == "<b>ticket 41</b>"
    assert client.get(f"/pipelines/{row}/drawing").status_code == 200
    assert client.events(row)[-1]["event"] == "end"


@pytest.mark.parametrize(
    "row", ["triage~row-00009", "triage~row-", "triage~..", "triage~row-00000~row-00000", "~row-00000"]
)
def test_a_row_that_is_not_there_is_no_run(root, client, row):
    made_map(root)
    assert client.get(f"/pipelines/{row}").status_code == 404


def test_a_row_behind_a_link_is_no_run(root, client, tmp_path):
    made_map(root)
    elsewhere = tmp_path / "elsewhere"
    shutil.move(root / "triage/row-00001", elsewhere)
    (root / "triage/row-00001").symlink_to(elsewhere)
    assert client.get("/pipelines/triage~row-00001").status_code == 404


def test_a_row_is_forked_as_a_run_and_resumed_with_its_map(root, client):
    made_map(root)
    forked = client.post("/pipelines/triage~row-00001/fork", {"node": "classify", "backend": "simulated"})
    assert forked.status_code == 201, forked.text
    assert client.ended(forked.json()["id"])["status"] == "completed"
    refused = client.post("/pipelines/triage~row-00002/resume")
    assert refused.status_code == 409
    assert "row of a map" in refused.json()["detail"]
    assert not client.get("/pipelines/triage~row-00002").json()["is_resumable"]
