"""The end of a stage as one record: outcome, context changes, the next step (spec 3.2 steps 3-6; ruling 29)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from attractor_nb.decisions.failure_routes import end_reason, next_step
from attractor_nb.decisions.routing import seen_of
from attractor_nb.errors import ContextValueError
from attractor_nb.model.events import StageCompleted, StageEnd, StageFailed
from attractor_nb.model.outcome import Outcome, StageStatus

if TYPE_CHECKING:
    from attractor_nb.decisions.effects import RunContext
    from attractor_nb.decisions.planning.plan import Plan, PlannedNode
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.model.outcome import Usage


def applied(context: RunContext, node_id: str, outcome: Outcome) -> Outcome:
    """Merge a final outcome's updates into the context; a refused value fails the stage instead."""
    if not outcome.context_updates:
        return outcome
    try:
        context.apply_updates(outcome.context_updates)
    except ContextValueError as error:
        refused = Outcome.fail(f"stage {node_id}: {error.message}", is_terminal=True)
        return replace(refused, usage=outcome.usage)
    return outcome


def totals(state: RunState, node_id: str, usage: Usage) -> tuple[Usage, Usage]:
    """What node and run have consumed with this attempt, for its record."""
    whole = state.whole
    own = whole.usage_by_node.get(node_id)
    return usage if own is None else own + usage, whole.usage + usage


def commit_record(
    plan: Plan,
    planned: PlannedNode,
    state: RunState,
    context: RunContext,
    outcome: Outcome,
    counted: tuple[int, int, int, float],
) -> tuple[StageEnd, bool]:
    """Route on from a stage and write down all that its commit must say (ruling 29)."""
    node_id, status = planned.id, outcome.status
    is_passed_through = planned.is_conditional and not plan.are_diamonds_own and status.is_success
    seen = state.seen
    if not is_passed_through:
        seen = seen_of(outcome)
        if not status.is_skipped:
            context.set("outcome", str(status))
            if outcome.preferred_label:
                context.set("preferred_label", outcome.preferred_label)
    if status.is_success and node_id in state.retries:
        context.set(f"internal.retry_count.{node_id}", 0)
    step = None if planned.is_exit else next_step(plan, planned, outcome, seen, context.get, state.branch)
    route, detail = ("end", "") if step is None else (step.reason, step.detail)
    if step is None and not planned.is_exit:
        detail = end_reason(plan, planned, outcome, seen, context.get)
        route = "end" if not detail else "failed" if status is StageStatus.FAIL else "no_match"
    index, visit, attempt, duration = counted
    changes, logs = context.take_changes()
    usage = outcome.usage
    node_usage, run_usage = (None, None) if usage is None else totals(state, node_id, usage)
    kind = StageFailed if status.is_failure else StageCompleted
    event = kind(
        name=node_id,
        index=index,
        visit=visit,
        attempt=attempt,
        duration=duration,
        outcome=outcome.without_updates(),
        context=changes,
        next_node="" if step is None else step.target,
        edge=None if step is None or step.edge is None else step.edge.index,
        route=route,
        route_detail=detail,
        logs=logs,
        node_usage=node_usage,
        run_usage=run_usage,
    )
    if isinstance(event, StageFailed):
        event.error = outcome.failure_reason
    return event, is_passed_through
