"""The decision about an attempt that was cut off before its commit and may have taken effect (RELIABILITY).

The node's ``on_interrupted`` decides, or the caller that resumes: run it again, record it as failed, or ask a
person. The order of the choices is safe: a person who approves the first choice of everything records a
failure, and never runs an ambiguous command again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.commits import Ask, Asked, Effect, RunEnd
from attractor_nb.decisions.run_endings import spending_reached
from attractor_nb.model.outcome import Outcome
from attractor_nb.model.question import Answer, Option, Question

if TYPE_CHECKING:
    from collections.abc import Generator

    from attractor_nb.decisions.planning.plan import Plan, PlannedNode
    from attractor_nb.decisions.run_state import InFlight, RunState

RERUN, ASK, FAIL = "rerun", "ask", "fail"
"""The values of ``on_interrupted``."""
LOST_REASON: Final = "interrupted: it was cut off by a stop, and is not run again (on_interrupted=fail)"
FAILED: Final = Option("F", "[F] Record it as failed")
DONE: Final = Option("D", "[D] It has taken effect: continue as success")
AGAIN: Final = Option("R", "[R] Run it again")
MAX_COMMAND_CHARACTERS: Final = 500
MAX_LOST_WORKERS: Final = 3
"""Of one visit: a stage that ends each worker it is given would otherwise be run again forever."""


def policy_of(planned: PlannedNode, wanted: str | None) -> str:
    """The policy of a resume for a cut-off attempt of a node; ``wanted`` of the caller overrides the node's.

    A human gate is never asked about: it only puts its own question again. A fan-out continues with the
    branches that it has. A stage that was cut off in one of them is decided there.
    """
    policy = wanted or planned.on_interrupted
    if planned.is_fan_out:
        return RERUN
    return RERUN if policy == ASK and planned.handler_type == "wait.human" else policy


def question_id(flight: InFlight) -> str:
    """The id of the question about a cut-off attempt: another cut of the stage is another question."""
    return f"{flight.node_id}:{flight.visit}.{flight.attempt}"


def question_about(planned: PlannedNode, flight: InFlight) -> Question:
    """The question to a person about a cut-off attempt."""
    detail = f"Visit {flight.visit}, attempt {flight.attempt}."
    if command := planned.node.tool_command.strip():
        detail += f" Command: {command[:MAX_COMMAND_CHARACTERS]}"
    metadata: dict[str, Any] = {"detail": detail, "about": "interrupted"}
    return Question(
        text=f"Stage {planned.id} was cut off and may have taken effect already.",
        options=(FAILED, DONE, AGAIN),
        stage=planned.id,
        metadata=metadata,
        id=question_id(flight),
    )


def settle_flight(
    plan: Plan, planned: PlannedNode, state: RunState, flight: InFlight
) -> Generator[Effect, Any, Outcome | RunEnd | str]:
    """Decide about a cut-off attempt.

    Returns:
        The outcome to record without executing the stage; how the run ends if there was no decision;
        or, when the stage is run again, what its notes must say of that.
    """
    if state.on_interrupted == FAIL:
        return Outcome.fail(LOST_REASON, is_terminal=True)
    if state.on_interrupted != ASK:
        return ""
    asked: Asked = yield Ask(question_about(planned, flight))
    state.elapsed_seconds = asked.elapsed
    if asked.answer is not None:
        return _decided(asked.answer)
    if asked.problem:
        reason = f"stage {planned.id} was cut off, and no one could be asked about it: {asked.problem}"
        return RunEnd(is_success=False, reason=reason, is_resumable=True)
    end = spending_reached(plan, state, planned.id, f"{planned.id} was waiting for a decision")
    return end or RunEnd(is_success=False, reason=f"no decision was made about {planned.id}", is_resumable=True)


def settle_loss(
    plan: Plan, planned: PlannedNode, state: RunState, reason: str, losses: int
) -> Generator[Effect, Any, Outcome | RunEnd | str]:
    """Decide about an attempt whose worker was lost while the run is active; returns as ``settle_flight``.

    Args:
        plan: The compiled graph.
        planned: The node.
        state: Position of the run: the attempt is in flight.
        reason: How the worker was lost.
        losses: How many workers this visit has lost, this one included.
    """
    policy = policy_of(planned, None)
    if policy == RERUN and losses < MAX_LOST_WORKERS:
        return f"worker lost, and run again: {reason}"
    if policy == RERUN:
        return Outcome.fail(f"{losses} workers were lost with it; the last: {reason}", is_terminal=True)
    if policy == FAIL or state.in_flight is None:
        return Outcome.fail(f"{reason}; it is not run again (on_interrupted=fail)", is_terminal=True)
    state.on_interrupted = ASK
    try:
        return (yield from settle_flight(plan, planned, state, state.in_flight))
    finally:
        state.on_interrupted = ""


def _decided(answer: Answer) -> Outcome | str:
    by = f" by {answer.answered_by}" if answer.answered_by else ""
    key = answer.selected_option.key if answer.selected_option else ""
    if key == AGAIN.key:
        return f"it was cut off, and run again{by}"
    if key == DONE.key:
        return Outcome.success(f"it was cut off, and taken as done{by}")
    how = f"recorded as failed{by}" if key else "the question was skipped"
    return Outcome.fail(f"interrupted: it was cut off, and {how}", is_terminal=True)
