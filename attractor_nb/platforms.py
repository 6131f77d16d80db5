"""Differences of the operating systems: names that Windows lacks, and the refusal of work that needs them.

Without the calls of POSIX a pipeline is still read, checked, drawn, estimated and run in memory. Run directories need
them: they keep a link, a pipe or a second process from doing harm there.
"""

from __future__ import annotations

import os
import signal
from typing import Final

from attractor_nb.errors import OptionError

O_BINARY: Final[int] = getattr(os, "O_BINARY", 0)
O_CLOEXEC: Final[int] = getattr(os, "O_CLOEXEC", 0)
O_DIRECTORY: Final[int] = getattr(os, "O_DIRECTORY", 0)
O_NOFOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
O_NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)
SIGKILL: Final[signal.Signals] = getattr(signal, "SIGKILL", signal.SIGTERM)
"""Ends a process at once; on Windows SIGTERM does so."""


HAS_POSIX: Final = bool(O_NOFOLLOW) and {os.open, os.rename, os.unlink} <= os.supports_dir_fd
"""True if this system opens files by their directory, which no link can lead elsewhere."""


def check_posix() -> None:
    """Refuse work that needs the calls of POSIX where there are none.

    Raises:
        OptionError: This system lacks them.
    """
    if not HAS_POSIX:
        raise OptionError(
            "run directories, cassettes, commands and the server need calls of POSIX, which this system lacks",
            hint='run in memory with durability="none", or use all of it in WSL, the Windows Subsystem for Linux',
        )
