"""The outcome of a stage: status, routing hints, context updates, usage, marks (spec 5.2, appendices C and D)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec.structs import force_setattr, replace

from attractor_nb.model.record import Count, Record, no_values


class StageStatus(StrEnum):
    """The status of a stage's outcome (spec 5.2).

    Attributes:
        is_success: SUCCESS and PARTIAL_SUCCESS: what routes on and satisfies a goal gate (ruling 17).
        is_failure: FAIL and RETRY: what is retried, then routed as a failure.
        is_skipped: SKIPPED: it is not counted (ruling 20).
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
"""Compared and not hashed: a status from untyped code may be anything."""


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


class Usage(Record, frozen=True):
    """The usage of model calls. Adds up with ``+``.

    Attributes:
        input_tokens: Tokens sent.
        output_tokens: Tokens received.
        cost_usd: Price in USD of what has one, or None when none of it is known; unknown is never free.
        calls: Number of model calls.
        cached_tokens: How many of the input tokens a provider had in its cache, and sells for less.
        unpriced: How many of the calls have no known price; None when it is what anybody would take it for:
            none beside a price, all without one.
        estimated_calls: How many of them did not say what they consumed, so that their tokens, and the price
            of these, are our estimate.

    >>> (Usage(900, 100, 0.25, 1) + Usage(10, 5, None, 1)).to_plain()
    {'input_tokens': 910, 'output_tokens': 105, 'cost_usd': 0.25, 'calls': 2, 'unpriced_calls': 1}
    """

    input_tokens: Count = 0
    output_tokens: Count = 0
    cost_usd: Annotated[float, msgspec.Meta(ge=0)] | None = None
    calls: Count = 0
    cached_tokens: Count = 0
    unpriced: Count | None = msgspec.field(default=None, name="unpriced_calls")
    estimated_calls: Count = 0

    def __post_init__(self) -> None:
        # One usage has one form, so that equal ones are equal.
        if self.unpriced is not None and (
            self.unpriced == self._expected_unpriced or (self.cost_usd is None and not self.unpriced)
        ):
            force_setattr(self, "unpriced", None)

    @property
    def unpriced_calls(self) -> int:
        """The number of calls without a known price; at least one if there are tokens and no price."""
        return self._expected_unpriced if self.unpriced is None else self.unpriced

    @property
    def _expected_unpriced(self) -> int:
        """The number of unpriced calls to assume; callers may be untyped."""
        if self.cost_usd is not None:
            return 0
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
            self.cached_tokens + other.cached_tokens,
            self.unpriced_calls + other.unpriced_calls,
            self.estimated_calls + other.estimated_calls,
        )

    def beyond(self, counted: Usage) -> Usage:
        """The remaining usage after subtracting a part that was counted before.

        >>> Usage(30, 15, 1.5, 3).beyond(Usage(10, 5, 0.5, 1)).to_plain()
        {'input_tokens': 20, 'output_tokens': 10, 'cost_usd': 1.0, 'calls': 2}
        """
        if counted == Usage():
            return self
        cost = None if self.cost_usd is None else max(0.0, self.cost_usd - (counted.cost_usd or 0.0))
        return Usage(
            max(0, self.input_tokens - counted.input_tokens),
            max(0, self.output_tokens - counted.output_tokens),
            cost,
            max(0, self.calls - counted.calls),
            max(0, self.cached_tokens - counted.cached_tokens),
            max(0, self.unpriced_calls - counted.unpriced_calls),
            max(0, self.estimated_calls - counted.estimated_calls),
        )

    def with_price(self, cost_usd: float) -> Usage:
        """The same with a price for all of it."""
        return replace(self, cost_usd=cost_usd, unpriced=None)


MAX_COUNT: Final = 2**53
"""Tokens or calls beyond which JSON readers lose digits: no model call comes near."""
MAX_COST_USD: Final = 1e9
"""A price of one stage beyond which it is a slip, and sums of it would lose their cents."""
_COUNTS: Final = ("input_tokens", "output_tokens", "calls", "unpriced_calls", "cached_tokens", "estimated_calls")


