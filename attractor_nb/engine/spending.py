"""What an attempt is known to have spent, whatever becomes of it (ruling 18).

A handler that raises, or runs out of time, returns no usage, and its model was paid all the same: the calls
that it announced say what they consumed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

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
    """

    __slots__ = ("_announce", "usage")

    def __init__(self, announce: Callable[[Event], None]) -> None:
        self._announce = announce
        self.usage: Usage | None = None

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
