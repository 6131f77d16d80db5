"""Connections that the runs of one event loop share, from the first that begins to the last that ends."""

from __future__ import annotations

import asyncio
import threading
import weakref
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from attractor_nb.backends.llm.clients import Clients


@dataclass(slots=True)
class _Pool:
    user_count: int = 0
    clients: Clients | None = None


class Pools:
    """Clients by event loop: connections belong to the loop that made them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = weakref.WeakKeyDictionary()

    def enter(self) -> None:
        """Begin to share; whoever does also leaves."""
        with self._lock:
            self._by_loop.setdefault(asyncio.get_running_loop(), _Pool()).user_count += 1

    async def leave(self) -> None:
        """Be done; the last one closes the connections."""
        loop = asyncio.get_running_loop()
        with self._lock:
            pool = self._by_loop.get(loop)
            if pool is None:
                return
            pool.user_count -= 1
            if pool.user_count > 0:
                return
            del self._by_loop[loop]
        if pool.clients is not None:
            await pool.clients.close()

    @asynccontextmanager
    async def use(self, make: Callable[[], Clients]) -> AsyncGenerator[Clients]:
        """The clients of this loop; where nobody shares any, some for this one call."""
        with self._lock:
            pool = self._by_loop.get(asyncio.get_running_loop())
            if pool is not None and pool.clients is None:
                pool.clients = make()
        if pool is not None and pool.clients is not None:
            yield pool.clients
            return
        clients = make()
        try:
            yield clients
        finally:
            await clients.close()
