"""A map over HTTP: its rows are runs, its page is read part by part, two of them are compared."""

import json
import shutil

import pytest
from pydantic import BaseModel

from attractor_nb import Outcome, Pipeline, gates
from attractor_nb.server.answers import run_answers
from attractor_nb.storage import run_index

SOURCE = """digraph Triage {
    inputs="ticket"
    start [shape=Mdiamond]
    classify [prompt="Which team is this for? $ticket"]
    done [shape=Msquare]
    start -> classify -> done
}"""


def triage(node, prompt, context):
    return Outcome.fail("no such ticket") if context["ticket"] == "42" else f"<b>ticket {context['ticket']}</b>"


def made_map(root, name="triage", count=3, backend=triage, output="last_response"):
    rows = [{"ticket": str(40 + number)} for number in range(count)]
    Pipeline(SOURCE, backend=backend).map(
        rows, map_dir=root / name, outputs=[output], durability="fast", wait=True, max_parallel=1
    )
    return name


def test_a_row_of_a_map_is_a_run_with_an_id_of_its_own(root, client):
    row = f"{made_map(root)}~row-00001"
    status = client.get(f"/pipelines/{row}").json()
    assert (status["id"], status["status"], status["kind"]) == (row, "completed", "run")
    assert status["links"]["self"] == f"pipelines/{row}"
    assert status["map_id"] == "triage"
    forked = client.post(f"/pipelines/{row}/fork", {"node": "classify", "backend": "simulated"}).json()["id"]
    assert client.ended(forked)["map_id"] == ""
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


def gated_map(root, source, count):
    pipeline = Pipeline(source)
    pipeline.map([{}] * count, map_dir=root / "gated", interviewer="pause", durability="fast", wait=True)
    return pipeline


def test_the_questions_of_paused_rows_are_listed_with_those_of_runs_and_answered_for_the_resume(root, client, sources):
    pipeline = gated_map(root, sources.gate, 2)
    listed = client.get("/questions").json()
    assert [one["pipeline"] for one in listed["questions"]] == ["gated~row-00000", "gated~row-00001"]
    assert client.get("/rows?with_questions=true").json()["questions"] == listed["questions"]
    (asked,) = client.get("/pipelines/gated~row-00000/questions").json()["questions"]
    assert (asked, asked["is_answerable"], asked["how"]) == (listed["questions"][0], True, "")
    place = f"/pipelines/gated~row-00000/questions/{asked['id']}/answer"
    assert client.post(place, {"choice": "nothing like it"}).status_code == 422
    taken = client.post(place, {"choice": "A", "answered_by": "Ada"})
    assert (taken.status_code, taken.json()["status"]) == (200, "recorded")
    assert client.post(place, {"choice": "A"}).status_code == 409, "the first answer counts"
    assert [one["pipeline"] for one in client.get("/questions").json()["questions"]] == ["gated~row-00001"]
    result = pipeline.resume_map(root / "gated", interviewer="pause").result(60)
    assert [row.status for row in result] == ["success", "interrupted"]


def test_the_inbox_of_python_has_the_questions_of_paused_rows_and_answers_one(root, sources):
    pipeline = gated_map(root, sources.gate, 2)
    inbox = gates(root)
    names = [asked.pipeline for asked in inbox]
    assert [name.rpartition(" row ")[2] for name in names] == ["0", "1"]
    inbox.answer(f"{names[1]}/{inbox[1].gate}", "A")
    assert [asked.pipeline for asked in gates(root)] == names[:1]
    result = pipeline.resume_map(root / "gated", interviewer="pause").result(60)
    assert [row.status for row in result] == ["interrupted", "success"]


