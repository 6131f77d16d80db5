"""Calls of handlers, and the closed files of a stage for a handler that continues after its attempt."""

from __future__ import annotations

import asyncio
import contextlib
import linecache
import traceback
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec

from attractor_nb.errors import TerminalError
from attractor_nb.interrupts import is_from_keyboard
from attractor_nb.maybe_async import awaitable
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from attractor_nb.model.graph import Node
    from attractor_nb.model.outcome import Outcome
    from attractor_nb.protocols import Handler
    from attractor_nb.stage import StageFiles


OWN_GRACE_SECONDS = 5.0
"""Time limit for a handler with its own timeout to end its work, when the run's time is over."""


class HandlerCall(NamedTuple):
    """The way to call a handler, determined once."""

    execute: Callable[..., Awaitable[Any]]  #: Calls it, whatever kind of function it is.
    keeps_own_time: bool  #: It ends on its own at the node's timeout, and knows better how: a tool, a gate.
    reserves_requests: bool  #: True if the backend enters ``StageScope.paying`` around each of its requests.
    #: True if it runs something that may write a status.json, or a function that decides it by node (ruling 42).
    writes_status: bool | Callable[[Node], bool]
    observes_failures: bool  #: A failure that it returns is one that it observed, such as an exit code.


def handler_call(handler: Handler) -> HandlerCall:
    """Determine the way to call a handler."""
    return HandlerCall(
        awaitable(handler.execute),
        keeps_own_time=bool(getattr(handler, "keeps_own_time", False)),
        reserves_requests=bool(getattr(handler, "reserves_requests", False)),
        writes_status=getattr(handler, "writes_status", True),
        observes_failures=bool(getattr(handler, "observes_failures", False)),
    )


async def contained(call: Awaitable[Any]) -> Any:
    """A call in its own task, from which an exception that ends programs would end the loop."""
    try:
        return await call
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:  # SystemExit and the like: the loop must continue
        if is_from_keyboard(error):
            raise
        return Raised(error)


class Raised(msgspec.Struct, frozen=True):
    """An exception that a handler raised instead of returning."""

    error: BaseException


class Late(msgspec.Struct, frozen=True):
    """The outcome of a handler that its time limit ended."""

    outcome: Outcome


class _ClosedFiles:
    """The files of a stage for a handler that continues after its attempt was given up: all access fails.

    The directory belongs to the next attempt by then: a late status.json would be taken for its own.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python's own questions, as those of a doctest
            raise AttributeError(name)
        raise TerminalError("the attempt is over, and its files are closed", hint="end when the call ends")


CLOSED_FILES: Final = cast("StageFiles", _ClosedFiles())


def ignore(_text: object) -> None:
    """Drop all that a handler reports after its attempt."""


# Failures of the user's Python: the traceback as a file of the stage, and the exception while it is in memory.
#
# Both begin at the first foreign frame, so that readers start in code of their own. A failure of
# ours alone, such as a refusal that a backend words, has no such frame and leaves nothing.

TRACEBACK_FILE: Final = "traceback.txt"
USER_LINE_FILE: Final = "failed_line.txt"
LINES_AROUND: Final = 2
"""Lines before and after the failed line in that file."""
MAX_LINE: Final = 400
"""Characters of a line of source."""
MAX_KEPT: Final = 3
"""Exceptions of a run that stay in memory: they hold their frames, and these what the code worked on."""
MAX_CHARACTERS: Final = 60_000
"""Of the tracebacks of an attempt; its model may call a tool that fails again and again."""
_OURS: Final = str(Path(__file__).parents[1]) + "/"
_OF_PYTHON: Final = str(Path(traceback.__file__).parent) + "/"
_INSTALLED: Final = ("/site-packages/", "/dist-packages/")


class UserFailure(NamedTuple):
    """An exception of the user's Python."""

    node: str  #: The node whose stage it was in.
    error: BaseException  #: It, with its traceback.


class Failures:
    """The latest exceptions of a run that the user's Python raised."""

    def __init__(self) -> None:
        self._kept: deque[UserFailure] = deque(maxlen=MAX_KEPT)

    def keep(self, node: str, error: BaseException) -> None:
        """Keep one, in place of the oldest."""
        self._kept.append(UserFailure(node, error))

    def latest(self, node: str = "") -> UserFailure | None:
        """The latest, of a node if one is given; None when there is none, or others came since."""
        return next((one for one in reversed(self._kept) if node in {"", one.node}), None)


def keep_traceback(files: StageFiles, error: BaseException) -> bool:
    """Write where the user's Python failed into the stage's files; whether it was the user's."""
    beginning = _first_foreign(error.__traceback__)
    if beginning is None:
        return False
    error.__traceback__ = beginning
    before = files.read_text(TRACEBACK_FILE) or ""
    if len(before) < MAX_CHARACTERS:
        files.write_text(TRACEBACK_FILE, f"{before}\n{_text_of(error)}".lstrip("\n"))
    if text := _user_line(beginning):
        files.write_text(USER_LINE_FILE, redacted(text))
    return True


def _user_line(beginning: TracebackType) -> str:
    """The innermost line of the user's own code, marked between the lines around it; empty without one.

    The source is read here, where the exception is: a reader of the file opens no other file, and the lines of a
    notebook's cell are known nowhere else.
    """
    found: TracebackType | None = beginning
    own: TracebackType | None = None
    while found is not None:
        file = found.tb_frame.f_code.co_filename
        is_foreign = file.startswith((_OURS, _OF_PYTHON)) or any(part in file for part in _INSTALLED)
        own, found = own if is_foreign else found, found.tb_next
    if own is None:
        return ""
    code, failed = own.tb_frame.f_code, own.tb_lineno
    lines = linecache.getlines(code.co_filename, own.tb_frame.f_globals)
    shown = range(max(1, failed - LINES_AROUND), min(len(lines), failed + LINES_AROUND) + 1)
    head = f"{code.co_filename}:{failed}, in {code.co_name}\n"
    marked = (
        f"{'>' if number == failed else ' '} {number}  {lines[number - 1].rstrip()}"[:MAX_LINE] for number in shown
    )
    return head + "".join(f"{line}\n" for line in marked)


def _first_foreign(found: TracebackType | None) -> TracebackType | None:
    """The traceback from its first frame on that is neither ours nor of the machinery between us and it."""
    fallback = None
    while found is not None:
        file = found.tb_frame.f_code.co_filename
        if not file.startswith(_OURS):
            if not file.startswith(_OF_PYTHON) or any(part in file for part in _INSTALLED):
                return found
            fallback = fallback or found  # a function of Python's own may itself be what was called
        found = found.tb_next
    return None if fallback is None or _is_internal(fallback) else fallback


def _is_internal(found: TracebackType) -> bool:
    """True if a frame of Python's own belongs to how we call."""
    return any(part in found.tb_frame.f_code.co_filename for part in ("/asyncio/", "/concurrent/", "contextlib"))


def _text_of(error: BaseException) -> str:
    """A traceback as Python prints it, without secrets, however the exception behaves."""
    text = f"{type(error).__name__}: its traceback cannot be shown\n"
    with contextlib.suppress(Exception):  # a foreign exception may raise whatever it is asked
        text = "".join(traceback.TracebackException.from_exception(error, compact=True).format())
    clean = redacted(text.encode("utf-8", "backslashreplace").decode())
    if len(clean) <= MAX_CHARACTERS:
        return clean
    half = MAX_CHARACTERS // 2
    return f"{clean[:half]}\n[… {len(clean) - 2 * half:,} characters left out …]\n{clean[-half:]}"
