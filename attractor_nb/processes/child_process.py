"""A started program whose end can be awaited.

Not asyncio's own: there a task that connects pipes is cancelled when a second Ctrl-C ends the loop, and
whoever waits for the end of that program then waits for ever.
"""

from __future__ import annotations

import asyncio
import subprocess
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


class ChildProcess:
    """A child process. A thread of its own waits for its end, so that no interrupt can lose it."""

    def __init__(self, arguments: Sequence[str], **options: Any) -> None:
        """Start it.

        Args:
            arguments: The program and its arguments.
            **options: As of ``subprocess.Popen``.

        Raises:
            OSError, ValueError: It cannot be started.
        """
        self._process = subprocess.Popen(arguments, bufsize=0, **options)  # noqa: S603 - starting programs is its purpose
        self._end: Future[int] = Future()
        self._end.set_running_or_notify_cancel()  # whoever stops waiting for it does not take the end away
        threading.Thread(target=self._reap, name="attractor-child", daemon=True).start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def wait(self) -> int:
        """Wait for its end; its exit code, negative: the signal that ended it."""
        return await asyncio.wrap_future(self._end)

    def _reap(self) -> None:
        self._end.set_result(self._process.wait())
