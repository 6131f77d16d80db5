"""Folding events into what views show."""

import gc
import json
import sys

import pytest

from attractor_nb import parse_dot
from attractor_nb.model.events import (
    CheckpointSaved,
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    PipelineCompleted,
    PipelineFailed,
    PipelineInterrupted,
    PipelineResumed,
    PipelineStarted,
    StageCompleted,
    StageFailed,
    StageRetrying,
    StageStarted,
)
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.model.states import NodeStatus, RunStatus
from attractor_nb.views.folding import fold_event, merge_deltas
from attractor_nb.views.mermaid import to_mermaid
from attractor_nb.views.state import NodeState, RunView, first_words

STARTED = PipelineStarted(name="p", id="1")
OK = Outcome.success()


def folded(*events):
    view = RunView()
    for event in events:
        fold_event(view, event)
    return view


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([StageStarted(name="a")], "running"),
        ([StageCompleted(name="a", outcome=OK)], "success"),
        ([StageCompleted(name="a", outcome=Outcome(StageStatus.PARTIAL_SUCCESS))], "partial_success"),
        ([StageCompleted(name="a", outcome=Outcome(StageStatus.SKIPPED))], "skipped"),
        ([StageFailed(name="a", outcome=Outcome.fail("no"), error="no")], "fail"),
        ([StageFailed(name="a", outcome=Outcome.retry("no"), error="no", will_retry=True)], "retrying"),
        ([StageRetrying(name="a", attempt=2, delay=1.0)], "retrying"),
        ([InterviewStarted(question="ok?", stage="a")], "waiting"),
        (
            [
                InterviewStarted(question="ok?", stage="a"),
                InterviewCompleted(question="ok?", stage="a", answer="Y", duration=1),
            ],
            "running",
        ),
        (
            [InterviewStarted(question="ok?", stage="a"), InterviewTimeout(question="ok?", stage="a", duration=1)],
            "running",
        ),
    ],
    ids=lambda value: "-".join(event.type for event in value) if isinstance(value, list) else value,
)
def test_events_set_the_status_of_their_node(events, status):
    assert folded(*events).nodes["a"].status == status


@pytest.mark.parametrize("is_asked_before", [True, False], ids=["asked", "asked in a part that is not known"])
def test_an_answer_to_a_run_that_has_stopped_starts_nothing(is_asked_before):
    asked = [STARTED, StageStarted(name="g"), InterviewStarted(question="ok?", stage="g")] if is_asked_before else []
    answer = InterviewCompleted(question="ok?", stage="g", answer="Y", label="Yes", duration=1)
    view = folded(*asked, PipelineInterrupted(reason="paused", next_node="g"), answer)
    assert (view.nodes["g"].status, view.nodes["g"].note) == (NodeStatus.PENDING, "answered: Yes")
    assert not view.active_nodes
    resumed = folded(*asked, PipelineInterrupted(), answer, PipelineResumed(next_node="g"), StageStarted(name="g"))
    assert (resumed.nodes["g"].status, resumed.nodes["g"].note) == (NodeStatus.RUNNING, "")


def test_an_answer_that_the_end_of_its_process_cut_off_is_still_shown():
    answer = InterviewCompleted(question="ok?", stage="g", answer="words", duration=1)
    view = folded(STARTED, InterviewStarted(question="ok?", stage="g"), answer, PipelineInterrupted(next_node="g"))
    assert (view.nodes["g"].status, view.nodes["g"].note) == (NodeStatus.PENDING, "answered")


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (STARTED, RunStatus.RUNNING),
        (PipelineCompleted(duration=1), RunStatus.SUCCESS),
        (PipelineFailed(error="no", duration=1), RunStatus.FAIL),
        (PipelineInterrupted(reason="paused", next_node="b"), RunStatus.INTERRUPTED),
    ],
    ids=lambda value: getattr(value, "type", ""),
)
def test_events_set_the_status_of_the_run(event, status):
    view, delta = fold_event(RunView(), event)
    assert view.status is status
    assert delta["run"] == status.value


def test_what_was_under_way_when_the_run_ended_is_shown_as_not_reached():
    view = folded(STARTED, StageStarted(name="a"))
    _, delta = fold_event(view, PipelineInterrupted(reason="cancelled", next_node="a"))
    assert view.nodes["a"].status is NodeStatus.PENDING
    assert delta == {"run": "interrupted", "nodes": {"a": {"status": "pending", "visits": 1}}}


def test_a_commit_counts_the_stage_its_edge_and_its_usage():
    end = StageCompleted(name="a", outcome=Outcome(StageStatus.SUCCESS, usage=Usage(5, 7, 0.1, 1)), edge=3)
    view = folded(STARTED, end, end)
    assert (view.stages, view.edges[3].passes, view.usage.total_tokens) == (2, 2, 24)


