"""Tickets: what an ``EventSource`` shows in place of the token, for it can send no header.

A ticket opens one stream, once, soon: in a browser's history or a proxy's log it is worth nothing.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from typing import TYPE_CHECKING, Final

from attractor_nb.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_TICKETS: Final = 4_096


class Tickets:
    """The tickets that were given out and not yet shown; only their hashes are kept."""

    def __init__(self, seconds: float, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._open: dict[bytes, tuple[str, float]] = {}

    def issue(self, path: str) -> str:
        """A ticket for one path.

        Raises:
            Problem: Too many wait to be used.
        """
        ticket = secrets.token_urlsafe(32)
        now = self._monotonic()
        with self._lock:
            self._open = {key: kept for key, kept in self._open.items() if kept[1] > now}
            if len(self._open) >= MAX_TICKETS:
                raise Problem(
                    429, "too-many-tickets", "Too many tickets are unused", headers={"Retry-After": "30"}
                )
            self._open[_key(ticket)] = path, now + self._seconds
        return ticket

    def redeem(self, ticket: str, path: str) -> bool:
        """Whether a ticket opens a path; whatever it opens, it is used up."""
        with self._lock:
            kept = self._open.pop(_key(ticket), None)
        return kept is not None and kept[0] == path and kept[1] > self._monotonic()


def _key(ticket: str) -> bytes:
    """Looked up by hash, so that the time of a look tells nothing of the tickets there are."""
    return hashlib.sha256(ticket.encode("utf-8", "surrogatepass")).digest()
