"""The real clock and real randomness, behind the seams that tests replace."""

from __future__ import annotations

import asyncio
import random
import secrets
import sys
import time as system_time
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"

SLICE_SECONDS = 5.0
"""A wait that counts a machine's sleep looks this often whether the machine has slept."""


def _time_with_sleep() -> Callable[[], float]:
    """A clock that never jumps back and goes on while the machine sleeps, where there is one."""
    if hasattr(system_time, "CLOCK_BOOTTIME"):
        return partial(system_time.clock_gettime, system_time.CLOCK_BOOTTIME)
    if sys.platform == "darwin":  # this one goes on there, and Python's monotonic() does not
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
    """Wait in slices: a timer stands still while the machine sleeps.

    Args:
        seconds: How long.
        now: Seconds on a clock that goes on while the machine sleeps.
        pause: Waits so many seconds, without those for which it sleeps.
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
