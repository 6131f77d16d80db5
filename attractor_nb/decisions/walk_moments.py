"""The moments of a walk at which a run may stand still: what breakpoints see of them, and what people are told.

Knows the state of the walk and what its stage came to; not which breakpoint holds, and nobody who waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.decisions.breakpoints import AFTER_MOMENT, BEFORE_MOMENT, WalkMoment
from attractor_nb.decisions.retries import final_outcome, should_retry
from attractor_nb.model.outcome import Outcome
from attractor_nb.model.stop import Stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.decisions.effects import Execute, StageResult
    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.model.events import StageStarted


def moment_before(plan: Plan, state: RunState, started: StageStarted, lookup: Callable[[str], object]) -> WalkMoment:
    """The moment before a visit begins; ``lookup`` gives a value of the walk's context."""
    edge = None if state.incoming_edge is None else plan.edges[state.incoming_edge].edge
    seen = state.seen
    came_from = edge.source if edge is not None and edge.target == started.name else ""
    return WalkMoment(
        started.name,
        started.visit,
        came_from=came_from,
        status=seen.status.value,
        label=seen.preferred_label,
        lookup=lookup,
    )


def lasting_outcome(state: RunState, effect: Execute, result: StageResult) -> Outcome | None:
    """What a stage has come to for good; None where it is tried again, or was cut off or lost."""
    if result.is_cut_off or result.lost or result.over_budget:
        return None
    failures = 1 + (state.in_flight.failures if state.in_flight else 0)
    if result.outcome.status.is_failure and should_retry(effect.planned.retry, result.outcome, failures):
        return None
    return final_outcome(effect.planned, result.outcome, failures)


def moment_after(started: StageStarted, outcome: Outcome) -> WalkMoment:
    """The moment after a stage has come to an outcome, before an edge is chosen."""
    return WalkMoment(
        started.name,
        started.visit,
        is_after=True,
        is_error=outcome.status.is_failure,
        status=outcome.status.value,
        label=outcome.preferred_label,
    )


def outcome_before(state: RunState) -> Outcome | None:
    """What the stage before the next one came to; None where there was none."""
    if not state.completed:
        return None
    reason = state.last_reason if state.last_status.is_failure else ""
    return Outcome(state.last_status, notes=state.last_notes, failure_reason=reason)


def stop_at(moment: WalkMoment, why: str, *, number: int, path: str, branch: str, outcome: Outcome | None) -> Stop:
    """The stop of a walk, as people are told of it.

    Args:
        moment: Where it stands.
        why: The breakpoint, ``step`` or ``pause``.
        number: Number of the stop.
        path: Nodes whose child runs lead to the run.
        branch: The branch in it.
        outcome: What the stage came to that has just ended.
    """
    return Stop(
        number=number,
        node=moment.node,
        moment=AFTER_MOMENT if moment.is_after else BEFORE_MOMENT,
        visit=moment.visit,
        breakpoint=why,
        branch=branch,
        path=path,
        edge=f"{moment.came_from}->{moment.node}" if moment.came_from else "",
        outcome=outcome,
    )
