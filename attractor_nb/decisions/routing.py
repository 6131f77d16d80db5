"""Routing: the edge by which a run leaves a stage (spec 3.3; rulings 12, 14).

The rules for edges come first. The rules for failures below decide which of them apply after a FAIL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from attractor_nb.decisions.branch_policies import IGNORE, WAIT_ALL
from attractor_nb.languages.condition.parser import Lookup, evaluate_condition, explain_condition, value_at_key
from attractor_nb.model.branch import branch_path, parts_of
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.model.vocabulary.value_forms import label_text, normalize_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.decisions.planning.plan import Plan, PlannedEdge, PlannedNode


MAX_VALUE_CHARACTERS = 80
_LIKE_FALSE: Final = frozenset({"false", "no", "0"})


class ConditionOutcome(msgspec.Struct, frozen=True, array_like=True):
    """The outcome that conditions and labels see: for a diamond, that of the stage before it (ruling 16)."""

    status: StageStatus
    preferred_label: str = ""


_SUCCESS = ConditionOutcome(StageStatus.SUCCESS)


def condition_outcome(outcome: Outcome) -> ConditionOutcome:
    """The outcome of a stage as its edges see it; SKIPPED routes like SUCCESS (ruling 20)."""
    label, status = outcome.preferred_label, outcome.status
    if status.is_skipped or status is _SUCCESS.status:
        return ConditionOutcome(_SUCCESS.status, label) if label else _SUCCESS
    return ConditionOutcome(status, label)


JUMPS: Final = frozenset({"retry_target", "fallback_retry_target", "graph_retry_target", "graph_fallback_retry_target"})
"""Routes that follow no edge, after a failure."""
BRANCH_END: Final = "branch_end"
"""The route of a stage whose way on would lead its branch back out: it ends there (ruling 36)."""


class Step(msgspec.Struct, frozen=True):
    """The next step."""

    target: str  #: Id of the next node; empty where a branch ends.
    edge: PlannedEdge | None  #: The edge taken, or None for a jump.
    #: Rule that decided: ``condition``, ``preferred_label``, ``suggested_id``, ``default``, ``only_edge``, ``weight``,
    #: ``lexical``, ``conditional_target``, ``retry_target``, ``fallback_retry_target``, ``graph_retry_target`` or
    #: ``graph_fallback_retry_target``; of a fan-out ``join``; of a branch that ends here ``branch_end``.
    reason: str
    detail: str = ""  #: One line for users.


def select_edge(
    planned: PlannedNode, seen: ConditionOutcome, suggested_ids: Sequence[str], lookup: Lookup
) -> Step | None:
    """The edge by which a stage is left, or None when none matches (ruling 14).

    A condition that holds wins, then the preferred label, then the suggested ids in their order, then
    ``default=true``, then weight, then the target's id. An edge whose condition is false is never
    taken, nor a spent one, which ``eligible`` has left out of the node.
    """
    if planned.only_step is not None and not seen.preferred_label and not suggested_ids:
        return planned.only_step
    return (
        match_condition(planned, seen, lookup)
        or match_hint(planned, seen, suggested_ids)
        or match_default(planned)
        or match_weight(planned.unconditional)
    )


def match_condition(planned: PlannedNode, seen: ConditionOutcome, lookup: Lookup) -> Step | None:
    """The best edge whose condition holds, or None."""
    status = read_status(planned, seen)
    for edge in planned.conditional:
        assert edge.condition is not None
        if evaluate_condition(edge.condition, status, seen.preferred_label, lookup):
            return Step(edge.target, edge, "condition", edge.edge.condition)
    return None


def read_status(planned: PlannedNode, seen: ConditionOutcome) -> StageStatus:
    """The value of ``outcome`` in the conditions of a node's edges (ruling 35).

    A partial success is a success there, unless one of them tells the two apart.
    """
    is_success = seen.status is StageStatus.PARTIAL_SUCCESS and not planned.tells_partial
    return StageStatus.SUCCESS if is_success else seen.status


def misread_texts(planned: PlannedNode, lookup: Lookup) -> list[str]:
    """Warnings about keys that are alone and hold a text that reads like false (ruling 50)."""
    found = ((key, value_at_key(key, lookup)) for key in planned.bare_keys)
    return [
        f"the condition `{key}` holds: its value is the text {value!r}, not false; write `{key}={value.strip()}`"
        for key, value in found
        if isinstance(value, str) and value.strip().lower() in _LIKE_FALSE
    ]


def match_hint(planned: PlannedNode, seen: ConditionOutcome, suggested_ids: Sequence[str]) -> Step | None:
    """The unconditional edge that the stage asked for by label or target, or None.

    Of several edges with the preferred label one whose target is suggested wins: a person at a gate
    chose that edge. Then one whose label is written exactly so.
    """
    if seen.preferred_label and (edges := planned.by_label.get(normalize_label(seen.preferred_label))):
        exact = [edge for edge in edges if label_text(edge.edge.label) == label_text(seen.preferred_label)]
        edge = next((edge for edge in edges if edge.target in suggested_ids), (exact or edges)[0])
        return Step(edge.target, edge, "preferred_label", seen.preferred_label)
    for target in suggested_ids:
        if found := planned.by_target.get(target):
            return Step(target, found, "suggested_id", target)
    return None


def match_default(planned: PlannedNode) -> Step | None:
    """The edge marked ``default=true``, or None (ruling 12)."""
    if not planned.defaults:
        return None
    edge = planned.defaults[0]
    return Step(edge.target, edge, "default", "default=true")


def match_weight(edges: Sequence[PlannedEdge]) -> Step | None:
    """The first of unconditional edges, best first, or None."""
    if not edges:
        return None
    edge = edges[0]
    if len(edges) == 1:
        return Step(edge.target, edge, "only_edge", "the only unconditional edge")
    if edge.weight > edges[1].weight:
        return Step(edge.target, edge, "weight", f"weight {edge.weight} is the highest of {len(edges)}")
    return Step(edge.target, edge, "lexical", f"first by target id among weight {edge.weight}")


def describe_no_match(planned: PlannedNode, seen: ConditionOutcome, lookup: Lookup) -> str:
    """The reason why no edge matched: each condition, and the values that it saw."""
    hint = f', preferred label "{seen.preferred_label}"' if seen.preferred_label else ""
    edges = [_refusal(planned, edge, seen, lookup) for edge in planned.edges]
    edges += [f"{edge.target} was {taken_words(edge)}" for edge in planned.spent]
    return f"no matching edge from {planned.id} (outcome {seen.status.value}{hint}): {'; '.join(edges)}"


def taken_words(edge: PlannedEdge) -> str:
    """The words for an edge that is spent."""
    return f"taken {edge.max_taken} of {edge.max_taken} times"


def _refusal(planned: PlannedNode, edge: PlannedEdge, seen: ConditionOutcome, lookup: Lookup) -> str:
    if edge.condition is None:
        return f"{edge.target} is not for a failure"
    verdicts = explain_condition(edge.condition, read_status(planned, seen).value, seen.preferred_label, lookup)
    saw = ", ".join(
        f'`{verdict.clause}` saw "{verdict.value[:MAX_VALUE_CHARACTERS]}"' for verdict in verdicts if not verdict.holds
    )
    return f"{edge.target} when {saw}"


# The next step after each outcome, failures included (spec 3.7; ruling 15).


def next_step(
    plan: Plan, planned: PlannedNode, outcome: Outcome, seen: ConditionOutcome, lookup: Lookup, branch: str = ""
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
    plan: Plan, planned: PlannedNode, outcome: Outcome, seen: ConditionOutcome, lookup: Lookup, branch: str
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
    """True if the graph says what follows a failure (ruling 51): an edge, a retry target, or that its branch may fail.

    A branch may fail whose fan-out ignores failures or needs only some of its branches.
    """
    if next_step(plan, planned, outcome, condition_outcome(outcome), lookup, branch) is not None:
        return True
    around = parts_of(branch)[-2] if branch else ""
    if around not in plan.nodes:
        return False
    fan_out = plan.nodes[around].node
    is_ignored = fan_out.get("error_policy", str, "") == IGNORE
    return is_ignored or (fan_out.get("join_policy", str, "") or WAIT_ALL) != WAIT_ALL


def within_branch(plan: Plan, step: Step, branch: str) -> Step | None:
    """The step that a stage of a branch has chosen, as it applies within the branch (ruling 36).

    No branch enters its fan-out or a node before it. An edge that leads there ends the branch. A jump that
    leads there is taken by the walk around the fan-out, unless the fan-out ignores failures: then it is None. A
    restart makes the branch fail for that reason.
    """
    by_edge = step.reason not in JUMPS
    if step.edge is not None and step.edge.is_restart:
        return step
    fan_out = plan.left_fan_out(step.target, branch, by_edge=by_edge)
    if not fan_out:
        return step
    if by_edge:
        where = fan_out if step.target == fan_out else f"{step.target}, which is before {fan_out}"
        return Step("", None, BRANCH_END, f"the next edge leads back to {where}: the branch ends here")
    around = parts_of(branch)[-2]
    if around in plan.nodes and plan.nodes[around].node.get("error_policy", str, "") == IGNORE:
        return None
    return replace(step, detail=f"{step.detail}, back out of the branch")


def _from_fan_out(
    plan: Plan, planned: PlannedNode, outcome: Outcome, seen: ConditionOutcome, lookup: Lookup, branch: str
) -> Step | None:
    """The next step after the branches: where a condition holds, else where they met (ruling 22).

    The retry target of a stage in a branch that leads back out of it counts as the fan-out's own (ruling 36).

    Where they met nowhere the run continues at the exit that the first of them reached, so that the goal
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
    return Step(reached, None, "join", f"a branch of {planned.id} reached {reached}") if reached else None


