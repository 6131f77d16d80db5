"""The run as a table: routing, retries, gates, redirects, restarts and bounds, performed by hand."""

import pytest

from attractor_nb.decisions.run_state import InFlight, RunState
from attractor_nb.model.events import (
    GoalGateUnsatisfied,
    RunWarning,
    StageCompleted,
    StageEnd,
    StageFailed,
    StageRetrying,
)
from attractor_nb.model.outcome import Outcome, StageStatus, Usage

FAIL, RETRY = Outcome.fail("broken"), Outcome.retry("busy")
PARTIAL, SKIPPED = Outcome(StageStatus.PARTIAL_SUCCESS), Outcome(StageStatus.SKIPPED)
LABEL = Outcome(StageStatus.SUCCESS, preferred_label="Right")


def suggest(*ids):
    return Outcome(StageStatus.SUCCESS, suggested_next_ids=ids)


@pytest.mark.parametrize(
    ("body", "script", "path", "reason"),
    [
        pytest.param("a start -> a -> done", {}, "start a done", "", id="straight"),
        pytest.param(
            'a b c start -> a a -> b [label="Left"] a -> c [label="Right"] b -> done c -> done',
            {"a": LABEL},
            "start a c done",
            "",
            id="preferred_label",
        ),
        pytest.param(
            "a b c start -> a a -> b a -> c b -> done c -> done",
            {"a": suggest("c")},
            "start a c done",
            "",
            id="suggested_id",
        ),
        pytest.param(
            'a b c start -> a a -> b [condition="outcome=fail"] a -> c b -> done c -> done',
            {"a": FAIL},
            "start a b done",
            "",
            id="fail_edge",
        ),
        pytest.param("a b start -> a -> b -> done", {"a": FAIL}, "start a", "broken", id="fail_ends_the_run"),
        pytest.param(
            "on_fail=continue a b start -> a -> b -> done", {"a": FAIL}, "start a b done", "", id="on_fail_continue"
        ),
        pytest.param("a b start -> a -> b -> done", {"a": PARTIAL}, "start a b done", "", id="partial_success_goes_on"),
        pytest.param("a b start -> a -> b -> done", {"a": RETRY}, "start a", "busy", id="retry_is_fail"),
        pytest.param(
            "a [retry_target=b] b start -> b -> a -> done",
            {"a": [FAIL, Outcome.success()]},
            "start b a b a done",
            "",
            id="node_retry_target",
        ),
        pytest.param(
            "retry_target=b a b start -> b -> a -> done",
            {"a": [FAIL, Outcome.success()]},
            "start b a b a done",
            "",
            id="graph_retry_target",
        ),
        pytest.param(
            'a check [shape=diamond] good bad start -> a -> check check -> good [condition="outcome=success"]'
            ' check -> bad [condition="outcome=fail"] good -> done bad -> done',
            {"a": FAIL},
            "start a check bad done",
            "",
            id="diamond_routes_a_failure",
        ),
    ],
)
def test_a_run_takes_its_way(replay, body, script, path, reason):
    found = replay(body, script)
    assert " ".join(found.path) == path
    assert (found.end.is_success, found.end.reason) == (not reason, reason)


@pytest.mark.parametrize(
    ("attrs", "replies", "tries", "status"),
    [
        ("", [RETRY], 1, "fail"),
        ("max_retries=2", [RETRY], 3, "fail"),
        ("max_retries=2", [FAIL, RETRY, Outcome.success()], 3, "success"),
        ("max_retries=2, allow_partial=true", [RETRY], 3, "partial_success"),
        ("max_retries=2", [Outcome.fail("no key", is_terminal=True)], 1, "fail"),
        ("max_retries=2", [SKIPPED], 1, "skipped"),
        ("retry_policy=linear", [RETRY], 3, "fail"),
        ("retry_policy=linear", [FAIL], 1, "fail"),
    ],
)
def test_ruling_13_a_stage_is_tried_as_often_as_its_policy_says(replay, attrs, replies, tries, status):
    found = replay(f"a [{attrs}] start -> a -> done", {"a": replies})
    assert [attempt for node, _, attempt in found.tries if node == "a"] == list(range(1, tries + 1))
    assert next(event for event in found.of(StageEnd) if event.name == "a" and event.is_commit).outcome.status == status
    assert len(found.waits) == tries - 1


