"""The run as a generator of effects (spec 3.2): what to do next, never how.

``traverse`` yields frozen effects and is sent their results. It holds every decision of a run and
no clock, disk, thread or await: the engine performs the effects for real, tests from a table.

    Execute   run one attempt of a stage         -> StageResult
    Wait      wait between attempts              -> None
    Announce  an event for log and observers     -> None
    Commit    the one commit record of a stage   -> None

It returns a ``RunEnd``. The caller gives the context that handlers share; the traversal reads it
for conditions and writes the keys that the engine owns (spec 5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from attractor_nb.decisions.bounds import cycle_of, exceeded
from attractor_nb.decisions.failures import end_reason, next_step
from attractor_nb.decisions.fidelity import degrade_once, resolve_fidelity, resolve_thread
from attractor_nb.decisions.goal_gates import find_unsatisfied, never_visited, passed_over, redirect_target
from attractor_nb.decisions.preamble import build_preamble
from attractor_nb.decisions.retries import delay_seconds, final_outcome, should_retry
from attractor_nb.decisions.routing import Seen
from attractor_nb.errors import ContextValueError
from attractor_nb.model.events import (
    Event,
    GoalGateUnsatisfied,
    RunWarning,
    StageCompleted,
    StageEnd,
    StageFailed,
    StageRetrying,
    StageStarted,
)
from attractor_nb.model.outcome import Outcome, StageStatus

if TYPE_CHECKING:
    from attractor_nb.decisions.plan import Plan, PlannedNode
    from attractor_nb.decisions.run_state import RunState

Uniform = Callable[[float, float], float]


class RunContext(Protocol):
    """The part of the context that decisions need."""

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key."""
        ...

    def set(self, key: str, value: Any) -> None:
        """Set a key."""
        ...

    def apply_updates(self, updates: Mapping[str, Any]) -> None:
        """Set many keys, or none."""
        ...

    def take_changes(self) -> tuple[dict[str, Any], tuple[str, ...]]:
        """What changed since the last call."""
        ...


@dataclass(frozen=True, slots=True)
class Execute:
    """Run one attempt.

    Attributes:
        planned: The node.
        started: The intent record. Whoever performs the effect announces it and applies it to the
            state before anything is executed.
        preamble: Context carried into a model's prompt.
    """

    planned: PlannedNode
    started: StageStarted
    preamble: str = ""


@dataclass(frozen=True, slots=True)
class StageResult:
    """How an attempt ended.

    Attributes:
        outcome: Its outcome; exceptions and timeouts are outcomes too.
        duration: Seconds.
        elapsed: Running time of the whole run in seconds, for ``max_duration``.
    """

    outcome: Outcome
    duration: float
    elapsed: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait before the next attempt. ``seconds`` is what the retry policy says."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell log and observers."""

    event: Event


@dataclass(frozen=True, slots=True)
class Commit:
    """Make the end of a stage durable, then go on. The state has taken it in already.

    Attributes:
        event: The commit record.
        is_landmark: A gate, a failure or an exit: checkpoint.json is written at once (ruling 29).
    """

    event: StageEnd
    is_landmark: bool


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How the traversal ended.

    Attributes:
        is_success: Whether the pipeline's outcome is success.
        reason: Why not.
        is_resumable: A bound stopped it before a stage; with a higher one it can go on.
        restart_target: Set when a ``loop_restart`` edge was taken: go on there, afresh.
    """

    is_success: bool
    reason: str = ""
    is_resumable: bool = False
    restart_target: str = ""


Effect = Execute | Wait | Announce | Commit
Traversal = Generator[Effect, Any, RunEnd]

LOST_REASON = "interrupted: it was cut off by a stop, and is not run again (on_interrupted=fail)"
_WITHOUT_MODEL = frozenset({"start", "exit", "conditional", "tool", "wait.human", "parallel"})


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
            end = yield from _end_or_redirect(plan, state, _dead_end(state))
            if end is not None:
                return end
            continue
        if _is_restart_due(plan, state):
            return _restart(plan, state, state.next_node)
        planned = plan.nodes[state.next_node]
        if reason := _bound_reached(plan, state, planned.id):
            return RunEnd(is_success=False, reason=reason, is_resumable=True)
        if planned.is_exit:
            end = yield from _end_or_redirect(plan, state, RunEnd(is_success=True))
            if end is not None and not end.is_success:
                return end
            if end is None:
                continue
        yield from _run_stage(plan, planned, state, context, run_id, uniform)
        if planned.is_exit:
            return _dead_end(state)


def _bound_reached(plan: Plan, state: RunState, node_id: str) -> str | None:
    return exceeded(
        plan.bounds,
        steps=len(state.completed),
        node_id=node_id,
        node_visits=state.visits.get(node_id, 0),
        usage=state.usage,
        elapsed_seconds=state.elapsed_seconds,
        completed=state.completed,
    )


def _dead_end(state: RunState) -> RunEnd:
    """The end of a run whose last stage had no way on (ruling 14)."""
    if state.last_route in {"no_match", "failed"}:
        return RunEnd(is_success=False, reason=state.last_reason)
    is_success = state.last_status.is_success or state.last_status is StageStatus.SKIPPED
    return RunEnd(is_success=is_success, reason="" if is_success else state.last_reason)


def _is_restart_due(plan: Plan, state: RunState) -> bool:
    return state.incoming_edge is not None and plan.graph.edges[state.incoming_edge].loop_restart


def _restart(plan: Plan, state: RunState, target: str) -> RunEnd:
    if state.restarts >= plan.bounds.max_restarts:
        reason = (
            f"max_restarts={plan.bounds.max_restarts} is reached: a loop_restart edge leads to {target} again"
            f" (cycle {cycle_of([*state.completed, target])})"
        )
        return RunEnd(is_success=False, reason=reason, is_resumable=True)
    return RunEnd(is_success=True, restart_target=target)


def _end_or_redirect(plan: Plan, state: RunState, end: RunEnd) -> Generator[Effect, Any, RunEnd | None]:
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
        reason = (
            f"goal_gate_unsatisfied: max_goal_gate_redirects={plan.bounds.max_goal_gate_redirects} is reached"
            f" at gate {gate} (cycle {cycle_of([*state.completed, step.target])})"
        )
        return RunEnd(is_success=False, reason=reason, is_resumable=True)
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
    for gate in never_visited(plan, state.visits):
        message = f"goal gate {gate} was never visited"
        if plan.is_gate_strict:
            return RunEnd(is_success=False, reason=f"goal_gate_unsatisfied: {message}")
        yield Announce(RunWarning(message=message, node=gate))
    return end


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
    fidelity, thread, preamble = _carry(plan, planned, state, run_id)
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
        if tried.status.is_success or tried.status is StageStatus.SKIPPED:
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
    outcome = _applied(context, node_id, outcome)
    event, is_passed_through = _commit_record(
        plan, planned, state, context, outcome, (index, visit, attempt, duration)
    )
    state.apply(event, is_passed_through=is_passed_through)
    is_landmark = planned.is_exit or isinstance(event, StageFailed) or planned.handler_type == "wait.human"
    yield Commit(event, is_landmark)


def _applied(context: RunContext, node_id: str, outcome: Outcome) -> Outcome:
    """Merge a final outcome's updates into the context; a refused value fails the stage instead."""
    if not outcome.context_updates:
        return outcome
    try:
        context.apply_updates(outcome.context_updates)
    except ContextValueError as error:
        return Outcome.fail(f"stage {node_id}: {error.message}", is_terminal=True)
    return outcome