def _returned(plan: Plan, planned: PlannedNode, outcome: Outcome, branch: str) -> Step | None:
    """The jump out of a branch of a fan-out that the fan-out is to make, or None."""
    within = branch_path(branch, planned.id, "")
    for target in outcome.suggested_next_ids:
        if plan.left_fan_out(target, within):
            detail = f"the retry target of a stage in a branch of {planned.id}"
            return Step(target, None, "retry_target", detail)
    return None


def end_reason(plan: Plan, planned: PlannedNode, outcome: Outcome, seen: ConditionOutcome, lookup: Lookup) -> str:
    """The reason why the pipeline fails when no step follows; empty when it may end with the stage's outcome.

    Only a stage that did not fail and has no outgoing edges may end a run (ruling 14).
    """
    if outcome.status in _FAILED:
        return outcome.failure_reason or f"{planned.id} failed without a reason"
    if is_failed(plan, planned, outcome, seen):
        return f"the failure before {planned.id} is not handled: the diamond has no condition"
    if planned.is_fan_out:
        return ""  # its branches ran to their ends
    return describe_no_match(planned, seen, lookup) if planned.edges or planned.spent else ""


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


def is_failed(plan: Plan, planned: PlannedNode, outcome: Outcome, seen: ConditionOutcome) -> bool:
    """True if the stage failed, or is a diamond that would let a failure through unseen.

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
