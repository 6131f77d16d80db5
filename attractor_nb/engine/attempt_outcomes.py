"""The outcome of an attempt, and the status file that holds it (rulings 27, 42).

It knows what a handler returned and what is in the stage's files, not how the handler was called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from attractor_nb.context import check_values
from attractor_nb.decisions.outcome_checks import COST_KEY, checked_outcome, with_declared_cost, with_observed
from attractor_nb.decisions.retries import outcome_of_exception
from attractor_nb.errors import ContextValueError, StatusFileError
from attractor_nb.model.outcome import Outcome, StageStatus, usage_problem
from attractor_nb.model.redacted import redacted_outcome
from attractor_nb.storage.stages.status_file import StatusText, read_status_file, redacted_status

if TYPE_CHECKING:
    from collections.abc import Collection

    from attractor_nb.decisions.effects import Execute
    from attractor_nb.decisions.planning.plan import PlannedNode
    from attractor_nb.engine.attempt_spending import Spending
    from attractor_nb.stage import StageFiles

STATUS_FILE = "status.json"
REJECTED_STATUS_FILE = "status.rejected.json"
"""Where a status.json is kept that does not keep its contract, or contradicts an observed failure (rulings 27, 42)."""
IGNORED_STATUS_FILE = "status.json.ignored"
"""Where a status.json is kept that was found in a stage which runs nothing that may write one (ruling 42)."""
AUTO_STATUS_NOTES = "auto-status: handler completed without writing status"


class Returned(msgspec.Struct, frozen=True):
    """What the call of a handler gave."""

    value: Any  #: What it returned, or the outcome that its exception or its time limit means.
    #: A failure in it was observed by the engine: no status.json makes a success of it (ruling 42).
    is_observed: bool = False
    writes_status: bool = True  #: The handler runs something that may write a status.json.
    #: Ids of the graph's nodes, whose responses and verdicts no status.json sets (ruling 50).
    node_ids: Collection[str] = ()


def outcome_that_counts(
    effect: Execute, files: StageFiles, returned: Returned, duration: float, spending: Spending
) -> tuple[Outcome, str]:
    """The outcome of an attempt: its status file, the returned outcome, auto_status, or none (rulings 27, 42).

    Its status.json is then there. The returned outcome is written first, into a file that must be new:
    only when there is one already has something else written it, and it is read.

    Returns:
        The outcome, and a warning about a status file that was ignored, or empty.
    """
    planned = effect.planned
    outcome = _finished(_declared(planned, returned.value), effect)
    if spending.usage is not None:
        outcome = spending.counted(outcome)
    started = effect.started
    if files.create_deferred(STATUS_FILE, StatusText(outcome, started.visit, started.attempt, duration)):
        return outcome, ""
    if not returned.writes_status:
        files.rename(STATUS_FILE, IGNORED_STATUS_FILE)
        rewrite_status(files, effect, outcome, duration)
        return outcome, _ignored(planned)
    outcome, is_file = _arbitrated(planned, files, returned)
    outcome = spending.counted(_finished(outcome, effect, is_file=is_file))
    if not is_file:
        rewrite_status(files, effect, outcome, duration)
    return outcome, ""


def _ignored(planned: PlannedNode) -> str:
    return (
        f"{planned.id}: a {STATUS_FILE} was found in its stage directory and ignored: a stage of type "
        f"{planned.handler_type} writes none; it is kept as {IGNORED_STATUS_FILE}"
    )


def _arbitrated(planned: PlannedNode, files: StageFiles, returned: Returned) -> tuple[Outcome, bool]:
    """The outcome beside a status.json: the file's, unless it or what the handler returned is refused.

    Returns:
        The outcome, and whether it is that of a valid file.
    """
    value = returned.value
    spent = value.usage if isinstance(value, Outcome) else None
    is_counted = not usage_problem(spent)
    try:
        text = files.read_text(STATUS_FILE)
        if text is not None and is_counted:
            targets = {edge.edge.target for edge in planned.edges}
            text = _without_secrets(files, text)
            if isinstance(value, Outcome):
                value = checked_outcome(value, planned.id)
            written = read_status_file(text, targets=targets, node_ids=returned.node_ids)
            written = _with_usage(written, value)
            if not returned.is_observed or not isinstance(value, Outcome):
                return written, True
            if (counting := with_observed(written, value)) is not None:
                return counting, counting is written
            files.rename(STATUS_FILE, REJECTED_STATUS_FILE)
            evidence = f"its {STATUS_FILE} says {written.status}, and does not count ({REJECTED_STATUS_FILE})"
            notes = "; ".join(filter(None, (value.notes, evidence, written.notes)))
            return structs.replace(value, notes=notes, usage=written.usage), False
        if text is not None:  # the file says success, and what it cost is nonsense: no success
            files.rename(STATUS_FILE, REJECTED_STATUS_FILE)
    except StatusFileError as error:
        files.rename(STATUS_FILE, REJECTED_STATUS_FILE)
        refused = Outcome.fail(f"{planned.id}: {error.message}")
        return (structs.replace(refused, usage=spent) if is_counted else refused), False
    return _declared(planned, value), False


def _declared(planned: PlannedNode, returned: Any) -> Outcome:
    """What the handler's own word comes to, for a stage without a status.json that counts."""
    if isinstance(returned, Outcome):
        return checked_outcome(returned, planned.id)
    if returned is None and planned.auto_status:
        return Outcome(StageStatus.SUCCESS, notes=AUTO_STATUS_NOTES)
    if returned is None:
        return Outcome.fail(f"no status: {planned.id} returned nothing and wrote no status.json")
    kind = type(returned).__name__
    return Outcome.fail(f"the handler of {planned.id} returned {kind}, not an Outcome")


