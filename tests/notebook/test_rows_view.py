"""The rows of a map and of an evaluation as a cell asks for them; the widget is tried in Jupyter (tests/browser)."""

import json
from types import SimpleNamespace

import pytest

from attractor_nb import Outcome, Pipeline, runs
from attractor_nb.notebook.history_view import HistoryRequests
from attractor_nb.notebook.rows_view import MOST_ROWS, RowsRequests

TEXT = 'digraph T { inputs="n" start [shape=Mdiamond] a [prompt="$n"] done [shape=Msquare] start -> a -> done }'


def answer(node, prompt, context):
    return Outcome.fail("no <b>luck</b>") if context["n"] == "1" else f"row {context['n']}"


@pytest.fixture
def pipeline():
    return Pipeline(TEXT, backend=answer)


ROWS = [{"n": str(number)} for number in range(4)]


def rows_of(requests, **query):
    asked = {"kind": "rows", "number": 7, "query": query, "offset": 0, "limit": 100}
    reply = requests.answer(asked)
    assert (reply["kind"], reply["number"]) == ("rows", 7)
    json.dumps(reply)
    return [row[4][0] if isinstance(row[4], list) else row[4] for row in reply["table"]["rows"]]


def test_the_rows_of_a_map_are_found_and_sorted_by_the_kernel(pipeline, tmp_path):
    result = pipeline.map(ROWS, map_dir=tmp_path / "map", outputs=["last_response"], wait=True)
    for of in (result, tmp_path / "map"):
        requests = RowsRequests(of)
        page = requests.answer({"kind": "page"})["page"]
        assert (page["title"], page["ways"]) == ("Map of T", ["stage a"])
        assert rows_of(requests) == ["1", "0", "2", "3"]
        assert rows_of(requests, words="LUCK failed") == ["1"]
        assert rows_of(requests, status="failed", sort=0) == ["1"]
        assert rows_of(requests, sort=0, descending=True) == ["3", "2", "1", "0"]
        assert rows_of(requests, way="stage a") == ["1"]


def test_a_row_opens_its_run_and_nothing_else_of_the_disk(pipeline, tmp_path):
    pipeline.map(ROWS, map_dir=tmp_path / "map", wait=True)
    pipeline.run(params={"n": "9"}, logs_root=tmp_path / "other", wait=True)
    opened = []
    requests = RowsRequests(tmp_path / "map", lambda run, place: opened.append((run.logs_root.name, place)))
    assert requests.answer({"kind": "row", "key": "row-00001", "place": "p"})["problem"] == ""
    assert opened == [("row-00001", "p")]
    for key in ("", "../other", "row-00009", str(tmp_path / "other")):
        assert requests.answer({"kind": "row", "key": key, "place": "p"})["problem"] == "Nothing is kept of this row."
    assert len(opened) == 1


def test_rows_of_which_nothing_is_kept_are_shown_and_not_opened(pipeline):
    requests = RowsRequests(pipeline.map(ROWS, durability="none", outputs=["last_response"], wait=True))
    assert rows_of(requests, words="luck") == ["1"]
    assert requests.answer({"kind": "row", "key": "row-00001", "place": "p"})["problem"]


def test_whatever_a_message_holds_it_is_answered(pipeline, tmp_path):
    pipeline.map(ROWS, map_dir=tmp_path / "map", wait=True)
    requests = RowsRequests(tmp_path / "map")
    for query in (None, [], {"sort": "x", "words": None, "descending": "yes"}):
        reply = requests.answer({"kind": "rows", "query": query, "offset": -3, "limit": 10**9})
        assert len(reply["table"]["rows"]) <= MOST_ROWS
    assert requests.answer({"kind": "dance"}) is None
    (tmp_path / "map" / "map.json").write_text("{")
    (tmp_path / "map" / "map.previous.json").unlink(missing_ok=True)
    assert "map.json" in RowsRequests(tmp_path / "map").answer({"kind": "page"})["problem"]


def test_an_evaluation_shows_its_own_page(pipeline, tmp_path):
    evaluation = pipeline.evaluate(ROWS, {"short": lambda output: output == "row 2"}, map_dir=tmp_path / "e", wait=True)
    for of in (evaluation, tmp_path / "e"):
        requests = RowsRequests(of)
        page = requests.answer({"kind": "page"})["page"]
        assert (page["title"], page["line"]) == ("Evaluation of T", evaluation.headline())
        assert rows_of(requests) == ["0", "1", "3", "2"]
        assert rows_of(requests, status="passed") == ["2"]


def test_the_list_of_runs_opens_a_map_as_its_page_and_answers_for_its_rows(pipeline, tmp_path):
    pipeline.map(ROWS, map_dir=tmp_path / "runs" / "many", wait=True)
    opened = []
    views = SimpleNamespace(open=lambda run, key: opened.append((run.logs_root.name, key)))
    requests = HistoryRequests(runs(tmp_path / "runs"), views)
    said = requests.answer({"kind": "open", "key": "many"})
    assert (said["kind"], said["map"], said["page"]["title"]) == ("said", "many", "Map of T")
    reply = requests.answer({"kind": "rows", "map": "many", "number": 1, "query": {"status": "failed"}, "limit": 9})
    assert (reply["table"]["found"], reply["table"]["total"]) == (1, 4)
    assert requests.answer({"kind": "row", "map": "many", "key": "row-00002", "place": "p"})["problem"] == ""
    assert opened == [("row-00002", "p")]
