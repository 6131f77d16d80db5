"""Failed calls on record: a replay fails in the same class, so that it is retried in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from attractor_nb.decisions.retries import outcome_of_exception
from attractor_nb.errors import RetryableError, RunError, StageError, TerminalError, WorkerLost
from attractor_nb.model.outcome import StageStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

ERROR: Final = "error"
_RETRYABLE: Final = "retryable"
_TERMINAL: Final = "terminal"
_FAILED: Final = "failed"


class _Recorded(StageError):
    """A failure whose message is given as it was recorded, whatever its lines end in."""

    def __str__(self) -> str:
        return self.message


class RecordedRetryable(_Recorded, RetryableError):
    """A transient failure of a recorded call."""


class RecordedTerminal(_Recorded, TerminalError):
    """A permanent failure of a recorded call."""


def is_recorded(error: BaseException) -> bool:
    """Whether a failure is recorded as an answer; disk faults and lost workers are not."""
    return isinstance(error, Exception) and not isinstance(error, RunError | WorkerLost)


def plain_error(error: BaseException) -> dict[str, Any]:
    """Return a failure as JSON values: its class by Appendix D, its message and its usage."""
    outcome = outcome_of_exception(error)
    if outcome.status is StageStatus.RETRY:
        kind = _RETRYABLE
    else:
        kind = _TERMINAL if outcome.is_terminal else _FAILED
    plain: dict[str, Any] = {"class": kind, "message": outcome.failure_reason}
    if outcome.usage is not None:
        plain["usage"] = outcome.usage.to_plain()
    return {ERROR: plain}


def timed_out(node_id: str, limit: object) -> dict[str, Any]:
    """A call that the time limit of its stage ended, as JSON values."""
    message = f"timeout: {node_id} took more than {limit}"
    return {ERROR: {"class": _RETRYABLE, "message": message}}


def raise_recorded(answer: Mapping[str, Any]) -> None:
    """Raise the failure that an answer is, if it is one; how long to wait was for the one who was asked.

    Raises:
        StageError: Of the recorded class.
    """
    plain = answer.get(ERROR)
    if plain is None:
        return
    message = str(plain["message"])
    if plain["class"] == _RETRYABLE:
        raise RecordedRetryable(message)
    raise RecordedTerminal(message) if plain["class"] == _TERMINAL else _Recorded(message)
