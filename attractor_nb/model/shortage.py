"""What this machine has too little of: a reason outside the pipeline why an attempt cannot be made (ruling 51)."""

from __future__ import annotations

import errno
from typing import Final

_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
"""Open files of the process and of the machine, memory, processes."""


def is_shortage(error: BaseException) -> bool:
    """Whether an error says that files, memory or processes have run out.

    >>> is_shortage(OSError(errno.EMFILE, "Too many open files")), is_shortage(FileNotFoundError(errno.ENOENT, "no"))
    (True, False)
    """
    return isinstance(error, OSError) and error.errno in _SHORTAGES
