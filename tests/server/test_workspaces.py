"""Ruling 41: whatever comes by a request works in a place of its own, never where the server was started."""

import json
from pathlib import Path

from attractor_nb import Pipeline
from attractor_nb.decisions.planning.executable_surface import executable_surface

WHERE = """digraph d { start [shape=Mdiamond] done [shape=Msquare]
one [shape=parallelogram, tool_command="pwd; touch one"] two [shape=parallelogram, tool_command="pwd; ls"]
start -> one -> two -> done }"""


def trust():
    return executable_surface(Pipeline(WHERE).graph).full_hash


def output(root, run_id, stage):
    return (root / run_id / stage / "stdout.txt").read_text().splitlines()


def test_ruling_41_a_posted_run_works_in_a_place_of_its_own(client, root):
    run_id = client.submit(WHERE, trust=trust())
    assert client.ended(run_id)["status"] == "completed"
    place = str(root / run_id / "workspace")
    assert output(root, run_id, "two") == [place, "one"]
    facts = json.loads((root / run_id / "manifest.json").read_text())
    assert (facts["workdir"], facts["isolation"]) == (place, "workspace")
    assert not Path("one").exists()


def test_ruling_41_a_graph_cannot_ask_the_server_out_of_it(client, root):
    source = WHERE.replace("{ start", '{ graph [isolation="none"] start')
    run_id = client.submit(source, trust=executable_surface(Pipeline(source).graph).full_hash)
    client.ended(run_id)
    assert output(root, run_id, "two")[0] == str(root / run_id / "workspace")


def test_ruling_41_a_fork_over_http_has_a_place_of_its_own(client, root):
    run_id = client.submit(WHERE, trust=trust())
    client.ended(run_id)
    forked = client.post(f"/pipelines/{run_id}/fork", {"node": "two", "trust": trust()}).json()["id"]
    assert client.ended(forked)["status"] == "completed"
    assert output(root, forked, "two") == [str(root / forked / "workspace"), "one"]


def test_ruling_41_a_run_begun_elsewhere_goes_on_in_a_place_of_its_own_and_says_so(client, root, tmp_path):
    Pipeline(WHERE).run(wait=True, logs_root=root / "by-hand", stop_after=2, is_shown=False)
    reply = client.post("/pipelines/by-hand/resume", {"trust": trust()})
    assert reply.status_code == 202, reply.text
    assert client.ended("by-hand")["status"] == "completed"
    assert output(root, "by-hand", "two") == [str(root / "by-hand" / "workspace")]
    told = [event["data"]["message"] for event in client.events("by-hand") if event["data"].get("type") == "RunWarning"]
    assert f"the run worked in {tmp_path} before, and is resumed in {root / 'by-hand' / 'workspace'}" in told
