"""The endpoints of spec 9.5 and those beside them, from a posted source to all that can be asked of its run."""

import json

import pytest

from attractor_nb import Pipeline, Run, runs
from attractor_nb.cli.entry import run_command_line
from attractor_nb.model.diagnostic import MOST_LISTED
from attractor_nb.server.answers import run_answers
from tests.server.conftest import TOKEN


def test_a_posted_source_runs_to_its_end(client, sources):
    run_id = client.submit(sources.plain, params={"ticket": "42"})
    status = client.ended(run_id)
    assert (status["status"], status["outcome"], status["name"]) == ("completed", "success", "demo")
    assert status["progress"] == {"stages": 3, "nodes": 3, "visited": 3}
    assert status["states"]["nodes"]["plan"]["status"] == "success"
    assert client.get(f"/pipelines/{run_id}/context").json()["context"]["ticket"] == "42"


def test_a_run_has_the_name_that_it_was_posted_with_wherever_it_is_shown(client, root, sources, capsys):
    name = "Tickets of Monday"
    run_id = client.submit(sources.plain, name=name)
    assert client.ended(run_id)["name"] == name
    assert [line["name"] for line in client.get("/pipelines").json()["pipelines"]] == [name]
    assert [row["pipeline"] for row in client.get("/rows").json()["rows"]] == [name]
    assert client.get("/rows", params={"words": "monday"}).json()["found"] == 1
    assert client.get(f"/pipelines/{run_id}/drawing").json()["caption"] == name
    assert next(one["data"]["name"] for one in client.events(run_id)) == name
    assert [row.pipeline_name for row in runs(root)] == [name]
    assert Run.load(root / run_id).pipeline.title == name
    fork = client.post(f"/pipelines/{run_id}/fork", {"node": "plan"}).json()["id"]
    assert client.ended(fork)["name"] == name
    for place in ([str(root / run_id)], [run_id, "--server", client.base, "--token", TOKEN]):
        assert run_command_line(["watch", "--once", *place]) == 0
        assert name in capsys.readouterr().out


def test_a_run_without_a_name_has_that_of_its_graph_and_its_label_above_it(client, sources):
    run_id = client.submit(sources.plain.replace("{", '{ graph [label="A demonstration"]\n', 1))
    assert client.ended(run_id)["name"] == "demo"
    assert client.get(f"/pipelines/{run_id}/drawing").json()["caption"] == "A demonstration"


def test_the_answer_says_where_the_run_is_relative_to_the_request(client, sources):
    reply = client.post("/pipelines", {"source": sources.plain})
    there = reply.request.url.join(reply.headers["location"])
    assert client.get(str(there)).json()["id"] == reply.json()["id"]


def test_runs_are_listed_newest_first_and_in_parts(client, sources):
    ids = [client.submit(sources.plain) for _ in range(3)]
    for run_id in ids:
        client.ended(run_id)
    listed = client.get("/pipelines", params={"limit": 2, "offset": 1}).json()
    whole = [line["id"] for line in client.get("/pipelines").json()["pipelines"]]
    assert sorted(whole) == sorted(ids)
    assert (listed["total"], [line["id"] for line in listed["pipelines"]]) == (3, whole[1:])


def test_a_run_that_somebody_else_left_under_the_root_is_served_too(client, root, sources):
    Pipeline(sources.plain).run(wait=True, logs_root=root / "by-hand", is_shown=False)
    assert client.get("/pipelines/by-hand").json()["status"] == "completed"
    assert next(event["data"]["type"] for event in client.events("by-hand")[:-1]) == "PipelineStarted"


@pytest.mark.parametrize(
    ("form", "media", "begins"),
    [
        ("svg", "image/svg+xml", "<svg"),
        ("dot", "text/vnd.graphviz", "digraph demo"),
        ("mermaid", "text/vnd.mermaid", "flowchart"),
        ("json", "application/json", '{"name":"demo"'),
    ],
)
def test_the_graph_comes_in_four_forms(client, sources, form, media, begins):
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    reply = client.get(f"/pipelines/{run_id}/graph", params={"format": form})
    assert reply.headers["content-type"].partition(";")[0] == media
    assert reply.text.lstrip().startswith(begins)


