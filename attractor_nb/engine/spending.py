"""What an attempt is known to have spent, whatever becomes of it (ruling 18).

A handler that raises, or runs out of time, returns no usage, and its model was paid all the same: the calls
that it announced say what they consumed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from attractor_nb.errors import BudgetReached
from attractor_nb.model.events import ModelCallEnded
from attractor_nb.model.outcome import Usage, usage_problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.model.events import Event
    from attractor_nb.model.outcome import Outcome


class Spending:
    """Hands on what an attempt announces, and adds up the model calls among it.

    Attributes:
        usage: What they consumed; None while there was none.
        is_over: It was stopped, for the run may spend no more.
    """

    __slots__ = ("_announce", "_reached", "is_over", "usage")

    def __init__(
        self, announce: Callable[[Event], None], reached: Callable[[Usage], str] = lambda _: ""
    ) -> None:
        """Begin with nothing.

        Args:
            announce: Takes the events.
            reached: Why the run may spend no more, given what this attempt has; empty when it may.
        """
        self._announce = announce
        self._reached = reached
        self.usage: Usage | None = None
        self.is_over = False

    def check(self) -> None:
        """Stop an attempt that may spend no more.

        Raises:
            BudgetReached: It may not.
        """
        if self.usage is not None and (reason := self._reached(self.usage)):
            self.is_over = True
            raise BudgetReached(reason)

    def announce(self, event: Event) -> None:
        """Hand an event on."""
        self._announce(event)
        if isinstance(event, ModelCallEnded) and (own := _spent(event)) is not None:
            self.usage = own if self.usage is None else self.usage + own

    def counted(self, outcome: Outcome) -> Outcome:
        """The outcome with what the calls consumed, unless it says so itself."""
        if self.usage is None or outcome.usage is not None:
            return outcome
        return replace(outcome, usage=self.usage)


def _spent(call: ModelCallEnded) -> Usage | None:
    """What a call consumed: of an answer that nobody counted that it was one, of no answer nothing."""
    if call.usage is None or usage_problem(call.usage):
        return None if call.error else Usage(calls=1)
    return call.usage
