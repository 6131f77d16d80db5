"""The run as a generator of effects (spec 3.2): what to do next, never how.

``traverse`` yields frozen effects (see ``commits.py``) and is sent their results. It holds every decision
of a run and no clock, disk, thread or await: the engine performs the effects for real, tests from a
table. The caller gives the context that handlers share; the traversal reads it for conditions and
writes the keys that the engine owns (spec 5.1).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import msgspec

from attractor_nb.decisions.ambiguity import settle_flight, settle_loss
from attractor_nb.decisions.carryover import carry_over
from attractor_nb.decisions.commits import (
    Announce,
    Commit,
    Effect,
    Execute,
    RecordStatus,
    RunContext,
    RunEnd,
    StageResult,
    Traversal,
    Wait,
    applied,
    commit_record,
    totals,
)
from attractor_nb.decisions.planning.plan import CONDITIONAL_TYPE, Plan, PlannedNode, eligible
from attractor_nb.decisions.retries import delay_seconds, final_outcome, should_retry
from attractor_nb.decisions.routing import is_routed, misread_texts
from attractor_nb.decisions.run_endings import (
    bound_end,
    bound_reached,
    branch_refused,
    dead_end,
    due_end,
    end_or_redirect,
    is_restart_due,
    same_failure_end,
    spending_reached,
    unseen_spending,
)
from attractor_nb.model.events import RunWarning, StageFailed, StageRetrying, StageStarted
from attractor_nb.model.outcome import Outcome, Usage

if TYPE_CHECKING:
    from attractor_nb.decisions.run_state import RunState

Uniform = Callable[[float, float], float]


def traverse(  # noqa: C901 - a call costs in each step
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
        state: Position of the run; updated with each commit.
        context: The run's context.
        run_id: For preambles.
        uniform: Gives the jitter of retry delays.

    Returns:
        How the run ended. Bounds and gates end it as failures; nothing is raised (ruling 30).
    """
    walk = _Walk(plan, state, context, run_id, uniform)
    while True:
        if (state.last_step or is_restart_due(plan, state)) and (end := due_end(plan, state)):
            return end
        if not state.next_node:
            end = yield from end_or_redirect(plan, state, dead_end(state))
            if end is not None:
                return end
            continue
        planned = plan.nodes[state.next_node]
        if planned.bounded:
            planned = eligible(plan, planned, state.taken)
        if end := same_failure_end(state, planned.id) or bound_reached(plan, state, planned.id):
            return end
        if planned.is_exit:
            end = yield from end_or_redirect(plan, state, RunEnd(is_success=True))
            if end is not None and not end.is_success:
                return end
            if end is None:
                continue
        end = yield from _run_stage(walk, planned)
        if end is not None:
            return end


def traverse_branch(
    plan: Plan,
    state: RunState,
    context: RunContext,
    *,
    join: str,
    run_id: str = "",
    uniform: Uniform = lambda low, high: (low + high) / 2,
) -> Traversal:
    """Walk one branch of a fan-out, from ``state.next_node`` until just before its join (ruling 22).

    An exit is not executed in a branch, and no goal gate is checked: the run does both where it continues.

    Args:
        plan: The compiled graph.
        state: Position of the branch; updated with each commit.
        context: The branch's own context.
        join: Where the branches meet, or empty.
        run_id: For preambles.
        uniform: Gives the jitter of retry delays.

    Returns:
        How the branch ended; resumable when it is the whole run that a bound ends here.
    """
    walk = _Walk(plan, state, context, run_id, uniform)
    while True:
        if not state.next_node:
            return dead_end(state)
        if is_restart_due(plan, state):
            reason = f"a loop_restart edge leads to {state.next_node}, and a branch cannot restart the run"
            return RunEnd(is_success=False, reason=reason)
        planned = plan.nodes[state.next_node]
        if planned.bounded:
            planned = eligible(plan, planned, state.taken)
        if planned.id == join or planned.is_exit:
            return RunEnd(is_success=True)
        if end := branch_refused(plan, state, planned):
            return end
        if end := same_failure_end(state, planned.id) or bound_reached(plan, state, planned.id):
            return end
        if end := (yield from _run_stage(walk, planned)):
            return end


