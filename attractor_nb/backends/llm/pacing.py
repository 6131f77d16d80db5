"""Text that arrives in many small pieces, handed on in fewer.

A model says a token at a time, and each piece that is handed on is an event for everybody who watches. A
character that comes in two halves is handed on whole.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from attractor_nb.model.surrogates import ends_in_half, whole

if TYPE_CHECKING:
    from collections.abc import Callable

PACE_SECONDS: Final = 0.05
"""No more than one piece in this time; what waits is handed on when it is over."""


class PacedText:
    """Hands text on at a pace. It belongs to the running loop."""

    def __init__(self, hand_on: Callable[[str], None], *, seconds: float = PACE_SECONDS) -> None:
        self._hand_on = hand_on
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._waiting: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._next_at = 0.0

    def add(self, text: str) -> None:
        """Take a piece: handed on now, or with those that come until the pace allows it."""
        if not text:
            return
        self._waiting.append(text)
        if self._timer is None:
            left = self._next_at - self._loop.time()
            if left <= 0:
                self.flush()
            else:
                self._timer = self._loop.call_later(left, self.flush)

    def flush(self) -> None:
        """Hand on what waits; half a character goes on waiting for the other half."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            text = "".join(self._waiting)
            self._waiting.clear()
            if ends_in_half(text):
                self._waiting.append(text[-1])
                text = text[:-1]
            self._hand(text)

    def end(self) -> None:
        """Hand on whatever waits: no tail is lost."""
        self.flush()
        self._hand("".join(self._waiting))
        self._waiting.clear()

    def _hand(self, text: str) -> None:
        if text:
            self._next_at = self._loop.time() + self._seconds
            self._hand_on(whole(text))
