"""``diff`` of two maps: rows by their inputs, outcomes, outputs, cost."""

from __future__ import annotations

import html
import re
import threading
import time
from collections import Counter

import pytest

from attractor_nb import FunctionBackend, Outcome, Pipeline, Run, Usage, diff, redact_also, runs
from attractor_nb.cli import main
from attractor_nb.errors import OptionError, RunNotFound
from attractor_nb.maps.compare_maps import MapComparison
from attractor_nb.maps.map_view import MapView
from attractor_nb.maps.stored_map import MapRecord, RecordedRow, read_map_record
from attractor_nb.model.calls.call_content import Response
from attractor_nb.notebook.history_view import HistoryRequests
from attractor_nb.views.table import cells

TEXT = """digraph Triage {
    inputs="ticket, guide=none"
    start [shape=Mdiamond] done [shape=Msquare]
    classify [prompt="PROMPT $ticket"]
    start -> classify -> done
}"""
TICKETS = ["invoice", "", "parcel", "parcel", "<b>\x1b[31m"]


def mapped(place, team, tickets=TICKETS, *, prompt="Which team?", cost=0.5, common=None, **options):
    """A map on the disk; a team that begins with ! is the reason of a failure."""

    def answer(node, prompt, context):
        found = team(context["ticket"])
        return Outcome.fail(found[1:]) if found.startswith("!") else Response(found, usage=Usage(90, 10, cost, 1))

    pipeline = Pipeline(TEXT.replace("PROMPT", prompt), backend=FunctionBackend(answer))
    rows = [{"ticket": ticket, **(common or {})} for ticket in tickets]
    options = {"outputs": ["last_response"], **options}
    return pipeline.map(rows, wait=True, map_dir=place, **options)


def first_team(ticket):
    return "payments" if ticket == "invoice" else "shipping" if ticket else "!the ticket is empty"


def second_team(ticket):
    return "billing" if ticket == "invoice" else "!lost" if ticket == "parcel" else "shipping" if ticket else "nobody"


@pytest.fixture
def two(tmp_path):
    mapped(tmp_path / "a", first_team)
    mapped(tmp_path / "b", second_team, ["parcel", *TICKETS[:2], "new"], prompt="Name the team:", cost=0.25)
    return diff(tmp_path / "a", tmp_path / "b")


def by_number(found):
    return [(pair.a.row if pair.a else None, pair.b.row if pair.b else None, pair.differences) for pair in found.rows]


def test_rows_are_matched_by_their_inputs_and_of_equal_ones_the_first_is_the_first(two):
    assert by_number(two) == [
        (0, 1, ("last_response",)),
        (1, 2, ("outcome",)),
        (2, 0, ("outcome",)),
        (3, None, ()),
        (4, None, ()),
        (None, 3, ()),
    ]
    assert two.transitions == {("fail", "success"): 1, ("success", "fail"): 1}
    assert not two.is_same


def test_what_differs_is_said_in_counts_tables_and_values(two):
    text = str(two)
    assert text.splitlines()[0] == "A ✕ failed   5 of 5 rows   4 completed, 1 failed   1 of 5 rows failed"
    assert "graph: node classify: prompt" in text
    assert (
        "2 rows with another status: 1 failed → completed, 1 completed → failed; 1 row with other outputs or reasons; "
        "2 rows only in A; 1 row only in B" in text
    )
    lines = [line.split() for line in text.splitlines()]
    assert ["completed", "4", "3", "\N{MINUS SIGN}1"] in lines
    assert ["tokens", "400", "300", "\N{MINUS SIGN}100"] in lines
    assert ["cost", "$2.00", "$0.75", "\N{MINUS SIGN}$1.25"] in lines
    assert ["0/1", "last_response", "payments", "billing"] in lines
    assert ["≠", "2/0", "parcel", "✓", "completed", "✕", "failed:", "lost"] in lines
    assert "\x1b" not in text
    assert "time" not in text
    assert any(line.startswith("time") for line in two.details().splitlines())


def test_json_has_the_rows_that_differ_and_counts_the_others(two, tmp_path):
    plain = two.to_plain()
    assert plain["same_rows"] == 0
    assert [row["differs"] for row in plain["rows"][:2]] == [["outcome"], ["outcome"]]
    first = plain["rows"][0]
    assert first["inputs"] == {"ticket": "", "guide": "none"}
    assert (first["a"]["status"], first["a"]["reason"], first["a"]["stage"]) == (
        "fail",
        "the ticket is empty",
        "classify",
    )
    assert first["b"]["outputs"] == {"last_response": "nobody"}
    assert plain["a"]["counts"]["success"] == 4
    assert diff(tmp_path / "a", tmp_path / "a").to_plain()["rows"] == []