def test_the_graph_is_a_picture_when_nobody_says_otherwise(client, sources):
    reply = client.get(f"/pipelines/{client.submit(sources.plain)}/graph")
    assert reply.headers["content-type"].startswith("image/svg+xml")
    assert "default-src 'none'" in reply.headers["content-security-policy"]


def test_checkpoint_and_context_are_those_of_the_run(client, sources):
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    checkpoint = client.get(f"/pipelines/{run_id}/checkpoint").json()["checkpoint"]
    assert checkpoint["completed_nodes"] == ["start", "plan", "done"]
    context = client.get(f"/pipelines/{run_id}/context").json()
    assert context["context"]["last_stage"] == "plan"
    assert context["sequence"] > 0


def test_a_run_that_has_written_no_checkpoint_says_so(client, root, sources):
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    for file in (root / run_id).glob("checkpoint*.json"):
        file.unlink()
    reply = client.get(f"/pipelines/{run_id}/checkpoint")
    problem = reply.json()
    assert (reply.status_code, problem["type"]) == (404, "urn:attractor-nb:problem:no-checkpoint")
    assert problem["detail"] == f"pipeline {run_id} has not written one"
    assert client.get(f"/pipelines/{run_id}/context").status_code == 200


def test_a_stage_shows_its_prompt_its_files_and_no_path_of_this_machine(client, root, sources):
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    stage = client.get(f"/pipelines/{run_id}/stages/plan").json()
    assert stage["prompt"].startswith("Plan it")
    assert "prompt.md" in {file["name"] for file in stage["files"]}
    file = client.get(f"/pipelines/{run_id}/stages/plan/files/prompt.md").json()
    assert file["text"].startswith("Plan it")
    assert not file["is_cut"]
    inspected = client.get(f"/pipelines/{run_id}/inspection", params={"node": "plan"}).json()
    assert inspected["kind"] == "stage"
    assert str(root) not in json.dumps([stage, inspected])


def test_an_artifact_is_listed_and_sent(client, sources):
    run_id = client.submit(sources.plain, params={"big": "x" * 200_000})
    client.ended(run_id)
    [line] = client.get(f"/pipelines/{run_id}/artifacts").json()["artifacts"]
    value = client.get(f"/pipelines/{run_id}/artifacts/{line['id']}").json()["value"]
    assert value == "x" * 200_000


def test_the_session_of_a_fan_out_is_served(client, sources):
    source = sources.of(
        "fan [shape=component]\n a [prompt=A]\n b [prompt=B]\n join [shape=tripleoctagon]\n"
        " start -> fan\n fan -> a -> join\n fan -> b -> join\n join -> done"
    )
    run_id = client.submit(source, session=True)
    client.ended(run_id)
    session = client.get(f"/pipelines/{run_id}/session").json()
    assert len(session["agents"]) == 2
    other = client.submit(sources.plain)
    assert client.get(f"/pipelines/{other}/session").status_code == 404


def test_a_run_is_cancelled_and_goes_on_later(client, sources):
    run_id = client.submit(sources.gate)
    client.wait_for(run_id, "InterviewStarted")
    assert client.post(f"/pipelines/{run_id}/cancel").status_code == 202
    assert client.ended(run_id)["status"] == "interrupted"
    again = client.post(f"/pipelines/{run_id}/cancel")
    assert (again.status_code, again.json()["type"]) == (409, "urn:attractor-nb:problem:run")
    assert client.post(f"/pipelines/{run_id}/resume").status_code == 202
    with client.stream(run_id) as found:
        kinds = []
        for one in found:
            kinds.append(one["data"].get("type"))
            if kinds.count("InterviewStarted") == 2:
                break
    assert "PipelineResumed" in kinds
    assert client.post(f"/pipelines/{run_id}/questions/review/answer", {"choice": "A"}).status_code == 200
    assert client.ended(run_id)["outcome"] == "success"


