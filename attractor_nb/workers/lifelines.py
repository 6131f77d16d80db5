"""On a worker: how the coordinator is heard and spoken to while a stage is at work.

A leash says that the work is to end (the run was stopped, or the coordinator is gone) and takes output
along. Where the coordinator cannot be reached there is none: the work then ends by itself at its time
limit, and its output travels with the report.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.workers.task import StageTask

POLL_SECONDS: Final = 0.1
"""How often a Dask worker looks whether its task was cancelled: nothing wakes a thread of its."""
CLAIM_SECONDS: Final = 1.0
"""How long a worker waits for a claim that another one has: it has it for good."""
BEGUN, ENDED = "begun_by", "ended"
"""Keys of messages. Dask adds a key ``worker`` to each of them."""


def worker_name() -> str:
    """Host and process, for people."""
    return f"{platform.node()}:{os.getpid()}"


class Leash(Protocol):
    """The way to the coordinator."""

    def claim(self) -> bool:
        """Whether this worker is the first to begin the task. Blocks; called before anything is done."""
        ...

    async def hold(self, cut: Callable[[], object]) -> None:
        """Call ``cut`` once when the work is to end; goes on until it is cancelled."""
        ...

    def say(self, channel: str, text: str) -> None:
        """Pass output on, if there is a way now."""
        ...

    def end(self) -> None:
        """Say that the work has ended, after it was cut."""
        ...


def leash_of(task: StageTask) -> Leash:
    """The leash of a task on this worker. Called in the thread that the executor gave the task."""
    if task.topic and "distributed" in sys.modules:
        with contextlib.suppress(ValueError):  # no Dask worker after all
            return DaskLeash(task)
    return SocketLeash(task) if task.leash else NoLeash()


class NoLeash:
    """The coordinator cannot be reached."""

    def claim(self) -> bool:
        """Executors other than Dask's start a task once."""
        return True

    async def hold(self, cut: Callable[[], object]) -> None:
        """Nobody pulls."""

    def say(self, channel: str, text: str) -> None:
        """It travels with the report."""

    def end(self) -> None:
        """Nobody listens."""


class SocketLeash(NoLeash):
    """A connection to a coordinator on this machine; its end is the end of the work."""

    def __init__(self, task: StageTask) -> None:
        self._path = Path(task.leash)
        self._id = task.id
        self._writer: asyncio.StreamWriter | None = None
        self._early: list[dict[str, Any]] = []
        """What was said before the connection was there."""

    async def hold(self, cut: Callable[[], object]) -> None:
        """Wait until the coordinator closes the connection, or is gone."""
        try:
            reader, self._writer = await asyncio.open_unix_connection(self._path)
        except FileNotFoundError:
            return  # another machine
        except OSError:
            cut()  # its socket is there, and it is not
            return
        self._send({"task": self._id})
        for message in self._early:
            self._send(message)
        self._early.clear()
        with contextlib.suppress(OSError):
            await reader.read()
        cut()

    def say(self, channel: str, text: str) -> None:
        """Pass output on, now or as soon as the connection is there."""
        message = {"channel": channel, "text": text}
        if self._writer is None:
            self._early.append(message)
        else:
            self._send(message)

    def end(self) -> None:
        """The end of the connection says it."""
        if self._writer is not None:
            self._writer.close()

    def _send(self, message: dict[str, Any]) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(json.dumps(message).encode() + b"\n")


class DaskLeash:
    """The scheduler's own ways: cancelled keys, events under a topic, and a queue for the claim."""

    def __init__(self, task: StageTask) -> None:
        """Find the worker.

        Raises:
            ValueError: This is no thread of a Dask worker.
        """
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
        self._say_who()
        while self._is_wanted():  # noqa: ASYNC110 - what the scheduler says sets no event
            await asyncio.sleep(POLL_SECONDS)
        cut()

    def say(self, channel: str, text: str) -> None:
        """Pass output on."""
        self._say_who()
        self._log({"channel": channel, "text": text})

    def _say_who(self) -> None:
        """Say first of all who began: whoever is lost after a word of its own is known by name."""
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
