"""The run as a generator of effects (spec 3.2): what to do next, never how.

``traverse`` yields frozen effects (``effects.py``) and is sent their results. It holds every decision
of a run and no clock, disk, thread or await: the engine performs the effects for real, tests from a
table. The caller gives the context that handlers share; the traversal reads it for conditions and
writes the keys that the engine owns (spec 5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from attractor_nb.decisions.carryover import carry_over
from attractor_nb.decisions.commits import applied, commit_record
from attractor_nb.decisions.effects import (
    Announce,
    Commit,
    Effect,
    Execute,
    RunContext,
    RunEnd,
    StageResult,
    Traversal,
    Wait,
)
from attractor_nb.decisions.endings import (
    bound_reached,
    dead_end,
    end_or_redirect,
    is_restart_due,
    restart_end,
)
from attractor_nb.decisions.retries import delay_seconds, final_outcome, should_retry
from attractor_nb.model.events import StageFailed, StageRetrying, StageStarted
from attractor_nb.model.outcome import Outcome

if TYPE_CHECKING:
    from attractor_nb.decisions.plan import Plan, PlannedNode
    from attractor_nb.decisions.run_state import RunState

Uniform = Callable[[float, float], float]
LOST_REASON = "interrupted: it was cut off by a stop, and is not run again (on_interrupted=fail)"


def traverse(
    plan: Plan,
    state: RunState,
    context: RunContext,
    *,
    run_id: str = "",
    uniform: Uniform = lambda low, high: (low + high) / 2,
) -> Traversal:
    """Walk the graph from ``state.next_node`` to an end.

    Args:
        plan: The compiled graph.
        state: Where the run stands; updated with each commit.
        context: The run's context.
        run_id: For preambles.
        uniform: Gives the jitter of retry delays.

    Returns:
        How the run ended. Bounds and gates end it as failures; nothing is raised (ruling 30).
    """
    while True:
        if not state.next_node:
            end = yield from end_or_redirect(plan, state, dead_end(state))
            if end is not None:
                return end
            continue
        if is_restart_due(plan, state):
            return restart_end(plan, state, state.next_node)
        planned = plan.nodes[state.next_node]
        if reason := bound_reached(plan, state, planned.id):
            return RunEnd(is_success=False, reason=reason, is_resumable=True)
        if planned.is_exit:
            end = yield from end_or_redirect(plan, state, RunEnd(is_success=True))
            if end is not None and not end.is_success:
                return end
            if end is None:
                continue
        yield from _run_stage(plan, planned, state, context, run_id, uniform)
        if planned.is_exit:
            return dead_end(state)


def _run_stage(
    plan: Plan, planned: PlannedNode, state: RunState, context: RunContext, run_id: str, uniform: Uniform
) -> Generator[Effect, Any, None]:
    """Run a stage with its retries, route on, commit (spec 3.2 steps 2-8, 3.5)."""
    node_id = planned.id
    index = len(state.completed) + 1
    flight = state.in_flight if state.in_flight and state.in_flight.node_id == node_id else None
    visit = flight.visit if flight else state.visits.get(node_id, 0) + 1
    attempt = flight.attempt + 1 if flight else 1
    failures = flight.failures if flight else 0
    outcome: Outcome | None = None
    fidelity, thread, preamble = carry_over(plan, planned, state, run_id)
    context.set("current_node", node_id)
    duration = 0.0
    if flight is not None and state.is_flight_lost:
        state.is_flight_lost = False
        attempt, outcome = flight.attempt, Outcome.fail(LOST_REASON, is_terminal=True)
    while outcome is None:
        started = StageStarted(
            name=node_id,
            index=index,
            visit=visit,
            attempt=attempt,
            handler_type=planned.handler_type,
            fidelity=fidelity,
            thread=thread,
        )
        result: StageResult = yield Execute(planned, started, preamble)
        state.elapsed_seconds = result.elapsed
        duration += result.duration
        tried = result.outcome
        if not tried.status.is_failure:
            outcome = tried
            break
        failures += 1
        if not should_retry(planned.retry, tried, failures):
            outcome = final_outcome(tried, allow_partial=planned.allow_partial)
            break
        delay = delay_seconds(planned.retry.backoff, failures, uniform)
        context.set(f"internal.retry_count.{node_id}", failures)
        failed = StageFailed(
            name=node_id,
            index=index,
            visit=visit,
            attempt=attempt,
            duration=result.duration,
            outcome=tried,
            error=tried.failure_reason,
            will_retry=True,
        )
        yield Announce(failed)
        state.apply(failed)
        attempt += 1
        yield Announce(StageRetrying(name=node_id, index=index, visit=visit, attempt=attempt, delay=delay))
        yield Wait(delay)
        duration += delay
    outcome = applied(context, node_id, outcome)
    event, is_passed_through = commit_record(
        plan, planned, state, context, outcome, (index, visit, attempt, duration)
    )
    state.apply(event, is_passed_through=is_passed_through)
    is_landmark = planned.is_exit or isinstance(event, StageFailed) or planned.handler_type == "wait.human"
    yield Commit(event, is_landmark)


def diamonds_of(plan: Plan) -> frozenset[str]:
    """Nodes that pass the outcome of the stage before them through (ruling 16)."""
    if plan.are_diamonds_own:
        return frozenset()
    return frozenset(node.id for node in plan.nodes.values() if node.is_conditional)