def test_an_attempt_that_is_tried_again_is_no_stage_and_takes_no_edge():
    view = folded(StageFailed(name="a", outcome=Outcome.retry("no"), error="no", will_retry=True, edge=1))
    assert (view.stages, dict(view.edges)) == (0, {})


def test_a_jump_takes_no_edge():
    view = folded(StageFailed(name="a", outcome=Outcome.fail("no"), next_node="b"))
    assert dict(view.edges) == {}


def test_attempts_and_visits_are_kept():
    state = folded(StageStarted(name="a", attempt=3, visit=2, time=5.0)).nodes["a"]
    assert (state.attempt, state.visits, state.since) == (3, 2, 5.0)


def test_a_wait_knows_when_it_ends():
    view = folded(StageRetrying(name="a", attempt=2, delay=3.0, time=10.0))
    assert view.nodes["a"].until == 13.0
    view = folded(InterviewStarted(question="ok?", stage="g", deadline=60.0, time=10.0))
    assert view.nodes["g"].until == 60.0


def test_events_that_show_nothing_give_an_empty_delta():
    assert fold_event(RunView(), CheckpointSaved(saved_node="a"))[1] == {}


def test_a_delta_is_json_of_less_than_200_bytes_whatever_the_size_of_the_graph():
    view = RunView(nodes={f"n{number}": NodeState(NodeStatus.SUCCESS, 1, 1) for number in range(10_000)})
    events = [
        StageStarted(name="implement_the_change", attempt=3, visit=12, time=1_795_000_000.123456),
        StageRetrying(name="implement_the_change", attempt=3, visit=12, delay=1.5, time=1_795_000_000.123456),
        StageCompleted(name="implement_the_change", visit=12, outcome=OK, edge=14_000),
        StageFailed(name="implement_the_change", visit=12, outcome=Outcome.fail("x" * 500), error="why " * 500, edge=1),
    ]
    for event in events:
        assert len(json.dumps(fold_event(view, event)[1], ensure_ascii=False).encode()) <= 200


def test_folding_does_the_same_work_whatever_the_size_of_the_graph():
    """Counted in function calls, which no busy machine can change."""

    def calls(size):
        view = RunView(nodes={f"n{number}": NodeState() for number in range(size)})
        count = 0

        def tracer(frame, kind, argument):
            nonlocal count
            count += kind in {"call", "c_call"}

        gc.collect()
        gc.disable()  # the finalizers of what other tests left are no part of it
        sys.setprofile(tracer)
        try:
            fold_event(view, StageCompleted(name="n1", outcome=OK, edge=2))
        finally:
            sys.setprofile(None)
            gc.enable()
        return count

    assert calls(10_000) == calls(10) < 60


def test_deltas_add_up_to_the_whole_state():
    events = [
        STARTED,
        StageStarted(name="a", time=1.0),
        StageCompleted(name="a", outcome=OK, edge=0, time=2.0),
        StageStarted(name="b", time=3.0),
        StageFailed(name="b", outcome=Outcome.fail("no"), error="no", edge=1, time=4.0),
        PipelineFailed(error="no", duration=3.0),
    ]
    view, whole = RunView(), {}
    for event in events:
        whole = merge_deltas([whole, fold_event(view, event)[1]])
    assert whole == view.to_plain()


def test_active_nodes_are_those_where_something_goes_on():
    view = folded(
        StageStarted(name="a"), InterviewStarted(question="?", stage="b"), StageCompleted(name="c", outcome=OK)
    )
    assert view.active_nodes == ("a", "b")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("short", "short"),
        ("two\nlines", "two lines"),
        ("a" * 100, "a" * 59 + "…"),
        ("word " * 30, "word " * 11 + "word…"),
    ],
    ids=["short", "lines", "no space", "words"],
)
def test_reasons_are_cut_at_a_word(text, words):
    assert first_words(text) == words


class Meanwhile(NodeState):
    """A state at which the engine's thread is just adding a node, whatever is asked of it."""

    __slots__ = ()
    view = None

    def __getattribute__(self, name):
        nodes = type(self).view.nodes
        nodes[f"new{len(nodes)}"] = NodeState(NodeStatus.RUNNING)
        return super().__getattribute__(name)


@pytest.mark.parametrize(
    "look",
    [lambda view: view.active_nodes, RunView.to_plain, lambda view: to_mermaid(parse_dot("digraph {a; b}"), view)],
    ids=["active_nodes", "to_plain", "to_mermaid"],
)
def test_a_view_that_grows_while_somebody_looks_is_shown_as_it_was(look):
    view = Meanwhile.view = RunView()
    view.nodes |= {"a": Meanwhile(NodeStatus.RUNNING), "b": Meanwhile(NodeStatus.RUNNING)}
    assert look(view)
    assert len(view.nodes) > 2, "nothing grew, so nothing was shown"
