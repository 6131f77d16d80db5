"""Events of fan-outs and child runs as states of nodes, edges and branches."""

import json

import pytest

from attractor_nb.model.events import (
    ChildEnded,
    ChildEvent,
    ChildStarted,
    ParallelBranchCompleted,
    ParallelBranchStarted,
    ParallelCompleted,
    ParallelStarted,
    PipelineCompleted,
    PipelineInterrupted,
    PipelineResumed,
    PipelineStarted,
    StageCompleted,
    StageFailed,
    StageStarted,
)
from attractor_nb.model.outcome import Outcome
from attractor_nb.model.states import NodeStatus, RunStatus
from attractor_nb.views.folding import fold_event, merge_deltas
from attractor_nb.views.state import RunView

OK = Outcome.success()
FAN = StageStarted(name="fan", handler_type="parallel")


def begin(count=3, policy="wait_all", fan="fan", branch=""):
    return ParallelStarted(name=fan, branch_count=count, join_policy=policy, branch=branch)


def started(branch_id, edge=None, fan="fan", within=""):
    path = f"{within}/{fan}/{branch_id}" if within else f"{fan}/{branch_id}"
    return ParallelBranchStarted(name=fan, id=branch_id, branch=path, start_node=branch_id, edge=edge)


def ended(branch_id, status="success", fan="fan", within="", **fields):
    path = f"{within}/{fan}/{branch_id}" if within else f"{fan}/{branch_id}"
    success = status.endswith("success")
    return ParallelBranchCompleted(name=fan, id=branch_id, branch=path, status=status, success=success, **fields)


def at(branch_id, node=None, **fields):
    return StageStarted(name=node or branch_id, branch=f"fan/{branch_id}", **fields)


def done(branch_id, node=None, **fields):
    return StageCompleted(name=node or branch_id, branch=f"fan/{branch_id}", outcome=OK, **fields)


def over(**fields):
    return StageCompleted(name="fan", outcome=OK, **fields)


def folded(*events):
    """The view after the events; what the deltas say is what the view says."""
    view, told = RunView(), {}
    for event in events:
        _, delta = fold_event(view, event)
        told = merge_deltas([told, delta])
    whole = view.to_plain()
    assert {name: told["nodes"][name] for name in whole["nodes"]} == whole["nodes"]
    assert told.get("edges", {}) == whole["edges"]
    json.dumps(told)
    return view


def statuses(view):
    return {name: state.status.value for name, state in view.nodes.items()}


def test_a_fan_out_says_how_many_branches_have_ended_and_how_far_its_policy_is_met():
    view = folded(FAN, begin(4), started("a"), started("b"), ended("a"), ended("b", "fail"))
    assert (view.nodes["fan"].progress, view.nodes["fan"].note) == ("2/4", "wait_all: 1 of 4, 1 failed")
    assert view.nodes["fan"].status is NodeStatus.RUNNING


def test_a_fan_out_that_one_branch_won_names_it():
    view = folded(FAN, begin(2, "first_success"), started("a"), started("b"), ended("b"), ended("a", "skipped"))
    assert view.nodes["fan"].note == "first_success: won by b"


def test_a_fan_out_keeps_what_it_said_when_its_stage_has_ended():
    view = folded(FAN, begin(1), started("a"), at("a"), done("a"), ended("a"), ParallelCompleted(name="fan"), over())
    assert view.nodes["fan"].status is NodeStatus.SUCCESS
    assert (view.nodes["fan"].progress, view.nodes["fan"].note) == ("1/1", "wait_all: 1 of 1")


def test_edges_of_branches_are_taken_when_the_branch_begins():
    view = folded(FAN, begin(2), started("a", 4), started("b", 5))
    assert {index: edge.passes for index, edge in view.edges.items()} == {4: 1, 5: 1}


def test_a_stage_under_way_in_a_branch_that_is_cancelled_is_skipped():
    view = folded(
        FAN, begin(2), started("a"), at("a"), started("b"), at("b"), done("b"), ended("b"), ended("a", "skipped")
    )
    assert statuses(view) == {"fan": "running", "a": "skipped", "b": "success"}
    assert view.active_nodes == ("fan",)


def test_a_branch_that_was_cancelled_before_it_began_took_no_edge():
    view = folded(FAN, begin(2), started("b", 5), ended("b", "skipped"))
    assert (view.nodes["b"].status, view.edges[5].passes) == (NodeStatus.SKIPPED, 0)


def test_what_was_under_way_in_a_branch_of_a_cancelled_branch_is_skipped_too():
    view = folded(
        FAN,
        begin(2),
        started("a"),
        at("a", "inner"),
        begin(1, fan="inner", branch="fan/a"),
        started("x", fan="inner", within="fan/a"),
        StageStarted(name="x", branch="fan/a/inner/x"),
        ended("a", "skipped"),
    )
    assert statuses(view) == {"fan": "running", "inner": "skipped", "x": "skipped"}


