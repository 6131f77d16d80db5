"""Where a run goes after each outcome, failures included (spec 3.7; ruling 15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.decisions.routing import (
    Seen,
    Step,
    describe_no_match,
    match_condition,
    match_default,
    match_hint,
    select_edge,
)
from attractor_nb.model.outcome import StageStatus

if TYPE_CHECKING:
    from attractor_nb.decisions.plan import Plan, PlannedNode
    from attractor_nb.languages.condition.evaluate import Lookup
    from attractor_nb.model.outcome import Outcome


def next_step(plan: Plan, planned: PlannedNode, outcome: Outcome, seen: Seen, lookup: Lookup) -> Step | None:
    """The way on after a stage's final outcome, or None when the run ends here.

    Args:
        plan: The plan.
        planned: The node that was executed.
        outcome: Its outcome after retries.
        seen: What its edges see: its own outcome, or for a diamond that of the stage before it.
        lookup: Reads the context.
    """
    if planned.is_fan_out:
        return _from_fan_out(plan, planned, outcome, seen, lookup)
    if not is_failed(plan, planned, outcome, seen):
        return select_edge(planned, seen, outcome.suggested_next_ids, lookup)
    if plan.is_fail_continued:
        step = select_edge(planned, seen, outcome.suggested_next_ids, lookup)
    else:
        step = (
            match_condition(planned, seen, lookup)
            or match_hint(planned, seen, outcome.suggested_next_ids)
            or match_default(planned)
            or match_diamond(plan, planned)
        )
    return step or retry_step(plan, planned)


def _from_fan_out(
    plan: Plan, planned: PlannedNode, outcome: Outcome, seen: Seen, lookup: Lookup
) -> Step | None:
    """The way on after the branches: where a condition holds, else where they met (ruling 22).

    Where they met nowhere the run goes on at the exit that the first of them came to, so that the goal
    gates are checked there.
    """
    if step := match_condition(planned, seen, lookup):
        return step
    if is_failed(plan, planned, outcome, seen) and not plan.is_fail_continued:
        return retry_step(plan, planned)
    if planned.join:
        return Step(planned.join, None, "join", f"the branches of {planned.id} meet at {planned.join}")
    exits = (target for target in outcome.suggested_next_ids if target in plan.nodes)
    reached = next((target for target in exits if plan.nodes[target].is_exit), "")
    return Step(reached, None, "join", f"a branch of {planned.id} came to {reached}") if reached else None


def end_reason(plan: Plan, planned: PlannedNode, outcome: Outcome, seen: Seen, lookup: Lookup) -> str:
    """Why the pipeline fails when there is no way on; empty when it may end with the stage's outcome.

    Only a stage that did not fail and has no outgoing edges may end a run (ruling 14).
    """
    if outcome.status in _FAILED:
        return outcome.failure_reason or f"{planned.id} failed without a reason"
    if is_failed(plan, planned, outcome, seen):
        return f"the failure before {planned.id} has no way on: the diamond has no condition"
    if planned.is_fan_out:
        return ""  # its branches ran to their ends
    return describe_no_match(planned, seen, lookup) if planned.edges else ""


def retry_step(plan: Plan, planned: PlannedNode) -> Step | None:
    """The jump to a retry target: the node's, its fallback, the graph's, its fallback (spec 3.4, 3.7)."""
    if planned.retry_targets:
        target = planned.retry_targets[0]
        reason = "retry_target" if target == planned.node.retry_target else "fallback_retry_target"
        return Step(target, None, reason, f"{reason} of {planned.id}")
    if plan.graph_retry_targets:
        target = plan.graph_retry_targets[0]
        name = "retry_target" if target == plan.graph.get("retry_target", str) else "fallback_retry_target"
        return Step(target, None, f"graph_{name}", f"{name} of the graph")
    return None


_FAILED = frozenset({StageStatus.FAIL, StageStatus.RETRY})


def is_failed(plan: Plan, planned: PlannedNode, outcome: Outcome, seen: Seen) -> bool:
    """Whether the stage failed, or is a diamond that would let a failure through unseen.

    A diamond with conditions judges the failure: its unconditional edge is their "else". One without
    any judges nothing, so the failure before it keeps its rules.
    """
    if outcome.status in _FAILED:
        return True
    return (
        planned.is_conditional
        and seen.status in _FAILED
        and not planned.conditional
        and not plan.are_diamonds_own
    )


def match_diamond(plan: Plan, planned: PlannedNode) -> Step | None:
    """The unconditional edge into a diamond, unless diamonds see only themselves."""
    edge = planned.to_conditional
    if edge is None or plan.are_diamonds_own:
        return None
    return Step(edge.target, edge, "conditional_target", f"{edge.target} routes the failure")
