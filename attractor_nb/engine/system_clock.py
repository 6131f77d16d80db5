"""The real clock and real randomness, behind the seams that tests replace."""

from __future__ import annotations

import asyncio
import random
import secrets
import time

_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


class SystemClock:
    """The clock of this machine (``protocols.Clock``)."""

    def time(self) -> float:
        """Seconds since 1970 (UTC)."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds on a clock that never jumps back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class SystemRandomness:
    """Chance (``protocols.Randomness``): jitter from the generator of Python, ids from the system's."""

    def uniform(self, low: float, high: float) -> float:
        """A number in [low, high]."""
        return random.uniform(low, high)  # noqa: S311 - jitter is no secret

    def new_id(self) -> str:
        """Eight random characters of lower-case base32."""
        return "".join(secrets.choice(_BASE32) for _ in range(8))
