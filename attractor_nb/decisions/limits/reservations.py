"""Money and tokens that are reserved before they are spent, by all who share a bound (ruling 18).

A map, its rows, their attempts, and the child runs of these are accounts, each beneath another; what one of
them spends, all above it have spent. Who is going to spend claims the most that it can cost, and waits until
that fits beside what is spent and what others hold. Claims are granted in their order.

A claim that fits beside nothing is granted once nobody else holds anything, for as long as the bound is not
reached: a run goes on for as long as there is money. So what is spent ends within one claim of the bound,
however many are under way.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.model.outcome import Usage

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.decisions.limits.bounds import Reached

DEARER: Final = 2.0
"""How many times the dearest of its kind a claim is taken to cost of which nobody knows the most."""
_UNKNOWN: Final = (math.inf, math.inf)


def _never(_spent: Usage, _who: str) -> Reached | None:
    """An account without bounds of its own."""


class Account(msgspec.Struct, eq=False):
    """What somebody has spent, and may."""

    above: Account | None = None  #: Whose bounds hold for it, too.
    max_usd: float | None = None  #: What may be spent, in USD; None without end.
    max_tokens: int | None = None  #: The same in tokens.
    #: Why nothing more may be spent, given what is, and who asks; None when something may.
    reached: Callable[[Usage, str], Reached | None] = _never
    usd: float = 0.0  #: What is spent, in USD, as far as prices are known.
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

    def end_for(self, who: str) -> Reached | None:
        """Why nothing more may be spent, by this account or one above it; None when something may."""
        ends = (account.reached(account.spent, who) for account in self.chain)
        return next((end for end in ends if end is not None), None)

    @property
    def spent(self) -> Usage:
        """What is spent."""
        return Usage(max(self.tokens, 0), 0, self.usd if self.usd > 0 else None)

    def has_room(self, usd: float, tokens: float) -> bool:
        """Whether so much fits beside what is spent and held, or nobody holds anything."""
        if not self.held:
            return True
        held = [claim.most for claim in self.held]
        return _fits(self.max_usd, self.usd + sum(most[0] for most in held) + usd) and _fits(
            self.max_tokens, self.tokens + sum(most[1] for most in held) + tokens
        )


class Claim(msgspec.Struct, eq=False):
    """Somebody is going to spend."""

    account: Account  #: Whose account it is.
    who: str  #: Who asks, for the words of a refusal: a node.
    ceiling: Usage | None = None  #: The most that it can cost; None when nobody knows.
    kind: str = ""  #: What it is like, of which nobody knows the most.
    most: tuple[float, float] = _UNKNOWN  #: USD and tokens that are held for it, once it is granted.
    refused: Reached | None = None  #: Why it was refused; None when it was not.


class Reservations(msgspec.Struct):
    """The claims of all accounts beneath one."""

    waiting: list[Claim] = []  #: Claims that are neither granted nor refused, in their order.
    #: By kind: USD and tokens of the dearest claim so far of which nobody knew the most.
    dearest: dict[str, tuple[float, float]] = {}

    def decide(self) -> list[Claim]:
        """Grant and refuse what can be by now; these claims, which wait no more.

        One that finds no room keeps those behind it from the accounts in which it found none: else small
        claims could pass a large one forever.
        """
        decided: list[Claim] = []
        full: set[Account] = set()
        for claim in self.waiting:
            chain, most = claim.account.chain, self._most(claim)
            without_room = [account for account in chain if not account.has_room(*most)]
            if not without_room and full.isdisjoint(chain):
                claim.refused = claim.account.end_for(claim.who)
                if claim.refused is None:
                    claim.most = most
                    for account in chain:
                        account.held[claim] = None
                decided.append(claim)
            full.update(without_room)
        self.waiting = [claim for claim in self.waiting if claim not in set(decided)]
        return decided

    def release(self, claim: Claim, came_to: Usage | None = None) -> None:
        """Take back a claim, granted or waiting; what it came to, where nobody knew the most."""
        for account in claim.account.chain:
            account.held.pop(claim, None)
        if claim in self.waiting:
            self.waiting.remove(claim)
        elif came_to is not None:
            usd, tokens = self.dearest.get(claim.kind, (0.0, 0.0))
            self.dearest[claim.kind] = (max(usd, came_to.cost_usd or 0.0), max(tokens, came_to.total_tokens))

    def _most(self, claim: Claim) -> tuple[float, float]:
        if claim.ceiling is not None:
            return claim.ceiling.cost_usd or 0.0, claim.ceiling.total_tokens
        usd, tokens = self.dearest.get(claim.kind, _UNKNOWN)
        return usd * DEARER, tokens * DEARER


def _fits(bound: float | None, amount: float) -> bool:
    """Whether a bound holds; sums of prices are compared as people add them."""
    return bound is None or amount <= bound or math.isclose(amount, bound)