def usage_problem(usage: object) -> str:
    """The reason why a usage cannot be counted, or empty: a bound that adds it up would never be reached.

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
            return f"{name} {count!r:.40} is not a count"
    cost: object = usage.cost_usd
    is_price = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost <= MAX_COST_USD
    return "" if cost is None or is_price else f"cost_usd {cost!r:.40} is no price"


class Outcome(Record, frozen=True):
    """The result of a handler (spec 5.2).

    Attributes:
        status: How it ended.
        preferred_label: The edge label to follow, or empty.
        suggested_next_ids: Targets to prefer, in order.
        context_updates: Keys to merge into the run's context.
        notes: A summary for users.
        failure_reason: The reason, when the status is FAIL or RETRY; the notes if none was given.
        is_terminal: The failure is permanent: retrying cannot help (Appendix D).
        usage: What model calls consumed, if any.
        retry_after_seconds: Pause that the failing server asks for; None when it names none.
        is_unmeasured: The attempt could not be made for a reason outside the pipeline, such as a refused key: where
            nothing routes the failure, the run is interrupted and has not failed (ruling 51).
        complaint: What the prompt of the next attempt says of the answer that this one did not accept: what
            was wrong with it, and what it was. Empty when no answer was refused.
    """

    status: StageStatus = msgspec.field(name="outcome")
    preferred_label: str = msgspec.field(default="", name="preferred_next_label")
    suggested_next_ids: tuple[str, ...] = ()
    context_updates: Mapping[str, Any] = msgspec.field(default_factory=no_values)
    notes: str = ""
    failure_reason: str = ""
    is_terminal: bool = False
    usage: Usage | None = None
    retry_after_seconds: float | None = None
    is_unmeasured: bool = False
    complaint: str = ""

    def __post_init__(self) -> None:
        if not self.failure_reason and self.notes and self.status in _FAILED:
            force_setattr(self, "failure_reason", self.notes)

    @classmethod
    def success(cls, notes: str = "", *, context_updates: Mapping[str, Any] | None = None) -> Outcome:
        """A SUCCESS.

        Args:
            notes: A sentence for readers of the run.
            context_updates: Values for the context, by key.
        """
        return cls(_SUCCESS, notes=notes, context_updates=dict(context_updates or {}))

    @classmethod
    def fail(cls, reason: str, *, is_terminal: bool = False) -> Outcome:
        """A FAIL with its reason.

        Args:
            reason: The cause, in a sentence.
            is_terminal: No retry can help.
        """
        return cls(StageStatus.FAIL, failure_reason=reason, is_terminal=is_terminal)

    @classmethod
    def retry(cls, reason: str, *, complaint: str = "") -> Outcome:
        """A RETRY with its reason, and what the next attempt is to tell its model, if anything.

        Args:
            reason: The cause, in a sentence.
            complaint: A text for the model of the next attempt.
        """
        return cls(StageStatus.RETRY, failure_reason=reason, complaint=complaint)

    def without_updates(self) -> Outcome:
        """The same without its context updates, for a record that has the changes in another field."""
        return replace(self, context_updates={}) if self.context_updates else self

    def with_updates(self, updates: Mapping[str, Any]) -> Outcome:
        """A copy with more context updates."""
        return replace(self, context_updates={**self.context_updates, **updates})


# The marks of a result that a pipeline did not reach by itself: simulated, pinned (ruling 48).
#
# This is the one form of the fact. Logs, manifests and rows of maps hold it; all displays show its words.

Answers = Literal["", "real", "simulated", "partly simulated"]
"""Source of the answers: a backend, made-up answers, or both; empty when nothing was asked."""
StandIn = Literal["pinned", "mocked", "set by hand"]
"""Replacement of a node's own outcome."""
_KINDS: Final[tuple[StandIn, ...]] = ("pinned", "mocked", "set by hand")


def answers_together(first: Answers, second: Answers) -> Answers:
    """Combine the kinds of answers of two parts of a whole.

    >>> answers_together("real", "simulated"), answers_together("", "simulated")
    ('partly simulated', 'simulated')
    """
    if not first or first == second:
        return second
    return first if not second else "partly simulated"


class ResultMarks(Record, frozen=True):
    """The marks of a run, a row or a map: the kind of its answers, its backends, nodes with given outcomes."""

    answers: Answers = ""  #: Source of the answers to prompts, and whether commands were run.
    #: Backends that answered, in order of first use, as in the manifest.
    backends: list[str] = []  # noqa: RUF012 - each has its own list
    #: Nodes whose latest outcome was given, and how; of a child run ``node>node``.
    stand_ins: Mapping[str, StandIn] = {}

    @property
    def is_simulated(self) -> bool:
        """True if at least a part is made up."""
        return self.answers in {"simulated", "partly simulated"}

    @property
    def words(self) -> str:
        """The marks in words; empty for a result without a mark.

        >>> ResultMarks("partly simulated", stand_ins={"check": "pinned", "test": "pinned"}).words
        'partly simulated; pinned: check, test'
        """
        parts = [self.answers] if self.is_simulated else []
        for kind in _KINDS:
            nodes = ", ".join(node for node, found in self.stand_ins.items() if found == kind)
            parts += [f"{kind}: {nodes}"] if nodes else []
        return "; ".join(parts)

    def __add__(self, other: ResultMarks) -> ResultMarks:
        """Those of two parts of a whole."""
        return ResultMarks(
            answers_together(self.answers, other.answers),
            list(dict.fromkeys((*self.backends, *other.backends))),
            {**self.stand_ins, **other.stand_ins},
        )

    def of_child(self, node_id: str) -> ResultMarks:
        """Those that a child run gives its parent, whose backends are the parent's own."""
        return ResultMarks(self.answers, stand_ins={f"{node_id}>{name}": kind for name, kind in self.stand_ins.items()})

    def to_facts(self) -> dict[str, Any]:
        """The entries of a manifest."""
        return {
            "answers": self.answers,
            "is_simulated": self.is_simulated,
            "backends": self.backends,
            "stand_ins": dict(self.stand_ins),
        }

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> ResultMarks:
        """Those of a manifest, whose values were checked."""
        return cls(facts.get("answers", ""), list(facts.get("backends", ())), dict(facts.get("stand_ins", {})))
