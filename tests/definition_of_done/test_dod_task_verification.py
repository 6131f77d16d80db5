"""task-verification.md: each of its layers stops what it promises to stop."""

import pytest

from attractor_nb import Outcome, Pipeline, StageStatus, Usage, ValidationError
from attractor_nb.testing import ScriptedBackend


def test_task_verification_1_a_stage_that_nothing_can_execute_is_refused_before_anything_runs(run_dot):
    with pytest.raises(ValidationError, match=r"nobody\.knows"):
        run_dot('a [type="nobody.knows"] start -> a -> done')
    with pytest.raises(ValidationError, match="names no child pipeline"):
        run_dot("a [shape=house] start -> a -> done")


def test_task_verification_1_an_unknown_type_is_a_warning_where_its_shape_has_a_handler(dot):
    """Spec 4.2 falls back to the shape, and 7.2 makes it a warning."""
    pipeline = Pipeline(dot('a [shape=diamond, type="nobody.knows"] start -> a -> done'))
    assert "type_known" in {found.rule for found in pipeline.lint().warnings}
    assert pipeline.run(wait=True, durability="none").status == "success"


def test_task_verification_1_an_unknown_type_never_becomes_a_models_task(dot, tmp_path):
    """4.2 would end at the model: a success although nothing was executed. The safe side wins."""
    pipeline = Pipeline(dot('a [type="wait.humann"] start -> a -> done'))
    (found,) = [found for found in pipeline.lint().warnings if found.rule == "handler_missing"]
    assert found.message.endswith('did you mean "wait.human"?')
    with pytest.raises(ValidationError, match="no handler is registered"):
        pipeline.run(wait=True, logs_root=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    pipeline.register("wait.humann", lambda *_: Outcome.success())
    assert pipeline.run(wait=True, durability="none").status == "success"


def test_7_2_an_unknown_type_refuses_the_run_and_not_the_text(dot):
    """7.2 has it as a warning: the handler may be registered before a run."""
    pipeline = Pipeline(dot('a [type="team.review"] start -> a -> done'))
    assert pipeline.lint().errors == ()
    (found,) = [found for found in pipeline.lint().warnings if found.rule == "handler_missing"]
    assert found.message == 'no handler is registered for the type "team.review" of "a": a run is refused'
    assert found.fix.title.startswith('register a handler for "team.review", or use one of the types codergen, ')


@pytest.mark.parametrize(
    ("option", "value"), [("max_steps", 5), ("max_node_visits", 3), ("max_budget_usd", 1.0), ("max_tokens_total", 100)]
)
def test_task_verification_1_a_runaway_loop_is_stopped_with_a_clear_reason(run_dot, option, value):
    spent = Outcome(StageStatus.SUCCESS, usage=Usage(input_tokens=20, output_tokens=20, cost_usd=0.4))
    result = run_dot('a b start -> a -> b b -> a b -> done [condition="outcome=fail"]', {"a": spent}, **{option: value})
    assert result.status == "fail"
    assert option in result.reason
    assert "a -> b -> a" in result.reason or "b -> a -> b" in result.reason


def test_task_verification_1_a_failure_without_a_way_on_ends_the_pipeline(run_dot):
    result = run_dot("a b start -> a -> b -> done", {"a": Outcome.fail("broken")})
    assert (result.status, result.reason) == ("fail", "broken")
    assert "b" not in result.completed_nodes


@pytest.mark.parametrize(
    "garbage", [42, "text", {"status": "success"}, object()], ids=lambda value: type(value).__name__
)
def test_task_verification_2_what_is_no_outcome_is_a_failure_that_says_so(run_dot, garbage):
    result = run_dot('a [type="own"] start -> a -> done', handlers={"own": lambda node, context, graph, root: garbage})
    assert result.status == "fail"
    assert f"returned {type(garbage).__name__}, not an Outcome" in result.reason


def test_task_verification_2_the_status_is_propagated_to_the_context(run_dot):
    result = run_dot(
        'a b start -> a a -> b [condition="context.outcome=partial_success"] b -> done',
        {"a": Outcome(StageStatus.PARTIAL_SUCCESS)},
    )
    assert result.completed_nodes == ("start", "a", "b", "done")


EXAMPLE = """digraph CodeReview {
    start [shape="Mdiamond"]
    implement [shape="box", prompt="Write the feature code"]
    test [shape="box", prompt="Run the test suite",
          goal_gate=true, retry_target="implement"]
    done [shape="Msquare"]

    start -> implement -> test -> done
}"""


def test_task_verification_3_the_example_loops_until_the_gate_is_satisfied():
    backend = ScriptedBackend({"test": [Outcome.fail("2 tests fail"), Outcome.fail("1 test fails"), "pass"]})
    result = Pipeline(EXAMPLE, backend=backend).run(wait=True, durability="none")
    assert result.status == "success"
    assert result.completed_nodes == ("start", *("implement", "test") * 3, "done")
    assert "2 tests fail" in backend.prompts["implement"][1]


@pytest.mark.parametrize(
    ("status", "expected"), [("fail", "fix_path"), ("success", "next_step"), ("partial_success", "review")]
)
def test_task_verification_4_the_path_follows_the_outcome(run_dot, status, expected):
    result = run_dot(
        """check fix_path next_step review start -> check
        check -> fix_path [condition="outcome=fail"]
        check -> next_step [condition="outcome=success"]
        check -> review [condition="outcome=partial_success"]
        fix_path -> done next_step -> done review -> done""",
        {"check": Outcome(StageStatus(status), failure_reason="x")},
    )
    assert result.completed_nodes[2] == expected


def test_task_verification_4_the_default_edge_is_taken_when_nothing_else_matches(run_dot):
    result = run_dot('a x y start -> a a -> x [condition="context.env=prod"] a -> y [default=true] x -> done y -> done')
    assert result.completed_nodes[2] == "y"


def test_task_verification_5_the_context_says_where_the_run_is(run_dot):
    backend = ScriptedBackend()
    result = run_dot("a b start -> a -> b -> done", backend=backend)
    assert [call.context["current_node"] for call in backend.calls] == ["a", "b"]
    assert [call.context["outcome"] for call in backend.calls] == ["success", "success"]
    assert set(result.node_outcomes) == {"start", "a", "b", "done"}


def test_task_verification_5_costs_are_added_up(run_dot):
    spent = Outcome(StageStatus.SUCCESS, usage=Usage(input_tokens=10, output_tokens=5, cost_usd=0.25, calls=1))
    result = run_dot("a b start -> a -> b -> done", {"a": spent, "b": spent})
    assert (result.usage.cost_usd, result.usage.total_tokens, result.usage.calls) == (0.5, 30, 2)


def test_task_verification_6_errors_are_found_before_any_model_is_called(dot):
    backend = ScriptedBackend()
    with pytest.raises(ValidationError):
        Pipeline(dot("a orphan start -> a -> done"), backend=backend).run(wait=True)
    assert backend.calls == []
