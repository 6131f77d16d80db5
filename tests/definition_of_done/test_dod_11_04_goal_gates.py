"""Section 11.4 of the specification, row by row."""

import pytest

from attractor_nb import Outcome, StageStatus

LOOP = 'a b [goal_gate=true{more}] start -> a -> b b -> done [condition="outcome!=retry"]'


def test_11_4_goal_gates_are_tracked_through_the_run(run_dot):
    body = """one [goal_gate=true] two [goal_gate=true, retry_target=one]
        start -> one -> two two -> done [condition="outcome!=retry"]"""
    result = run_dot(body, {"two": [Outcome.fail("not yet"), "fine"]})
    assert result.node_outcomes["one"] is StageStatus.SUCCESS
    assert result.node_outcomes["two"] is StageStatus.SUCCESS
    assert result.status == "success"


@pytest.mark.parametrize("status", [StageStatus.SUCCESS, StageStatus.PARTIAL_SUCCESS])
def test_11_4_the_exit_is_open_when_every_gate_has_succeeded(run_dot, status):
    result = run_dot(LOOP.format(more=""), {"b": Outcome(status)})
    assert (result.status, result.completed_nodes[-1]) == ("success", "done")


def test_11_4_an_unsatisfied_gate_sends_the_run_to_its_retry_target(run_dot):
    result = run_dot(LOOP.format(more=", retry_target=a"), {"b": [Outcome.fail("no"), "fine"]})
    assert result.status == "success"
    assert result.completed_nodes == ("start", "a", "b", "a", "b", "done")


@pytest.mark.parametrize(
    ("graph", "node"),
    [
        ("", ", retry_target=a"),
        ("", ", fallback_retry_target=a"),
        ("retry_target=a ", ""),
        ("fallback_retry_target=a ", ""),
    ],
    ids=["node", "node_fallback", "graph", "graph_fallback"],
)
def test_11_4_the_target_comes_from_node_then_graph(run_dot, graph, node):
    result = run_dot(graph + LOOP.format(more=node), {"b": [Outcome.fail("no"), "fine"]})
    assert result.completed_nodes == ("start", "a", "b", "a", "b", "done")


def test_11_4_without_a_target_the_pipeline_fails(run_dot):
    result = run_dot(LOOP.format(more=""), {"b": Outcome.fail("no")})
    assert result.status == "fail"
    assert "goal_gate_unsatisfied: b" in result.reason
    assert "done" not in result.completed_nodes