class _Walk(msgspec.Struct, frozen=True):
    """The parts of a traversal that are the same for all stages."""

    plan: Plan
    state: RunState
    context: RunContext
    run_id: str
    uniform: Uniform


class _Visit(msgspec.Struct):
    """A visit of a stage that is under way."""

    index: int  #: Ordinal in the run.
    number: int  #: Ordinal of the visit to the node.
    attempt: int  #: The attempt that is next, or under way.
    failures: int  #: Attempts of this visit that failed.
    duration: float = 0.0  #: Seconds, waits between attempts included.
    note: str = ""  #: Text for the notes of the stage about an interrupted attempt.
    losses: int = 0  #: Attempts whose worker was lost.
    thread: str = ""  #: The thread in which the attempt that counts has saved its words, or empty.
    is_cached: bool = False  #: The result came from the cache.
    saved: Usage | None = None  #: Usage of its original execution.
    commit: str = ""  #: The commit of the run's worktree at which the latest attempt left it.


def _run_stage(walk: _Walk, planned: PlannedNode) -> Generator[Effect, Any, RunEnd | None]:
    """Run a stage with its retries, route on, commit (spec 3.2 steps 2-8, 3.5).

    Returns:
        How the run ends, when it does: this was the exit, or the stage cannot be brought to its end and
        stays under way.
    """
    plan, state, context = walk.plan, walk.state, walk.context
    node_id = planned.id
    flight = state.in_flight if state.in_flight and state.in_flight.node_id == node_id else None
    visit = _Visit(
        index=len(state.completed) + 1,
        number=flight.visit if flight else state.next_visit(node_id),
        attempt=flight.attempt + 1 if flight else 1,
        failures=flight.failures if flight else 0,
    )
    context.set("current_node", node_id)
    outcome: Outcome | RunEnd | None = None
    if flight is not None and flight.is_started and state.on_interrupted:
        settled = yield from settle_flight(plan, planned, state, flight)
        if isinstance(settled, str):
            visit.note = settled
        else:
            outcome = settled
    state.on_interrupted = ""
    if isinstance(outcome, Outcome):
        visit.attempt -= 1
        yield RecordStatus(planned, visit.number, visit.attempt, outcome)
    elif outcome is None:
        outcome = yield from _try_stage(walk, planned, visit)
    if isinstance(outcome, RunEnd):
        return outcome
    outcome = applied(context, node_id, outcome)
    counted = (visit.index, visit.number, visit.attempt, visit.duration)
    event, is_passed_through = commit_record(plan, planned, state, context, outcome, counted)
    event.thread, event.is_cached, event.saved = visit.thread, visit.is_cached, visit.saved
    event.commit = visit.commit
    state.apply(event, is_passed_through=is_passed_through)
    is_landmark = planned.is_exit or isinstance(event, StageFailed) or planned.handler_type == "wait.human"
    yield Commit(event, is_landmark)
    if planned.bare_keys:
        for message in misread_texts(planned, context.get):
            yield Announce(RunWarning(message=f"{node_id}: {message}", node=node_id))
    if not visit.is_cached and (warning := unseen_spending(plan, planned, state, outcome)):
        yield Announce(warning)
    return dead_end(state) if planned.is_exit else None


def _try_stage(walk: _Walk, planned: PlannedNode, visit: _Visit) -> Generator[Effect, Any, Outcome | RunEnd]:
    """Execute a stage until an attempt counts; or until a bound keeps it from being tried again."""
    node_id, state = planned.id, walk.state
    carried = carry_over(walk.plan, planned, state, walk.context, walk.run_id)
    while True:
        started = StageStarted(
            name=node_id,
            index=visit.index,
            visit=visit.number,
            attempt=visit.attempt,
            handler_type=planned.handler_type,
            fidelity=carried.fidelity,
            thread=carried.thread,
        )
        flight = state.in_flight
        complaint = flight.complaint if flight and flight.node_id == node_id else ""
        effect = Execute(planned, started, carried.preamble, visit.note, carried.thread_entry, complaint)
        result: StageResult = yield effect
        state.elapsed_seconds = result.elapsed
        visit.duration += result.duration
        if result.is_cut_off:
            end = spending_reached(walk.plan, state, node_id, f"{node_id} was cut off in attempt {visit.attempt}")
            return end or RunEnd(is_success=False, reason=f"{node_id} was cut off", is_resumable=True)
        if result.lost:
            settled = yield from _settle_loss(walk, planned, visit, result.lost)
            if settled is not None:
                return settled
            continue
        tried, visit.thread = result.outcome, carried.thread if result.is_saved else ""
        visit.is_cached, visit.saved = result.is_cached, result.saved
        visit.commit = result.commit
        if not tried.status.is_failure:
            return tried
        visit.failures += 1
        if result.over_budget is None and not should_retry(planned.retry, tried, visit.failures):
            final = final_outcome(planned, tried, visit.failures)
            is_left = final.is_unmeasured and final.status.is_failure
            if not is_left or is_routed(walk.plan, planned, final, walk.context.get, state.branch):
                return final
            yield from _record_failure(walk, planned, visit, result)
            reason = f"{node_id} could not be executed: {final.failure_reason}"
            return RunEnd(is_success=False, reason=reason, is_resumable=True, is_unmeasured=True)
        end = yield from _wait_for_retry(walk, planned, visit, result)
        if end is not None:
            return end


