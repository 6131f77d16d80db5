"""Requests of a view to the debugger: each is a call, and a refusal is said in words."""

from __future__ import annotations

import json

import pytest

from attractor_nb.storage.run_listing import summarize
from attractor_nb.studio.debugger import answer_debugging

MAX_VALUES = 200

WAIT = 30


@pytest.fixture
def standing(make):
    """A run that stands before ``review``."""
    run = make('start -> plan -> review -> done review [prompt="Look at it"]').run(
        breakpoints=["review"], durability="fast"
    )
    run.debugger.wait_for_stop(WAIT)
    yield run
    run.cancel()
    run.result(WAIT)


def test_a_run_at_a_breakpoint_is_waiting_in_a_list(standing):
    row = summarize(standing.logs_root)
    assert (row.status, row.note) == ("waiting", "stopped before review by the debugger")
    assert standing.view.shown_status == row.status, "as in the cell"
    standing.debugger.continue_()
    standing.result(WAIT)
    assert summarize(standing.logs_root).status == "completed"


def test_a_look_has_the_prompt_and_the_values_that_can_be_set(standing):
    standing.debugger.set_context("n", 3)
    standing.debugger.set_context("text", "3")
    message = answer_debugging(standing, {"call": "look", "branch": ""})
    assert json.loads(json.dumps(message)) == message
    rows = {row["key"]: (row["text"], row["is_fixed"]) for row in message["look"]["context"]}
    assert (rows["n"], rows["text"]) == (("3", False), ('"3"', False)), "a number and a text differ"
    assert rows["current_node"] == ("review", True)
    assert message["look"]["prompt"] == "Look at it"
    assert message["debugger"]["stops"][0]["node"] == "review"


def test_a_look_shows_no_key_that_the_graph_has_in_a_prompt(make, monkeypatch):
    key = "a-key-that-only-this-machine-has"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    run = make(f'start -> review -> done review [prompt="Look with {key} at $goal"]').run(
        breakpoints=["review"], durability="fast"
    )
    run.debugger.wait_for_stop(WAIT)
    try:
        look = answer_debugging(run, {"call": "look", "branch": ""})["look"]
    finally:
        run.cancel()
        run.result(WAIT)
    assert look["prompt"] == "Look with [redacted] at $goal"
    assert key not in json.dumps(look)


def test_ruling_34_a_look_has_the_prompt_as_it_can_be_changed_and_as_it_would_be_sent(standing):
    assert answer_debugging(standing, {"call": "look", "branch": ""})["look"]["sent"] is None
    standing.debugger.set_context("ticket", "$ticket is broken")
    standing.debugger.set_prompt("review", "About ${ticket}")
    look = answer_debugging(standing, {"call": "look", "branch": ""})["look"]
    assert (look["prompt"], look["sent"]) == ("About ${ticket}", "About $ticket is broken")


def test_what_is_written_is_json_or_else_text(standing):
    for given, kept in (("4", 4), ("yes, please", "yes, please"), ('{"a": [1]}', {"a": [1]}), ('"3"', "3")):
        answer = answer_debugging(standing, {"call": "set_context", "key": "x", "text": given})
        assert "problem" not in answer
        assert standing.debugger.context()["x"] == kept


def test_every_button_is_a_call(standing):
    asked = [
        {"call": "set_prompt", "node": "review", "text": "Look twice."},
        {"call": "pin", "node": "plan"},
        {"call": "unpin", "node": "plan"},
        {"call": "break", "text": "after:review"},
        {"call": "clear", "text": "review"},
        {"call": "step", "branch": ""},
    ]
    for request in asked:
        assert "problem" not in answer_debugging(standing, request), request
    assert standing.debugger.wait_for_stop(WAIT).moment == "after"
    assert "problem" not in answer_debugging(
        standing, {"call": "set_outcome", "status": "success", "label": "Go", "reason": "", "branch": ""}
    )
    assert "problem" not in answer_debugging(standing, {"call": "step_over"})
    assert standing.debugger.wait_for_stop(WAIT).node == "done"
    answer = answer_debugging(standing, {"call": "continue"})
    assert answer["debugger"]["stops"] == []
    result = standing.result(WAIT)
    assert (result["review"].prompt.endswith("Look twice."), result["review"].outcome.preferred_label) == (True, "Go")
    assert "has ended" in answer_debugging(standing, {"call": "pause"})["problem"]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"call": "explode"}, "knows no 'explode'"),
        ({}, "knows no None"),
        ({"call": "set_context", "key": "outcome", "text": "1"}, "engine's own"),
        ({"call": "set_context", "key": "x"}, "the request has no text"),
        ({"call": "set_outcome", "status": "success"}, "stopped before a stage"),
        ({"call": "break", "text": "nobody"}, "no node 'nobody'"),
        ({"call": "step", "branch": "fan/x"}, "is not stopped in branch fan/x"),
        ({"call": "pin", "node": 3}, "the request has no node"),
    ],
)
def test_what_is_refused_is_said(standing, request_, words):
    answer = answer_debugging(standing, request_)
    assert words in answer["problem"]
    assert answer["debugger"]["stops"], "and it stands as before"


def test_many_values_and_long_ones_are_shown_in_part(standing):
    for number in range(MAX_VALUES + 5):
        standing.debugger.set_context(f"k{number:03}", "x" * (5000 if number == 0 else 1))
    look = answer_debugging(standing, {"call": "look"})["look"]
    assert len(look["context"]) == MAX_VALUES
    assert look["more"] > 0
    assert look["context"][0]["is_fixed"], "what is shown in part is not to be sent back"
