"""The calling convention of the seams: coroutine functions run here, plain functions in a thread.

What is plugged in may be written either way. A plain function gets a daemon thread of its own and
not a pooled one: one that never returns then neither starves the others nor keeps the program from
ending, and its late result is dropped. Context variables, and so ``current_stage()``, are carried
over. It knows nothing of handlers, backends or interviewers.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


async def call(function: Callable[..., T | Awaitable[T]], *args: Any) -> T:
    """Call a function of either kind and wait for its result, without blocking the loop."""
    result: Any = (
        function(*args) if inspect.iscoroutinefunction(function) else await _in_thread(function, args)
    )
    return await result if inspect.isawaitable(result) else result


async def _in_thread(function: Callable[..., T], args: tuple[Any, ...]) -> T:
    loop = asyncio.get_running_loop()
    delivered: asyncio.Future[T] = loop.create_future()
    variables = copy_context()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if delivered.done():
            return
        if error is None:
            delivered.set_result(result)  # pyright: ignore[reportArgumentType] - None only beside an error
        else:
            delivered.set_exception(error)

    def work() -> None:
        result, error = None, None
        try:
            result = variables.run(function, *args)
        except StopIteration as stop:  # a future refuses it
            error = RuntimeError(f"StopIteration({stop.value!r}) left {function!r}")
        except BaseException as caught:  # noqa: BLE001 - the waiting task decides what it means
            error = caught
        try:
            loop.call_soon_threadsafe(deliver, result, error)
        except RuntimeError:
            return  # the loop has ended: nobody waits for the result

    threading.Thread(target=work, name="attractor-call", daemon=True).start()
    return await delivered