def test_ruling_13_every_failed_attempt_is_announced_before_the_wait(replay):
    found = replay("a [max_retries=1] start -> a -> done", {"a": [RETRY, Outcome.success()]})
    kinds = [type(event) for event in found.events]
    assert kinds == [StageCompleted, StageFailed, StageRetrying, StageCompleted, StageCompleted]
    failed, retrying = found.events[1], found.events[2]
    assert (failed.will_retry, failed.error, failed.is_commit) == (True, "busy", False)
    assert (retrying.attempt, retrying.delay) == (2, 0.2)
    assert found.context.get("internal.retry_count.a") == 0


def test_ruling_13_the_default_of_the_graph_applies_where_a_node_says_nothing(replay):
    found = replay("default_max_retry=1 a b [max_retries=0] start -> a -> b -> done", {"a": RETRY})
    assert [node for node, _, _ in found.tries] == ["start", "a", "a"]


@pytest.mark.parametrize("body", ['a b start -> a a -> b [condition="context.x=1"] b -> done'])
def test_ruling_14_no_matching_edge_fails_naming_conditions_and_values(replay, body):
    found = replay(body, inputs={"x": 2})
    assert not found.end.is_success
    assert "no matching edge from a" in found.end.reason
    assert '`context.x=1` saw "2"' in found.end.reason


@pytest.mark.parametrize(("outcome", "is_success"), [(Outcome.success(), True), (FAIL, False), (SKIPPED, True)])
def test_ruling_14_without_edges_the_run_ends_with_that_stages_outcome(replay, outcome, is_success):
    assert replay("a start -> a", {"a": outcome}).end.is_success is is_success


def test_ruling_14_gates_are_checked_before_a_dead_end_too(replay):
    found = replay(
        'g [goal_gate=true] a start -> g g -> a [condition="outcome=fail"]', {"g": FAIL, "a": Outcome.success()}
    )
    assert "goal_gate_unsatisfied: g" in found.end.reason


def test_ruling_16_the_outcome_of_a_diamond_does_not_reach_the_context(replay):
    found = replay(
        'a check [shape=diamond] b start -> a -> check check -> b [condition="outcome=fail"] b -> done', {"a": FAIL}
    )
    at_check = next(event for event in found.of(StageEnd) if event.name == "check")
    assert at_check.outcome.status is StageStatus.SUCCESS
    assert "outcome" not in at_check.context
    assert found.path == ["start", "a", "check", "b", "done"]


def test_ruling_16_conditional_outcome_own_gives_the_letter_of_4_7(replay):
    found = replay(
        'conditional_outcome=own a b [shape=diamond] yes start -> a a -> b [condition="outcome=fail"]'
        ' b -> yes [condition="outcome=success"] yes -> done',
        {"a": FAIL},
    )
    assert found.path == ["start", "a", "b", "yes", "done"]


def test_ruling_16_a_diamond_counts_for_no_gate(replay):
    found = replay(
        'd [shape=diamond, goal_gate=true] a start -> a -> d d -> done [condition="outcome=fail"]', {"a": FAIL}
    )
    assert found.end.is_success


GATES = 'a g [goal_gate=true, retry_target=a] start -> a -> g g -> done [condition="outcome!=retry"]'