def test_a_run_is_forked_before_a_visit(client, sources):
    run_id = client.submit(sources.plain)
    assert client.ended(run_id)["is_simulated"] is True
    assert client.get("/pipelines").json()["pipelines"][0]["is_simulated"] is True
    assert client.get("/pipelines").json()["pipelines"][0]["mark"] == "simulated"  # ruling 48
    reply = client.post(f"/pipelines/{run_id}/fork", {"node": "plan", "context": {"hint": "shorter"}})
    assert reply.status_code == 201
    fork = reply.json()["id"]
    assert fork != run_id
    status = client.ended(fork)
    assert status["outcome"] == "success"
    assert status["lineage"] == f"fork of {run_id}"
    assert client.get(f"/pipelines/{fork}/context").json()["context"]["hint"] == "shorter"


def test_a_run_goes_on_from_before_a_visit(client, sources):
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    reply = client.post(f"/pipelines/{run_id}/resume", {"rewind_to": "plan"})
    assert reply.status_code == 202
    client.ended(run_id)
    kinds = [one["data"].get("type") for one in client.events(run_id)]
    assert "PipelineRewound" in kinds
    assert kinds.count("PipelineCompleted") == 2


def test_validate_says_what_lint_says_and_runs_nothing(client, root, sources):
    good = client.post("/validate", {"source": sources.tool}).json()
    assert good["is_valid"]
    assert len(good["executes"]["hash"]) == 64
    assert good["executes"]["commands"] == [
        {"node": "touch", "attribute": "tool_command", "text": "touch made", "shown": "touch made"}
    ]
    torn = client.post("/validate", {"source": "digraph { a [label= }"}).json()
    assert not torn["is_valid"]
    assert torn["diagnostics"][0]["rule"] == "syntax"
    assert torn["diagnostics"][0]["line"] == 1
    several = client.post("/validate", {"source": "digraph {\na -- b\nc [goal_gate=yes]\nd [label=]\n}"}).json()
    assert [(found["rule"], found["line"]) for found in several["diagnostics"]] == [
        ("syntax", 2), ("bad_value", 3), ("syntax", 4),
    ]  # fmt: skip
    assert several["more_diagnostics"] == 0
    lone = client.post("/validate", {"source": "digraph { a -> b }"}).json()
    assert not lone["is_valid"]
    assert "start_node" in {found["rule"] for found in lone["diagnostics"]}
    assert list(root.iterdir()) == []


DECLARING = """digraph Triage { inputs="ticket, tone=plain" start [shape=Mdiamond] done [shape=Msquare]
    start -> done }"""


def test_ruling_34_validate_tells_what_a_pipeline_asks_for_and_a_run_without_it_is_refused(client, root, sources):
    told = client.post("/validate", {"source": DECLARING}).json()["inputs"]
    text = {"type": "string", "description": ""}
    assert told == [
        {"name": "ticket", "is_required": True, **text},
        {"name": "tone", "is_required": False, "default": "plain", **text},
    ]
    assert client.post("/validate", {"source": sources.plain}).json()["inputs"] == []
    torn = client.post("/validate", {"source": DECLARING.replace("ticket,", "ticket")}).json()
    assert (torn["inputs"], torn["is_valid"]) == ([], False)
    refused = client.post("/pipelines", {"source": DECLARING, "params": {"tikcet": "41"}})
    assert refused.status_code == 422
    assert refused.json()["detail"] == 'inputs of Triage: "tikcet" is no input; did you mean "ticket"?'
    assert [path.name for path in root.iterdir() if not path.name.startswith(".")] == []
    run_id = client.post("/pipelines", {"source": DECLARING, "params": {"ticket": "41"}}).json()["id"]
    client.ended(run_id)
    assert client.get(f"/pipelines/{run_id}/context").json()["context"]["tone"] == "plain"


