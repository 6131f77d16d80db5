"""Where the user's Python failed: the traceback as a file of the stage, and the exception while it is here.

Both begin at the first frame that is not ours, so that who reads them is in code of their own. A failure of
ours alone, such as a refusal that a backend words, has no such frame and leaves nothing.
"""

from __future__ import annotations

import contextlib
import traceback
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from types import TracebackType

    from attractor_nb.stage import StageFiles

TRACEBACK_FILE: Final = "traceback.txt"
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
    return True


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
    """Whether a frame of Python's own belongs to how we call."""
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