def test_ruling_17_a_redirect_is_announced_with_its_count(replay):
    found = replay(GATES, {"g": [FAIL, FAIL, Outcome.success()]})
    assert [(event.gate, event.target, event.redirects) for event in found.of(GoalGateUnsatisfied)] == [
        ("g", "a", 1),
        ("g", "a", 2),
    ]
    assert found.path == ["start", "a", "g", "a", "g", "a", "g", "done"]


def test_ruling_17_redirects_are_bounded(replay):
    found = replay(GATES, {"g": FAIL}, max_goal_gate_redirects=3)
    assert not found.end.is_success
    assert found.end.is_resumable
    assert "max_goal_gate_redirects=3" in found.end.reason
    assert "a -> g -> a" in found.end.reason
    assert found.path.count("g") == 4


def test_ruling_17_the_default_bound_of_redirects_is_ten(replay):
    assert replay(GATES, {"g": FAIL}).path.count("g") == 11


def test_ruling_17_gates_are_checked_in_order_of_first_visit(replay):
    found = replay(
        "z [goal_gate=true, retry_target=z] a [goal_gate=true, retry_target=a] start -> z"
        ' z -> a [condition="outcome!=retry"] a -> done [condition="outcome!=retry"]',
        {"z": [FAIL, Outcome.success()], "a": [FAIL, Outcome.success()]},
    )
    assert found.of(GoalGateUnsatisfied)[0].gate == "z"


def test_ruling_17_a_gate_that_a_redirect_passed_over_is_executed_again(replay):
    """The way back leads round ``one`` the second time: its old success does not count."""
    found = replay(
        """back one [goal_gate=true, retry_target=one] two [goal_gate=true, retry_target=back]
        start -> back back -> one [condition="context.skip!=yes"] back -> two [condition="context.skip=yes"]
        one -> two two -> done [condition="outcome!=retry"]""",
        {
            "back": [Outcome.success(), Outcome.success(context_updates={"skip": "yes"})],
            "two": [FAIL, Outcome.success()],
        },
    )
    assert found.of(GoalGateUnsatisfied)[0].passed_over == ("one", "two")
    assert found.path == ["start", "back", "one", "two", "back", "two", "one", "two", "done"]
    assert found.end.is_success


def test_ruling_17_a_gate_never_visited_is_a_warning(replay):
    found = replay('a g [goal_gate=true] start -> a a -> done a -> g [condition="outcome=fail"] g -> done')
    assert found.end.is_success
    assert [(event.node, event.message) for event in found.of(RunWarning)] == [("g", "goal gate `g` was never visited")]


def test_ruling_17_a_gate_never_visited_is_an_error_with_strict_gates(replay):
    found = replay(
        'strict_gates=true a g [goal_gate=true] start -> a a -> done a -> g [condition="outcome=fail"] g -> done'
    )
    assert found.end.reason == "goal_gate_unsatisfied: goal gate `g` was never visited"


SPENT = Outcome(StageStatus.SUCCESS, usage=Usage(input_tokens=10, cost_usd=0.5))


