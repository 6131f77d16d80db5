"""Both ends of a lifeline: how coordinator and worker hear each other while a stage is at work.

A lifeline says that the work is to end (the run was stopped, or the coordinator is gone) and takes output
along. Where the coordinator cannot be reached there is none: the work then ends on its own at its time
limit, and its output travels with the report.

Workers on this machine connect to a Unix socket in a directory that no other user may enter. Dask's
workers are heard through their scheduler, wherever they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from attractor_nb.model.events import RunWarning, event_from_plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.stage import StageScope
    from attractor_nb.workers.task import StageReport, StageTask


POLL_SECONDS: Final = 0.1
"""Interval at which a Dask worker checks for a cancelled task: nothing can wake its thread."""
CLAIM_SECONDS: Final = 1.0
"""Time for which a worker waits for a claim of another one."""
BEGUN, ENDED = "begun_by", "ended"
"""Keys of messages. Dask adds a key ``worker`` to each of them."""

MAX_LINE_BYTES: Final = 16 * 1024 * 1024
SOCKET_NAME: Final = "lifeline"


def worker_name() -> str:
    """Host and process, for users."""
    return f"{platform.node()}:{os.getpid()}"


class Lifeline(Protocol):
    """The way to the coordinator."""

    def claim(self) -> bool:
        """True if this worker is the first to begin the task. Blocks; called before anything is done."""
        ...

    async def hold(self, cut: Callable[[], object]) -> None:
        """Call ``cut`` once when the work is to end; runs until it is cancelled."""
        ...

    def say(self, channel: str, text: str) -> None:
        """Pass output on, if there is a way now."""
        ...

    def end(self) -> None:
        """Say that the work has ended, after it was cut."""
        ...


def lifeline_of(task: StageTask) -> Lifeline:
    """The lifeline of a task on this worker. Called in the thread that the executor gave the task."""
    if task.topic and "distributed" in sys.modules:
        with contextlib.suppress(ValueError):  # no Dask worker after all
            return DaskLifeline(task)
    return SocketLifeline(task) if task.lifeline else NoLifeline()


class NoLifeline:
    """The coordinator cannot be reached."""

    def claim(self) -> bool:
        """Executors other than Dask's start a task once."""
        return True

    async def hold(self, cut: Callable[[], object]) -> None:
        """Return at once: no coordinator can cancel the work."""

    def say(self, channel: str, text: str) -> None:
        """It travels with the report."""

    def end(self) -> None:
        """Ignore it: there is no listener."""


class SocketLifeline(NoLifeline):
    """A connection to a coordinator on this machine; its end is the end of the work."""

    def __init__(self, task: StageTask) -> None:
        self._path = Path(task.lifeline)
        self._id = task.id
        self._writer: asyncio.StreamWriter | None = None
        self._early: list[dict[str, Any]] = []
        """Messages from before the connection."""

    async def hold(self, cut: Callable[[], object]) -> None:
        """Wait until the coordinator closes the connection, or is gone."""
        try:
            reader, self._writer = await asyncio.open_unix_connection(self._path)
        except FileNotFoundError:
            return  # another machine
        except OSError:
            cut()  # its socket is there, and it is not
            return
        for message in ({"task": self._id}, *self._early):
            self._send(message)
        self._early.clear()
        with contextlib.suppress(OSError):
            await reader.read()
        cut()

    def say(self, channel: str, text: str) -> None:
        """Pass output on, now or as soon as the connection is there."""
        self._send({"channel": channel, "text": text})

    def end(self) -> None:
        """The end of the connection says it."""
        if self._writer is not None:
            self._writer.close()

    def _send(self, message: dict[str, Any]) -> None:
        if self._writer is None:
            self._early.append(message)
        elif not self._writer.is_closing():
            self._writer.write(json.dumps(message).encode() + b"\n")


