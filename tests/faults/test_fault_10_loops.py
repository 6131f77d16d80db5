"""Fault 10: a run that goes in circles ends at its bound, names the cycle, and goes on with a higher one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb import Outcome, Pipeline, Run, StageStatus
from attractor_nb.model.outcome import Usage
from attractor_nb.testing import ManualClock, SeededRandomness

FRAME = "digraph demo {{ start [shape=Mdiamond]\n done [shape=Msquare]\n {body} }}"
A_B = 'a b start -> a -> b b -> a [condition="context.count!={end}"] b -> done [condition="context.count={end}"]'
RESTARTS = (
    'a b start -> a a -> b b -> done [condition="context.round={end}"]'
    ' b -> a [condition="context.round!={end}", loop_restart=true]'
)
GATE = 'a g [goal_gate=true, retry_target=a] start -> a -> g g -> done [condition="outcome!=retry"]'
END = 12
BOUNDS = {
    # bound: (statements, its value, a higher one, stages of the directory in which it ends, its cycle)
    "max_steps": (A_B, 8, 1000, 8, "b -> a -> b"),
    "max_node_visits": (A_B, 3, 100, 7, "a -> b -> a"),
    "max_tokens_total": (A_B, 50, 10_000, 6, "b -> a -> b"),
    "max_budget_usd": (A_B, 0.5, 10.0, 6, "b -> a -> b"),
    "max_duration": (A_B, "7s", "1h", 8, "b -> a -> b"),
    "max_goal_gate_redirects": (GATE, 4, 50, 11, "a -> g -> a"),
    "max_restarts": (RESTARTS, 3, 50, 2, "a -> b -> a"),
}
SPENT = Usage(input_tokens=6, output_tokens=4, cost_usd=0.1, calls=1)


class Going:
    """Goes round until it was called so often; what it knows outlives the context, as a world does."""

    def __init__(self, clock):
        self._clock = clock
        self.calls = []

    async def run(self, node, prompt, context):
        self.calls.append(node.id)
        self._clock.advance(1)
        round_ = self.calls.count("b")
        updates = {"count": len(self.calls), "round": round_}
        if node.id == "g" and self.calls.count("g") < END:
            return Outcome(StageStatus.FAIL, failure_reason="not yet", usage=SPENT, context_updates=updates)
        return Outcome(StageStatus.SUCCESS, usage=SPENT, context_updates=updates)


def seams():
    clock = ManualClock()
    return {"clock": clock, "randomness": SeededRandomness(), "backend": Going(clock), "durability": "fast"}


def told(result):
    """The facts in which an interrupted run and an uninterrupted one must agree."""
    return (
        result.status,
        result.completed_nodes,
        result.visits,
        result.context.snapshot(),
        result.usage,
        result.usage_by_node,
        round(result.duration, 6),
    )


@pytest.mark.protects("attractor_nb/decisions/bounds.py", "    if steps >= bounds.max_steps:", instead="    if False:")
@pytest.mark.protects(
    "attractor_nb/decisions/bounds.py", "if visits is not None and node_visits >= visits:", instead="if False:"
)
@pytest.mark.protects(
    "attractor_nb/decisions/run_endings.py",
    "    if state.restarts >= plan.bounds.max_restarts:",
    instead="    if False:",
)
@pytest.mark.protects(
    "attractor_nb/decisions/run_endings.py",
    "    if state.redirects >= plan.bounds.max_goal_gate_redirects:",
    instead="    if False:",
)
@pytest.mark.protects(
    "attractor_nb/decisions/bounds.py",
    "(cost >= budget or math.isclose(cost, budget)):\n        return _reached(",
    instead="cost > budget:\n        return _reached(",
)
@pytest.mark.parametrize("bound", BOUNDS)
def test_each_bound_ends_its_loop_exactly_and_goes_on_with_a_higher_one(bound, tmp_path, figures):
    """Protected by the comparison of each bound: without it the loop goes on, or one stage too far."""
    body, value, higher, stages, cycle = BOUNDS[bound]
    pipeline = Pipeline(FRAME.format(body=body.format(end=END)))
    options = seams()
    whole = pipeline.run(wait=True, logs_root=tmp_path / "whole", **seams(), **{bound: higher})
    assert whole.status == "success"
    ended = pipeline.run(wait=True, logs_root=tmp_path / "run", **options, **{bound: value})
    assert (ended.status, ended.bound, len(ended.completed_nodes)) == ("fail", bound, stages)
    assert f"{bound}={value}" in ended.reason
    assert f"in the cycle {cycle}" in ended.reason
    assert f"resume with run.resume({bound}=…)" in str(ended)
    assert Run.load(tmp_path / "run").result().bound == bound
    calls = len(options["backend"].calls)
    result = pipeline.resume(tmp_path / "run", **options, **{bound: higher}).result(60)
    assert told(result) == told(whole)
    assert result.bound == ""
    assert len(options["backend"].calls) == whole.usage.calls
    figures.record(
        10,
        f"a loop runs into {bound}={value}",
        f"ended after exactly {calls} calls, cycle {cycle} named; resumed with {bound}={higher}, the same"
        " end, context and cost as a run without the bound",
    )


@pytest.mark.protects(
    "attractor_nb/decisions/traversal.py",
    "    if end := spending_reached(plan, state, node_id, moment):\n        return end\n",
    instead="",
)
@pytest.mark.parametrize(("bound", "value"), [("max_tokens_total", 30), ("max_budget_usd", 0.3)], ids=str)
def test_retries_spend_no_more_than_the_bound(bound, value, tmp_path, figures):
    """Protected by asking before each retry, and before the wait for it."""
    clock, calls = ManualClock(), []

    async def busy(node, prompt, context):
        calls.append(node.id)
        if len(calls) > 15:
            return Outcome(StageStatus.SUCCESS, usage=SPENT)
        return Outcome(StageStatus.RETRY, failure_reason="busy", usage=SPENT)

    pipeline = Pipeline(FRAME.format(body="a [max_retries=19] start -> a -> done"), backend=busy)
    options = {"clock": clock, "randomness": SeededRandomness(), "durability": "fast"}
    ended = pipeline.run(wait=True, logs_root=tmp_path / "run", **options, **{bound: value})
    assert (ended.status, ended.bound, len(calls)) == ("fail", bound, 3)
    assert "before attempt 4 of a" in ended.reason
    assert len(clock.sleeps) == 2  # no wait precedes an attempt that may not be made
    assert ended.usage.calls == ended.usage_by_node["a"].calls == 3
    assert ended["a"].usage.total_tokens == 30
    result = pipeline.resume(tmp_path / "run", **options, **{bound: 1000}).result(30)
    assert (result.status, result.usage.calls, len(calls)) == ("success", 16, 16)
    figures.record(
        10,
        f"a stage is retried into {bound}={value}",
        "3 attempts paid of 20 allowed; resumed with a higher bound: attempt 4 to 16, none paid twice",
    )


@pytest.mark.protects("attractor_nb/decisions/bounds.py", "    if steps >= bounds.max_steps:", instead="    if False:")
@pytest.mark.campaign
def test_the_command_line_tells_how_to_go_on_from_a_bound(tmp_path):
    """From a fresh process. Protected by the comparison: without it the first command never ends so."""
    (tmp_path / "loop.dot").write_text(
        FRAME.format(body='a start -> a a -> a [condition="context.last_stage=a"] a -> done [label=x, weight=-1]')
    )

    def command(*arguments):
        return subprocess.run(
            [sys.executable, "-P", "-m", "attractor_nb", *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH") or str(Path(__file__).parents[2])},
        )

    first = command("run", "loop.dot", "--max-steps", "5", "--logs-root", "out", "--json")
    assert first.returncode == 1, first.stderr
    summary = json.loads(first.stdout)
    assert (summary["bound"], summary["is_resumable"]) == ("max_steps", True)
    assert "in the cycle a -> a" in summary["reason"]
    assert "attractor-nb resume out --max-steps N" in first.stderr
    second = command("resume", "out", "--max-steps", "90", "--max-node-visits", "7", "--json")
    summary = json.loads(second.stdout)
    assert (summary["bound"], summary["stages"][1]["visits"]) == ("max_node_visits", 7)
