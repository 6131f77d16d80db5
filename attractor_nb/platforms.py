"""Differences of the platforms: names that Windows lacks, work that needs them, a browser without threads.

Without the calls of POSIX a pipeline is still read, checked, drawn, estimated and run in memory. Run directories need
them: they keep a link, a pipe or a second process from doing harm there.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import OptionError

if TYPE_CHECKING:
    import asyncio

O_BINARY: Final[int] = getattr(os, "O_BINARY", 0)
O_CLOEXEC: Final[int] = getattr(os, "O_CLOEXEC", 0)
O_DIRECTORY: Final[int] = getattr(os, "O_DIRECTORY", 0)
O_NOFOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
O_NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)
SIGKILL: Final[signal.Signals] = getattr(signal, "SIGKILL", signal.SIGTERM)
"""Ends a process at once; on Windows SIGTERM does so."""


HAS_THREADS: Final = sys.platform != "emscripten"
"""False in a browser (Pyodide, JupyterLite): runs and their views work in the event loop of the page."""
HAS_POSIX: Final = HAS_THREADS and bool(O_NOFOLLOW) and {os.open, os.rename, os.unlink} <= os.supports_dir_fd
"""True if this system locks files, and opens them by their directory, which no link can lead elsewhere."""


def loop_here() -> asyncio.AbstractEventLoop:
    """The running event loop; in a browser that of the page, which runs whenever no cell does.

    Raises:
        RuntimeError: None is running.
    """
    import asyncio  # noqa: PLC0415 - its callers have imported it

    return asyncio.get_running_loop() if HAS_THREADS else asyncio.get_event_loop()


def check_posix() -> None:
    """Refuse work that needs the calls of POSIX where there are none.

    Raises:
        OptionError: This system lacks them.
    """
    if not HAS_POSIX:
        raise OptionError(
            "run directories, cassettes, commands and the server need calls of POSIX, which this system lacks",
            hint='run in memory with durability="none"; on Windows, WSL (the Windows Subsystem for Linux) has all',
        )
