"""On a worker: the event loop that tasks run in, and the named backends that stay started in it.

One loop in a daemon thread per process, so that a model server of a backend outlives the task that
started it and is not left alone in a loop that stands still. A backend that nobody used for a while is
closed again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from attractor_nb.backends import resolve_backend
from attractor_nb.protocols import BackendLifetime

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine

    from attractor_nb.protocols import CodergenBackend

T = TypeVar("T")
IDLE_SECONDS: Final = 60.0
"""After that long without a task a named backend is closed."""


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in this process's loop and wait for it; whoever interrupts the wait ends it."""
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return future.result()
    except BaseException:  # an interrupt, too: the work ends with who waits for it
        future.cancel()
        raise


@contextlib.asynccontextmanager
async def named_backend(name: str) -> AsyncGenerator[CodergenBackend]:
    """The backend of a name, started; the same one for all tasks of this process."""
    kept = _KEPT.get(name)
    if kept is None:
        kept = _KEPT[name] = _Kept(name, resolve_backend(name), asyncio.get_running_loop())
    kept.begin()
    try:
        yield await kept.opened()
    finally:
        kept.end()


@dataclass(slots=True)
class _Kept:
    """A backend that is started, and how many tasks use it."""

    name: str
    backend: CodergenBackend
    loop: asyncio.AbstractEventLoop
    opening: asyncio.Future[None] | None = None
    users: int = 0
    timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self.users += 1
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    async def opened(self) -> CodergenBackend:
        if isinstance(self.backend, BackendLifetime):
            if self.opening is None:
                self.opening = asyncio.ensure_future(self.backend.open())
            try:
                await asyncio.shield(self.opening)
            except Exception:
                self._close()  # the next task tries anew
                raise
        return self.backend

    def end(self) -> None:
        self.users -= 1
        if not self.users and _KEPT.get(self.name) is self:
            self.timer = self.loop.call_later(IDLE_SECONDS, self._close)

    def _close(self) -> None:
        if _KEPT.get(self.name) is not self:
            return
        del _KEPT[self.name]
        if isinstance(self.backend, BackendLifetime):
            _CLOSING.add(task := self.loop.create_task(self.backend.close()))
            task.add_done_callback(_CLOSING.discard)


_KEPT: dict[str, _Kept] = {}
_CLOSING: set[asyncio.Task[None]] = set()
_LOCKS = [threading.Lock()]
_LOOPS: dict[int, asyncio.AbstractEventLoop] = {}
"""By process: a fork takes no thread along, so it makes a loop of its own."""


def _loop() -> asyncio.AbstractEventLoop:
    with _LOCKS[0]:
        loop = _LOOPS.get(os.getpid())
        if loop is None:
            loop = _LOOPS[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="attractor-worker", daemon=True).start()
        return loop


if hasattr(os, "register_at_fork"):

    def _forget() -> None:
        _LOCKS.clear()  # another thread may have held it when the process forked
        _LOCKS.append(threading.Lock())
        _KEPT.clear()

    os.register_at_fork(after_in_child=_forget)
