"""The next node of a run after each outcome (spec 3.7; rulings 14, 15, 16, 20)."""

from __future__ import annotations

import pytest

from attractor_nb.decisions.routing import ConditionOutcome, end_reason, next_step
from attractor_nb.model.outcome import Outcome, StageStatus

DIAMOND = {"shape": "diamond"}
LOST = Outcome.fail("tests failed")


def out(target, **attrs):
    return ("work", target, attrs)


def after(plan, outcome, seen=None, node="work"):
    seen = seen or ConditionOutcome(outcome.status, outcome.preferred_label)
    return next_step(plan, plan.nodes[node], outcome, seen, {"flag": "on"}.get)


def why(plan, outcome, seen=None, node="work"):
    seen = seen or ConditionOutcome(outcome.status, outcome.preferred_label)
    return end_reason(plan, plan.nodes[node], outcome, seen, {"flag": "on"}.get)


RETRY_NODE = {"work": {"retry_target": "plan", "fallback_retry_target": "help"}, "plan": {}, "help": {}}
FAILURES = {
    "a condition that holds": ([out("a", condition="outcome=fail"), out("b")], {}, {}, LOST, ("a", "condition")),
    "any condition that holds": ([out("a", condition="flag=on")], {}, {}, LOST, ("a", "condition")),
    "the preferred label": (
        [out("a", label="Fix"), out("b")],
        {},
        {},
        Outcome(StageStatus.FAIL, preferred_label="fix"),
        ("a", "preferred_label"),
    ),
    "a suggested id": (
        [out("a"), out("b")],
        {},
        {},
        Outcome(StageStatus.FAIL, suggested_next_ids=("b",)),
        ("b", "suggested_id"),
    ),
    "the default edge": ([out("a"), out("b", default=True)], {}, {}, LOST, ("b", "default")),
    "an unconditional edge into a diamond": (
        [out("a", weight=9), out("check")],
        {"check": DIAMOND},
        {},
        LOST,
        ("check", "conditional_target"),
    ),
    "a condition before the retry target": (
        [out("a", condition="outcome=fail")],
        RETRY_NODE,
        {},
        LOST,
        ("a", "condition"),
    ),
    "a diamond before the retry target": (
        [out("check")],
        {**RETRY_NODE, "check": DIAMOND},
        {},
        LOST,
        ("check", "conditional_target"),
    ),
    "the retry target": ([out("a")], RETRY_NODE, {}, LOST, ("plan", "retry_target")),
    "the fallback without a retry target": (
        [out("a")],
        {"work": {"fallback_retry_target": "help"}, "help": {}},
        {},
        LOST,
        ("help", "fallback_retry_target"),
    ),
    "the fallback for a retry target that is not there": (
        [out("a")],
        {"work": {"retry_target": "nowhere", "fallback_retry_target": "help"}, "help": {}},
        {},
        LOST,
        ("help", "fallback_retry_target"),
    ),
    "the node's target before the graph's": (
        [out("a")],
        RETRY_NODE,
        {"retry_target": "help"},
        LOST,
        ("plan", "retry_target"),
    ),
    "the graph's retry target": ([out("a")], {}, {"retry_target": "a"}, LOST, ("a", "graph_retry_target")),
    "the graph's fallback": (
        [out("a")],
        {},
        {"fallback_retry_target": "a"},
        LOST,
        ("a", "graph_fallback_retry_target"),
    ),
    "an exhausted RETRY as a FAIL": ([out("a")], RETRY_NODE, {}, Outcome.retry("busy"), ("plan", "retry_target")),
    "on_fail=continue: an unconditional edge": ([out("a")], {}, {"on_fail": "continue"}, LOST, ("a", "only_edge")),
    "on_fail=continue: a retry target at a dead end": (
        [out("a", condition="flag=off")],
        RETRY_NODE,
        {"on_fail": "continue"},
        LOST,
        ("plan", "retry_target"),
    ),
}


@pytest.mark.parametrize(("edges", "nodes", "attrs", "outcome", "expected"), FAILURES.values(), ids=FAILURES)
def test_ruling_15_a_failure_goes_on_by_the_first_of_its_routes(build, edges, nodes, attrs, outcome, expected):
    step = after(build.plan(edges, nodes, **attrs), outcome)
    assert (step.target, step.reason) == expected


def test_ruling_15_an_unconditional_edge_is_not_taken_after_a_failure(build):
    plan = build.plan([out("done")])
    assert after(plan, LOST) is None


def test_ruling_15_the_pipeline_fails_with_the_stages_reason(build):
    assert why(build.plan([out("done")]), LOST) == "tests failed"


def test_a_failure_without_a_reason_names_the_node(build):
    assert why(build.plan([out("done")]), Outcome.fail("")) == "work failed without a reason"


