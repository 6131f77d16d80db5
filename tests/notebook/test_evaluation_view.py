"""An evaluation in a notebook: the values of its table, and the run that a click shows, without a browser."""

from __future__ import annotations

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.evaluation.evaluated_row import NOTHING
from attractor_nb.notebook import evaluation_view
from attractor_nb.notebook.evaluation_view import EvaluationView, rows_of_view
from attractor_nb.notebook.live.live_runs import LiveRuns

TEXT = """digraph triage {
    inputs="ticket"
    start [shape=Mdiamond]
    classify [prompt="Which team? $ticket"]
    done [shape=Msquare]
    start -> classify -> done
}"""
ROWS = [
    {"id": "good", "ticket": "pay", "expected": "billing"},
    {"id": "bad", "ticket": "crash", "expected": "support"},
    {"id": "odd", "ticket": "odd", "expected": "billing"},
]


def correct(output, expected):
    if "odd" in output:
        raise ValueError("it is odd")
    return output == expected


@pytest.fixture
def evaluation(tmp_path):
    pipeline = Pipeline(
        TEXT,
        backend=lambda node, prompt, context: "odd" if context["ticket"] == "odd" else "billing",
        runs_dir=tmp_path,
    )
    return pipeline.evaluate(ROWS, correct, wait=True, repeat=2)


@pytest.fixture
def view(evaluation):
    found = EvaluationView(evaluation, LiveRuns(), "key")
    found.said = []
    found.send = found.said.append
    yield found
    found.close()


def ask(view, **content):
    view._on_message(view, content, [])


def test_rows_that_failed_come_first_and_say_why(evaluation):
    rows = rows_of_view(evaluation)
    assert [(row["id"], row["state"], row["runs"]) for row in rows] == [
        ("bad", "error", "○○"),
        ("odd", "warn", 2 * NOTHING),
        ("good", "ok", "●●"),
    ]
    assert [row["reason"] for row in rows] == ["correct is false", "ValueError: it is odd", ""]
    assert rows[0] | {"output": "billing", "expected": "support"} == rows[0]


def test_a_click_shows_the_run_of_the_row_beneath_and_another_replaces_it(view, evaluation):
    ask(view, kind="open", row="bad")
    (first,) = view.beneath
    assert (first["title"], view.opened) == ("Row bad, run 1 of 2", {"row": "bad", "repeat": 0})
    shown = view._views.view_of(next(each.run for each in view._views._views if each.key == first["place"]))
    assert shown.run.id == evaluation["bad"].results[0].run_id
    ask(view, kind="open", row="good", repeat=1)
    (second,) = view.beneath
    assert second["title"] == "Row good, run 2 of 2"
    assert second["place"] != first["place"]
    ask(view, kind="close")
    assert (view.beneath, view.opened) == ([], {})
    assert view.said == []


@pytest.mark.parametrize(
    ("content", "words"),
    [({"row": "missing"}, "missing"), ({"row": "bad", "repeat": 7}, "row bad has no repeat 7"), ({}, "no row")],
    ids=["no such row", "no such repeat", "nothing named"],
)
def test_what_cannot_be_shown_is_said_in_words(view, content, words):
    ask(view, kind="open", **content)
    (said,) = view.said
    assert words in said["problem"]
    assert view.beneath == []


def test_a_run_that_is_gone_is_said_in_words(view, evaluation):
    (evaluation.directory / "row-00000").rename(evaluation.directory / "elsewhere")
    ask(view, kind="open", row="good")
    assert "row-00000" in view.said[0]["problem"]


def test_a_row_that_was_not_run_is_said_in_words(tmp_path):
    pipeline = Pipeline(TEXT, backend=lambda node, prompt, context: Outcome.fail("no"), runs_dir=tmp_path)
    evaluation = pipeline.evaluate(ROWS, correct, wait=True, on_failure="stop", max_parallel=1)
    view = EvaluationView(evaluation, LiveRuns())
    said = []
    view.send = said.append
    ask(view, kind="open", row="odd")
    assert "nothing is kept of row 2" in said[0]["problem"]
    view.close()


def test_a_long_evaluation_offers_its_worst_rows(evaluation, monkeypatch):
    monkeypatch.setattr(evaluation_view, "MOST_ROWS", 2)
    view = EvaluationView(evaluation, LiveRuns())
    assert ([row["id"] for row in view.rows], view.count) == (["bad", "odd"], 3)
    view.close()
