"""Holds requests back until a provider's rates allow them, over all runs of this process.

A gate remembers what was asked in the last minute. Who comes first goes first, whatever thread or event loop
it is in. Tokens are reserved by estimate, and settled once it is known what a request consumed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from attractor_nb.model.calls.providers import Rates

MINUTE_SECONDS: Final = 60.0
ANNOUNCED_SECONDS: Final = 1.0
"""A wait that is longer than this is announced to observers."""
LOOK_SECONDS: Final = 1.0
"""The first in a queue looks this often whether a request has consumed less than was reserved for it."""


@dataclass(slots=True)
class Permit:
    """A request that was let through."""

    at: float  #: When.
    tokens: int  #: Its tokens; an estimate until it is settled.

    def settle(self, tokens: int) -> None:
        """Say what it consumed."""
        self.tokens = tokens


@dataclass(slots=True, eq=False)
class _Waiting:
    rates: Rates
    tokens: int
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    is_first: asyncio.Event = field(default_factory=asyncio.Event)


class RateGate:
    """Lets requests through, as many as may be made in any minute, in the order in which they came.

    Args:
        monotonic: Seconds on a clock that never jumps back.
        sleep: Waits a number of seconds by that clock.
    """

    def __init__(
        self, monotonic: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._monotonic = monotonic
        self._sleep = sleep
        self._lock = threading.Lock()
        self._passed: deque[Permit] = deque()
        self._queue: deque[_Waiting] = deque()

    async def enter(self, rates: Rates, tokens: int, tell: Callable[[float], None]) -> Permit:
        """Wait until a request may be made. A caller that is cancelled meanwhile leaves the queue.

        Args:
            rates: What is allowed.
            tokens: What the request will consume, by estimate. One that is over the rate by itself goes
                alone, when a minute has passed without another.
            tell: Told once how many seconds it will wait at least, when those are more than one.
        """
        waiting = _Waiting(rates, tokens)
        with self._lock:
            self._queue.append(waiting)
        is_announced = False
        try:
            while True:
                permit, seconds, is_first = self._look(waiting)
                if permit is not None:
                    return permit
                if seconds > ANNOUNCED_SECONDS and not is_announced:
                    is_announced = True
                    tell(seconds)
                if is_first:
                    await self._sleep(min(seconds, LOOK_SECONDS))
                else:
                    await waiting.is_first.wait()
        finally:
            self._leave(waiting)

    def _look(self, waiting: _Waiting) -> tuple[Permit | None, float, bool]:
        """The permit of one who may go; else how long the first of the queue waits, and whether it is it."""
        with self._lock:
            now = self._monotonic()
            while self._passed and self._passed[0].at <= now - MINUTE_SECONDS:
                self._passed.popleft()
            first = self._queue[0]
            seconds = self._seconds(first, now)
            if first is waiting and seconds <= 0:
                self._passed.append(permit := Permit(now, waiting.tokens))
                return permit, 0.0, True
            return None, seconds, first is waiting

    def _seconds(self, waiting: _Waiting, now: float) -> float:
        """The seconds until enough of the requested amount is a minute old."""
        rates = waiting.rates
        count, tokens = len(self._passed), sum(permit.tokens for permit in self._passed)
        until = now
        for permit in self._passed:
            is_full = rates.requests_per_minute is not None and count >= rates.requests_per_minute
            if not is_full and (rates.tokens_per_minute is None or tokens + waiting.tokens <= rates.tokens_per_minute):
                break
            until = permit.at + MINUTE_SECONDS
            count, tokens = count - 1, tokens - permit.tokens
        return until - now

    def _leave(self, waiting: _Waiting) -> None:
        """Leave the queue, and wake who is first then."""
        with self._lock:
            if waiting in self._queue:
                self._queue.remove(waiting)
            while self._queue:
                try:
                    self._queue[0].loop.call_soon_threadsafe(self._queue[0].is_first.set)
                except RuntimeError:  # its loop is closed, and its waits with it
                    self._queue.popleft()
                else:
                    return


class RateGates:
    """Gates by provider and address."""

    def __init__(self, make: Callable[[], RateGate] = RateGate) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._by_place: dict[tuple[str, str], RateGate] = {}

    def gate(self, account: str, address: str) -> RateGate:
        """The gate of an account at an address."""
        with self._lock:
            return self._by_place.setdefault((account, address), self._make())


OF_THIS_PROCESS: Final = RateGates()
"""Shared by all runs: a provider counts what comes from an account, whichever run asked."""