def test_of_very_many_questions_of_rows_an_answer_has_a_part_and_the_number_of_the_others(
    root, client, sources, monkeypatch
):
    monkeypatch.setattr(run_index, "MOST_ROWS", 3)
    monkeypatch.setattr(run_answers, "MOST_QUESTIONS", 2)
    gated_map(root, sources.gate, 5)
    listed = client.get("/questions").json()
    assert (len(listed["questions"]), listed["more_questions"]) == (2, 3)
    assert client.get("/rows?with_questions=true").json()["more_questions"] == 3
    inbox = gates(root)
    assert (len(inbox), inbox.notes) == (3, ("gated: 2 more rows wait; answer these first",))


FORM = """digraph Form {
    start [shape=Mdiamond]
    gate [shape=hexagon, label="Fill it in?", human.form=Note]
    done [shape=Msquare]
    start -> gate -> done [label="Go"]
}"""


def test_the_form_of_a_paused_row_names_the_way_to_resume_its_map(root, client):
    class Note(BaseModel):
        text: str

    pipeline = Pipeline(FORM, schemas={"Note": Note})
    pipeline.map([{}], map_dir=root / "gated", interviewer="pause", durability="fast", wait=True)
    (asked,) = client.get("/questions").json()["questions"]
    way = f"attractor-nb map --resume {root / 'gated'}"
    assert (asked["is_answerable"], asked["how"]) == (False, f"{way} asks it again")
    refused = client.post("/pipelines/gated~row-00000/resume")
    assert refused.json()["hint"] == f"resume the map: {way}"


# -- the page of a map ---------------------------------------------------------------------------------------


def test_a_map_shows_its_counts_and_its_rows_failures_first(root, client):
    found = client.get(f"/maps/{made_map(root)}").json()
    assert (found["status"], found["counts"]["success"], found["counts"]["fail"]) == ("fail", 2, 1)
    assert not found["is_live"]
    assert [row["row"] for row in found["rows"]] == [2, 0, 1]
    failed, first, _ = found["rows"]
    assert (failed["id"], failed["reason"], failed["stage"]) == ("triage~row-00002", "no such ticket", "classify")
    assert (first["inputs"], first["outputs"]) == ({"ticket": "40"}, {"last_response": "<b>ticket 40</b>"})
    assert client.get(f"/pipelines/{failed['id']}").json()["status"] == "failed"


def test_the_page_of_a_map_has_the_parts_of_the_exported_page_with_links_to_its_rows(root, client):
    found = client.get(f"/maps/{made_map(root)}", params={"with_page": "true", "with_table": "true"}).json()
    page, table = found["page"], found["table"]
    assert [column[0] for column in table["columns"]][:5] == ["row", "status", "reason", "ticket", "last_response"]
    first, second, _ = table["rows"]
    assert first[2:6] == ["triage~row-00002", "", ["2", 2, "", []], "✕ failed"]
    assert second[8] == "<b>ticket 40</b>"
    assert page["drawing"].startswith("<svg")
    assert "am-bar" in page["summary"]
    assert not any("attractor-nb export" in note for note in page["notes"])
    assert page["ways"] == ["stage classify"]
    assert table["choices"] == {"failed": 1, "completed": 2}
    assert (found["kind"], found["headline"]) == ("map", "")


def test_rows_are_sorted_by_a_column_and_chosen_by_a_stage(root, client):
    made_map(root, count=4)

    def rows(**query):
        return [row["row"] for row in client.get("/maps/triage", params=query).json()["rows"]]

    assert rows(sort=0, descending="true") == [3, 2, 1, 0]
    assert rows(sort=3) == [0, 1, 2, 3]
    assert rows(way="stage classify") == [2]
    assert rows(way="stage nowhere") == []
    assert rows(status="failed") == rows(status="fail") == [2]
    assert rows(status="completed") == rows(status="success") == [0, 1, 3]
    assert client.get("/maps/triage", params={"sort": -2}).status_code == 422


def test_a_map_that_changes_is_read_again(root, client):
    made_map(root, count=2)
    assert client.get("/maps/triage").json()["total"] == 2
    shutil.rmtree(root / "triage")
    made_map(root, count=3)
    assert client.get("/maps/triage").json()["total"] == 3


