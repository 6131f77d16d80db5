"""How a handler is called, and what is left of its stage for one that goes on when its attempt is over."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

from attractor_nb.calling import awaitable
from attractor_nb.errors import TerminalError
from attractor_nb.interrupts import is_from_keyboard

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from attractor_nb.model.graph import Node
    from attractor_nb.model.outcome import Outcome
    from attractor_nb.protocols import Handler
    from attractor_nb.stage import StageFiles

OWN_GRACE_SECONDS = 5.0
"""How long a handler that keeps its own time may take to end what it started, when the run's is over."""


class HandlerCall(NamedTuple):
    """How a handler is called, found out once."""

    execute: Callable[..., Awaitable[Any]]  #: Calls it, whatever kind of function it is.
    keeps_own_time: bool  #: It ends by itself at the node's timeout, and knows better how: a tool, a gate.
    reserves_requests: bool  #: What it asks enters ``StageScope.paying`` around each of its requests.
    #: Whether it runs something that may write a status.json, or what tells it of a node (ruling 42).
    writes_status: bool | Callable[[Node], bool]
    observes_failures: bool  #: A failure that it returns is one that it observed, such as an exit code.


def handler_call(handler: Handler) -> HandlerCall:
    """How a handler is called."""
    return HandlerCall(
        awaitable(handler.execute),
        keeps_own_time=bool(getattr(handler, "keeps_own_time", False)),
        reserves_requests=bool(getattr(handler, "reserves_requests", False)),
        writes_status=getattr(handler, "writes_status", True),
        observes_failures=bool(getattr(handler, "observes_failures", False)),
    )


async def contained(call: Awaitable[Any]) -> Any:
    """A call in a task of its own, from which an exception that ends programs would end the loop."""
    try:
        return await call
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:  # SystemExit and the like: the loop must go on
        if is_from_keyboard(error):
            raise
        return Raised(error)


class Raised(msgspec.Struct, frozen=True):
    """What a handler raised instead of returning."""

    error: BaseException


class Late(msgspec.Struct, frozen=True):
    """The outcome of a handler that its time limit ended."""

    outcome: Outcome


class _ClosedFiles:
    """What is left of a stage's files for a handler that goes on after its attempt was given up.

    The directory is the next attempt's by then: a late status.json would be taken for its own.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python's own questions, as those of a doctest
            raise AttributeError(name)
        raise TerminalError("the attempt is over, and its files are closed", hint="end when the call ends")


CLOSED_FILES: Final = cast("StageFiles", _ClosedFiles())


def ignore(_text: object) -> None:
    """What a handler says after its attempt is heard by nobody."""
