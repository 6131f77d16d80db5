"""Whether the goal gates let a run end, and where an unsatisfied one sends it (spec 3.4; ruling 17)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.decisions.failure_routes import retry_step

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.decisions.routing import Step
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.model.outcome import StageStatus


def find_unsatisfied(
    plan: Plan, outcomes: Mapping[str, StageStatus], first_visits: Sequence[str], stale: Collection[str]
) -> str | None:
    """The first goal gate that keeps the run from ending, or None.

    Args:
        plan: The plan.
        outcomes: The last status of each node; a gate that only ever was skipped is not among them, and
            neither passes nor fails (ruling 20).
        first_visits: Ids of the visited nodes in order of their first visit.
        stale: Gates that a redirect passed over and that were not executed since.
    """
    if not plan.goal_gates:
        return None
    for node_id in first_visits:
        if node_id in plan.goal_gates:
            status = outcomes.get(node_id)
            if node_id in stale or (status is not None and not status.is_success):
                return node_id
    return None


def unsatisfied_gate(plan: Plan, state: RunState) -> str | None:
    """The goal gate that keeps a run from ending, or None.

    Under ``strict_gates`` that may be one that was only ever skipped (ruling 17a).
    """
    found = find_unsatisfied(plan, state.outcomes, tuple(state.outcomes), state.stale_gates)
    if found is not None or not plan.is_gate_strict:
        return found
    return next((gate for gate in state.skipped if gate in plan.goal_gates), None)


def redirect_target(plan: Plan, gate: str) -> Step | None:
    """Where an unsatisfied gate sends the run, or None when nobody says."""
    return retry_step(plan, plan.nodes[gate])


def passed_over(plan: Plan, completed: Sequence[str], target: str) -> frozenset[str]:
    """The gates executed since the last visit to a redirect's target, the target included.

    They must be executed again (ruling 17). A target that was never visited passes over none.
    """
    gates: set[str] = set()
    for node_id in reversed(completed):
        if node_id in plan.goal_gates:
            gates.add(node_id)
        if node_id == target:
            return frozenset(gates)
    return frozenset()


def never_visited(plan: Plan, visited: Collection[str]) -> tuple[str, ...]:
    """The declared gates that the run never came to, in source order."""
    return tuple(gate for gate in plan.goal_gates if gate not in visited)