def test_rows_are_found_by_words_and_status_and_come_part_by_part(root, client):
    made_map(root, count=5)

    def rows(**query):
        found = client.get("/maps/triage", params=query).json()
        return found["found"], [row["row"] for row in found["rows"]]

    assert rows(words="TICKET 44") == (1, [4])
    assert rows(status="fail") == (1, [2])
    assert rows(limit=2, offset=1) == (5, [0, 1])
    assert client.get("/maps/triage", params={"limit": 2_000}).status_code == 422
    assert client.get("/maps/triage", params={"status": "lost"}).status_code == 422


def test_long_values_are_cut_and_the_row_says_so(root, client):
    long = Outcome.success("long", context_updates={"page.text": "x" * 5_000})
    made_map(root, count=1, backend=lambda prompt: long, output="page.text")
    (row,) = client.get("/maps/triage").json()["rows"]
    assert row["is_cut"]
    assert row["outputs"]["page.text"] == "x" * 4_000


def test_a_map_that_is_not_there_is_not_found(root, client, sources):
    for place in ("/maps/nobody", "/maps/..%2Fx", f"/maps/{client.submit(sources.plain)}"):
        assert client.get(place).status_code == 404, place


def test_a_damaged_map_says_what_is_damaged(root, client):
    made_map(root)
    for file in (root / "triage").glob("map*.json*"):
        file.write_text("{")
    refused = client.get("/maps/triage")
    assert refused.status_code == 409
    assert "map.json" in refused.json()["detail"]
    assert client.get("/rows").json()["rows"][0]["is_readable"] is False


def test_a_map_with_a_damaged_row_is_still_shown(root, client):
    made_map(root)
    (root / "triage/row-00000/events.jsonl").write_bytes(b"not a log\n" * 3)
    found = client.get("/maps/triage", params={"with_page": "true"})
    assert found.status_code == 200, found.text
    assert {row["row"] for row in found.json()["rows"]} == {0, 1, 2}


def test_the_list_of_runs_opens_a_map(root, client):
    made_map(root)
    (row,) = client.get("/rows").json()["rows"]
    assert (row["kind"], row["is_readable"]) == ("map", True)


# -- two maps ------------------------------------------------------------------------------------------------


def test_two_maps_are_compared_as_at_the_command_line(root, client):
    made_map(root)
    made_map(root, "better", backend=lambda prompt: "billing")
    found = client.get("/maps/triage/comparison", params={"other": "better", "limit": 2, "with_page": "true"}).json()
    assert (found["id"], found["other"], found["found"], found["same_rows"]) == ("triage", "better", 3, 0)
    assert found["transitions"] == [{"a": "fail", "b": "success", "rows": 1}]
    assert [row["a"]["id"] for row in found["rows"]] == ["triage~row-00002", "triage~row-00000"]
    assert found["rows"][0]["differs"] == ["outcome"]
    assert found["rows"][0]["b"]["outputs"] == {"last_response": "billing"}
    assert "am-sides" in found["page"]["summary"]
    assert (len(found["table"]["rows"]), found["table"]["total"]) == (2, 3)
    assert "✕ failed: no such ticket" in json.dumps(found["table"]["rows"], ensure_ascii=False)
    assert found["headlines"][0].startswith("A ")


@pytest.mark.parametrize(("query", "status"), [({}, 422), ({"other": "nobody"}, 404), ({"other": "../x"}, 404)])
def test_a_map_is_compared_with_a_map_that_there_is(root, client, query, status):
    assert client.get(f"/maps/{made_map(root, count=1)}/comparison", params=query).status_code == status


def test_a_map_and_a_run_are_not_compared(root, client, sources):
    made_map(root, count=1)
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    assert client.get("/maps/triage/comparison", params={"other": run_id}).status_code == 404
    assert client.get(f"/pipelines/{run_id}/comparison", params={"other": "triage"}).status_code == 404
