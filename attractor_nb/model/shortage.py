"""Shortages of this machine: reasons outside the pipeline why an attempt cannot be made (ruling 51)."""

from __future__ import annotations

import errno
from typing import Final

_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
"""Open files of the process and of the machine, memory, processes."""
_MAX_CAUSES: Final = 8
"""How many causes of an error are looked at: a foreign exception may be its own."""


def is_shortage(error: BaseException) -> bool:
    """Whether an error, or one that it was raised from, says that files, memory or processes have run out.

    >>> is_shortage(OSError(errno.EMFILE, "Too many open files")), is_shortage(FileNotFoundError(errno.ENOENT, "no"))
    (True, False)
    """
    seen: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if seen is None:
            return False
        if isinstance(seen, OSError) and seen.errno in _SHORTAGES:
            return True
        seen = seen.__cause__
    return False
