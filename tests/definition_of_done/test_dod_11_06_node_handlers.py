"""Section 11.6 of the specification, row by row."""

import asyncio

from attractor_nb import Outcome, StageStatus
from attractor_nb.testing import ScriptedBackend, ScriptedInterviewer


def test_11_6_start_and_exit_succeed_at_once(run_dot):
    result = run_dot("start -> done")
    assert result.completed_nodes == ("start", "done")
    assert {status.value for status in result.node_outcomes.values()} == {"success"}


def test_11_6_codergen_expands_the_goal_calls_the_backend_and_writes_files(run_dot, tmp_path):
    backend = ScriptedBackend({"plan": "the plan"})
    run_dot(
        'goal="Ship it" plan [prompt="Plan: $goal"] start -> plan -> done',
        backend=backend,
        durability="fast",
        logs_root=tmp_path / "run",
    )
    assert [call.node_id for call in backend.calls] == ["plan"]
    assert "Plan: Ship it" in backend.calls[0].prompt
    assert (tmp_path / "run/plan/prompt.md").read_text() == backend.calls[0].prompt
    assert (tmp_path / "run/plan/response.md").read_text() == "the plan"


def test_11_6_wait_human_offers_the_edge_labels_and_returns_the_one_chosen(run_dot):
    interviewer = ScriptedInterviewer({"gate": "R"})
    result = run_dot(
        """gate [shape=hexagon, label="Fine?"] fix start -> gate
        gate -> done [label="[A] Approve"] gate -> fix [label="[R] Reject"] fix -> done""",
        interviewer=interviewer,
    )
    (question,) = interviewer.questions
    assert question.text == "Fine?"
    assert [(option.key, option.label) for option in question.options] == [("A", "[A] Approve"), ("R", "[R] Reject")]
    assert result.outcomes["gate"].preferred_label == "[R] Reject"
    assert result.completed_nodes == ("start", "gate", "fix", "done")


def test_11_6_a_conditional_passes_through_and_the_engine_evaluates_its_edges(run_dot):
    result = run_dot(
        """a check [shape=diamond] good bad start -> a -> check good -> done bad -> done
        check -> good [condition="context.score=9"] check -> bad [condition="context.score!=9"]""",
        {"a": Outcome.success(context_updates={"score": 9})},
    )
    assert result.outcomes["check"].status is StageStatus.SUCCESS
    assert result.completed_nodes == ("start", "a", "check", "good", "done")


def test_11_6_parallel_fans_out_to_several_targets_at_once(run_dot):
    """Each branch waits for the other: one after the other they would never end."""
    begun = {"a": asyncio.Event(), "b": asyncio.Event()}

    async def work(node, context, graph, logs_root):
        begun[node.id].set()
        await begun["b" if node.id == "a" else "a"].wait()
        return Outcome.success(node.id)

    result = run_dot(
        "fan [shape=component] a [type=work] b [type=work] join [shape=tripleoctagon] start -> fan"
        " fan -> a -> join fan -> b -> join join -> done",
        handlers={"work": work},
    )
    assert result.status == "success"
    assert [entry["notes"] for entry in result.context["parallel.results"]] == ["a", "b"]


def test_11_6_a_fan_in_waits_for_all_branches_before_the_run_goes_on(run_dot):
    ended = []

    async def work(node, context, graph, logs_root):
        for _ in range({"slow": 50, "fast": 0}[node.id]):
            await asyncio.sleep(0)
        ended.append(node.id)
        return Outcome.success()

    async def after(node, context, graph, logs_root):
        ended.append(node.id)
        return Outcome.success(context.get("parallel.fan_in.best_id"))

    result = run_dot(
        "fan [shape=component] slow [type=work] fast [type=work] join [shape=tripleoctagon]"
        " after [type=after] start -> fan fan -> slow -> join fan -> fast -> join join -> after -> done",
        handlers={"work": work, "after": after},
    )
    assert ended == ["fast", "slow", "after"]
    assert result.outcomes["after"].notes == "fast"


def test_11_6_a_tool_runs_its_command_and_returns_the_result(run_dot):
    result = run_dot('t [shape=parallelogram, tool_command="echo hello"] start -> t -> done')
    assert result.context["tool.output"].strip() == "hello"
    assert result.status == "success"


def test_11_6_custom_handlers_are_registered_by_type(run_dot):
    def count(node, context, graph, logs_root):
        return Outcome.success(context_updates={"counted": node.get("amount", int, 0)})

    result = run_dot('a [type="count", amount=3] start -> a -> done', handlers={"count": count})
    assert result.context["counted"] == 3