def test_validate_says_where_a_finding_begins_and_ends_and_draws_what_it_can_read(client, sources):
    torn = sources.plain.replace("plan -> done", "plan -> dnoe")
    found = client.post("/validate", {"source": torn, "with_drawing": True}).json()
    typo = next(one for one in found["diagnostics"] if one["rule"] == "edge_target_exists")
    line = torn.splitlines()[typo["line"] - 1]
    assert typo["line"] == typo["end_line"]
    assert line[typo["column"] - 1 : typo["end_column"] - 1] == "dnoe"
    assert typo["excerpt"].splitlines()[1].endswith("^^^^")
    assert typo["can_fix"]
    assert 'data-node="plan"' in found["svg"]
    assert client.post("/validate", {"source": torn}).json()["svg"] == ""
    unread = client.post("/validate", {"source": "digraph {", "with_drawing": True}).json()
    assert (unread["svg"], unread["diagnostics"][0]["can_fix"]) == ("", False)


def test_of_very_many_findings_an_answer_has_the_gravest_and_the_number_of_the_others(client, sources):
    wrong = "".join(f"n{number} [promt=x, prompt=p] start -> n{number} -> done\n" for number in range(600))
    torn = sources.plain.replace("plan -> done", f"plan -> dnoe\n{wrong}")
    found = client.post("/validate", {"source": torn}).json()
    assert len(found["diagnostics"]) == MOST_LISTED
    assert found["more_diagnostics"] > 100
    typo = next(one for one in found["diagnostics"] if one["rule"] == "edge_target_exists")
    assert client.post("/validate", {"source": torn, "fix": typo["number"]}).json()["source"].count("dnoe") == 0
    refused = client.post("/pipelines", {"source": torn}).json()
    assert len(refused["diagnostics"]) == MOST_LISTED
    assert refused["more_diagnostics"] == found["more_diagnostics"]


def test_validate_answers_a_fix_with_the_new_text_and_what_lint_says_of_it(client, sources):
    torn = sources.plain.replace("plan -> done", "plan -> dnoe")
    before = client.post("/validate", {"source": torn}).json()
    number = next(n for n, one in enumerate(before["diagnostics"]) if one["rule"] == "edge_target_exists")
    after = client.post("/validate", {"source": torn, "fix": number}).json()
    assert after["source"] == sources.plain
    assert after["is_valid"]
    unfit = sources.plain.replace("plan [", "plan [max_retries=-1, ", 1)
    (found,) = client.post("/validate", {"source": unfit}).json()["diagnostics"]
    assert not found["can_fix"]
    for source, wrong in ((torn, number + 50), (unfit, 0)):
        refused = client.post("/validate", {"source": source, "fix": wrong})
        assert (refused.status_code, refused.json()["type"]) == (422, "urn:attractor-nb:problem:option")


def test_a_text_with_a_secret_does_not_come_back_mended(client, sources):
    key = "sk-" + "ant-api03-" + "Ab3" * 20
    torn = sources.plain.replace("Plan it", key).replace("plan -> done", "plan -> dnoe")
    found = client.post("/validate", {"source": torn}).json()["diagnostics"]
    number = next(n for n, one in enumerate(found) if one["rule"] == "edge_target_exists")
    refused = client.post("/validate", {"source": torn, "fix": number})
    assert (refused.status_code, key in refused.text) == (422, False)


def test_a_command_is_shown_with_every_character_spelled_out(client, sources):
    text = 'touch [shape=parallelogram, tool_command="echo \u202eabc"]\n start -> touch -> done'
    (command,) = client.post("/validate", {"source": sources.of(text)}).json()["executes"]["commands"]
    assert command["shown"] == "echo \\u202eabc"


@pytest.mark.parametrize(
    ("source", "kind"), [("digraph { a [label= }", "source"), ("digraph { a -> b }", "invalid-pipeline")]
)
def test_a_source_that_cannot_run_is_refused_and_leaves_nothing(client, root, source, kind):
    reply = client.post("/pipelines", {"source": source})
    assert reply.status_code == 422
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json()
    assert problem["type"] == f"urn:attractor-nb:problem:{kind}"
    assert problem["status"] == 422
    assert problem["title"]
    assert problem["detail"]
    assert list(root.iterdir()) == []