class DaskLifeline:
    """The scheduler's own ways: cancelled keys, events under a topic, and a queue for the claim."""

    def __init__(self, task: StageTask) -> None:
        """Find the worker."""
        from distributed import get_worker  # noqa: PLC0415 - only where Dask runs us

        self._worker: Any = get_worker()
        self._key = self._worker.get_current_task()
        self._topic, self._id = task.topic, task.id
        self._is_begun = False

    def claim(self) -> bool:
        """Take the only place in a queue of the task's name: the scheduler gives it once.

        Dask runs a task again by itself when its worker was lost, and also when a result was lost with
        its worker before it was fetched.
        """
        import distributed  # noqa: PLC0415 - only where Dask runs us

        dask: Any = distributed
        queue = dask.Queue(f"{self._topic}-{self._id}", client=dask.get_client(), maxsize=1)
        try:
            queue.put(self._worker.address, timeout=CLAIM_SECONDS)
        except TimeoutError:
            return False
        return True

    async def hold(self, cut: Callable[[], object]) -> None:
        """Look until the scheduler has let go of the task: it was cancelled, or its client is gone."""
        self._announce_worker()
        while self._is_wanted():  # noqa: ASYNC110 - what the scheduler says sets no event
            await asyncio.sleep(POLL_SECONDS)
        cut()

    def say(self, channel: str, text: str) -> None:
        """Pass output on."""
        self._announce_worker()
        self._log({"channel": channel, "text": text})

    def _announce_worker(self) -> None:
        """First name the worker: one that is lost afterwards is known by name."""
        if not self._is_begun:
            self._is_begun = True
            self._log({BEGUN: worker_name()})

    def end(self) -> None:
        """Say that the work has ended."""
        self._log({ENDED: True})

    def _is_wanted(self) -> bool:
        known = self._worker.state.tasks.get(self._key)
        return known is not None and known.state != "cancelled"

    def _log(self, message: dict[str, Any]) -> None:
        self._worker.log_event(self._topic, {"task": self._id, **message})


@dataclass(slots=True)
class TaskListener:
    """Hears one task."""

    on_output: Callable[[str, str], None]  #: Given ``(channel, text)`` as output arrives.
    on_worker: Callable[[str], None]  #: Given the name of a worker that begins it, each time one does.
    #: Number of characters of each channel that arrived while it worked.
    received: dict[str, int] = field(default_factory=dict[str, int])
    #: Set when the worker said that the work has ended after it was cut.
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    is_cut: bool = False  #: It was cut off.
    _writer: asyncio.StreamWriter | None = None

    def take(self, message: Any) -> None:
        """Take what a worker says; what it makes no sense of is dropped."""
        entries = _entries(message)
        if entries.get(ENDED):
            self.ended.set()
        elif isinstance(worker := entries.get(BEGUN), str):
            self.on_worker(worker)
        else:
            channel, text = entries.get("channel"), entries.get("text")
            if isinstance(channel, str) and isinstance(text, str) and not self.is_cut:
                self.received[channel] = self.received.get(channel, 0) + len(text)
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
    """The entries of a message; empty for a foreign message."""
    return cast("dict[str, Any]", message) if isinstance(message, dict) else {}


class Listening:
    """All listeners of a run, and the socket."""

    def __init__(self) -> None:
        self._listeners: dict[str, TaskListener] = {}
        self._folder: Path | None = None
        self._server: asyncio.Server | None = None

    @property
    def path(self) -> str:
        """The socket path for workers of this machine; empty without Unix sockets."""
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
            return  # a worker that was killed, or a foreign worker
        finally:
            if listener is not None:
                listener.ended.set()
            writer.close()


# In the coordinator: the output and results that a stage receives from its worker, meanwhile and at the end.


class TaskClaims:
    """Hears which workers have a task: from the second on, the one before was lost."""

    def __init__(self, scope: StageScope) -> None:
        self._scope = scope
        self._workers: list[str] = []

    def __call__(self, worker: str) -> None:
        """Hear that a worker has it; warn when another one had it before."""
        if worker in self._workers:
            return
        if self._workers:
            node_id, lost = self._scope.node_id, self._workers[-1]
            message = f"{node_id}: worker {lost} was lost, and {worker} began it anew (on_interrupted=rerun)"
            self._scope.announce(RunWarning(message=message, node=node_id))
        self._workers.append(worker)


def take_in(report: StageReport, scope: StageScope, listener: TaskListener) -> None:
    """Give out what was not heard yet, calls of models among it, and write the files."""
    listener.on_worker(report.worker)
    for channel, text in report.output.items():
        scope.stream(text[listener.received.get(channel, 0) :], channel)
    for call_ended in report.calls:
        scope.announce(event_from_plain(call_ended))
    for path, data in report.files.items():
        scope.files.write_bytes(path, data)
    if report.conversation is not None and scope.conversation is not None:
        scope.conversation.save(report.conversation)
    if report.left_out:
        message = f"{scope.node_id}: files that stayed on worker {report.worker}: {'; '.join(report.left_out)}"
        scope.announce(RunWarning(message=message, node=scope.node_id))
