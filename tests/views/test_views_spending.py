"""The usage of a run in its views: by attempt, by node, in all, and while it is active."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.languages.dot import read_dot
from attractor_nb.model.events import (
    ChildEvent,
    ChildStarted,
    ModelCallEnded,
    ModelCallWaiting,
    PipelineCompleted,
    PipelineInterrupted,
    StageCompleted,
    StageFailed,
    StageOutput,
    StageStarted,
    ToolCallEnded,
)
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.model.states import RunStatus
from attractor_nb.views.folding import fold_event
from attractor_nb.views.state import CallCount, RunView, so_far
from attractor_nb.views.summary_line import price_text, run_summary, usage_words
from attractor_nb.views.text_table import run_table, text_table

GRAPH = read_dot("digraph g { start [shape=Mdiamond] a done [shape=Msquare] start -> a -> done }").graph
PRICED, UNPRICED = Usage(900, 100, 0.25, 1), Usage(10, 5, None, 1)


def folded(*events):
    view = RunView()
    for event in events:
        fold_event(view, event)
    return view


def test_a_node_whose_request_waits_says_for_what_until_it_was_made():
    began = StageStarted(name="a", handler_type="codergen")
    waits = ModelCallWaiting(name="a", model="openai:m", seconds=12, rates="60 requests a minute")
    assert folded(began, waits).nodes["a"].note == "waits for 60 requests a minute"
    assert folded(began, waits, call(PRICED)).nodes["a"].note == ""


def call(usage, name="a", **facts):
    return ModelCallEnded(name=name, model="m", usage=usage, **facts)


def end(usage, name="a", **facts):
    return StageCompleted(name=name, outcome=Outcome(StageStatus.SUCCESS, usage=usage), **facts)


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (Usage(), []),
        (Usage(900, 100, 0.0, 1), ["1,000 tokens"]),
        (PRICED, ["1,000 tokens", "$0.25"]),
        (UNPRICED, ["15 tokens", "unpriced"]),
        (Usage(calls=1), ["unpriced"]),
        (PRICED + UNPRICED, ["1,015 tokens", "≥ $0.25 (1 call unpriced)"]),
        (PRICED + UNPRICED + UNPRICED, ["1,030 tokens", "≥ $0.25 (2 calls unpriced)"]),
        (Usage(900, 100, 0.0, 1) + UNPRICED, ["1,015 tokens", "1 call unpriced"]),
    ],
)
def test_an_unknown_price_is_said_and_is_never_zero(usage, words):
    assert usage_words(usage) == words


@given(
    st.lists(
        st.builds(Usage, st.integers(0, 9999), st.integers(0, 9999), st.none() | st.floats(0, 100), st.integers(0, 5))
    )
)
def test_a_price_is_whole_or_says_that_it_is_not(usages):
    total = sum(usages, Usage())
    is_whole = all(usage.cost_usd is not None or usage == Usage() for usage in usages)
    assert ("unpriced" in price_text(total)) is not is_whole
    assert "$0.00 " not in price_text(total)


def test_calls_under_way_count_at_once_and_not_twice_when_their_attempt_ends():
    view = folded(StageStarted(name="a"), call(PRICED), call(UNPRICED), call(None, error="busy"))
    assert (view.usage, so_far(view)) == (Usage(), PRICED + UNPRICED)
    assert view.nodes["a"].note == "3 requests"
    fold_event(view, end(PRICED + UNPRICED))
    assert view.usage == so_far(view) == PRICED + UNPRICED
    assert view.nodes["a"].note == ""


def test_an_attempt_that_was_cut_off_is_not_counted_with_the_one_that_followed():
    view = folded(StageStarted(name="a"), call(PRICED), PipelineInterrupted(reason="cancelled", next_node="a"))
    assert so_far(view) == Usage()
    view = folded(StageStarted(name="a"), call(PRICED), StageStarted(name="a"), call(UNPRICED))
    assert so_far(view) == UNPRICED


def test_branches_at_one_node_are_counted_side_by_side():
    one, two = {"branch": "fan/a"}, {"branch": "fan/b"}
    view = folded(StageStarted(name="x", **one), StageStarted(name="x", **two))
    for event in (call(PRICED, "x", **one), call(UNPRICED, "x", **two), call(UNPRICED, "x", **one)):
        fold_event(view, event)
    fold_event(view, end(PRICED + UNPRICED, "x", **one))
    assert so_far(view) == PRICED + UNPRICED + UNPRICED
    assert [entry.branch for entry in view.attempts["x"]] == ["fan/a"]


def test_a_child_run_under_way_counts_once_whatever_it_has_done():
    inside = [StageStarted(name="c"), call(PRICED, "c"), StageOutput(name="c", text="hm")]
    view = folded(StageStarted(name="a"), ChildStarted(name="a", child_id="1"))
    for event in [*inside, end(PRICED, "c"), StageStarted(name="d"), call(UNPRICED, "d")]:
        fold_event(view, ChildEvent(name="a", child_id="1", event=event))
    assert so_far(view) == PRICED + UNPRICED
    fold_event(view, end(PRICED + UNPRICED))
    late = PipelineCompleted(duration=1.0)
    fold_event(view, ChildEvent(name="a", child_id="1", event=late))
    assert so_far(view) == PRICED + UNPRICED


def test_calls_are_counted_by_node():
    view = folded(StageStarted(name="a"), call(PRICED), ToolCallEnded(name="a", tool="read"), call(PRICED), end(PRICED))
    assert view.calls_by_node == {"a": CallCount(2, 1)}


def test_each_attempt_is_there_with_what_it_consumed():
    failed = StageFailed(name="a", outcome=Outcome(StageStatus.RETRY, usage=PRICED), error="no", will_retry=True)
    view = folded(StageStarted(name="a"), failed, end(UNPRICED, attempt=2), end(None, "start"))
    assert [(spent.attempt, spent.status, spent.usage) for spent in view.attempts["a"]] == [
        (1, "retry", PRICED),
        (2, "success", UNPRICED),
    ]
    assert run_table(view, GRAPH).splitlines()[-3:] == [
        "attempts of  visit  try  outcome  used",
        "a            1      1    retry    1,000 tokens, $0.25",
        "a            1      2    success  15 tokens, unpriced",
    ]


def test_the_table_of_nodes_has_a_column_for_what_was_used_only_where_something_was():
    assert "used" not in text_table(GRAPH, {}, {}, {}).splitlines()[0]
    rows = text_table(GRAPH, {}, {}, {"a": PRICED}).splitlines()
    assert "used" in rows[0]
    assert [("1,000 tokens, $0.25" in row) for row in rows[1:]] == [False, True, False]


def test_the_line_about_a_run_shows_what_it_used_on_request():
    view = RunView(status=RunStatus.SUCCESS, stages=2, usage=PRICED)
    assert run_summary(view, GRAPH, has_usage=True) == "✓ completed   2 stages   1,000 tokens   $0.25"
    assert run_summary(view, GRAPH) == "✓ completed   2 stages"