def test_a_jump_has_no_edge(build):
    assert after(build.plan([out("a")], RETRY_NODE), LOST).edge is None


@pytest.mark.parametrize(
    "status", [StageStatus.SUCCESS, StageStatus.PARTIAL_SUCCESS, StageStatus.SKIPPED], ids=lambda status: status.value
)
def test_success_partial_success_and_skipped_leave_by_the_ordinary_rules(build, status):
    step = after(build.plan([out("a")], RETRY_NODE), Outcome(status))
    assert (step.target, step.reason) == ("a", "only_edge")


def test_a_success_never_jumps_to_a_retry_target(build):
    assert after(build.plan([out("a", condition="flag=off")], RETRY_NODE), Outcome.success()) is None


def test_ruling_14_a_stage_whose_edges_all_refuse_fails_the_pipeline_with_the_values_they_saw(build):
    plan = build.plan([out("a", condition="flag=off")])
    assert why(plan, Outcome.success()) == ('no matching edge from work (outcome success): a when `flag=off` saw "on"')


def test_ruling_14_a_stage_without_edges_may_end_the_run_with_its_outcome(build):
    assert why(build.plan(nodes={"work": {}}), Outcome.success()) == ""


def routed_by_diamond(build, *edges, **attrs):
    plan = build.plan([("check", target, values) for target, values in edges], {"check": DIAMOND}, **attrs)
    seen = ConditionOutcome(StageStatus.FAIL, "")
    return plan, after(plan, Outcome.success(), seen, "check"), seen


def test_ruling_16_a_diamond_routes_on_the_outcome_of_the_stage_before_it(build):
    _, step, _ = routed_by_diamond(build, ("a", {"condition": "outcome=success"}), ("b", {"condition": "outcome=fail"}))
    assert step.target == "b"


def test_ruling_16_the_unconditional_edge_of_a_diamond_is_the_else_of_its_conditions(build):
    _, step, _ = routed_by_diamond(build, ("a", {"condition": "outcome=success"}), ("b", {}))
    assert step.target == "b"


def test_a_diamond_without_conditions_lets_no_failure_through(build):
    plan, step, seen = routed_by_diamond(build, ("done", {}))
    assert step is None
    assert why(plan, Outcome.success(), seen, "check") == (
        "the failure before check is not handled: the diamond has no condition"
    )


def test_a_diamond_of_its_own_outcome_is_not_a_route_for_failures(build):
    plan = build.plan([out("check")], {"check": DIAMOND}, conditional_outcome="own")
    assert after(plan, LOST) is None


def test_a_diamond_of_its_own_outcome_leaves_as_any_stage(build):
    plan = build.plan([("check", "done")], {"check": DIAMOND}, conditional_outcome="own")
    assert after(plan, Outcome.success(), ConditionOutcome(StageStatus.FAIL), "check").target == "done"


AROUND = [("start", "plan"), ("plan", "fan"), ("fan", "work"), ("fan", "other"), ("work", "join"), ("other", "join")]


@pytest.mark.parametrize(
    ("target", "attrs", "graph_attrs", "expected"),
    [
        ("plan", {}, {}, ("plan", "retry_target")),
        ("fan", {}, {}, ("fan", "retry_target")),
        ("work", {}, {}, ("work", "retry_target")),
        ("plan", {"error_policy": "ignore"}, {}, None),
        ("work", {"error_policy": "ignore"}, {}, ("work", "retry_target")),
        ("", {}, {"retry_target": "plan"}, None),
    ],
    ids=["before", "the-fan-out", "within", "before-ignored", "within-ignored", "of-the-graph"],
)
def test_ruling_36_where_a_failure_in_a_branch_goes(build, target, attrs, graph_attrs, expected):
    nodes = {
        "fan": {"shape": "component", **attrs},
        "join": {"shape": "tripleoctagon"},
        "work": {"retry_target": target},
    }
    plan = build.plan(AROUND, nodes, **graph_attrs)
    step = next_step(plan, plan.nodes["work"], LOST, ConditionOutcome(LOST.status), {}.get, "fan/work")
    assert (step and (step.target, step.reason)) == expected


def test_ruling_36_a_fan_out_goes_where_a_branch_of_it_leads_back_to(build):
    nodes = {"fan": {"shape": "component", "retry_target": "start"}, "join": {"shape": "tripleoctagon"}}
    plan = build.plan(AROUND, nodes)
    failed = Outcome(StageStatus.FAIL, failure_reason="red", suggested_next_ids=("plan",))
    step = next_step(plan, plan.nodes["fan"], failed, ConditionOutcome(failed.status), {}.get)
    assert (step.target, step.reason) == ("plan", "retry_target")
