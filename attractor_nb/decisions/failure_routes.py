"""Where a run goes after each outcome, failures included (spec 3.7; ruling 15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from attractor_nb.decisions.fan_outs.branch_policies import IGNORE, WAIT_ALL
from attractor_nb.decisions.routing import (
    BRANCH_END,
    JUMPS,
    Seen,
    Step,
    describe_no_match,
    match_condition,
    match_default,
    match_hint,
    seen_of,
    select_edge,
)
from attractor_nb.model.branch import branch_path, parts_of
from attractor_nb.model.outcome import StageStatus

if TYPE_CHECKING:
    from attractor_nb.decisions.planning.plan import Plan, PlannedNode
    from attractor_nb.languages.condition.evaluate import Lookup
    from attractor_nb.model.outcome import Outcome


def next_step(
    plan: Plan, planned: PlannedNode, outcome: Outcome, seen: Seen, lookup: Lookup, branch: str = ""
) -> Step | None:
    """The next step after a stage's final outcome, or None when the run ends here.

    Args:
        plan: The plan.
        planned: The node that was executed.
        outcome: Its outcome after retries.
        seen: What its edges see: its own outcome, or for a diamond that of the stage before it.
        lookup: Reads the context.
        branch: Path of the branch in which it was executed; empty for the run itself.
    """
    only = planned.only_step
    if (
        only is not None
        and not planned.is_conditional
        and not outcome.status.is_failure
        and not seen.preferred_label
        and not outcome.suggested_next_ids
    ):
        step: Step | None = only  # as select_edge says, in nearly all steps
    else:
        step = _next_step(plan, planned, outcome, seen, lookup, branch)
    return step if step is None or not branch else within_branch(plan, step, branch)


def _next_step(
    plan: Plan, planned: PlannedNode, outcome: Outcome, seen: Seen, lookup: Lookup, branch: str
) -> Step | None:
    """The next step, wherever it leads."""
    if planned.is_fan_out:
        return _from_fan_out(plan, planned, outcome, seen, lookup, branch)
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
    return step or retry_step(plan, planned, branch)


def is_routed(plan: Plan, planned: PlannedNode, outcome: Outcome, lookup: Lookup, branch: str = "") -> bool:
    """Whether the graph says what follows a failure (ruling 51): an edge, a retry target, or that its branch may fail.

    A branch may fail whose fan-out ignores failures or needs only some of its branches.
    """
    if next_step(plan, planned, outcome, seen_of(outcome), lookup, branch) is not None:
        return True
    around = parts_of(branch)[-2] if branch else ""
    if around not in plan.nodes:
        return False
    fan_out = plan.nodes[around].node
    is_ignored = fan_out.get("error_policy", str, "") == IGNORE
    return is_ignored or (fan_out.get("join_policy", str, "") or WAIT_ALL) != WAIT_ALL


def within_branch(plan: Plan, step: Step, branch: str) -> Step | None:
    """What becomes of a way on that a stage of a branch has chosen (ruling 36).

    No branch enters its fan-out or a node before it. An edge that leads there ends the branch. A jump that
    leads there is taken by whoever walks the fan-out, unless that ignores failures: then it is none. Where
    the way is a restart the branch fails for that reason.
    """
    by_edge = step.reason not in JUMPS
    if step.edge is not None and step.edge.is_restart:
        return step
    fan_out = plan.left_fan_out(step.target, branch, by_edge=by_edge)
    if not fan_out:
        return step
    if by_edge:
        where = fan_out if step.target == fan_out else f"{step.target}, which is before {fan_out}"
        return Step("", None, BRANCH_END, f"the way on leads back to {where}: the branch ends here")
    around = parts_of(branch)[-2]
    if around in plan.nodes and plan.nodes[around].node.get("error_policy", str, "") == IGNORE:
        return None
    return replace(step, detail=f"{step.detail}, back out of the branch")


def _from_fan_out(
    plan: Plan, planned: PlannedNode, outcome: Outcome, seen: Seen, lookup: Lookup, branch: str
) -> Step | None:
    """The next step after the branches: where a condition holds, else where they met (ruling 22).

    The retry target of a stage in a branch that leads back out of it counts as the fan-out's own (ruling 36).

    Where they met nowhere the run goes on at the exit that the first of them came to, so that the goal
    gates are checked there.
    """
    if step := match_condition(planned, seen, lookup):
        return step
    if is_failed(plan, planned, outcome, seen) and not plan.is_fail_continued:
        return _returned(plan, planned, outcome, branch) or retry_step(plan, planned, branch)
    if planned.join:
        return Step(planned.join, None, "join", f"the branches of {planned.id} meet at {planned.join}")
    exits = (target for target in outcome.suggested_next_ids if target in plan.nodes)
    reached = next((target for target in exits if plan.nodes[target].is_exit), "")
    return Step(reached, None, "join", f"a branch of {planned.id} came to {reached}") if reached else None


def _returned(plan: Plan, planned: PlannedNode, outcome: Outcome, branch: str) -> Step | None:
    """The jump out of a branch of a fan-out that the fan-out is to make, or None."""
    within = branch_path(branch, planned.id, "")
    for target in outcome.suggested_next_ids:
        if plan.left_fan_out(target, within):
            detail = f"the retry target of a stage in a branch of {planned.id}"
            return Step(target, None, "retry_target", detail)
    return None


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


def retry_step(plan: Plan, planned: PlannedNode, branch: str = "") -> Step | None:
    """The jump to a retry target: the node's, its fallback, the graph's, its fallback (spec 3.4, 3.7).

    Those of the graph are for the run, not for a branch of it (ruling 36).
    """
    if planned.retry_targets:
        target = planned.retry_targets[0]
        reason = "retry_target" if target == planned.node.retry_target else "fallback_retry_target"
        return Step(target, None, reason, f"{reason} of {planned.id}")
    if plan.graph_retry_targets and not branch:
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
    return planned.is_conditional and seen.status in _FAILED and not planned.conditional and not plan.are_diamonds_own


def match_diamond(plan: Plan, planned: PlannedNode) -> Step | None:
    """The unconditional edge into a diamond, unless diamonds see only themselves."""
    edge = planned.to_conditional
    if edge is None or plan.are_diamonds_own:
        return None
    return Step(edge.target, edge, "conditional_target", f"{edge.target} routes the failure")
