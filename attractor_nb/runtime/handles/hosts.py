"""Where the engine's coroutines run: in a thread of their own, or in the loop that is running.

The thread host is the default: one daemon thread per process with its own loop, so that a cell or a
script goes on at once and a button's click finds the kernel free. The kernel host runs in the loop
of the caller, for places without threads. Context variables of the caller are taken along.

The engine's thread ends with the program, so a program that ends stops its jobs first: a Ctrl-C between
``pipeline.run()`` and ``run.result()`` then leaves a run that says that it was interrupted.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures.thread  # noqa: F401  # pyright: ignore[reportUnusedImport] - what registers first ends last
import contextlib
import contextvars
import os
import threading
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import Future, wait
from typing import Any, Final, TypeVar

from attractor_nb.calling import call_in_loop, is_running_here
from attractor_nb.errors import OptionError, RunError
from attractor_nb.logs import own_logger

LOGGER = own_logger(__name__)
Work = Callable[[], Coroutine[Any, Any, Any]]
T = TypeVar("T")
CALL_SECONDS: Final = 30.0
"""How long a call may wait for the loop of a job: a stage of a plain function cannot hold it, a bug can."""
STOP_SECONDS = 10.0
"""How long somebody who stops a job waits for its end."""


class HostedTask:
    """A coroutine that runs on a host.

    Attributes:
        future: Its result or exception, for any thread.
        title: What it does, in words.
        is_asked_to_stop: Somebody cancelled it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, title: str = "") -> None:
        self.future: Future[Any] = Future()
        self.title = title
        self.is_asked_to_stop = False
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None
        self._is_cancelled = False
        self._has_begun = False

    def is_of(self, loop: asyncio.AbstractEventLoop | None) -> bool:
        """Whether that loop runs it."""
        return self._loop is loop

    @property
    def is_in_this_thread(self) -> bool:
        """Whether the loop that runs it is the one that runs here: waiting here would stop it."""
        return is_running_here(self._loop)

    def start(self, work: Work) -> None:
        """Run a coroutine that ``work`` makes, with the context variables of the caller."""
        variables = contextvars.copy_context()
        _LIVE.add(self)
        if self.is_in_this_thread:
            self._start(work, variables)
        else:
            self._loop.call_soon_threadsafe(self._start, work, variables)

    def _start(self, work: Work, variables: contextvars.Context) -> None:
        self._task = self._loop.create_task(self._begin(work), context=variables)
        for _ in range(2):  # in the main thread an interrupt may break off the first: the other is still due
            self._task.add_done_callback(self._deliver)

    async def _begin(self, work: Work) -> Any:
        """Run the coroutine; one that was cancelled before is cancelled inside, where it cleans up."""
        self._has_begun = True
        task = asyncio.current_task()
        if self._is_cancelled and task is not None:
            self._loop.call_soon(task.cancel)  # at once it would look like the first stage's own doing
        return await work()

    def _deliver(self, task: asyncio.Task[Any]) -> None:
        if not self.future.done():
            self._settle(task)
        _LIVE.discard(self)

    def _settle(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self.future.cancel()
            self.future.set_running_or_notify_cancel()
        elif error := task.exception():
            self.future.set_exception(error)
        else:
            self.future.set_result(task.result())

    def call(self, function: Callable[[], T]) -> T:
        """What a function returns that is called in the loop that runs the job; from any thread."""
        try:
            return call_in_loop(self._loop, function, CALL_SECONDS)
        except TimeoutError:
            raise RunError(f"{self.title} did not take the call in {CALL_SECONDS:g} s") from None
        except RuntimeError:
            if not self._loop.is_closed():
                raise
            raise RunError(f"{self.title} has ended") from None

    def cancel(self) -> None:
        """Ask it to stop; from any thread."""
        self.is_asked_to_stop = True

        def stop() -> None:
            self._is_cancelled = True
            if self._task is not None and self._has_begun:
                self._task.cancel()

        with contextlib.suppress(RuntimeError):  # the loop has ended, and the coroutine with it
            self._loop.call_soon_threadsafe(stop)


_LIVE: set[HostedTask] = set()
"""Jobs that were started and have not ended."""


def live_jobs() -> frozenset[HostedTask]:
    """The jobs of this process that have not ended and that nobody has asked to stop."""
    return frozenset(job for job in tuple(_LIVE) if not job.is_asked_to_stop)


def stop_jobs(jobs: Collection[HostedTask], reason: str) -> None:
    """Stop jobs that nobody waits for any longer, and wait for their end; an interrupt leaves at once.

    Args:
        jobs: The jobs.
        reason: Why, to be said of each.
    """
    with contextlib.suppress(KeyboardInterrupt):
        for job in jobs:
            job.cancel()
            LOGGER.warning("%s was stopped: %s", job.title, reason)
        wait({job.future for job in jobs if not job.is_in_this_thread}, STOP_SECONDS)


def at_program_end(action: Callable[[], None]) -> None:
    """Call something when the program ends, while threads still work."""
    # Functions of atexit are called when no pool of threads takes work any more, and stages may use one.
    register: Callable[[Callable[[], None]], object] = getattr(threading, "_register_atexit", atexit.register)
    register(action)


class _ThreadHost:
    """The one daemon thread of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process_id = 0

    def loop(self) -> asyncio.AbstractEventLoop:
        """Its loop; started when first needed, and again in a forked child."""
        with self._lock:
            if self._loop is None:
                at_program_end(self._stop_jobs)
            if self._loop is None or self._process_id != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._process_id = os.getpid()
                variables = contextvars.copy_context()
                threading.Thread(
                    target=variables.run, args=(_serve, self._loop), name="attractor-engine", daemon=True
                ).start()
            return self._loop

    def _stop_jobs(self) -> None:
        """Stop what runs here. Those of other loops have ended with them, and a fork takes no job along."""
        if self._process_id == os.getpid():
            mine = [job for job in live_jobs() if job.is_of(self._loop)]
            stop_jobs(mine, "the program ended, and nobody had waited for it")


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop for ever: the SystemExit of one run's plug-in must not end all the other runs."""
    while not loop.is_closed():
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            LOGGER.exception("something that a run called tried to end the engine")


_THREAD_HOST = _ThreadHost()


def check_host(host: object) -> None:
    """Check that coroutines can be started on a host from here."""
    if host not in ("thread", "kernel"):
        raise OptionError(f"unknown host {host!r}", hint='use "thread" or "kernel"')
    if host == "kernel":
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise OptionError(
                'host="kernel" needs a running event loop', hint='use host="thread", or call it from a coroutine'
            ) from None


def new_job(host: str, title: str) -> HostedTask:
    """A job on a host, not yet started: whoever may cancel it can be told of it before.

    Args:
        host: ``thread`` or ``kernel``.
        title: What it does, in words.
    """
    check_host(host)
    return HostedTask(asyncio.get_running_loop() if host == "kernel" else _THREAD_HOST.loop(), title)