@pytest.mark.parametrize(
    "path",
    [
        "/pipelines/nobody",
        "/pipelines/nobody/events",
        "/pipelines/nobody/graph",
        "/pipelines/nobody/questions",
        "/pipelines/nobody/checkpoint",
        "/pipelines/nobody/context",
        "/pipelines/nobody/artifacts",
        "/pipelines/nobody/session",
        "/pipelines/%2e%2e%2f",
        "/pipelines/%2e%2e/graph",
        "/pipelines/.server/graph",
        "/status?id=nobody",
        "/elsewhere",
    ],
)
def test_what_is_not_there_is_a_problem(client, path):
    reply = client.get(path)
    assert reply.status_code == 404
    assert reply.json()["status"] == 404


def test_without_a_run_there_is_no_newest_one(client, sources):
    reply = client.get("/status")
    problem = reply.json()
    assert (reply.status_code, problem["type"]) == (404, "urn:attractor-nb:problem:no-such-pipeline")
    assert (problem["detail"], problem["hint"]) == ("There is no pipeline yet", "POST /pipelines starts one")
    run_id = client.submit(sources.plain)
    assert client.get("/status").json()["id"] == run_id


def test_a_name_that_a_query_has_twice_is_refused(client):
    reply = client.get("/pipelines?limit=1&limit=2")
    problem = reply.json()
    assert (reply.status_code, problem["type"]) == (422, "urn:attractor-nb:problem:query")
    assert problem["detail"] == "limit is given twice"


def test_a_map_has_a_line_and_no_drawing(client, root, sources):
    Pipeline(sources.plain).map([{"a": 1}], map_dir=root / "a-map", wait=True, is_shown=False)
    assert client.get("/pipelines").json()["pipelines"][0]["kind"] == "map"
    reply = client.get("/pipelines/a-map/drawing")
    problem = reply.json()
    assert (reply.status_code, problem["type"]) == (409, "urn:attractor-nb:problem:map")
    assert problem["detail"] == "a-map is a map; GET /maps/a-map shows it"


def test_a_stage_has_the_files_that_it_has(client, sources):
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    reply = client.get(f"/pipelines/{run_id}/stages/plan/files/none.md")
    problem = reply.json()
    assert (reply.status_code, problem["type"]) == (404, "urn:attractor-nb:problem:no-such-file")
    assert problem["detail"] == "stage plan has no file none.md"
    reply = client.get(f"/pipelines/{run_id}/stages/nobody")
    assert (reply.status_code, reply.json()["type"]) == (404, "urn:attractor-nb:problem:no-such-stage")


def test_an_artifact_that_is_not_there_or_too_large_is_said(client, sources, monkeypatch):
    run_id = client.submit(sources.plain, params={"big": "x" * 200_000})
    client.ended(run_id)
    reply = client.get(f"/pipelines/{run_id}/artifacts/nobody")
    problem = reply.json()
    assert (reply.status_code, problem["type"]) == (404, "urn:attractor-nb:problem:no-such-artifact")
    assert problem["detail"] == "there is no artifact nobody"
    [line] = client.get(f"/pipelines/{run_id}/artifacts").json()["artifacts"]
    monkeypatch.setattr(run_answers, "MAX_ARTIFACT_BYTES", line["bytes"] - 1)
    reply = client.get(f"/pipelines/{run_id}/artifacts/{line['id']}")
    problem = reply.json()
    assert (reply.status_code, problem["type"]) == (409, "urn:attractor-nb:problem:artifact-too-large")
    assert problem["detail"] == f"{line['id']} has {line['bytes']} bytes"
    assert problem["hint"] == f"read the file: artifacts/{line['id']}.json in the run directory"
    monkeypatch.setattr(run_answers, "MAX_ARTIFACT_BYTES", line["bytes"])
    assert client.get(f"/pipelines/{run_id}/artifacts/{line['id']}").status_code == 200


