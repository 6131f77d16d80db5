"""What a stage reports: status, routing hints, context updates, usage (spec 5.2, appendices C and D)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class StageStatus(StrEnum):
    """How a stage ended (spec 5.2).

    Attributes:
        is_success: SUCCESS and PARTIAL_SUCCESS: what routes on and satisfies a goal gate (ruling 17).
        is_failure: FAIL and RETRY: what is retried, then routed as a failure.
        is_skipped: SKIPPED: it counts for nothing (ruling 20).
    """

    is_success: bool
    is_failure: bool
    is_skipped: bool

    SUCCESS = "success"
    PARTIAL_SUCCESS = "partial_success"
    RETRY = "retry"
    FAIL = "fail"
    SKIPPED = "skipped"

    __hash__ = str.__hash__  # that of enums is a call of Python, and not the one of the text it equals

    def __init__(self, word: str) -> None:
        self.is_success = word in {"success", "partial_success"}
        self.is_failure = word in {"fail", "retry"}
        self.is_skipped = word == "skipped"


_SUCCESS = StageStatus.SUCCESS
"""In Python 3.11 each look at a member of an enum is a call: that of every step is made once."""
_FAILED = (StageStatus.FAIL, StageStatus.RETRY)
"""Compared and not hashed: a status of somebody's untyped code may be anything."""


def no_values() -> dict[str, Any]:
    """An empty dict, as a default: calling ``dict[str, Any]`` takes ten times as long."""
    return {}


STATUS_ALIASES = {
    "succeeded": "success",
    "successful": "success",
    "ok": "success",
    "failed": "fail",
    "failure": "fail",
    "error": "fail",
    "partial": "partial_success",
    "partialsuccess": "partial_success",
    "skip": "skipped",
}
"""Spellings met in the wild, lower-cased, and the spec's status that they mean (ruling 11)."""


def read_status(text: str) -> StageStatus | None:
    """The status a word means, whatever its case or alias; None for any other word.

    >>> read_status("SUCCESS"), read_status("failed"), read_status("maybe")
    (<StageStatus.SUCCESS: 'success'>, <StageStatus.FAIL: 'fail'>, None)
    """
    word = text.strip().lower().replace("-", "_")
    word = STATUS_ALIASES.get(word, word)
    return StageStatus(word) if word in StageStatus.__members__.values() else None


@dataclass(frozen=True, slots=True)
class Usage:
    """What model calls consumed. Adds up with ``+``.

    Attributes:
        input_tokens: Tokens sent.
        output_tokens: Tokens received.
        cost_usd: Price in USD of what has one, or None when none of it is known; unknown is never free.
        calls: Number of model calls.
        unpriced_calls: How many of them have no known price. What has tokens and no price is one at least,
            though nobody counted it.
        cached_tokens: How many of the input tokens a provider had in its cache, and sells for less.
        estimated_calls: How many of them did not say what they consumed, so that their tokens, and the price
            of these, are our estimate.

    >>> (Usage(900, 100, 0.25, 1) + Usage(10, 5, None, 1)).to_plain()
    {'input_tokens': 910, 'output_tokens': 105, 'cost_usd': 0.25, 'calls': 2, 'unpriced_calls': 1}
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    calls: int = 0
    unpriced_calls: int = 0
    cached_tokens: int = 0
    estimated_calls: int = 0

    def __post_init__(self) -> None:
        if self.cost_usd is None and not self.unpriced_calls:
            object.__setattr__(self, "unpriced_calls", self._calls_without_price)

    @property
    def _calls_without_price(self) -> int:
        """How many there are of it when none of it has a price; callers may be untyped."""
        if type(self.calls) is int and self.calls > 0:
            return self.calls
        return 1 if self.input_tokens or self.output_tokens else 0

    @property
    def total_tokens(self) -> int:
        """Tokens in both directions."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        costs = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            sum(costs) if costs else None,
            self.calls + other.calls,
            self.unpriced_calls + other.unpriced_calls,
            self.cached_tokens + other.cached_tokens,
            self.estimated_calls + other.estimated_calls,
        )

    def with_price(self, cost_usd: float) -> Usage:
        """The same with a price for all of it."""
        return replace(self, cost_usd=cost_usd, unpriced_calls=0)

    def to_plain(self) -> dict[str, Any]:
        """JSON values, counts of zero and an unknown price left out; a price of zero is a known one.

        The unpriced calls are there where they are not what a reader would take them for: none beside a
        price, all without one.
        """
        plain: dict[str, Any] = {}
        for name in ("input_tokens", "output_tokens", "cost_usd", "calls", "cached_tokens"):
            value = getattr(self, name)
            if value or (name == "cost_usd" and value is not None):
                plain[name] = value
        if self.unpriced_calls != (self._calls_without_price if self.cost_usd is None else 0):
            plain["unpriced_calls"] = self.unpriced_calls
        if self.estimated_calls:
            plain["estimated_calls"] = self.estimated_calls
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Usage:
        """The inverse of ``to_plain``."""
        return cls(
            int(plain.get("input_tokens", 0)),
            int(plain.get("output_tokens", 0)),
            plain.get("cost_usd"),
            int(plain.get("calls", 0)),
            int(plain.get("unpriced_calls", 0)),
            int(plain.get("cached_tokens", 0)),
            int(plain.get("estimated_calls", 0)),
        )