@pytest.mark.parametrize("width", [60, 80, 120])
def test_at_a_terminal_no_line_is_longer_than_it_is_wide_and_no_word_is_lost(tmp_path, width):
    reason = "!" + "the model has lost its way in the woods " * 2
    a = mapped(tmp_path / "a", first_team, ["x" * 50, "y"])
    b = mapped(tmp_path / "b", lambda ticket: reason, ["x" * 50, "y"])
    text = diff(a, b).details(width)
    assert max(map(cells, text.splitlines())) <= width
    assert "the model has lost its way in the woods" in " ".join(text.split())


def test_the_same_map_and_results_handles_and_lines_of_a_list_are_compared(tmp_path):
    result = mapped(tmp_path / "runs" / "a", first_team)
    again = mapped(tmp_path / "runs" / "b", first_team)
    for other in (again, str(tmp_path / "runs" / "b"), runs(tmp_path / "runs")[0]):
        found = diff(result, other)
        assert found.is_same
        assert "no row differs" in str(found)


def test_a_result_is_compared_as_it_was_whatever_a_resume_made_of_its_directory(tmp_path):
    before = mapped(tmp_path / "a", first_team)
    again = Pipeline(TEXT.replace("PROMPT", "Which team?"), backend=lambda prompt: "x")
    after = again.resume_map(before, failed="retry", wait=True)
    assert diff(before, after).transitions == {("fail", "success"): 1}
    assert diff(tmp_path / "a", after).transitions == {}


def test_maps_that_keep_nothing_are_compared_by_their_results(tmp_path):
    kept = mapped(tmp_path / "a", first_team)
    loose = mapped(None, first_team, durability="none")
    found = diff(loose, kept)
    assert not found.differing
    assert found.transitions == {}


def test_a_common_input_that_differs_matches_nothing_and_is_told(tmp_path):
    a = mapped(tmp_path / "a", first_team)
    b = mapped(tmp_path / "b", first_team, common={"guide": "short"})
    found = diff(a, b)
    assert found.changes == ("input guide: none in A, short in B",)
    assert not found.differing


def test_an_input_of_one_map_alone_matches_nothing_and_is_told(tmp_path):
    def of(text, rows, place):
        return Pipeline(text, backend=lambda prompt: "x").map(rows, wait=True, map_dir=tmp_path / place)

    text = 'digraph G { start [shape=Mdiamond] done [shape=Msquare] a [prompt="$ticket"] start -> a -> done }'
    found = diff(of(text, [{"ticket": "1"}, {"ticket": "2"}], "a"), of(text, [{"ticket": "2", "style": "s"}], "b"))
    assert found.changes == ("input style: only in B",)
    assert by_number(found) == [(0, None, ()), (1, 0, ())]


def test_rows_of_one_input_that_differs_are_not_the_same_row(tmp_path):
    found = diff(mapped(tmp_path / "a", first_team, ["x"]), mapped(tmp_path / "b", first_team, ["y"]))
    assert by_number(found) == [(0, None, ()), (None, 0, ())]


def test_rows_whose_inputs_are_lost_are_matched_by_their_hashes(tmp_path):
    mapped(tmp_path / "a", first_team), mapped(tmp_path / "b", second_team)
    (tmp_path / "a" / "inputs.jsonl").unlink()
    (tmp_path / "b" / "inputs.jsonl").write_text("no\n")
    found = diff(tmp_path / "a", tmp_path / "b")
    assert [pair.a.row == pair.b.row for pair in found.rows] == [True] * 5
    assert found.to_plain()["rows"][0]["inputs"] is None


def test_a_map_and_a_run_are_not_compared_and_the_message_says_what_is(tmp_path):
    mapped(tmp_path / "a", first_team)
    row = tmp_path / "a" / "row-00000"
    for first, second in ((tmp_path / "a", row), (Run.load(row), tmp_path / "a")):
        with pytest.raises(OptionError, match="a map is compared with a map") as caught:
            diff(first, second)
        assert "MAP_DIR/row-00000" in caught.value.hint
    with pytest.raises(RunNotFound):
        diff(tmp_path, tmp_path)


def test_a_simulated_map_is_marked(tmp_path):
    a = mapped(tmp_path / "a", first_team, ["parcel", "invoice"])
    b = Pipeline(TEXT, backend="simulated").map(
        [{"ticket": "parcel"}, {"ticket": "invoice"}], wait=True, map_dir=tmp_path / "b"
    )
    found = diff(a, b)
    assert "simulated" in str(found).splitlines()[1]
    assert found.to_plain()["b"]["is_simulated"] is True
    assert found.to_plain()["rows"][0]["b"]["mark"] == "simulated"
    assert "backend" in "".join(found.changes)


def test_a_map_that_is_not_finished_is_compared_as_far_as_it_has_come(tmp_path):
    whole = mapped(tmp_path / "a", first_team)
    part = mapped(tmp_path / "b", first_team, on_failure="stop", max_parallel=1)
    found = diff(whole, part)
    assert found.transitions == {("success", "not_started"): 3}
    assert ["not", "started", "0", "3", "+3"] in [line.split() for line in str(found).splitlines()]


