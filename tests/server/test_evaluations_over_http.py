"""An evaluation over HTTP: the page has its verdict, its scores and its rows, as its exported page has."""

import json

import pytest

from attractor_nb import Outcome, Pipeline, redact_also
from attractor_nb.errors import OptionError
from attractor_nb.evaluation.scorers import Judged, latency
from attractor_nb.evaluation.stored_evaluation import read_evaluation
from attractor_nb.storage.map_directory import continue_call
from attractor_nb.storage.score_log import SCORES_NAME

SOURCE = """digraph Triage {
    inputs="ticket"
    start [shape=Mdiamond]
    classify [prompt="Which team is this for? $ticket"]
    done [shape=Msquare]
    start -> classify -> done
}"""
ROWS = [
    {"id": "fine", "ticket": "I cannot pay", "expected": "billing"},
    {"id": "wrong", "ticket": "<b>refund</b>", "expected": "billing"},
    {"id": "broken", "ticket": "broken", "expected": "billing"},
    {"id": "odd", "ticket": "odd pay", "expected": "billing"},
]


def answer(node, prompt, context):
    ticket = context["ticket"]
    if ticket == "broken":
        return Outcome.fail("no such ticket")
    return "billing" if "pay" in ticket else "support"


def correct(output, expected, row):
    if row["id"] == "odd":
        raise ValueError("no <i>idea</i>")
    return output == expected


def evaluated(root, name="scored", scorers=correct, **options):
    pipeline = Pipeline(SOURCE, backend=answer)
    options = {"durability": "fast", "wait": True, **options}
    return pipeline.evaluate(ROWS, scorers, map_dir=root / name, **options)


def test_the_page_of_an_evaluation_is_its_own_and_not_that_of_a_map(root, client):
    evaluation = evaluated(root)
    found = client.get("/maps/scored", params={"with_page": "true", "with_table": "true"}).json()
    page, table = found["page"], found["table"]
    assert (found["kind"], found["headline"]) == ("evaluation", evaluation.headline())
    assert page["line"] == evaluation.headline()
    assert page["title"] == "Evaluation of Triage"
    assert "1 of 3 = 33 %" in page["summary"]
    assert table["choices"] == {"failed": 2, "unmeasured": 1, "passed": 1}
    names = [column[0] for column in table["columns"]]
    assert names[:6] == ["row", "status", "reason", "output", "expected", "ticket"]
    rows = [dict(zip(names, row[4:], strict=True)) for row in table["rows"]]
    assert [row["row"] for row in rows] == ["wrong", "broken", "odd", "fine"]
    assert rows[0]["output"] == "support"
    assert rows[1]["reason"] == "no such ticket"
    assert rows[2]["reason"] == "ValueError: no <i>idea</i>"
    assert [row[2] for row in table["rows"]][:2] == ["scored~row-00001", "scored~row-00002"]
    assert "stage classify" in page["ways"]


def test_rows_of_an_evaluation_are_json_with_scores_and_runs(root, client):
    evaluated(root, repeat=2)
    found = client.get("/maps/scored", params={"status": "unmeasured"}).json()
    (row,) = found["rows"]
    assert (found["total"], found["found"]) == (4, 1)
    assert (row["name"], row["state"], row["expected"]) == ("odd", "unmeasured", "billing")
    assert row["runs"] == ["scored~row-00003", "scored~row-00007"]
    assert row["scores"]["correct"][1]["state"] == "unmeasured"
    for run in row["runs"]:
        assert client.get(f"/pipelines/{run}").json()["status"] == "completed"
    assert client.get("/maps/scored", params={"way": "stage classify"}).json()["found"] == 2


def test_repeats_are_dots_and_a_row_opens_the_run_that_is_not_good(root, client):
    turns = []

    def alternating(node, prompt, context):
        turns.append(context["ticket"])
        return "billing" if turns.count(context["ticket"]) % 2 else "support"

    pipeline = Pipeline(SOURCE, backend=alternating)
    pipeline.evaluate(
        ROWS[:1], correct, repeat=3, max_parallel=1, map_dir=root / "scored", durability="fast", wait=True
    )
    (row,) = client.get("/maps/scored", params={"with_table": "true"}).json()["table"]["rows"]
    assert row[2] == "scored~row-00001"
    assert "●○●" in row


def test_an_evaluation_that_another_process_stopped_shows_what_is_scored(root, client):
    evaluation = evaluated(root, on_failure="stop", max_parallel=1)
    assert evaluation.map.unfinished
    page = client.get("/maps/scored", params={"with_page": "true"}).json()["page"]
    assert page["line"].split("\n")[0] == evaluation.headline()
    assert page["line"].split("\n")[1].startswith("stopped   3 of 4 runs")
    assert str(root) not in json.dumps(page)


def test_new_scores_are_shown_though_the_page_was_read_before(root, client):
    evaluation = evaluated(root)
    assert "shorter" not in client.get("/maps/scored").json()["headline"]
    evaluation.rescore({"shorter": lambda output: len(output) < 9})
    found = client.get("/maps/scored").json()
    assert "shorter" in found["headline"]
    assert "correct" in found["headline"]


def test_a_secret_that_is_made_known_later_is_in_no_part(root, client):
    evaluated(root)
    redact_also("I cannot pay")
    found = client.get("/maps/scored", params={"with_page": "true", "with_table": "true"})
    assert "cannot pay" not in found.text


def test_a_damaged_evaluation_says_what_is_damaged(root, client):
    evaluated(root)
    (root / "scored" / "evaluation-rows.jsonl").write_text("{")
    refused = client.get("/maps/scored")
    assert refused.status_code == 409
    assert "evaluation" in refused.json()["detail"]


# -- what the directory stores -------------------------------------------------------------------------------


def test_a_stored_evaluation_is_that_which_was_made(root):
    evaluation = evaluated(root, scorers=[correct, latency()])
    stored = read_evaluation(root / "scored")
    assert stored.headline() == evaluation.headline()
    assert [str(row) for row in stored] == [str(row) for row in evaluation]
    assert stored.scores["latency"].is_lower_better
    assert stored.scored().rows == evaluation.scored().rows
    assert stored.directory == evaluation.directory == root / "scored"


def test_a_stored_evaluation_says_how_to_continue_it(root):
    stopped = evaluated(root, on_failure="stop", max_parallel=1)
    (line,) = [line for line in str(stopped).splitlines() if "1 run left" in line]
    assert line.endswith(f": {continue_call(root / 'scored')}")
    assert str(read_evaluation(root / "scored")) == str(stopped)


def test_scores_of_a_version_before_are_replaced_and_lost_lines_are_unmeasured(root):
    evaluation = evaluated(root, scorers={"right": lambda output: True})
    evaluation.rescore({"right": lambda output: output == "billing"})
    assert [row.id for row in read_evaluation(root / "scored").failures] == ["wrong", "broken"]
    (root / "scored" / SCORES_NAME).write_text("")
    bare = read_evaluation(root / "scored")
    assert bare.scores == {}
    assert "4 rows" in bare.page().line


def test_scorers_are_not_stored_and_say_so(root):
    evaluated(root)
    (scorer,) = read_evaluation(root / "scored").scorers
    with pytest.raises(OptionError, match="scorers of a stored evaluation"):
        scorer.function(Judged(None, None, None, None, None))