MAX_COUNT: Final = 2**53
"""Tokens or calls beyond which JSON readers lose digits: no model call comes near."""
MAX_COST_USD: Final = 1e9
"""A price of one stage beyond which it is a slip, and sums of it would lose their cents."""
_COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "calls",
    "unpriced_calls",
    "cached_tokens",
    "estimated_calls",
)


def usage_problem(usage: object) -> str:
    """Why a usage cannot be counted, or empty: a bound that adds it up would never be reached.

    >>> usage_problem(Usage(10, cost_usd=0.5)), usage_problem(Usage(10, cost_usd=-1.0))
    ('', 'cost_usd -1.0 is no price')
    """
    if usage is None:
        return ""
    if not isinstance(usage, Usage):
        return f"a {type(usage).__name__} is no Usage"
    for name in _COUNTS:
        count: object = getattr(usage, name)
        if type(count) is not int or not 0 <= count <= MAX_COUNT:
            return f"{name} {count!r:.40} is no count"
    cost: object = usage.cost_usd
    is_price = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= MAX_COST_USD
    return "" if cost is None or is_price else f"cost_usd {cost!r:.40} is no price"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a handler (spec 5.2).

    Attributes:
        status: How it ended.
        preferred_label: The edge label to follow, or empty.
        suggested_next_ids: Targets to prefer, in order.
        context_updates: Keys to merge into the run's context.
        notes: A summary for people.
        failure_reason: Why, when the status is FAIL or RETRY; the notes, where nobody said.
        is_terminal: The failure is permanent: retrying cannot help (Appendix D).
        usage: What model calls consumed, if any.
        retry_after_seconds: How long whoever failed the stage asks to be left alone; None when nobody said.
        complaint: What the prompt of the next attempt says of the answer that this one did not accept: what
            was wrong with it, and what it was. Empty when no answer was refused.
    """

    status: StageStatus
    preferred_label: str = ""
    suggested_next_ids: tuple[str, ...] = ()
    context_updates: Mapping[str, Any] = field(default_factory=no_values)
    notes: str = ""
    failure_reason: str = ""
    is_terminal: bool = False
    usage: Usage | None = None
    retry_after_seconds: float | None = None
    complaint: str = ""

    def __post_init__(self) -> None:
        if not self.failure_reason and self.notes and self.status in _FAILED:
            object.__setattr__(self, "failure_reason", self.notes)

    @classmethod
    def success(cls, notes: str = "", *, context_updates: Mapping[str, Any] | None = None) -> Outcome:
        """A SUCCESS."""
        return cls(_SUCCESS, notes=notes, context_updates=dict(context_updates or {}))

    @classmethod
    def fail(cls, reason: str, *, is_terminal: bool = False) -> Outcome:
        """A FAIL with its reason."""
        return cls(StageStatus.FAIL, failure_reason=reason, is_terminal=is_terminal)

    @classmethod
    def retry(cls, reason: str, *, complaint: str = "") -> Outcome:
        """A RETRY with its reason, and what the next attempt is to tell its model, if anything."""
        return cls(StageStatus.RETRY, failure_reason=reason, complaint=complaint)

    def to_plain(self, *, with_updates: bool = True) -> dict[str, Any]:
        """JSON values under the names of status.json (appendix C; ruling 27); empty ones left out."""
        plain: dict[str, Any] = {"outcome": str(self.status)}
        if self.preferred_label:
            plain["preferred_next_label"] = self.preferred_label
        if self.suggested_next_ids:
            plain["suggested_next_ids"] = list(self.suggested_next_ids)
        if with_updates and self.context_updates:
            plain["context_updates"] = dict(self.context_updates)
        if self.notes:
            plain["notes"] = self.notes
        if self.failure_reason:
            plain["failure_reason"] = self.failure_reason
        if self.is_terminal:
            plain["is_terminal"] = True
        if self.usage is not None:
            plain["usage"] = self.usage.to_plain()
        if self.retry_after_seconds is not None:
            plain["retry_after_seconds"] = self.retry_after_seconds
        if self.complaint:
            plain["complaint"] = self.complaint
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Outcome:
        """The inverse of ``to_plain``, for records that we wrote; a foreign status.json has a reader."""
        usage = plain.get("usage")
        return cls(
            StageStatus(plain["outcome"]),
            plain.get("preferred_next_label", ""),
            tuple(plain.get("suggested_next_ids", ())),
            plain.get("context_updates", {}),
            plain.get("notes", ""),
            plain.get("failure_reason", ""),
            is_terminal=plain.get("is_terminal", False),
            usage=None if usage is None else Usage.from_plain(usage),
            retry_after_seconds=plain.get("retry_after_seconds"),
            complaint=plain.get("complaint", ""),
        )

    def with_updates(self, updates: Mapping[str, Any]) -> Outcome:
        """A copy with more context updates."""
        return replace(self, context_updates={**self.context_updates, **updates})
