"""An event loop without a world outside: time passes at once, and chance says who is next.

The order in which ready callbacks run is drawn from a seed, so that a schedule that shows a mistake can be
had again. A loop in which nothing is ready and nothing is timed can never go on: it says so.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TURNS = 200_000
MAX_SECONDS = 1e9
_RESOLUTION_SECONDS = 1e-6


class Stuck(Exception):
    """The loop would wait for ever, or never come to an end."""


class VirtualLoop(asyncio.BaseEventLoop):
    """A loop on virtual time with a schedule drawn from a seed.

    Attributes:
        turns: How many times the ready callbacks were run.
    """

    _ready: Any
    _clock_resolution: float

    def __init__(self, seed: int | str) -> None:
        super().__init__()
        self.turns = 0
        self._now = 0.0
        self._chance = random.Random(seed)
        self._clock_resolution = _RESOLUTION_SECONDS
        self._selector = self  # what a loop asks for what happens outside; here nothing does
        self._at_turn: dict[int, Callable[[], object]] = {}

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def call_at_turn(self, turn: int, function: Callable[[], object]) -> None:
        """Call a function between two turns, whoever is ready then."""
        self._at_turn[turn] = function

    def select(self, timeout: float | None) -> list[Any]:
        """Let time pass until the next timer.

        Raises:
            Stuck: There is none.
        """
        if timeout is None:
            raise Stuck("deadlock: nothing is ready, nothing is timed, and the run has not ended")
        self._now += max(0.0, timeout)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """Nothing happens outside."""

    def _write_to_self(self) -> None:
        """Wakes no thread: all calls come from the loop's own."""

    def _run_once(self) -> None:
        self.turns += 1
        if self.turns > MAX_TURNS or self._now > MAX_SECONDS:
            raise Stuck(f"no end after {self.turns} turns and {self._now:.0f} virtual seconds")
        if function := self._at_turn.pop(self.turns, None):
            function()
        if len(self._ready) > 1:
            ready = list(self._ready)
            self._chance.shuffle(ready)
            self._ready.clear()
            self._ready.extend(ready)
        super()._run_once()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - the one place where a loop's order is decided has no public name


class VirtualClock:
    """A clock (``protocols.Clock``) on a loop's time; its wall clock jumps when told to."""

    def __init__(self, loop: VirtualLoop, wall: float) -> None:
        """Begin at a wall time, in seconds since 1970."""
        self._loop = loop
        self._wall = wall

    def time(self) -> float:
        """Wall time."""
        return self._wall + self._loop.time()

    def monotonic(self) -> float:
        """Virtual seconds."""
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def wait_out(self, seconds: float) -> None:
        """Wait; a machine of this clock does not sleep."""
        await self.sleep(seconds)

    def jump(self, seconds: float) -> None:
        """Set the wall clock on, or back."""
        self._wall += seconds
