"""The calling convention of the seams: coroutine functions run here, plain functions in a thread.

What is plugged in may be written either way. A plain function gets a thread for itself: one that
never returns then neither starves the others nor keeps the program from ending, as it would in the
loop's own pool, and its late result is dropped. Threads that are done wait for the next call, which
costs a tenth of a new one. Context variables, and so ``current_stage()``, are carried over. It knows
nothing of handlers, backends or interviewers.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from attractor_nb.platforms import HAS_THREADS, loop_here

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")
MAX_IDLE_THREADS = 8
"""Most idle threads that wait for the next call; further ones end."""


async def call(function: Callable[..., T | Awaitable[T]], *args: Any) -> T:
    """Call a function of either kind and wait for its result, without blocking the loop where there are threads."""
    is_called_here = not HAS_THREADS or inspect.iscoroutinefunction(function)
    result: Any = function(*args) if is_called_here else await _in_thread(function, args)
    return await result if inspect.isawaitable(result) else result


def call_in_loop(loop: asyncio.AbstractEventLoop, function: Callable[[], T], seconds: float) -> T:
    """Call a plain function in a loop and wait for its result; from any thread, that of the loop too.

    Args:
        loop: The loop.
        function: What is called, and quick.
        seconds: How long to wait at most.
    """
    done: Future[T] = Future()

    def work() -> None:
        if not done.set_running_or_notify_cancel():
            return
        try:
            done.set_result(function())
        except BaseException as error:  # noqa: BLE001 - it is the caller's
            done.set_exception(error)

    if is_running_here(loop):
        work()
    else:
        loop.call_soon_threadsafe(work)
    try:
        return done.result(seconds)
    except TimeoutError:
        done.cancel()
        raise


def is_running_here(loop: asyncio.AbstractEventLoop) -> bool:
    """True if a loop is the one that runs in this thread: waiting here would stop it."""
    try:
        return loop_here() is loop
    except RuntimeError:
        return False


def awaitable(function: Callable[..., T | Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    """``call`` of a function, found out once what kind it is: for one that is called often."""
    if inspect.iscoroutinefunction(function):
        return function
    return partial(call, function)


async def _in_thread(function: Callable[..., T], args: tuple[Any, ...]) -> T:
    loop = asyncio.get_running_loop()
    delivered: asyncio.Future[T] = loop.create_future()
    variables = copy_context()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if delivered.done():
            if inspect.iscoroutine(result):
                result.close()  # it will not be awaited
            return
        if error is None:
            delivered.set_result(result)  # pyright: ignore[reportArgumentType] - None only beside an error
        else:
            delivered.set_exception(error)

    def work(worker: _Worker) -> bool:
        result, error = None, None
        try:
            result = variables.run(function, *args)
        except (StopIteration, GeneratorExit) as stop:  # neither gets through a future as it is
            error = RuntimeError(f"{stop!r} left {function!r}")
        except BaseException as caught:  # noqa: BLE001 - the waiting task decides what it means
            error = caught
        is_kept = worker.rest()
        try:
            loop.call_soon_threadsafe(deliver, result, error)
        except RuntimeError:
            return is_kept  # the loop has ended: the result is not awaited
        return is_kept

    _resting_worker().start(work)
    return await delivered


class _Worker:
    """A daemon thread that does one piece of work at a time."""

    def __init__(self) -> None:
        self._works: SimpleQueue[Callable[[_Worker], bool]] = SimpleQueue()
        threading.Thread(target=self._serve, name="attractor-call", daemon=True).start()

    def start(self, work: Callable[[_Worker], bool]) -> None:
        self._works.put(work)

    def rest(self) -> bool:
        """Wait for the next call, unless enough others do; says whether it does."""
        if len(_RESTING) >= MAX_IDLE_THREADS:
            return False
        _RESTING.append(self)
        return True

    def _serve(self) -> None:
        while self._works.get()(self):
            pass


_RESTING: list[_Worker] = []
if hasattr(os, "register_at_fork"):  # a fork takes no threads along; Windows has none
    os.register_at_fork(after_in_child=_RESTING.clear)


def _resting_worker() -> _Worker:
    try:
        return _RESTING.pop()
    except IndexError:
        return _Worker()