@pytest.mark.parametrize(
    ("bounds", "steps", "cycle"),
    [
        ({"max_steps": 7}, 7, "a -> b -> a"),
        ({"max_node_visits": 2}, 5, "a -> b -> a"),
        ({"max_budget_usd": 1.5}, 6, "b -> a -> b"),
        ({"max_tokens_total": 30}, 6, "b -> a -> b"),
        ({"max_duration": "9s"}, 9, "a -> b -> a"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_ruling_18_a_bound_ends_the_run_naming_the_cycle(replay, bounds, steps, cycle):
    found = replay('a b start -> a -> b -> a b -> done [condition="outcome=fail"]', {"a": SPENT}, **bounds)
    assert len(found.path) == steps
    assert not found.end.is_success
    assert found.end.is_resumable
    assert next(iter(bounds)) in found.end.reason
    assert cycle in found.end.reason


def test_ruling_18_a_run_without_own_bounds_ends_after_1000_steps(replay):
    found = replay('a start -> a -> a a -> done [condition="outcome=fail"]')
    assert len(found.path) == 1000


def test_ruling_19_the_exit_is_executed_and_completed_last(replay):
    found = replay("a start -> a -> done")
    assert found.tries[-1] == ("done", 1, 1)
    last = found.events[-1]
    assert (last.name, last.next_node, last.route) == ("done", "", "end")


def test_ruling_19_gates_come_before_the_exit_handler(replay):
    found = replay('g [goal_gate=true] start -> g g -> done [condition="outcome=fail"]', {"g": FAIL})
    assert "done" not in [node for node, _, _ in found.tries]


def test_ruling_20_skipped_routes_like_success_and_leaves_no_outcome(replay):
    found = replay(
        'f a start -> f -> a a -> done [condition="outcome=success"]', {"f": Outcome(StageStatus.SUCCESS), "a": SKIPPED}
    )
    assert found.path == ["start", "f", "a", "done"]
    assert "a" not in found.state.outcomes
    skipped = next(event for event in found.of(StageEnd) if event.name == "a")
    assert "outcome" not in skipped.context


def test_ruling_20_a_skipped_gate_neither_passes_nor_fails(replay):
    assert replay("g [goal_gate=true] start -> g -> done", {"g": SKIPPED}).end.is_success


def test_ruling_20_a_skip_does_not_mend_an_earlier_failure_of_the_gate(replay):
    found = replay(
        'g [goal_gate=true] b start -> g g -> b [condition="outcome=fail"] b -> g g -> done',
        {"g": [FAIL, SKIPPED], "b": Outcome.success()},
    )
    assert "goal_gate_unsatisfied" in found.end.reason


def test_ruling_21_a_restart_edge_ends_the_traversal_with_its_target(replay):
    found = replay("a b start -> a -> b b -> a [loop_restart=true]")
    assert (found.end.restart_target, found.end.is_success) == ("a", True)
    assert found.path == ["start", "a", "b"]


def test_ruling_21_restarts_are_bounded(replay):
    found = replay(
        "a b start -> a -> b b -> a [loop_restart=true]", state=RunState("start", restarts=2), max_restarts=2
    )
    assert not found.end.is_success
    assert found.end.is_resumable
    assert "max_restarts=2" in found.end.reason


def test_a_value_that_the_context_refuses_fails_the_stage(replay):
    found = replay(
        "a start -> a -> done", {"a": Outcome(StageStatus.SUCCESS, context_updates={"bad": {1, 2}, "good": 1})}
    )
    assert "context key 'bad'" in found.end.reason
    assert "good" not in found.context


def test_a_stage_that_was_cut_off_is_tried_again_as_the_next_attempt(replay):
    state = RunState("a", completed=["start"], in_flight=InFlight("a", 1, 2, 1, is_started=True))
    found = replay("a [max_retries=1] start -> a -> done", {"a": RETRY}, state=state)
    assert found.tries == [("a", 1, 3)]
    assert "max retries exceeded" in found.end.reason


def test_a_stage_that_counts_as_lost_is_not_run_again(replay):
    state = RunState("a", completed=["start"], in_flight=InFlight("a", 1, 1, 0, is_started=True), on_interrupted="fail")
    found = replay('a b start -> a a -> b [condition="outcome=fail"] b -> done', state=state)
    assert found.tries == [("b", 1, 1), ("done", 1, 1)]
    assert "interrupted" in found.of(StageFailed)[0].error


def test_visits_and_indexes_count_through_loops(replay):
    found = replay('a b start -> a -> b b -> a [condition="outcome=fail"] b -> done', {"b": [FAIL, Outcome.success()]})
    assert [(event.name, event.index, event.visit) for event in found.of(StageEnd)] == [
        ("start", 1, 1),
        ("a", 2, 1),
        ("b", 3, 1),
        ("a", 4, 2),
        ("b", 5, 2),
        ("done", 6, 1),
    ]
