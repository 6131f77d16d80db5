"""A clock and a source of randomness that a test controls."""

from __future__ import annotations

import asyncio
import random

TURNS = 8
"""How many turns of the loop other tasks get before time passes."""
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


class ManualClock:
    """A clock (``protocols.Clock``) on which waiting takes no time.

    ``sleep`` lets the other tasks run for some turns of the event loop, then moves the clock forward. So
    work that races a timer loses only if it really waits.

    Attributes:
        sleeps: The seconds of every ``sleep``, in order.
    """

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._time = start
        self._monotonic = 0.0
        self.sleeps: list[float] = []

    def time(self) -> float:
        """The wall clock of the test."""
        return self._time

    def monotonic(self) -> float:
        """Seconds since the test began."""
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        """Move the clock forward, without real waiting."""
        self.sleeps.append(seconds)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        self.advance(seconds)
        await asyncio.sleep(0)

    async def wait_out(self, seconds: float) -> None:
        """Wait, in no time; a machine of this clock does not sleep."""
        await self.sleep(seconds)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._time += seconds
        self._monotonic += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward, or back; the monotonic one does not notice."""
        self._time += seconds


class SeededRandomness:
    """Chance (``protocols.Randomness``) that is the same for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose

    def uniform(self, low: float, high: float) -> float:
        """A number in [low, high]."""
        return self._random.uniform(low, high)

    def new_id(self) -> str:
        """Eight characters of lower-case base32."""
        return "".join(self._random.choice(_BASE32) for _ in range(8))
