"""Whether the goal gates let a run end, and where an unsatisfied one sends it (spec 3.4; rulings 17, 45)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.decisions.failure_routes import retry_step
from attractor_nb.decisions.fan_outs.joins import walked

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.decisions.routing import Step
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.model.outcome import StageStatus


def find_unsatisfied(
    plan: Plan,
    outcomes: Mapping[str, StageStatus],
    first_visits: Sequence[str],
    stale: Collection[str],
    failed_in: Collection[str] = (),
) -> str | None:
    """The first goal gate that keeps the run from ending, or None.

    Args:
        plan: The plan.
        outcomes: The last status of each node; a gate that only ever was skipped is not among them, and
            neither passes nor fails (ruling 20).
        first_visits: Ids of the visited nodes in order of their first visit.
        stale: Gates that must be executed again; one that was not visited since a restart comes first.
        failed_in: Nodes whose latest execution in a branch was no success, whatever another branch says.
    """
    if not plan.goal_gates:
        return None
    unvisited = [gate for gate in plan.goal_gates if gate in stale and gate not in outcomes]
    for node_id in (*unvisited, *first_visits):
        if node_id in plan.goal_gates:
            status = outcomes.get(node_id)
            if node_id in stale or node_id in failed_in or (status is not None and not status.is_success):
                return node_id
    return None


def unsatisfied_gate(plan: Plan, state: RunState) -> str | None:
    """The goal gate that keeps a run from ending, or None.

    Under ``strict_gates`` that may be one that was only ever skipped (ruling 17a).
    """
    found = find_unsatisfied(plan, state.outcomes, tuple(state.outcomes), state.stale_gates, state.failed_in)
    if found is not None or not plan.is_gate_strict:
        return found
    return next((gate for gate in state.skipped if gate in plan.goal_gates), None)


def redirect_target(plan: Plan, gate: str) -> Step | None:
    """Where an unsatisfied gate sends the run, or None when nobody says."""
    return retry_step(plan, plan.nodes[gate])


def passed_over(plan: Plan, completed: Sequence[str], target: str, visited: Collection[str] = ()) -> frozenset[str]:
    """The gates executed since the last visit to a redirect's target, the target included.

    They must be executed again (rulings 17, 45), those in the branches of a fan-out among them. A target that
    was never visited passes over none.

    Args:
        plan: The plan.
        completed: Committed stages of the run itself, in order; branches are not in it.
        target: Where the redirect leads.
        visited: Nodes that were executed, in branches, too.
    """
    gates: set[str] = set()
    for node_id in reversed(completed):
        if node_id in plan.goal_gates:
            gates.add(node_id)
        if node_id in plan.surroundings:
            within = plan.surroundings[node_id].within
            is_end = target in within and target in visited and target not in completed
            ahead = (
                walked([target], lambda name: (edge.target for edge in plan.nodes[name].edges), ())
                if is_end
                else within
            )
            gates.update(gate for gate in plan.goal_gates if gate in within & ahead and gate in visited)
            if is_end:
                return frozenset(gates)
        if node_id == target:
            return frozenset(gates)
    return frozenset()


def never_visited(plan: Plan, visited: Collection[str]) -> tuple[str, ...]:
    """The declared gates that the run never came to, in source order."""
    return tuple(gate for gate in plan.goal_gates if gate not in visited)
