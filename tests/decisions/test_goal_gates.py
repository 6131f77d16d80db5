"""Goal gates that let a run end, or do not (spec 3.4; rulings 16, 17, 20)."""

from __future__ import annotations

import pytest

from attractor_nb.decisions.run_endings import find_unsatisfied, never_visited, passed_over, redirect_target
from attractor_nb.model.outcome import StageStatus

S, P, F, R = StageStatus.SUCCESS, StageStatus.PARTIAL_SUCCESS, StageStatus.FAIL, StageStatus.RETRY
GATE = {"goal_gate": True}
NODES = {"plan": {}, "test": GATE, "review": GATE, "check": {"shape": "diamond", **GATE}}

CHECKS = {
    "all succeeded": ({"plan": S, "test": S, "review": S}, (), None),
    "partial success passes": ({"test": P, "review": S}, (), None),
    "a failed gate": ({"test": F, "review": S}, (), "test"),
    "an exhausted gate": ({"test": R}, (), "test"),
    "the first visited of two": ({"review": F, "test": F}, (), "review"),
    "an ordinary failed stage": ({"plan": F, "test": S}, (), None),
    "a stale gate, although it succeeded": ({"test": S, "review": S}, ("review",), "review"),
    "ruling 16: a diamond counts for no gate": ({"check": F, "test": S}, (), None),
    "nothing visited": ({}, (), None),
}


@pytest.mark.parametrize(("outcomes", "stale", "expected"), CHECKS.values(), ids=CHECKS)
def test_ruling_17_the_first_visited_gate_that_has_not_succeeded_keeps_the_run_from_ending(
    build, outcomes, stale, expected
):
    assert find_unsatisfied(build.plan(nodes=NODES), outcomes, tuple(outcomes), stale) == expected


def test_ruling_20_a_skipped_gate_neither_passes_nor_fails(build):
    assert find_unsatisfied(build.plan(nodes=NODES), {}, ("test",), ()) is None


def test_a_graph_without_gates_is_never_held_up(build):
    assert find_unsatisfied(build.plan(nodes={"plan": {}}), {"plan": F}, ("plan",), ()) is None


def test_a_node_that_the_graph_no_longer_has_is_no_gate(build):
    assert find_unsatisfied(build.plan(nodes=NODES), {"gone": F}, ("gone",), ()) is None


TARGETS = {
    "the node's": ({"retry_target": "plan", "fallback_retry_target": "help"}, {}, ("plan", "retry_target")),
    "the node's fallback": ({"fallback_retry_target": "help"}, {}, ("help", "fallback_retry_target")),
    "the graph's": ({}, {"retry_target": "plan"}, ("plan", "graph_retry_target")),
    "the graph's fallback": ({}, {"fallback_retry_target": "help"}, ("help", "graph_fallback_retry_target")),
    "the node's fallback before the graph's target": (
        {"fallback_retry_target": "help"},
        {"retry_target": "plan"},
        ("help", "fallback_retry_target"),
    ),
}


@pytest.mark.parametrize(("attrs", "graph_attrs", "expected"), TARGETS.values(), ids=TARGETS)
def test_an_unsatisfied_gate_sends_the_run_to_the_first_target_that_is_set(build, attrs, graph_attrs, expected):
    plan = build.plan(nodes={"test": {**GATE, **attrs}, "plan": {}, "help": {}}, **graph_attrs)
    step = redirect_target(plan, "test")
    assert (step.target, step.reason) == expected


def test_without_any_target_there_is_no_way_back(build):
    assert redirect_target(build.plan(nodes={"test": GATE}), "test") is None


PASSED = {
    "gates after the target": (["start", "plan", "test", "review"], "plan", {"test", "review"}),
    "the target itself": (["plan", "test", "review"], "test", {"test", "review"}),
    "only since the last visit": (["plan", "test", "plan", "review"], "plan", {"review"}),
    "a target never visited": (["plan", "test"], "review", set()),
    "a diamond is no gate": (["plan", "check"], "plan", set()),
    "nothing executed": ([], "plan", set()),
}


@pytest.mark.parametrize(("completed", "target", "expected"), PASSED.values(), ids=PASSED)
def test_ruling_17_a_gate_that_a_redirect_passed_over_must_be_executed_again(build, completed, target, expected):
    assert passed_over(build.plan(nodes=NODES), completed, target) == expected


def test_declared_gates_that_were_never_visited_are_named(build):
    assert never_visited(build.plan(nodes=NODES), {"plan", "review"}) == ("test",)