def test_a_node_shows_what_still_goes_on_there_in_another_branch():
    first = (FAN, begin(2), started("a"), started("b"), at("a", "x", time=1.0), at("b", "x", time=2.0))
    view = folded(*first, done("a", "x"))
    assert view.nodes["x"].status is NodeStatus.RUNNING
    view = folded(*first, ended("a", "skipped"))
    assert view.nodes["x"].status is NodeStatus.RUNNING
    view = folded(*first, done("a", "x"), done("b", "x"))
    assert view.nodes["x"].status is NodeStatus.SUCCESS


def test_a_failure_in_a_branch_is_shown_where_it_happened():
    failed = StageFailed(name="a", branch="fan/a", outcome=Outcome.fail("no"), error="no")
    view = folded(FAN, begin(1), started("a"), at("a"), failed, ended("a", "fail", failure_reason="no"))
    assert (view.nodes["a"].status, view.nodes["a"].reason) == (NodeStatus.FAIL, "no")
    assert view.branches["fan/a"].reason == "no"


@pytest.mark.parametrize(
    "between",
    [(over(),), (StageFailed(name="fan", outcome=Outcome.retry("no"), error="no", will_retry=True),)],
    ids=["loop", "retry"],
)
def test_a_fan_out_that_is_passed_again_begins_with_nothing(between):
    again = StageStarted(name="fan", visit=2)
    view = folded(
        FAN, begin(2), started("a"), at("a"), done("a"), started("b"), ended("a"), ended("b"), *between, again, begin(2)
    )
    assert view.nodes["a"].status is NodeStatus.PENDING
    assert (view.nodes["fan"].progress, view.fan_outs["", "fan"].branches) == ("0/2", {})


def test_a_fan_out_that_is_resumed_keeps_what_its_branches_did():
    view = folded(
        PipelineStarted(name="p", id="1"),
        FAN,
        begin(2),
        started("a", 1),
        at("a"),
        done("a"),
        ended("a"),
        started("b", 2),
        at("b"),
        PipelineInterrupted(reason="cancelled", next_node="fan"),
        PipelineResumed(next_node="fan"),
        FAN,
        begin(2),
        at("b"),
    )
    assert statuses(view) == {"fan": "running", "a": "success", "b": "running"}
    assert view.nodes["fan"].progress == "1/2"
    assert [edge.passes for edge in view.edges.values()] == [1, 1]


def test_a_branch_knows_how_long_it_took_and_where_it_went():
    view = folded(FAN, begin(1), started("a"), at("a"), done("a"), at("a", "x"), ended("a", duration=2.5))
    branch = view.branches["fan/a"]
    assert (branch.duration, list(branch.nodes), branch.status) == (2.5, ["a", "x"], "success")


CHILD = ChildStarted(name="sub", child_id="c1", pipeline="Inner")


def inside(event, child="c1"):
    return ChildEvent(name="sub", child_id=child, event=event)


def test_a_child_run_is_folded_into_a_view_of_its_own():
    view = folded(
        StageStarted(name="sub"), CHILD, inside(PipelineStarted(name="i", id="c1")), inside(StageStarted(name="plan"))
    )
    assert view.children["sub"].view.nodes["plan"].status is NodeStatus.RUNNING
    assert view.nodes["sub"].note == "at plan, 0 stages"
    assert "plan" not in view.nodes


def test_a_child_run_that_has_ended_says_how():
    view = folded(
        StageStarted(name="sub"),
        CHILD,
        inside(StageCompleted(name="plan", outcome=OK)),
        inside(PipelineCompleted(duration=1.0)),
        ChildEnded(name="sub", child_id="c1", status="completed"),
        StageCompleted(name="sub", outcome=OK),
    )
    assert (view.nodes["sub"].note, view.nodes["sub"].status) == ("completed, 1 stage", NodeStatus.SUCCESS)


def test_of_a_child_run_that_nobody_heard_the_end_is_known():
    view = folded(StageStarted(name="sub"), CHILD, ChildEnded(name="sub", child_id="c1", status="failed", reason="no"))
    assert view.children["sub"].view.status is RunStatus.FAIL
    assert view.nodes["sub"].note == "failed"


def test_a_child_of_a_child_is_shown_within_it():
    deeper = ChildStarted(name="deep", child_id="c2")
    view = folded(
        StageStarted(name="sub"),
        CHILD,
        inside(StageStarted(name="deep")),
        inside(deeper),
        inside(ChildEvent(name="deep", child_id="c2", event=StageStarted(name="x"))),
    )
    assert view.children["sub"].view.children["deep"].view.active_nodes == ("x",)


def test_another_child_run_of_a_node_takes_the_place_of_the_one_before():
    view = folded(StageStarted(name="sub"), CHILD, inside(StageStarted(name="plan"), "c1"))
    _, delta = fold_event(view, ChildStarted(name="sub", child_id="c2"))
    assert delta["children"]["sub"]["nodes"] == {"plan": {"status": "pending"}}
    assert view.children["sub"].view.nodes == {}
    assert fold_event(view, inside(StageStarted(name="late"), "c1"))[1] == {}


def test_deltas_of_child_runs_merge_as_those_of_the_run():
    first = {"children": {"a": {"nodes": {"x": 1}}, "b": {"run": "running"}}}
    second = {"children": {"a": {"nodes": {"y": 2}}}}
    assert merge_deltas([first, second])["children"] == {"a": {"nodes": {"x": 1, "y": 2}}, "b": {"run": "running"}}