def _commit_record(
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
        routed = StageStatus.SUCCESS if status is StageStatus.SKIPPED else status
        seen = Seen(routed, outcome.preferred_label)
        if status is not StageStatus.SKIPPED:
            context.set("outcome", status.value)
            if outcome.preferred_label:
                context.set("preferred_label", outcome.preferred_label)
    if status.is_success and node_id in state.retries:
        context.set(f"internal.retry_count.{node_id}", 0)
    step = None if planned.is_exit else next_step(plan, planned, outcome, seen, context.get)
    route, detail = ("end", "") if step is None else (step.reason, step.detail)
    if step is None and not planned.is_exit:
        detail = end_reason(plan, planned, outcome, seen, context.get)
        route = "end" if not detail else "failed" if status is StageStatus.FAIL else "no_match"
    index, visit, attempt, duration = counted
    changes, logs = context.take_changes()
    kind = StageFailed if status in {StageStatus.FAIL, StageStatus.RETRY} else StageCompleted
    event = kind(
        name=node_id,
        index=index,
        visit=visit,
        attempt=attempt,
        duration=duration,
        outcome=outcome,
        context=changes,
        next_node="" if step is None else step.target,
        edge=None if step is None or step.edge is None else step.edge.index,
        route=route,
        route_detail=detail,
        logs=logs,
    )
    if isinstance(event, StageFailed):
        event.error = outcome.failure_reason
    return event, is_passed_through


def _carry(plan: Plan, planned: PlannedNode, state: RunState, run_id: str) -> tuple[str, str, str]:
    """Fidelity mode, thread key and preamble of a stage that calls a model (spec 5.4)."""
    if planned.handler_type in _WITHOUT_MODEL:
        return "", "", ""
    edge = None if state.incoming_edge is None else plan.graph.edges[state.incoming_edge]
    fidelity = resolve_fidelity(edge, planned.node, plan.graph)
    if state.resumed_hops:
        fidelity, state.resumed_hops = degrade_once(fidelity), 0
    if fidelity == "full":
        previous = state.completed[-1] if state.completed else ""
        return fidelity, resolve_thread(edge, planned.node, plan.graph, planned.subgraph_class, previous), ""
    if not state.recent:
        return fidelity, "", ""
    return fidelity, "", _preamble(plan, state, fidelity, run_id)


def _preamble(plan: Plan, state: RunState, fidelity: str, run_id: str) -> str:
    return build_preamble(
        fidelity,
        goal=plan.graph.goal,
        run_id=run_id,
        stages=tuple(replace(entry, label=plan.nodes[entry.node_id].node.label) for entry in state.recent),
        values=state.recent_values,
        logs=(),
    )


def diamonds_of(plan: Plan) -> frozenset[str]:
    """Nodes that pass the outcome of the stage before them through (ruling 16)."""
    if plan.are_diamonds_own:
        return frozenset()
    return frozenset(node.id for node in plan.nodes.values() if node.is_conditional)
