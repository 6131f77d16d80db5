"""What an attempt is known to have spent, whatever becomes of it, and what is held for it (ruling 18).

A handler that raises, or runs out of time, returns no usage, and its model was paid all the same: the calls
that it announced say what they consumed.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NoReturn

from msgspec.structs import replace

from attractor_nb.decisions.limits.reservations import Account
from attractor_nb.errors import BudgetReached, TerminalError
from attractor_nb.model.events import ModelCallEnded
from attractor_nb.model.outcome import Usage, usage_problem

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from attractor_nb.decisions.limits.bounds import Reached
    from attractor_nb.decisions.limits.reservations import Claim
    from attractor_nb.engine.funds import Funds
    from attractor_nb.model.events import Event
    from attractor_nb.model.outcome import Outcome


class Spending:
    """Hands on what an attempt announces, and adds up the model calls among it.

    Attributes:
        usage: What they consumed; None while there was none.
        is_bounded: A bound on money or tokens holds for it.
        over: The bound of the run that stopped it; None while none did.
        over_own: The bound of its node that stopped it; likewise.
    """

    __slots__ = (
        "_announce",
        "_claims",
        "_funds",
        "_is_closed",
        "_node_id",
        "_own",
        "_whole",
        "is_bounded",
        "over",
        "over_own",
        "usage",
    )

    def __init__(
        self,
        announce: Callable[[Event], None],
        node_id: str = "",
        funds: Funds | None = None,
        *,
        own: Account | None = None,
    ) -> None:
        """Begin with nothing.

        Args:
            announce: Takes the events.
            node_id: The stage.
            funds: Those of its node, or of the run; None where nothing bounds its spending.
            own: The account of the node, where it has bounds of its own.
        """
        self._announce = announce
        self._node_id = node_id
        self._funds = None if funds is None else funds.beneath(Account())
        self._own = own
        self.is_bounded = funds is not None
        self._whole: Claim | None = None
        self._claims: set[Claim] = set()
        self._is_closed = False
        self.usage: Usage | None = None
        self.over: Reached | None = None
        self.over_own: Reached | None = None

    def check(self) -> None:
        """Stop an attempt that may spend no more."""
        if self._funds is not None and (end := self._funds.end_for(self._node_id)):
            self._stop(end)

    @contextlib.asynccontextmanager
    async def paying(self, most: Usage) -> AsyncGenerator[None]:
        """Hold what a request can cost at most while it goes on, and no more than that for the attempt."""
        if self._funds is None:
            yield
            return
        self._free()
        claim = await self._claimed(self._funds, most)
        try:
            yield
        finally:
            self._release(claim)

    async def around(self, work: Callable[[], Awaitable[Any]], kind: str) -> Any:
        """Do work of which nobody knows what it can cost at most; that is held until the attempt is settled."""
        if self._funds is not None:
            self._whole = await self._claimed(self._funds, None, kind)
        return await work()

    def for_child(self) -> Funds | None:
        """The funds for a child run of this attempt, which makes claims of its own."""
        self._free()
        return self._funds

    def announce(self, event: Event) -> None:
        """Hand an event on."""
        self._announce(event)
        if isinstance(event, ModelCallEnded) and (own := _spent(event)) is not None:
            self.usage = own if self.usage is None else self.usage + own
            if self._funds is not None:
                self._funds.charge(own)

    def counted(self, outcome: Outcome) -> Outcome:
        """The outcome with what the calls consumed, unless it says so itself."""
        if self.usage is None or outcome.usage is not None:
            return outcome
        return replace(outcome, usage=self.usage)

    def settle(self, outcome: Outcome) -> None:
        """Have spent what the outcome says, which goes before what the calls said."""
        if self._funds is not None and outcome.usage is not None:
            self._funds.settle(outcome.usage)
        came_to = outcome.usage or self.usage
        if outcome.status.is_failure and not (came_to and came_to.total_tokens):
            came_to = None  # what a failure cost tells nothing of what an answer does
        elif came_to is None:
            came_to = Usage()
        self._free(came_to)

    def close(self) -> None:
        """Free what is still held, also by a handler that was given up and goes on all the same."""
        self._is_closed = True
        self._free(self.usage)
        for claim in tuple(self._claims):
            self._release(claim)

    def _free(self, came_to: Usage | None = None) -> None:
        claim, self._whole = self._whole, None
        if claim is not None:
            self._release(claim, came_to)

    def _release(self, claim: Claim, came_to: Usage | None = None) -> None:
        self._claims.discard(claim)
        if self._funds is not None:
            self._funds.release(claim, came_to)

    async def _claimed(self, funds: Funds, most: Usage | None, kind: str = "") -> Claim:
        claim = await funds.claim(self._node_id, most, kind)
        if claim.refused is not None:
            self._stop(claim.refused)
        if self._is_closed:
            funds.release(claim)
            raise TerminalError(
                "the attempt has ended; it cannot make another paid call", hint="end when the call ends"
            )
        self._claims.add(claim)
        return claim

    def _stop(self, end: Reached) -> NoReturn:
        self.over_own = None if self._own is None else self._own.reached(self._own.spent, self._node_id)
        if self.over_own is None:
            self.over = end
        raise BudgetReached((self.over_own or end).reason)


def _spent(call: ModelCallEnded) -> Usage | None:
    """What a call consumed: of an answer that nobody counted that it was one, of no answer nothing."""
    if call.usage is None or usage_problem(call.usage):
        return None if call.error else Usage(calls=1)
    return call.usage
