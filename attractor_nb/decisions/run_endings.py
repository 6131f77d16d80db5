"""The end of a run, and what prevents it: bounds, dead ends, goal gates, restarts (spec 3.2, 3.4; ruling 18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from attractor_nb.decisions.bounds import BoundReached, RunPosition, counted, exceeded, used_up
from attractor_nb.decisions.branch_policies import FAN_IN_TYPE, walked
from attractor_nb.decisions.commits import Announce, Effect, RunEnd
from attractor_nb.decisions.routing import JUMPS, Step, retry_step
from attractor_nb.decisions.run_state import MAX_SAME_FAILURES, RunState
from attractor_nb.model.events import GoalGateUnsatisfied, RunWarning
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.model.vocabulary.shapes import CONDITIONAL_TYPE, HUMAN_TYPE

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Mapping, Sequence

    from attractor_nb.decisions.planning.plan import Plan, PlannedNode


def bound_reached(plan: Plan, state: RunState, node_id: str) -> RunEnd | None:
    """The end of a run that may not enter a node; None when it may (ruling 18)."""
    steps, node_visits = state.steps, state.visits.get(node_id, 0)
    if plan.bounds.are_far(steps, node_visits):
        return None
    reached = exceeded(
        plan.bounds,
        steps=steps,
        node_id=node_id,
        node_visits=node_visits,
        usage=state.whole.usage,
        elapsed_seconds=state.elapsed_seconds,
        completed=state.completed,
        outer=_around(state),
    )
    return None if reached is None else bound_end(reached)


def same_failure_end(state: RunState, node_id: str) -> RunEnd | None:
    """The end of a run that would repeat a failure which does not change; None when it may continue (ruling 52).

    In a branch it is the end of the branch: the walker of the fan-out decides about it.
    """
    failure = state.failure
    if failure is None or failure.node_id != node_id or failure.times < MAX_SAME_FAILURES:
        return None
    reason = f"{failure.reason} ({node_id} failed with this {failure.times} times in a row, and a retry cannot help)"
    return RunEnd(is_success=False, reason=reason, is_resumable=state.root is None)


def _around(state: RunState) -> RunPosition | None:
    """The position of the fan-out of a branch; None for the run itself."""
    around = state.around
    if around is None or around.in_flight is None:
        return None
    return RunPosition(around.completed, around.in_flight.node_id, outer=_around(around))


def spending_reached(plan: Plan, state: RunState, node_id: str, moment: str) -> RunEnd | None:
    """The end of a run that may not try a stage again; None when it may (ruling 18)."""
    where = RunPosition(state.completed, node_id, moment, _around(state))
    reached = used_up(plan.bounds, state.whole.usage, state.elapsed_seconds, where)
    return None if reached is None else bound_end(reached)


def unseen_spending(plan: Plan, planned: PlannedNode, state: RunState, outcome: Outcome) -> RunWarning | None:
    """A warning, once a session, that a bound is blind: a model stage did not say what it consumed."""
    bounds, whose = (plan.bounds, "") if planned.bounds is None else (planned.bounds, f" of {planned.id}")
    if bounds.max_budget_usd is None and bounds.max_tokens_total is None:
        return None
    usage = outcome.usage
    if state.whole.is_blindness_reported or (usage is None and not planned.asks_model):
        return None
    if bounds.max_budget_usd is not None and (usage is None or usage.cost_usd is None or usage.unpriced_calls):
        what = f"max_budget_usd={bounds.max_budget_usd:g}{whose} counts known prices only"
    elif bounds.max_tokens_total is not None and usage is None:
        what = f"max_tokens_total={bounds.max_tokens_total}{whose} counts known tokens only"
    else:
        return None
    state.whole.is_blindness_reported = True
    return RunWarning(message=f"{what}, and {planned.id} did not report its own", node=planned.id)


def bound_end(reached: BoundReached) -> RunEnd:
    """The end of a run by a bound; it continues with a higher one."""
    return RunEnd(is_success=False, reason=reached.reason, is_resumable=True, bound=reached.bound)


def end_with_failure(state: RunState, end: RunEnd) -> RunEnd:
    """An end by a bound with the last failure: what came in the way of an end of another kind (ruling 52)."""
    if not end.bound or state.failure is None or state.failure.reason in end.reason:
        return end
    return replace(end, reason=f"{end.reason}; the last failure: {state.failure}")


def dead_end(state: RunState) -> RunEnd:
    """The end of a run whose last stage had no way on (ruling 14)."""
    if state.last_route in {"no_match", "failed"}:
        return RunEnd(is_success=False, reason=state.last_reason)
    is_success = state.last_status.is_success or state.last_status is StageStatus.SKIPPED
    return RunEnd(is_success=is_success, reason="" if is_success else state.last_reason)


def branch_refused(plan: Plan, state: RunState, planned: PlannedNode) -> RunEnd | None:
    """The end of a branch that may not enter a node; None when it may (ruling 36).

    Neither what lies before the fan-out, nor a fan-in to which no fan-out of this branch has led: that has
    no results, or those of another fan-out.
    """
    if fan_out := plan.left_fan_out(planned.id, state.branch, by_edge=state.last_route not in JUMPS):
        if not state.completed:
            reason = f"the branch begins at {planned.id}, which is {fan_out} or before it"
            return RunEnd(is_success=False, reason=reason)
        reason = state.last_reason
        if state.last_route not in JUMPS:
            return RunEnd(is_success=True, reason=reason)
        return RunEnd(is_success=False, reason=reason, veto=reason, return_target=planned.id)
    if planned.handler_type != FAN_IN_TYPE or any(plan.nodes[name].is_fan_out for name in state.completed):
        return None
    reason = f"the branch reached the fan-in {planned.id}, where the branches of its fan-out do not meet"
    return RunEnd(is_success=False, reason=reason, veto=reason)


def is_idle(plan: Plan, state: RunState) -> bool:
    """True if each stage that a branch reached was skipped; what only leads on is none (rulings 16, 17a)."""
    leads_on = {CONDITIONAL_TYPE, FAN_IN_TYPE}
    return bool(state.skipped) and all(plan.handler_types[name] in leads_on for name in state.outcomes)


def unanswered_gate(plan: Plan, state: RunState, fan_out: str) -> str:
    """The human gate that the rest of a branch which did not succeed continues without, or empty.

    That is a gate where the branch was paused or that it could still have reached, without an answer
    in it. Asked under ``strict_gates``, where it fails the fan-out (ruling 39).
    """
    last = state.completed[-1] if state.completed else ""
    position = state.in_flight.node_id if state.in_flight else state.next_node or last
    stops = {*plan.surroundings[fan_out].before, plan.nodes[fan_out].join}
    ahead = walked([position], lambda name: (edge.target for edge in plan.nodes[name].edges), stops)
    return next(
        (
            name
            for name in plan.graph.nodes
            if name in ahead
            and plan.handler_types[name] == HUMAN_TYPE
            and not state.outcomes.get(name, StageStatus.FAIL).is_success
        ),
        "",
    )


def is_restart_due(plan: Plan, state: RunState) -> bool:
    """True if the edge just taken starts the run over (ruling 21)."""
    return state.incoming_edge is not None and plan.edges[state.incoming_edge].is_restart


def due_end(plan: Plan, state: RunState) -> RunEnd | None:
    """The end that is due before a further stage: a restart, or that of a run of a single stage; else None.

    That run ends as its stage did. A failure that an edge routes on would not have failed the whole run.
    """
    if 0 < state.last_step <= len(state.completed):
        is_routed = bool(state.next_node) and state.last_route not in JUMPS
        return RunEnd(is_success=True) if is_routed else dead_end(state)
    return _restart_end(plan, state, state.next_node) if is_restart_due(plan, state) else None


def _restart_end(plan: Plan, state: RunState, target: str) -> RunEnd:
    """The end that begins a fresh run at ``target``, unless there were too many of them."""
    if state.restarts >= plan.bounds.max_restarts:
        where = RunPosition(state.completed, target)
        made = counted(state.restarts, "restart")
        reason = (
            f"max_restarts={plan.bounds.max_restarts} reached: {made} made, and a"
            f" loop_restart edge leads back to {target}, {where}"
        )
        return bound_end(BoundReached("max_restarts", reason))
    return RunEnd(is_success=True, restart_target=target)


def end_or_redirect(plan: Plan, state: RunState, end: RunEnd) -> Generator[Effect, Any, RunEnd | None]:
    """Check the goal gates before an end (spec 3.4); None when the run goes back instead."""
    if not end.is_success:
        return end
    gate = unsatisfied_gate(plan, state)
    if gate is None:
        return (yield from _check_unvisited(plan, state, end))
    step = redirect_target(plan, gate)
    if step is None:
        reason = f"goal_gate_unsatisfied: {gate} has not succeeded and there is no retry_target"
        return RunEnd(is_success=False, reason=reason)
    if state.redirects >= plan.bounds.max_goal_gate_redirects:
        where = RunPosition(state.completed, step.target)
        reason = (
            f"goal_gate_unsatisfied: max_goal_gate_redirects={plan.bounds.max_goal_gate_redirects} reached"
            f" at gate `{gate}`, {where}"
        )
        return bound_end(BoundReached("max_goal_gate_redirects", reason))
    event = GoalGateUnsatisfied(
        gate=gate,
        target=step.target,
        redirects=state.redirects + 1,
        passed_over=tuple(sorted(passed_over(plan, state.completed, step.target, state.outcomes))),
    )
    yield Announce(event)
    state.apply(event)
    return None


def _check_unvisited(plan: Plan, state: RunState, end: RunEnd) -> Generator[Effect, Any, RunEnd]:
    """A declared goal gate that was never visited, or only skipped: a warning.

    With ``strict_gates`` one that was never visited is an error; a skipped one has been found unsatisfied.
    """
    for gate in state.skipped:
        if gate in plan.goal_gates:
            yield Announce(RunWarning(message=f"goal gate `{gate}` was skipped", node=gate))
    for gate in never_visited(plan, state.outcomes.keys() | state.skipped.keys()):
        message = f"goal gate `{gate}` was never visited"
        if plan.is_gate_strict:
            return RunEnd(is_success=False, reason=f"goal_gate_unsatisfied: {message}")
        yield Announce(RunWarning(message=message, node=gate))
    return end


# Goal gates: unsatisfied ones keep a run from its end and redirect it (spec 3.4; rulings 17, 45).


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
    """The jump of an unsatisfied gate to its retry target, or None when there is no such target."""
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
    """The declared gates that the run never reached, in source order."""
    return tuple(gate for gate in plan.goal_gates if gate not in visited)
