"""Time of a run: how long it has continued, when it is over, and racing work against what is left.

All of it is the clock's monotonic time: a wall clock that jumps, by days or back, changes none of it.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import sys
import time as system_time
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from attractor_nb.protocols import Clock


CANCEL_GRACE_SECONDS = 1.0
"""Time limit for work to clean up after its timeout."""


class TimeIsOver(Exception):
    """Work did not end within its time, and was cancelled."""


class Sleeps(Protocol):
    """An object that can wait: a clock, or the running time of a run."""

    async def sleep(self, seconds: float) -> None:
        """Wait for the given number of seconds."""
        ...


class RunningTime(msgspec.Struct):
    """The running time of a run, over all its sessions. It is paused while a debugger holds it."""

    clock: Clock  #: Time.
    before: float  #: Running time before this session, in seconds.
    bound: float | None  #: Running time at which the run ends, in seconds; None for never.
    started_at: float  #: The clock's monotonic time at which this session began.
    _holders: int = 0
    _held_since: float = 0.0
    _paused: float = 0.0
    _running: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    @property
    def elapsed_seconds(self) -> float:
        """Running time so far."""
        paused = self.paused_seconds if self._holders else self._paused
        return self.before + self.clock.monotonic() - self.started_at - paused

    @property
    def paused_seconds(self) -> float:
        """The time for which it was paused."""
        return self._paused + (self.clock.monotonic() - self._held_since if self._holders else 0.0)

    def hold(self) -> None:
        """Pause until ``release`` has been called as often."""
        if not self._holders:
            self._held_since = self.clock.monotonic()
            self._running.clear()
        self._holders += 1

    def release(self) -> None:
        """Continue, unless another holder remains."""
        paused = self.paused_seconds
        self._holders -= 1
        if not self._holders:
            self._paused = paused
            self._running.set()

    async def sleep(self, seconds: float) -> None:
        """Let so much running time go by: the clock's time without that in which it is inactive."""
        left, end, paused = seconds, self.elapsed_seconds + seconds, self.paused_seconds
        while left > 0:
            await self.clock.sleep(left)
            while self._holders:
                await self._running.wait()
            if self.paused_seconds == paused:  # timers round, and that is no reason for another one
                return
            left, paused = end - self.elapsed_seconds, self.paused_seconds

    @property
    def left_seconds(self) -> float | None:
        """Running time that is left; None when there is no end to it."""
        return None if self.bound is None else max(0.0, self.bound - self.elapsed_seconds)

    def at_end(self) -> float:
        """Running time now that it is over: not a moment less than its bound, however timers round."""
        return max(self.elapsed_seconds, self.bound or 0.0)

    async def within(self, work: Awaitable[Any]) -> Any:
        """Await work for as long as the run may continue."""
        left = self.left_seconds
        return await work if left is None else await race(self, work, left)


async def race(
    time: Sleeps, work: Awaitable[Any], seconds: float, *, grace_seconds: float = CANCEL_GRACE_SECONDS
) -> Any:
    """Await work for a number of seconds. Work that ignores its cancellation is left behind after a grace."""
    task = asyncio.ensure_future(work)
    timer = asyncio.ensure_future(time.sleep(seconds))
    try:
        await asyncio.wait({task, timer}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise TimeIsOver
    finally:
        timer.cancel()
        task.add_done_callback(_forget)  # also of work that failed just when the run was stopped
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=grace_seconds)


def _forget(task: asyncio.Future[Any]) -> None:
    """Take the late result of work that was given up, so that no warning is logged."""
    if not task.cancelled():
        task.exception()


# The real clock and real randomness, behind the seams that tests replace.

_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"

SLICE_SECONDS = 5.0
"""A wait that counts a machine's sleep looks this often whether the machine has slept."""


def _time_with_sleep() -> Callable[[], float]:
    """A clock that never jumps back and continues while the machine sleeps, where there is one."""
    if hasattr(system_time, "CLOCK_BOOTTIME"):
        return partial(system_time.clock_gettime, system_time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":  # this one continues there, and Python's monotonic() does not
        return partial(system_time.clock_gettime, system_time.CLOCK_MONOTONIC)
    return monotonic


class SystemClock:
    """The clock of this machine (``protocols.Clock``)."""

    time = staticmethod(time)
    """Seconds since 1970 (UTC)."""
    monotonic = staticmethod(monotonic)
    """Seconds on a clock that never jumps back."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def wait_out(self, seconds: float) -> None:
        """Wait; the time for which the machine sleeps counts."""
        await wait_out(seconds, _time_with_sleep(), asyncio.sleep)


async def wait_out(seconds: float, now: Callable[[], float], pause: Callable[[float], Awaitable[None]]) -> None:
    """Wait in slices: a timer is paused while the machine sleeps.

    Args:
        seconds: How long.
        now: Seconds on a clock that continues while the machine sleeps.
        pause: Waits a number of seconds, without those for which the machine sleeps.
    """
    end = now() + seconds
    while (left := end - now()) > 0:
        await pause(min(left, SLICE_SECONDS))


class SystemRandomness:
    """Chance (``protocols.Randomness``): jitter from the generator of Python, ids from the system's."""

    def uniform(self, low: float, high: float) -> float:
        """A number in [low, high]."""
        return random.uniform(low, high)  # noqa: S311 - jitter is no secret

    def new_id(self) -> str:
        """Eight random characters of lower-case base32."""
        return "".join(secrets.choice(_BASE32) for _ in range(8))
