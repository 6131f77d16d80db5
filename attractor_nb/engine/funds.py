"""What those who share a bound on money or tokens have left: they wait here until there is room (ruling 18).

What may be granted is decided in ``decisions/limits/reservations.py``. There are funds only where there is
a bound.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

from msgspec.structs import replace

from attractor_nb.decisions.limits.bounds import RunPosition, used_up
from attractor_nb.decisions.limits.reservations import Account, Claim, Reservations

if TYPE_CHECKING:
    from attractor_nb.decisions.limits.bounds import Reached, RunBounds
    from attractor_nb.model.outcome import Usage


class FundsDesk:
    """Decides all claims beneath one account, made in any loop, and counts what any thread has spent."""

    def __init__(self) -> None:
        self._reservations = Reservations()
        self._waiting: dict[Claim, asyncio.Future[None]] = {}
        self.lock = threading.Lock()

    async def claim(self, claim: Claim) -> None:
        """Wait until a claim is granted or refused, in its turn."""
        waiting = self._waiting[claim] = asyncio.get_running_loop().create_future()
        with self.lock:
            self._reservations.waiting.append(claim)
        self._decide()
        try:
            await waiting
        except BaseException:  # a cancelled wait, too, must free what was claimed
            self.release(claim)
            raise

    def release(self, claim: Claim, came_to: Usage | None = None) -> None:
        """Take back a claim that was made, however it stands, and let others go on."""
        self._waiting.pop(claim, None)
        with self.lock:
            self._reservations.release(claim, came_to)
        self._decide()

    def _decide(self) -> None:
        with self.lock:
            decided = self._reservations.decide()
        for claim in decided:
            waiting = self._waiting.pop(claim, None)
            if waiting is not None:
                with contextlib.suppress(RuntimeError):  # its loop has ended, and who waited with it
                    waiting.get_loop().call_soon_threadsafe(_go_on, waiting)


def _go_on(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class Funds:
    """An account, and where its claims are decided."""

    def __init__(self, account: Account, desk: FundsDesk) -> None:
        self.account = account
        self._desk = desk

    @classmethod
    def of_account(cls, account: Account) -> Funds:
        """Those of an account with none above it."""
        return cls(account, FundsDesk())

    def beneath(self, account: Account, spent: Usage | None = None) -> Funds:
        """Those of another account, which all of this one's bounds hold for, too."""
        account.above = self.account
        funds = Funds(account, self._desk)
        if spent is not None:
            funds.settle(spent)
        return funds

    def charge(self, usage: Usage) -> None:
        """Count what was spent."""
        with self._desk.lock:
            self.account.charge(usage.cost_usd or 0.0, usage.total_tokens)

    def settle(self, usage: Usage) -> None:
        """Have spent just this, whatever was counted so far."""
        with self._desk.lock:
            self.account.settle(usage)

    def end_for(self, who: str) -> Reached | None:
        """Why nothing more may be spent; None when something may."""
        with self._desk.lock:
            return self.account.end_for(who)

    async def claim(self, who: str, most: Usage | None = None, kind: str = "") -> Claim:
        """Wait until there is room for the most that something can cost; None when nobody knows that.

        Returns:
            The claim, which may be refused.
        """
        claim = Claim(self.account, who, most, kind)
        await self._desk.claim(claim)
        return claim

    def release(self, claim: Claim, came_to: Usage | None = None) -> None:
        """Take back a claim; what it came to, where nobody knew the most."""
        self._desk.release(claim, came_to)


def run_funds(bounds: RunBounds, spent: Usage, above: Funds | None) -> Funds | None:
    """Those of a run, or of a child run; None where nothing bounds its spending.

    Args:
        bounds: Its own bounds.
        spent: What it has spent by what it has recorded.
        above: Those of the stage whose child it is, or of its row of a map.
    """
    if bounds.max_budget_usd is None and bounds.max_tokens_total is None:
        return None if above is None else above.beneath(Account(), spent)
    bounds = replace(bounds, max_duration_seconds=None)

    def reached(usage: Usage, who: str) -> Reached | None:
        return used_up(bounds, usage, 0.0, RunPosition((), who, f"within {who}"))

    own = Account(max_usd=bounds.max_budget_usd, max_tokens=bounds.max_tokens_total, reached=reached)
    if above is not None:
        return above.beneath(own, spent)
    funds = Funds.of_account(own)
    funds.settle(spent)
    return funds


def node_funds(node_id: str, bounds: RunBounds, spent: Usage, above: Funds | None) -> Funds:
    """Those of a node with bounds of its own, for all its attempts and visits.

    Args:
        node_id: The node.
        bounds: Its bounds.
        spent: What it has spent by what the run has recorded, which those above have counted.
        above: Those of the run; None where nothing bounds its spending.
    """

    def reached(usage: Usage, _who: str) -> Reached | None:
        return used_up(bounds, usage, 0.0, RunPosition((), node_id, f"in all attempts of {node_id}"))

    own = Account(max_usd=bounds.max_budget_usd, max_tokens=bounds.max_tokens_total, reached=reached)
    own.usd, own.tokens = spent.cost_usd or 0.0, spent.total_tokens
    return Funds.of_account(own) if above is None else above.beneath(own)