def _finished(outcome: Outcome, effect: Execute, *, is_file: bool = False) -> Outcome:
    """An outcome as it is recorded: with updates that the context takes, without secrets, with its price."""
    node_id = effect.planned.id
    if outcome.context_updates and not is_file:
        try:
            check_values(outcome.context_updates)
        except ContextValueError as error:  # the context would refuse it: its status.json must say so
            refused = Outcome.fail(f"stage {node_id}: {error.message}", is_terminal=True)
            outcome = structs.replace(refused, usage=outcome.usage)
    outcome = redacted_outcome(outcome)
    if COST_KEY in outcome.context_updates:
        outcome = with_declared_cost(outcome, node_id)
    return with_note(outcome, effect) if effect.note else outcome


def outcome_of_handler_error(error: BaseException, node_id: str) -> Outcome:
    """What an exception of a handler means, with the stage's name where the context refused a value."""
    outcome = outcome_of_exception(error)
    if isinstance(error, ContextValueError):
        return structs.replace(outcome, failure_reason=f"stage {node_id}: {outcome.failure_reason}")
    return outcome


def with_note(outcome: Outcome, effect: Execute) -> Outcome:
    """The outcome with what must be said of an attempt that was cut off."""
    if not effect.note:
        return outcome
    return structs.replace(outcome, notes=f"{outcome.notes}; {effect.note}".removeprefix("; "))


def without_note(outcome: Outcome, effect: Execute) -> Outcome:
    """The outcome as it would be in a run in which nothing was cut off."""
    if not effect.note:
        return outcome
    return structs.replace(outcome, notes=outcome.notes.removesuffix(effect.note).removesuffix("; "))


def rewrite_status(files: StageFiles, effect: Execute, outcome: Outcome, duration: float) -> None:
    """Write the status of an attempt anew that has ended: somebody decided otherwise about it."""
    write_status(files, StatusText(outcome, effect.started.visit, effect.started.attempt, duration))


def write_status(files: StageFiles, text: StatusText) -> None:
    """Write the status of an attempt, in place of one that may be there."""
    if not files.create_deferred(STATUS_FILE, text):
        files.write_text(STATUS_FILE, text())


def _without_secrets(files: StageFiles, text: str) -> str:
    """What an agent wrote stays as evidence, and the secrets in it do not."""
    clean = redacted_status(text)
    if clean != text:
        files.write_text(STATUS_FILE, clean)
    return clean


def _with_usage(outcome: Outcome, returned: Any) -> Outcome:
    """A status file says how it went; what it cost the backend knows better than the agent does."""
    if not isinstance(returned, Outcome):
        return outcome
    usage = outcome.usage if returned.usage is None else returned.usage
    updates = {**returned.context_updates, **outcome.context_updates}
    return structs.replace(outcome, context_updates=updates, usage=usage)
