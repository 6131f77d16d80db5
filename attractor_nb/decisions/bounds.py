"""The bounds of a run, and the cycle along which it reaches one (ruling 18).

Counts and sums come from the caller; this module only compares them.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from attractor_nb.errors import OptionError
from attractor_nb.model.outcome import Usage
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.value_forms import Duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attractor_nb.model.graph import Graph, Node


MAX_CYCLE_NODES: Final = 12
SPENDING: Final = frozenset({"max_budget_usd", "max_tokens_total"})
"""The bounds on money and tokens, which nodes may have of their own."""
NO_OVERRIDES: Final[Mapping[str, object]] = MappingProxyType({})
_LEAST: Final = {"max_steps": 1, "max_node_visits": 1}
_NUMBERS: Final = frozenset({"max_budget_usd", "max_duration_seconds"})


class BoundReached(msgspec.Struct, frozen=True):
    """A bound that a run has reached."""

    bound: str  #: Its name, as a caller raises it: ``max_steps``, ``max_duration`` …
    reason: str  #: Bound, count and cycle in words.


class RunPosition(msgspec.Struct, frozen=True):
    """The position of a run; put into words only when they are needed.

    >>> str(RunPosition(["start", "plan"], "plan")), str(RunPosition(["start"], "plan"))
    ('in the cycle plan -> plan', 'before plan')
    >>> str(RunPosition(["start"], "plan", "plan was cut off"))
    'plan was cut off'
    """

    completed: Sequence[str]  #: Ids of the stages executed so far, in order.
    node_id: str  #: The node that is next, or under way.
    moment: str = ""  #: State of the run there, when it is more than about to begin.
    outer: RunPosition | None = None  #: For a branch: position of its fan-out, in whose cycle it may be.

    @property
    def cycle(self) -> str:
        """The cycle that the next node closes, or else one around it; empty without any."""
        own = cycle_of([*self.completed, self.node_id])
        return own or (self.outer.cycle if self.outer else "")

    def __str__(self) -> str:
        words = [f"in the cycle {cycle}" if (cycle := self.cycle) else "", self.moment]
        return ", ".join(word for word in words if word) or f"before {self.node_id}"


class RunBounds(msgspec.Struct, frozen=True):
    """The bounds of a run. None means unlimited."""

    max_steps: int = 1000  #: Stages that may be executed.
    max_node_visits: int | None = None  #: Visits that any one node may get.
    max_restarts: int = 10  #: Maximum number of ``loop_restart`` edges that are taken.
    max_goal_gate_redirects: int = 10  #: Maximum number of redirects by unsatisfied goal gates.
    max_budget_usd: float | None = None  #: Cost at which it is stopped.
    max_tokens_total: int | None = None  #: Tokens at which it is stopped.
    max_duration_seconds: float | None = None  #: Running time at which it is stopped.

    @property
    def are_spending(self) -> bool:
        """True if money, tokens or time may run out: most runs have no such bound."""
        spending = (self.max_budget_usd, self.max_tokens_total, self.max_duration_seconds)
        return spending != (None, None, None)

    def are_far(self, steps: int, node_visits: int) -> bool:
        """True if one more stage surely reaches none of them, as in nearly all steps; False says nothing."""
        return (
            steps < self.max_steps
            and (self.max_node_visits is None or node_visits < self.max_node_visits)
            and (self.max_budget_usd is self.max_tokens_total is self.max_duration_seconds is None)
        )


_NAMES: Final = RunBounds.__struct_fields__


def bounds_of(graph: Graph, overrides: Mapping[str, object] = NO_OVERRIDES) -> RunBounds:
    """The graph's bounds, with a caller's own in their place.

    Args:
        graph: Gives the bounds that are not overridden.
        overrides: Values by the names of ``RunBounds``, or ``max_duration``; None keeps the graph's. A
            duration is a number of seconds, a Duration, or its text (``15m``).
    """
    duration = graph.get("max_duration", Duration)
    bounds = RunBounds(
        graph.get("max_steps", int, 1000),
        graph.get("max_node_visits", int),
        graph.get("max_restarts", int, 10),
        graph.get("max_goal_gate_redirects", int, 10),
        graph.get("max_budget_usd", float),
        graph.get("max_tokens_total", int),
        None if duration is None else duration.seconds,
    )
    changes: dict[str, Any] = {}
    for given, value in overrides.items():
        name = "max_duration_seconds" if given == "max_duration" else given
        if name not in _NAMES:
            raise OptionError(
                f'"{given}" is not a bound of a run{did_you_mean(given, _NAMES)}',
                hint=f"the bounds are {', '.join(_NAMES)}",
            )
        if value is not None:
            changes[name] = checked_bound(given, name, value)
    return replace(bounds, **changes) if changes else bounds


def node_bounds(node: Node) -> RunBounds | None:
    """The bounds on spending of a node, over all its attempts and visits; None without one."""
    bounds = RunBounds(
        max_budget_usd=node.get("max_budget_usd", float), max_tokens_total=node.get("max_tokens_total", int)
    )
    return bounds if bounds.are_spending else None


def checked_bound(given: str, name: str, value: object) -> int | float:
    """The value of a bound.

    Args:
        given: What the caller calls it.
        name: Which of ``RunBounds`` it is like.
        value: A number; for ``max_duration_seconds`` also a Duration or its text.
    """
    least = _LEAST.get(name, 0)
    number: object = value
    if name == "max_duration_seconds":
        duration = parse_duration(value) if isinstance(value, str) else value
        number = duration.seconds if isinstance(duration, Duration) else duration
    kinds = (int, float) if name in _NUMBERS else (int,)
    if isinstance(number, kinds) and not isinstance(number, bool) and least <= number < math.inf:
        return number
    what = "a duration such as 15m or 1.5h, or seconds" if name == "max_duration_seconds" else "a number"
    what = what if name in _NUMBERS else "a whole number"
    raise OptionError(f"{given} cannot be {value!r}", hint=f"give {what}, at least {least}")


def exceeded(
    bounds: RunBounds,
    *,
    steps: int,
    node_id: str,
    node_visits: int,
    usage: Usage,
    elapsed_seconds: float,
    completed: Sequence[str],
    outer: RunPosition | None = None,
) -> BoundReached | None:
    """The bound that forbids the next stage, or None when it may be executed. Checked before each stage.

    Args:
        bounds: The run's bounds.
        steps: Stages executed so far, all visits counted.
        node_id: The node that is next.
        node_visits: Visits that this node has had so far.
        usage: What the run has consumed so far.
        elapsed_seconds: Running time so far.
        completed: Ids of the stages executed so far, in order.
        outer: For a branch: position of its fan-out.
    """
    where = RunPosition(completed, node_id, outer=outer)
    if steps >= bounds.max_steps:
        what = f"{counted(steps, 'stage')} executed"
        return _reached("max_steps", bounds.max_steps, what, where)
    visits = bounds.max_node_visits
    if visits is not None and node_visits >= visits:
        what = f"{node_id} had {counted(node_visits, 'visit')}"
        return _reached("max_node_visits", visits, what, where)
    if not bounds.are_spending:
        return None
    return used_up(bounds, usage, elapsed_seconds, where)


def used_up(bounds: RunBounds, usage: Usage, elapsed_seconds: float, where: RunPosition) -> BoundReached | None:
    """The bound that forbids further spending, or None when it is allowed. Checked before each attempt.

    A cost or token bound of 0 lets free stages continue. Sums of prices are compared as decimals:
    ten times 0.1 is 1.
    """
    budget = bounds.max_budget_usd
    cost = usage.cost_usd or 0.0
    if budget is not None and cost > 0 and (cost >= budget or math.isclose(cost, budget)):
        return _reached("max_budget_usd", f"{budget:g}", f"${cost:.4f} spent", where)
    tokens = bounds.max_tokens_total
    if tokens is not None and (total := usage.total_tokens) > 0 and total >= tokens:
        return _reached("max_tokens_total", tokens, f"{counted(total, 'token')} used", where)
    seconds = bounds.max_duration_seconds
    if seconds is not None and elapsed_seconds >= seconds:
        limit = Duration(round(seconds * 1000))
        return _reached("max_duration", limit, f"{elapsed_seconds:.1f} s of running time", where)
    return None


def cycle_of(completed: Sequence[str]) -> str:
    """The cycle that the last node closes, or empty when it was never there before.

    >>> cycle_of(["start", "plan", "implement", "review", "plan"])
    'plan -> implement -> review -> plan'
    """
    last = len(completed) - 1
    for position in range(last - 1, -1, -1):
        if completed[position] == completed[last]:
            nodes = list(completed[position:])
            if len(nodes) > MAX_CYCLE_NODES:
                half = MAX_CYCLE_NODES // 2
                nodes = [*nodes[:half], "…", *nodes[-half:]]
            return " -> ".join(nodes)
    return ""


def _reached(bound: str, limit: object, what: str, where: RunPosition) -> BoundReached:
    return BoundReached(bound, f"{bound}={limit} reached: {what}, {where}")


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "stage"), counted(2, "stage")
    ('1 stage', '2 stages')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# The bounds of all rows of a map together. Sums come from the caller.


class MapBounds(msgspec.Struct, frozen=True):
    """The bounds of all rows of a map together. None means unlimited."""

    max_budget_usd_all: float | None = None  #: Cost at which no more is asked, and no more rows are started.
    max_tokens_all: int | None = None  #: The same in tokens.
    max_duration_all_seconds: float | None = None  #: Time since the call at which no more rows are started.


_BOUND_OF_A_RUN = {
    "max_budget_usd_all": "max_budget_usd",
    "max_tokens_all": "max_tokens_total",
    "max_duration_all": "max_duration_seconds",
}
MAP_BOUNDS = tuple(_BOUND_OF_A_RUN)


def map_bounds_of(given: Mapping[str, object]) -> MapBounds:
    """Bounds from the options of a map; a duration is a number of seconds, a Duration, or its text."""
    values = [
        None if given.get(name) is None else checked_bound(name, of_run, given[name])
        for name, of_run in _BOUND_OF_A_RUN.items()
    ]
    budget, tokens, seconds = values
    return MapBounds(budget, None if tokens is None else int(tokens), seconds)


def spent_by_rows(bounds: MapBounds, usage: Usage) -> BoundReached | None:
    """The bound that forbids further spending of rows, or None when it is allowed.

    Args:
        bounds: The bounds.
        usage: What all rows have consumed so far, those that had ended before too.
    """
    budget, cost = bounds.max_budget_usd_all, usage.cost_usd or 0.0
    if budget is not None and cost > 0 and (cost >= budget or math.isclose(cost, budget)):
        reason = f"max_budget_usd_all={budget:g} reached: ${cost:.4f} spent"
        return BoundReached("max_budget_usd_all", reason)
    tokens = bounds.max_tokens_all
    if tokens is not None and (total := usage.total_tokens) > 0 and total >= tokens:
        return BoundReached("max_tokens_all", f"max_tokens_all={tokens} reached: {counted(total, 'token')} used")
    return None


def rows_used_up(bounds: MapBounds, usage: Usage, elapsed_seconds: float) -> str:
    """The reason why no further row may be started, or empty when one may. Checked before each row.

    >>> from attractor_nb.model.outcome import Usage
    >>> rows_used_up(MapBounds(max_tokens_all=10), Usage(8, 4), 0.0)
    'max_tokens_all=10 reached: 12 tokens used'
    """
    if reached := spent_by_rows(bounds, usage):
        return reached.reason
    seconds = bounds.max_duration_all_seconds
    if seconds is not None and elapsed_seconds >= seconds:
        return f"max_duration_all={Duration(round(seconds * 1000))} reached: {elapsed_seconds:.1f} s have passed"
    return ""


# Money and tokens that are reserved before they are spent, by all who share a bound (ruling 18).
#
# A map, its rows, their attempts, and the child runs of these are accounts, each beneath another; the spending of
# one counts for all above it. A caller claims the most that its request can cost, and waits until that fits
# beside the spending and the claims of others. Claims are granted in their order.
#
# A claim that fits beside nothing is granted once no other is held, for as long as the bound is not reached: a run
# continues for as long as there is money. So the spending ends within one claim of the bound, however many are
# under way.

COST_FACTOR: Final = 2.0
"""Factor on the most expensive claim of the same kind, for a claim of unknown maximum."""
_UNKNOWN: Final = (math.inf, math.inf)


def _never(_spent: Usage, _who: str) -> BoundReached | None:
    """An account without bounds of its own."""


class Account(msgspec.Struct, eq=False):
    """The spending of a map, row, attempt or child run, and its limits."""

    above: Account | None = None  #: The account above, whose bounds also apply.
    max_usd: float | None = None  #: Budget in USD; None for no bound.
    max_tokens: int | None = None  #: The same in tokens.
    #: Reason why nothing more may be spent, given the usage and the spender; None while the bounds allow more.
    reached: Callable[[Usage, str], BoundReached | None] = _never
    usd: float = 0.0  #: Amount spent in USD, as far as prices are known.
    tokens: int = 0  #: Tokens that are used.
    held: dict[Claim, None] = {}  #: Claims that are granted, of this account and all beneath it.

    @property
    def chain(self) -> tuple[Account, ...]:
        """This account and all above it."""
        return (self,) if self.above is None else (self, *self.above.chain)

    def charge(self, usd: float, tokens: int) -> None:
        """Count what was spent; what is negative was counted before, and was not."""
        for account in self.chain:
            account.usd += usd
            account.tokens += tokens

    def settle(self, usage: Usage) -> None:
        """Have spent just this, whatever was counted so far."""
        self.charge((usage.cost_usd or 0.0) - self.usd, usage.total_tokens - self.tokens)

    def end_for(self, spender: str) -> BoundReached | None:
        """The bound of this account or one above it that forbids further spending; None when it is allowed."""
        ends = (account.reached(account.spent, spender) for account in self.chain)
        return next((end for end in ends if end is not None), None)

    @property
    def spent(self) -> Usage:
        """The spending so far."""
        return Usage(max(self.tokens, 0), 0, self.usd if self.usd > 0 else None)

    def has_room(self, usd: float, tokens: float) -> bool:
        """True if so much fits beside what is spent and held, or nothing is held."""
        if not self.held:
            return True
        held = [claim.maximum for claim in self.held]
        return _fits(self.max_usd, self.usd + sum(maximum[0] for maximum in held) + usd) and _fits(
            self.max_tokens, self.tokens + sum(maximum[1] for maximum in held) + tokens
        )


class Claim(msgspec.Struct, eq=False):
    """Hold an amount before it is spent."""

    account: Account  #: The account that it belongs to.
    spender: str  #: The spender, for the words of a refusal: a node.
    ceiling: Usage | None = None  #: The most that it can cost; None when it is unknown.
    kind: str = ""  #: Kind of a claim whose maximum is unknown.
    maximum: tuple[float, float] = _UNKNOWN  #: USD and tokens that are held for it, once it is granted.
    refused: BoundReached | None = None  #: Reason of the refusal; None when it was granted.


class Reservations(msgspec.Struct):
    """The claims of all accounts beneath one."""

    waiting: list[Claim] = []  #: Claims that are neither granted nor refused, in their order.
    #: By kind: USD and tokens of the dearest claim so far of unknown maximum.
    highest: dict[str, tuple[float, float]] = {}

    def decide(self) -> list[Claim]:
        """Grant and refuse what can be by now; these claims, which wait no more.

        One that finds no room keeps those behind it from the accounts in which it found none: else small
        claims could pass a large one forever.
        """
        decided: list[Claim] = []
        full: set[Account] = set()
        for claim in self.waiting:
            chain, maximum = claim.account.chain, self._maximum(claim)
            without_room = [account for account in chain if not account.has_room(*maximum)]
            if not without_room and full.isdisjoint(chain):
                claim.refused = claim.account.end_for(claim.spender)
                if claim.refused is None:
                    claim.maximum = maximum
                    for account in chain:
                        account.held[claim] = None
                decided.append(claim)
            full.update(without_room)
        self.waiting = [claim for claim in self.waiting if claim not in set(decided)]
        return decided

    def release(self, claim: Claim, actual: Usage | None = None) -> None:
        """Take back a claim, granted or waiting; its actual cost, if the maximum was unknown."""
        for account in claim.account.chain:
            account.held.pop(claim, None)
        if claim in self.waiting:
            self.waiting.remove(claim)
        elif actual is not None:
            usd, tokens = self.highest.get(claim.kind, (0.0, 0.0))
            self.highest[claim.kind] = (max(usd, actual.cost_usd or 0.0), max(tokens, actual.total_tokens))

    def _maximum(self, claim: Claim) -> tuple[float, float]:
        if claim.ceiling is not None:
            return claim.ceiling.cost_usd or 0.0, claim.ceiling.total_tokens
        usd, tokens = self.highest.get(claim.kind, _UNKNOWN)
        return usd * COST_FACTOR, tokens * COST_FACTOR


def _fits(bound: float | None, amount: float) -> bool:
    """True if a bound holds; sums of prices are compared as decimals."""
    return bound is None or amount <= bound or math.isclose(amount, bound)
