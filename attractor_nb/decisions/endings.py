"""How a run ends, or does not yet: bounds, dead ends, goal gates, restarts (spec 3.2, 3.4; ruling 18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.decisions.bounds import Reached, Standing, counted, exceeded, used_up
from attractor_nb.decisions.effects import Announce, Effect, RunEnd
from attractor_nb.decisions.goal_gates import find_unsatisfied, never_visited, passed_over, redirect_target
from attractor_nb.model.events import GoalGateUnsatisfied, RunWarning
from attractor_nb.model.outcome import StageStatus

if TYPE_CHECKING:
    from collections.abc import Generator

    from attractor_nb.decisions.plan import Plan, PlannedNode
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.model.outcome import Outcome


def bound_reached(plan: Plan, state: RunState, node_id: str) -> RunEnd | None:
    """The end of a run that may not enter a node; None when it may (ruling 18)."""
    reached = exceeded(
        plan.bounds,
        steps=state.steps,
        node_id=node_id,
        node_visits=state.visits.get(node_id, 0),
        usage=state.whole.usage,
        elapsed_seconds=state.elapsed_seconds,
        completed=state.completed,
    )
    return None if reached is None else _bound_end(reached)


def spending_reached(plan: Plan, state: RunState, node_id: str, moment: str) -> RunEnd | None:
    """The end of a run that may not try a stage again; None when it may (ruling 18).

    Args:
        plan: The compiled graph.
        state: Where the run stands.
        node_id: The stage under way.
        moment: How far it is, in words.
    """
    where = Standing(state.completed, node_id, moment)
    reached = used_up(plan.bounds, state.whole.usage, state.elapsed_seconds, where)
    return None if reached is None else _bound_end(reached)


def unseen_spending(plan: Plan, planned: PlannedNode, state: RunState, outcome: Outcome) -> RunWarning | None:
    """A warning, once a session, that a bound is blind: a model stage did not say what it consumed."""
    bounds = plan.bounds
    if bounds.max_budget_usd is None and bounds.max_tokens_total is None:
        return None
    usage = outcome.usage
    if state.whole.is_blindness_told or (usage is None and not planned.asks_model):
        return None
    if bounds.max_budget_usd is not None and (
        usage is None or usage.cost_usd is None or usage.unpriced_calls
    ):
        what = f"max_budget_usd={bounds.max_budget_usd:g} counts known prices only"
    elif bounds.max_tokens_total is not None and usage is None:
        what = f"max_tokens_total={bounds.max_tokens_total} counts known tokens only"
    else:
        return None
    state.whole.is_blindness_told = True
    return RunWarning(message=f"{what}, and {planned.id} did not say its own", node=planned.id)


def _bound_end(reached: Reached) -> RunEnd:
    return RunEnd(is_success=False, reason=reached.reason, is_resumable=True, bound=reached.bound)


def dead_end(state: RunState) -> RunEnd:
    """The end of a run whose last stage had no way on (ruling 14)."""
    if state.last_route in {"no_match", "failed"}:
        return RunEnd(is_success=False, reason=state.last_reason)
    is_success = state.last_status.is_success or state.last_status is StageStatus.SKIPPED
    return RunEnd(is_success=is_success, reason="" if is_success else state.last_reason)


def is_restart_due(plan: Plan, state: RunState) -> bool:
    """Whether the edge just taken starts the run over (ruling 21)."""
    return state.incoming_edge is not None and plan.edges[state.incoming_edge].is_restart


def restart_end(plan: Plan, state: RunState, target: str) -> RunEnd:
    """The end that begins a fresh run at ``target``, unless there were too many of them."""
    if state.restarts >= plan.bounds.max_restarts:
        where = Standing(state.completed, target)
        made = counted(state.restarts, "restart")
        reason = (
            f"max_restarts={plan.bounds.max_restarts} reached: {made} made, and a"
            f" loop_restart edge leads back to {target}, {where}"
        )
        return _bound_end(Reached("max_restarts", reason))
    return RunEnd(is_success=True, restart_target=target)


def end_or_redirect(plan: Plan, state: RunState, end: RunEnd) -> Generator[Effect, Any, RunEnd | None]:
    """Check the goal gates before an end (spec 3.4); None when the run goes back instead."""
    if not end.is_success:
        return end
    gate = find_unsatisfied(plan, state.outcomes, tuple(state.outcomes), state.stale_gates)
    if gate is None:
        return (yield from _check_unvisited(plan, state, end))
    step = redirect_target(plan, gate)
    if step is None:
        reason = f"goal_gate_unsatisfied: {gate} has not succeeded and there is no retry_target"
        return RunEnd(is_success=False, reason=reason)
    if state.redirects >= plan.bounds.max_goal_gate_redirects:
        where = Standing(state.completed, step.target)
        reason = (
            f"goal_gate_unsatisfied: max_goal_gate_redirects={plan.bounds.max_goal_gate_redirects} reached"
            f" at gate {gate}, {where}"
        )
        return _bound_end(Reached("max_goal_gate_redirects", reason))
    event = GoalGateUnsatisfied(
        gate=gate,
        target=step.target,
        redirects=state.redirects + 1,
        passed_over=tuple(sorted(passed_over(plan, state.completed, step.target))),
    )
    yield Announce(event)
    state.apply(event)
    return None


def _check_unvisited(plan: Plan, state: RunState, end: RunEnd) -> Generator[Effect, Any, RunEnd]:
    """A declared goal gate that was never visited: a warning, or an error with ``strict_gates``."""
    for gate in never_visited(plan, state.visits.keys() | state.outcomes.keys()):
        message = f"goal gate {gate} was never visited"
        if plan.is_gate_strict:
            return RunEnd(is_success=False, reason=f"goal_gate_unsatisfied: {message}")
        yield Announce(RunWarning(message=message, node=gate))
    return end
