"""The list of runs without a browser: what its buttons open, and the questions of what is opened."""

from __future__ import annotations

from threading import Event

import pytest

from attractor_nb import Pipeline, runs
from attractor_nb.notebook.history_view import HistoryRequests
from attractor_nb.notebook.live.gate_card import ClickedAnswer
from attractor_nb.notebook.live.live_runs import LiveRuns

TEXT = """digraph talk { start [shape=Mdiamond] done [shape=Msquare]
  plan [prompt="Plan"] review [shape=hexagon, label="Ok?"]
  start -> plan -> review  review -> done [label="[Y] Yes"]  review -> plan [label="[N] No"] }"""


@pytest.fixture
def waiting(tmp_path):
    """A run that waits at its gate, without a view."""
    pipeline = Pipeline(TEXT, backend="simulated")
    run = pipeline.run(logs_root=tmp_path / "kept" / "one", interviewer="deferred", is_shown=False)
    run.wait_for_gate("review", timeout=30)
    yield run
    run.cancel()
    run.result(timeout=30)


def opened(tmp_path, kind="open"):
    views = LiveRuns()
    requests = HistoryRequests(runs(tmp_path / "kept"), views)
    reply = requests.answer({"kind": kind, "key": "one"})
    (view,) = views._views
    return requests, reply, view


def wait_until(is_true, waited):
    for _ in range(600):
        if is_true():
            return
        waited.wait(0.05)
    raise TimeoutError


def test_a_waiting_run_of_this_process_is_opened_alive_with_its_question(tmp_path, waiting):
    _, reply, view = opened(tmp_path)
    assert reply["place"] == view.key
    assert "words" not in reply, "the live view says how it stands"
    states = view.graph_view.states
    assert (states["line"]["status"], states["line"].get("is_ended")) == ("waiting", None)
    (card,) = view.graph_view.gates
    assert (card["title"], card["how"], card["about"]) == ("Ok?", "", f"review · run {waiting.id}")
    view.graph_view.hand_in(ClickedAnswer("review:1", "Y"))
    assert waiting.result(timeout=30).status == "success"

    wait_until(lambda: view.is_over, Event())
    assert view.graph_view.states["nodes"]["done"]["status"] == "success"
    assert view.graph_view.states["line"]["status"] == "success"


def test_a_question_that_nobody_works_on_says_how_it_is_answered(tmp_path, waiting):
    waiting.cancel()
    waiting.result(timeout=30)
    _, _, view = opened(tmp_path)
    (card,) = view.graph_view.gates
    assert card["title"] == "Ok?"
    assert card["how"].startswith("Run.load(")
    assert card["how"].endswith(".resume()")


def test_a_resumed_run_is_opened_where_its_question_is_answered_and_its_row_is_not_interrupted(tmp_path, waiting):
    waiting.cancel()
    waiting.result(timeout=30)
    requests, reply, view = opened(tmp_path, "resume")
    assert reply["place"] == view.key
    (row,) = requests.rows()
    assert row["is_live"]
    assert row["status"] in {"running", "waiting"}
    run = requests.resumed["one"]
    run.wait_for_gate("review", timeout=30)

    wait_until(lambda: view.graph_view.gates, Event())
    view.graph_view.hand_in(ClickedAnswer(view.graph_view.gates[0]["key"], "Y"))
    assert run.result(timeout=30).status == "success"


def test_a_run_that_failed_is_opened_with_its_failed_stage(tmp_path):
    def fail(node, prompt, context):
        raise ValueError("no table")

    Pipeline(TEXT, backend=fail).run(logs_root=tmp_path / "kept" / "one", wait=True)
    _, _, view = opened(tmp_path)
    assert view.graph_view.states["line"]["failed"] == "plan"
