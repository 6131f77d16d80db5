"""Retries of a stage: the decision, the delay, and the meaning of failures (spec 3.5, 3.6; ruling 13).

The module knows nothing of clocks: the caller waits, and passes the random numbers for jitter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from attractor_nb.errors import (
    AttractorError,
    OptionError,
    RetryableError,
    SourceError,
    StageError,
    StorageError,
    TerminalError,
    UntrustedSource,
    ValidationError,
)
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.model.stop import is_shortage
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.decisions.planning.plan import PlannedNode
    from attractor_nb.model.graph import Graph, Node

JITTER_RANGE: Final = (0.5, 1.5)
MAX_ASKED_DELAY_SECONDS: Final = 600.0
"""No server makes a run wait longer between two attempts, whatever its Retry-After says."""
MAX_REASON_CHARACTERS: Final = 4000
TRANSIENT_HTTP: Final = frozenset({408, 409, 425, 429})
"""Client-side HTTP statuses that may pass; every 5xx may too."""
UNMEASURED_HTTP: Final = frozenset({401, 402, 403})
"""No key, no credit, no access: nothing was asked."""
TRANSIENT_NAMES: Final = frozenset({"TransportError", "APIConnectionError", "ConnectionError", "URLError"})
"""Network failures of libraries that derive from neither ConnectionError nor TimeoutError."""


class BackoffConfig(msgspec.Struct, frozen=True):
    """The delays between attempts (spec 3.6)."""

    initial_delay_ms: int = 200  #: Delay before the first retry.
    backoff_factor: float = 2.0  #: Multiplier from one delay to the next.
    max_delay_ms: int = 60_000  #: No delay is longer.
    has_jitter: bool = True  #: Each delay is multiplied by a random number in [0.5, 1.5].


class RetryPolicy(msgspec.Struct, frozen=True):
    """The number of attempts of a stage, and the delays between them."""

    max_attempts: int = 1  #: Attempts within a visit, the first included.
    backoff: BackoffConfig = BackoffConfig()  #: Delays between them.
    retries_failures: bool = False  #: FAIL is retried as RETRY is, unless it is terminal.


PRESETS: Final[Mapping[str, RetryPolicy]] = {
    "none": RetryPolicy(1),
    "standard": RetryPolicy(5, BackoffConfig(200, 2.0)),
    "aggressive": RetryPolicy(5, BackoffConfig(500, 2.0)),
    "linear": RetryPolicy(3, BackoffConfig(500, 1.0)),
    "patient": RetryPolicy(3, BackoffConfig(2000, 3.0)),
}
"""The preset policies of spec 3.6."""


def build_retry_policy(node: Node, graph: Graph) -> RetryPolicy:
    """The policy of a node.

    Attempts come from the first of: node ``max_retries``, node ``retry_policy``, graph
    ``default_max_retries``, graph ``retry_policy``, none. Delays come from the nearest preset. FAIL is
    retried only where a number of retries is written (ruling 13).
    """
    own = PRESETS.get(node.get("retry_policy", str, ""))
    shared = PRESETS.get(graph.get("retry_policy", str, ""))
    preset = own or shared
    backoff = preset.backoff if preset else BackoffConfig()
    retries = node.max_retries
    if retries is None and own is None:
        retries = _default_retries(graph)
    if retries is not None:
        return RetryPolicy(max(0, retries) + 1, backoff, retries_failures=True)
    return preset or RetryPolicy()


def _default_retries(graph: Graph) -> int | None:
    for name in ("default_max_retries", "default_max_retry"):
        if name in graph.attrs:
            return graph.get(name, int)
    return None


def delay_seconds(
    backoff: BackoffConfig, attempt: int, uniform: Callable[[float, float], float], asked_seconds: float | None = None
) -> float:
    """The delay after a failed attempt; jitter comes before the cap, so the cap holds.

    >>> delay_seconds(BackoffConfig(has_jitter=False), 3, lambda low, high: high)
    0.8
    >>> delay_seconds(BackoffConfig(has_jitter=False), 3, lambda low, high: high, asked_seconds=90.0)
    90.0

    Args:
        backoff: The delays.
        attempt: Ordinal of the attempt that failed, from 1.
        uniform: Gives a random number between two others.
        asked_seconds: Pause that the failing server asks for; the wait is not shorter, though
            never more than ``MAX_ASKED_DELAY_SECONDS`` for it.
    """
    try:
        delay_ms = backoff.initial_delay_ms * backoff.backoff_factor ** (attempt - 1)
    except OverflowError:
        delay_ms = float(backoff.max_delay_ms) if backoff.initial_delay_ms else 0.0
    if backoff.has_jitter:
        delay_ms *= uniform(*JITTER_RANGE)
    delay = min(delay_ms, backoff.max_delay_ms) / 1000
    return delay if asked_seconds is None else max(delay, min(asked_seconds, MAX_ASKED_DELAY_SECONDS))


def should_retry(policy: RetryPolicy, outcome: Outcome, failures: int) -> bool:
    """True if another attempt follows (ruling 13).

    Args:
        policy: The node's policy.
        outcome: What the last attempt gave.
        failures: Failed attempts so far in this visit, the last one included.
    """
    if outcome.is_terminal or failures >= policy.max_attempts:
        return False
    if outcome.status is StageStatus.FAIL:
        return policy.retries_failures
    return outcome.status is StageStatus.RETRY


def final_outcome(planned: PlannedNode, outcome: Outcome, failures: int) -> Outcome:
    """The outcome that routes on: a RETRY that is not retried becomes PARTIAL_SUCCESS or FAIL (spec 3.5).

    ``allow_partial`` accepts no answer that was refused as the success of a goal gate.

    Args:
        planned: The node.
        outcome: What the last attempt gave.
        failures: Failed attempts in this visit, the last one included.
    """
    if outcome.status is not StageStatus.RETRY:
        return outcome
    is_exhausted = planned.retry.max_attempts > 1 and failures >= planned.retry.max_attempts
    is_refused = planned.is_goal_gate and bool(outcome.complaint)
    if planned.allow_partial and not outcome.is_terminal and not is_refused:
        notes = "retries exhausted, partial accepted" if is_exhausted else "partial accepted"
        notes = f"{notes}: {outcome.notes}" if outcome.notes else notes
        return replace(outcome, status=StageStatus.PARTIAL_SUCCESS, notes=notes, complaint="")
    reason = outcome.failure_reason
    if is_exhausted:
        reason = f"max retries exceeded: {reason}" if reason else "max retries exceeded"
    reason = reason or "it asked to be tried again, and no retry is allowed"
    return replace(outcome, status=StageStatus.FAIL, failure_reason=reason, complaint="")


def outcome_of_exception(error: BaseException) -> Outcome:
    """The outcome that an exception of a handler means (spec 3.6, Appendix D). Never raises.

    RETRY for transient failures: RetryableError, network errors, timeouts, HTTP 408, 409, 425, 429
    and 5xx. Terminal FAIL for what stays wrong: TerminalError, other HTTP 4xx, invalid pipelines,
    texts and options. FAIL for everything else. A refused key, no credit, no network and too few files or
    processes leave the stage unmeasured (ruling 51). How long a StageError asks to be left alone is the outcome's.
    """
    outcome = _classed(error)
    if _is_unmeasured(error):
        outcome = replace(outcome, is_unmeasured=True)
    if isinstance(error, StageError) and error.retry_after_seconds is not None:
        return replace(outcome, retry_after_seconds=error.retry_after_seconds)
    return outcome


def _is_unmeasured(error: BaseException) -> bool:
    """True if the attempt could not be made for a reason outside the pipeline (ruling 51)."""
    if isinstance(error, StageError):
        return error.is_unmeasured
    if isinstance(error, AttractorError):
        return isinstance(error, StorageError) and is_shortage(error)
    if status := _http_status(error):
        return status in UNMEASURED_HTTP
    return is_shortage(error) or isinstance(error, ConnectionError) or _is_network_failure(error)


def _classed(error: BaseException) -> Outcome:
    reason = _reason_of(error)
    if isinstance(error, RetryableError):
        return Outcome.retry(reason)
    if isinstance(error, TerminalError | ValidationError | OptionError | SourceError | UntrustedSource):
        return Outcome.fail(reason, is_terminal=True)
    if status := _http_status(error):
        if status in TRANSIENT_HTTP or status >= 500:
            return Outcome.retry(reason)
        return Outcome.fail(reason, is_terminal=True)
    if isinstance(error, ConnectionError | TimeoutError) or _is_network_failure(error):
        return Outcome.retry(reason)
    return Outcome.fail(reason)


def _is_network_failure(error: BaseException) -> bool:
    return any(kind.__name__ in TRANSIENT_NAMES for kind in type(error).__mro__)


def _http_status(error: BaseException) -> int | None:
    """The HTTP status that an exception carries, wherever its library keeps it; None without one."""
    for name in ("status_code", "code"):
        for owner in (error, _attribute(error, "response")):
            value = _attribute(owner, name)
            if type(value) is int and 400 <= value <= 599:
                return value
    return None


def _attribute(owner: object, name: str) -> Any:
    try:
        return getattr(owner, name, None)
    except Exception:  # noqa: BLE001 - a foreign property may raise anything
        return None


def _reason_of(error: BaseException) -> str:
    name = "" if isinstance(error, AttractorError) else type(error).__name__
    try:
        text = redacted(_message_of(error).strip())  # before it is cut: half a secret has no form
        text = text.encode("utf-8", "backslashreplace").decode()
    except Exception:  # noqa: BLE001 - a foreign __str__ may raise anything
        text = "(its message cannot be shown)"
    if len(text) > MAX_REASON_CHARACTERS:
        text = text[:MAX_REASON_CHARACTERS] + "…"
    if not text:
        return type(error).__name__
    return f"{name}: {text}" if name else text


def _message_of(error: BaseException) -> str:
    if isinstance(error, AttractorError) and error.hint and not isinstance(error, SourceError):
        return f"{error.message} ({error.hint})"
    return str(error)