def test_no_secret_is_in_it_and_html_is_escaped(two, tmp_path):
    assert "<b>" not in two.to_html()
    assert "&lt;b&gt;" in two.to_html()
    key = "planted-0a1b2c3d4e5f6789"
    mapped(tmp_path / "c", lambda ticket: f"{key} {ticket}", [key, "x"])
    mapped(tmp_path / "d", lambda ticket: f"!{key}", [key, "x"])
    redact_also(key)
    found = diff(tmp_path / "c", tmp_path / "d")
    for text in (found.details(), found.to_html(), str(found.to_plain()), str(found._repr_mimebundle_())):
        assert "planted" not in text


def test_the_page_has_each_row_with_both_sides_and_those_that_differ_first(two, tmp_path):
    page = two.export_html(tmp_path / "both.html").read_text()
    assert "<h1>Two maps beside each other</h1>" in page
    assert [words for words in two.changes if words not in html.unescape(page)] == []
    kinds = re.findall(r'<tr class="[^"]*" data-status="([^"]*)"', page)
    assert kinds == sorted(kinds, key=lambda kind: (kind != "other outcome", kind == "same"))
    assert Counter(kinds) == Counter(
        {"≠": "other outcome", "≈": "other outputs", "A": "only in A", "B": "only in B", "": "same"}[pair.sign]
        for pair in two.rows
    )
    for words in ("failed: the ticket is empty", "last_response in A", "last_response in B", "payments", "billing"):
        assert words in page
    assert "<b>" not in page


def test_the_page_has_no_secret(tmp_path):
    key = "planted-9f8e7d6c5b4a3210"
    mapped(tmp_path / "c", lambda ticket: f"{key} {ticket}", [key, "x"])
    mapped(tmp_path / "d", lambda ticket: f"!{key}", [key, "x"])
    redact_also(key)
    assert "planted" not in diff(tmp_path / "c", tmp_path / "d").export_html(tmp_path / "both.html").read_text()


def test_the_page_of_maps_that_are_the_same_says_so(tmp_path):
    mapped(tmp_path / "a", first_team)
    page = diff(tmp_path / "a", tmp_path / "a").export_html(tmp_path / "both.html").read_text()
    assert "no row differs" in page
    assert page.count('data-status="same"') == len(TICKETS)


def test_maps_are_compared_in_the_list_of_a_notebook(two, tmp_path):
    requests = HistoryRequests(runs(tmp_path))
    assert {row["kind"]: row["is_comparable"] for row in requests.rows()} == {"map": True}
    said = requests.answer({"kind": "compare", "key": "a", "other": "b"})
    assert said["words"] == str(two)
    assert said["call"].startswith("diff(")


def test_ten_thousand_rows_are_matched_in_linear_time():
    def record(count, shift):
        rows = [
            RecordedRow(n, "success", {"ticket": str((n + shift) % count), "same": 7}, "", {"x": n % 3})
            for n in range(count)
        ]
        return MapRecord("m", None, MapView("m", count), tuple(rows), ("x",), None, {})

    began = time.process_time()
    found = MapComparison(record(10_000, 0), record(10_000, 5_000))
    text = found.details(80)
    assert time.process_time() - began < 5
    assert found.differing
    assert "more outputs differ" in text


def test_the_command_compares_maps(two, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["diff", "a", "b"]) == 0
    assert "2 rows with another status" in capsys.readouterr().out
    assert main(["diff", "a", "b", "--json"]) == 0
    assert '"transitions"' in capsys.readouterr().out
    assert main(["diff", "a", "b/row-00000"]) == 2
    assert "a row of it is a run" in capsys.readouterr().err


def test_a_row_without_a_checkpoint_is_compared_without_outputs(tmp_path):
    mapped(tmp_path / "a", first_team)
    mapped(tmp_path / "b", first_team)
    for checkpoint in (tmp_path / "b" / "row-00000").glob("checkpoint*"):
        checkpoint.unlink()
    (first, *_) = read_map_record(tmp_path / "b").rows
    assert (first.status, first.outputs) == ("success", {})


def test_a_row_whose_checkpoint_cannot_be_read_is_compared_without_outputs(tmp_path):
    mapped(tmp_path / "a", first_team)
    for checkpoint in (tmp_path / "a" / "row-00000").glob("checkpoint*"):
        checkpoint.unlink()
        checkpoint.mkdir()
    (first, second, *_) = read_map_record(tmp_path / "a").rows
    assert (first.status, first.outputs, first.stage) == ("success", {}, "")
    assert second.status == "fail"


def test_a_map_that_runs_and_is_stored_nowhere_is_compared_at_its_end():
    asked, may_answer = threading.Event(), threading.Event()

    def answer(prompt):
        asked.set()
        may_answer.wait(60)
        return "done"

    rows = Pipeline(TEXT, backend=answer).map([{"ticket": "a"}], durability="none")
    asked.wait(60)
    try:
        with pytest.raises(OptionError, match="nothing of it is stored"):
            diff(rows, rows)
    finally:
        may_answer.set()
        rows.result()
