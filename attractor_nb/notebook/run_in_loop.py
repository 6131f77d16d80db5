"""One explicit way to run a coroutine to its end inside a running event loop.

A notebook's cell runs inside the kernel's loop, where ``asyncio.run`` refuses. The plain answer is
``await``, or a run's own blocking forms, which use their own loop in another thread. What is left is
code that must run a coroutine *on the current loop* and cannot await: a callback, a ``__repr__``, an old
library. For that there is nest-asyncio, and this is the only place that uses it.

It is never patched in on import: the patch changes asyncio for everybody in the process, it has no
maintainer any more, and it does not make gates work (a click handled inside a nested loop arrives or not
by accident of the kernel's version). Calling the function is the opt-in.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from attractor_nb.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


def run_sync_on_current_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the current loop and return its result, though the loop is running.

    Without a running loop it is ``asyncio.run``. With one, that loop becomes re-entrant from the first
    call on. Prefer ``await``; do not wait for a human gate in this way.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    import nest_asyncio  # noqa: PLC0415 - importing it is part of opting in

    try:
        nest_asyncio.apply(loop)  # pyright: ignore[reportUnknownMemberType] - it has no types
    except ValueError as error:
        coroutine.close()
        raise OptionError(
            f"the running loop ({type(loop).__name__}) cannot be entered twice",
            hint="await the coroutine, or run it in a thread",
        ) from error
    return loop.run_until_complete(coroutine)
