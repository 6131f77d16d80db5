"""One explicit way to run a coroutine to its end inside a running event loop.

A notebook's cell runs inside the kernel's loop, where ``asyncio.run`` refuses. The plain answer is
``await``, or a run's own blocking forms, which use their own loop in another thread. What is left is
code that must run a coroutine *on the current loop* and cannot await: a callback, a ``__repr__``, an old
library. For that there is nest-asyncio2, the maintained fork of nest-asyncio, and this is the only place that
uses it. The archived original has the same interface and is used where only that is installed.

Both change asyncio for everybody in the process and for good: ``asyncio.run``, the classes of tasks and futures,
the policy, all loops of one class. Here the change holds for the one loop, until the coroutine has ended. It does
not make gates work (a click handled inside a nested loop arrives or not by accident of the kernel's version).
"""

from __future__ import annotations

import asyncio
import asyncio.events
import asyncio.futures
import asyncio.tasks
import contextlib
import sys
from typing import TYPE_CHECKING, Any, Final, TypeVar

from attractor_nb.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

T = TypeVar("T")

_PATCHED: Final = "_nest_patched"
"""The mark that both packages leave on a class of loops that can be entered twice."""


def run_sync_on_current_loop(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the current loop and return its result, though the loop is running.

    Without a running loop it is ``asyncio.run``. With one, that loop is re-entrant until the coroutine has ended;
    asyncio and all other loops stay as they are. Prefer ``await``; do not wait for a human gate in this way.

    Raises:
        OptionError: The loop is of a kind that cannot be entered twice.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with _re_entrant(loop, coroutine):
        return loop.run_until_complete(coroutine)


@contextlib.contextmanager
def _re_entrant(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any]) -> Generator[None]:
    """While this lasts the loop can be entered again: it is of a class of its own, which alone is patched."""
    kind = type(loop)
    if hasattr(kind, _PATCHED):  # by an outer call, or by the user's own ``apply()``
        yield
        return
    try:
        loop.__class__ = type(kind.__name__, (kind,), {})
        with _asyncio_unchanged():
            _apply()(loop)
    except (TypeError, ValueError) as error:  # a loop that is not written in Python
        loop.__class__ = kind
        coroutine.close()
        raise OptionError(
            f"the running loop ({kind.__name__}) cannot be entered twice",
            hint="await the coroutine, or run it in a thread",
        ) from error
    try:
        yield
    finally:
        loop.__class__ = kind


def _apply() -> Callable[[asyncio.AbstractEventLoop], None]:
    nest: Any
    try:
        import nest_asyncio2 as nest  # noqa: PLC0415 - importing it is part of opting in
    except ImportError:
        import nest_asyncio as nest  # noqa: PLC0415 - as above; its successor has the same interface
    return nest.apply


@contextlib.contextmanager
def _asyncio_unchanged() -> Generator[None]:
    """Take back what is changed meanwhile in asyncio itself and in what knows its futures."""
    owners: list[Any] = [asyncio, asyncio.events, asyncio.futures, asyncio.tasks]
    if sys.version_info < (3, 14):  # from there on the policy is not changed, and may not be asked for
        owners.append(type(asyncio.get_event_loop_policy()))  # pyright: ignore[reportDeprecated] - as above
    if tornado := sys.modules.get("tornado.concurrent"):
        owners.append(tornado)
    before = [_names(owner) for owner in owners]
    try:
        yield
    finally:
        for owner, names in zip(owners, before, strict=True):
            for name, value in _names(owner).items():
                if name not in names:
                    delattr(owner, name)
                elif value is not names[name]:
                    setattr(owner, name, names[name])


def _names(owner: Any) -> dict[str, Any]:
    return {**owner.__dict__}