def test_a_link_under_the_root_leads_nowhere(client, root, tmp_path, sources):
    Pipeline(sources.plain).run(wait=True, logs_root=tmp_path / "outside", is_shown=False)
    (root / "planted").symlink_to(tmp_path / "outside")
    assert client.get("/pipelines/planted").status_code == 404
    assert client.get("/pipelines").json()["total"] == 0


@pytest.mark.parametrize("name", ["../../secret", "/etc/passwd", "..%2f..%2fsecret", "visits/../../x", "a%00b"])
def test_a_file_of_a_stage_is_in_its_directory(client, tmp_path, sources, name):
    (tmp_path / "runs" / "secret").write_text("told", "utf-8")
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    reply = client.get(f"/pipelines/{run_id}/stages/plan/files/{name}")
    assert reply.status_code == 404
    assert "told" not in reply.text


def test_more_runs_than_allowed_are_refused(serving, root, sources):
    with serving(root, max_runs=1) as client:
        run_id = client.submit(sources.gate)
        client.wait_for(run_id, "InterviewStarted")
        reply = client.post("/pipelines", {"source": sources.plain})
        assert (reply.status_code, reply.json()["type"]) == (429, "urn:attractor-nb:problem:too-many-runs")
        client.post(f"/pipelines/{run_id}/cancel")
        client.ended(run_id)
        client.submit(sources.plain)


def test_everything_is_also_below_a_prefix(serving, root, sources):
    with serving(root, prefix="/user/attractor") as client:
        run_id = client.submit(sources.plain)
        assert client.ended(run_id)["outcome"] == "success"
        assert client.post(f"/pipelines/{run_id}/events/ticket").status_code == 201


def test_validate_lists_the_nodes_with_their_places_and_edges(client, sources):
    assert client.post("/validate", {"source": sources.plain}).json()["outline"] == []
    outline = client.post("/validate", {"source": sources.plain, "with_outline": True}).json()["outline"]
    plan = next(each for each in outline if each["node"] == "plan")
    line = sources.plain.splitlines()[plan["line"] - 1]
    assert line[plan["column"] - 1 :].startswith("plan")
    assert plan["type"] == "codergen"
    assert [each["node"] for each in plan["incoming"]] == ["start"]
    assert [each["node"] for each in plan["outgoing"]] == ["done"]


def test_validate_renames_a_node_wherever_the_text_names_it(client, sources):
    asked = {"source": sources.plain, "rename": {"node": "plan", "to": "draft"}}
    after = client.post("/validate", asked).json()["source"]
    assert "plan ->" not in after
    assert "draft -> done" in after
    refused = client.post("/validate", {"source": sources.plain, "rename": {"node": "plan", "to": "done"}})
    assert refused.status_code == 422
    assert "done" in refused.json()["detail"]


def test_a_run_is_found_by_its_inputs_and_its_status_names_them(client, root):
    text = 'digraph { inputs="ticket" start [shape=Mdiamond] a [prompt="$ticket"] done [shape=Msquare] start -> a -> done }'
    for name in ("lost parcel", "refund"):
        run_id = client.submit(text, params={"ticket": name})
        client.ended(run_id)
    runs(root)[0].tag("good")
    assert client.get(f"/pipelines/{run_id}").json()["inputs"] == "ticket=refund"
    found = client.get("/rows", params={"words": "LOST ticket"}).json()
    assert [row["inputs"] for row in found["rows"]] == ["ticket=lost parcel"]
    by_inputs = client.get("/rows", params={"sort": "inputs", "descending": "true"}).json()["rows"]
    assert [row["inputs"] for row in by_inputs] == ["ticket=refund", "ticket=lost parcel"]
    assert client.get("/rows", params={"words": run_id}).json()["found"] == 1
    assert client.get("/rows", params={"words": "good"}).json()["found"] == 1
