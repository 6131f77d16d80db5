"""The coordinator's end of the leashes: hears what workers say while they work, and cuts work off.

Workers on this machine connect to a Unix socket in a directory that nobody else may enter. Dask's
workers are heard through their scheduler, wherever they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.workers.lifelines import BEGUN, ENDED

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
SOCKET_NAME: Final = "leash"


@dataclass(slots=True)
class TaskListener:
    """Hears one task.

    Attributes:
        on_output: Given ``(channel, text)`` as output arrives.
        on_worker: Given the name of a worker that begins it, each time one does.
        heard: How many characters of each channel arrived while it was at work.
        ended: Set when the worker said that the work has ended after it was cut.
        is_cut: It was cut off.
    """

    on_output: Callable[[str, str], None]
    on_worker: Callable[[str], None]
    heard: dict[str, int] = field(default_factory=dict[str, int])
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    is_cut: bool = False
    _writer: asyncio.StreamWriter | None = None

    def take(self, message: Any) -> None:
        """Take what a worker says; what it makes no sense of is dropped."""
        said = _entries(message)
        if said.get(ENDED):
            self.ended.set()
        elif isinstance(worker := said.get(BEGUN), str):
            self.on_worker(worker)
        else:
            channel, text = said.get("channel"), said.get("text")
            if isinstance(channel, str) and isinstance(text, str) and not self.is_cut:
                self.heard[channel] = self.heard.get(channel, 0) + len(text)
                self.on_output(channel, text)

    def connect(self, writer: asyncio.StreamWriter) -> None:
        """Take the connection of a worker; it is closed at once when the task was cut already."""
        self._writer = writer
        if self.is_cut:
            writer.close()

    def cut(self) -> None:
        """Have the work end, where a worker of this machine holds the other end."""
        self.is_cut = True
        if self._writer is not None:
            self._writer.write_eof()


def _entries(message: Any) -> dict[str, Any]:
    """What a message says; nothing, when it is no message of ours."""
    return cast("dict[str, Any]", message) if isinstance(message, dict) else {}


class Listening:
    """All listeners of a run, and the socket."""

    def __init__(self) -> None:
        self._listeners: dict[str, TaskListener] = {}
        self._folder: Path | None = None
        self._server: asyncio.Server | None = None

    @property
    def path(self) -> str:
        """Where workers of this machine connect; empty where there are no such sockets."""
        return str(self._folder / SOCKET_NAME) if self._folder and self._server else ""

    async def open(self) -> None:
        """Begin to listen. A machine without such sockets goes without."""
        if not hasattr(asyncio, "start_unix_server"):
            return
        self._folder = Path(tempfile.mkdtemp(prefix="attractor-"))
        with contextlib.suppress(OSError, NotImplementedError):
            self._server = await asyncio.start_unix_server(
                self._serve, self._folder / SOCKET_NAME, limit=MAX_LINE_BYTES
            )

    async def close(self) -> None:
        """Cut all that is left, and go."""
        for listener in self._listeners.values():
            listener.cut()
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def add(self, task_id: str, listener: TaskListener) -> None:
        """Listen for a task."""
        self._listeners[task_id] = listener

    def remove(self, task_id: str) -> None:
        """Listen no more for a task."""
        self._listeners.pop(task_id, None)

    def take(self, message: Any) -> None:
        """Take a message that names its task, from wherever it came."""
        if found := self._listeners.get(str(_entries(message).get("task"))):
            found.take(message)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listener: TaskListener | None = None
        try:
            while line := await reader.readline():
                message: Any = json.loads(line)
                if listener is None:
                    listener = self._listeners.get(str(_entries(message).get("task")))
                    if listener is None:
                        return
                    listener.connect(writer)
                else:
                    listener.take(message)
        except (OSError, ValueError, RecursionError):
            return  # a worker that was killed, or no worker of ours
        finally:
            if listener is not None:
                listener.ended.set()
            writer.close()