def _settle_loss(
    walk: _Walk, planned: PlannedNode, visit: _Visit, reason: str
) -> Generator[Effect, Any, Outcome | RunEnd | None]:
    """Decide about an attempt whose worker was lost; None when the stage is executed again."""
    plan, state = walk.plan, walk.state
    visit.losses += 1
    yield Announce(RunWarning(message=f"{planned.id}, attempt {visit.attempt}: {reason}", node=planned.id))
    settled = yield from settle_loss(plan, planned, state, reason, visit.losses)
    if isinstance(settled, RunEnd):
        return settled
    if isinstance(settled, Outcome):
        yield RecordStatus(planned, visit.number, visit.attempt, settled)
        return settled
    visit.note = settled
    visit.attempt += 1
    return spending_reached(plan, state, planned.id, f"before attempt {visit.attempt} of {planned.id}")


def _wait_for_retry(
    walk: _Walk, planned: PlannedNode, visit: _Visit, result: StageResult
) -> Generator[Effect, Any, RunEnd | None]:
    """Record a failed attempt and wait for the next; how the run ends when there may be none."""
    plan, state, node_id = walk.plan, walk.state, planned.id
    asked_seconds = result.outcome.retry_after_seconds
    delay = delay_seconds(planned.retry.backoff, visit.failures, walk.uniform, asked_seconds)
    yield from _record_failure(walk, planned, visit, result)
    if result.over_budget is not None:
        return bound_end(result.over_budget)
    moment = f"before attempt {visit.attempt + 1} of {node_id}"
    if end := spending_reached(plan, state, node_id, moment):
        return end
    visit.attempt += 1
    yield Announce(
        StageRetrying(name=node_id, index=visit.index, visit=visit.number, attempt=visit.attempt, delay=delay)
    )
    state.elapsed_seconds = yield Wait(delay)
    visit.duration += delay
    return spending_reached(plan, state, node_id, moment)


def _record_failure(
    walk: _Walk, planned: PlannedNode, visit: _Visit, result: StageResult
) -> Generator[Effect, Any, None]:
    """Record an attempt that failed and does not count: the stage is still to be executed."""
    state, node_id, tried = walk.state, planned.id, result.outcome
    walk.context.set(f"internal.retry_count.{node_id}", visit.failures)
    changes, logs = walk.context.take_changes()  # what a failed attempt set stays, after a stop as well
    usage = tried.usage
    node_usage, run_usage = (None, None) if usage is None else totals(state, node_id, usage)
    failed = StageFailed(
        name=node_id,
        index=visit.index,
        visit=visit.number,
        attempt=visit.attempt,
        duration=result.duration,
        outcome=tried.without_updates(),
        error=tried.failure_reason,
        will_retry=True,
        context=changes,
        logs=logs,
        node_usage=node_usage,
        run_usage=run_usage,
        commit=result.commit,
    )
    yield Announce(failed)
    state.apply(failed)


def diamonds_of(plan: Plan) -> frozenset[str]:
    """Nodes that pass the outcome of the stage before them through (ruling 16)."""
    if plan.are_diamonds_own:
        return frozenset()
    types = plan.graph.handler_types
    return frozenset(node_id for node_id, handler_type in types.items() if handler_type == CONDITIONAL_TYPE)
