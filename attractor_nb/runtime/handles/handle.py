"""Waiting for something that works elsewhere, and stopping it: what handles on runs and on maps share.

Blocking forms are one line over the async truth. A first Ctrl-C stops the work in order, a second one leaves
at once.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures.thread  # noqa: F401  # pyright: ignore[reportUnusedImport] - what registers first ends last
import contextlib
import contextvars
import os
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Generator
from concurrent.futures import CancelledError, Future, wait
from concurrent.futures import wait as wait_for_end
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from attractor_nb.errors import OptionError, RunAtBreakpoint, RunError, RunInterrupted
from attractor_nb.interrupts import held_interrupts
from attractor_nb.logs import own_logger
from attractor_nb.maybe_async import call_in_loop, is_running_here
from attractor_nb.platforms import HAS_THREADS, loop_here
from attractor_nb.runtime.handles.presenters import can_be_clicked, check_wait

if TYPE_CHECKING:
    from attractor_nb.engine.gates import Gate
    from attractor_nb.model.stop import Stop


ResultT = TypeVar("ResultT")
SLICE_SECONDS = 0.25
"""A wait wakes this often: an interrupt must find something that it can break."""
PAUSE_SECONDS = 1.0
"""Longest pause at one breakpoint while a call waits for the run: an observer continues it at once."""


class RunStopped(RunInterrupted, asyncio.CancelledError):
    """An ``await run`` was cancelled, and the run with it.

    It is a cancellation, as asyncio wants it, and one of our errors, so that a notebook's Stop button
    ends in words and not in a traceback.
    """


class HandleJob(Generic[ResultT]):
    """The work behind a handle, for the code that does it: its job, and its result at the end.

    Attributes:
        what: What a message calls it.
        resume_hint: Hint for a caller who has stopped it.
        job: The job that does it, once there is one.
        result: Its result, when it is over.
        stop_for_nobody: Stops it when its caller is interrupted before receiving the handle, and raises
            ``RunInterrupted``.
    """

    def __init__(self, what: str, resume_hint: str = "resume with run.resume()") -> None:
        self.what = what
        self.resume_hint = resume_hint
        self.job: HostedTask | None = None
        self.result: ResultT | None = None
        self.stop_for_nobody: Callable[[], None] = _nothing

    @property
    def is_in_this_loop(self) -> bool:
        """True if the event loop that runs here is the one in which it is done."""
        return self.job is not None and self.job.is_in_this_thread


class Handle(Generic[ResultT]):
    """A handle on work that has, or will have, a result."""

    def __init__(self, work: HandleJob[ResultT]) -> None:
        self._work = work
        self._pause: tuple[Stop, float] | None = None
        work.stop_for_nobody = self._stop_for_nobody

    # -- looking and stopping ------------------------------------------------------------------------

    @property
    def is_done(self) -> bool:
        """True if nothing more will happen by itself."""
        job = self._work.job
        return self._work.result is not None or (job is not None and job.future.done())

    @property
    def gates(self) -> tuple[Gate, ...]:
        """The questions that wait for an answer now, oldest first."""
        return ()

    @property
    def stops(self) -> tuple[Stop, ...]:
        """The breakpoints at which it is paused, the longest pause first."""
        return ()

    def cancel(self) -> None:
        """Stop it: the stage under way is cancelled, all that is committed stays. From any thread."""
        if self._work.job is not None:
            self._work.job.cancel()

    # -- waiting -------------------------------------------------------------------------------------

    def result(self, timeout: float | None = None) -> ResultT:
        """Block until it has ended.

        Args:
            timeout: Seconds to wait at most.

        Raises:
            TimeoutError: It has not ended in time; it is still running.
            GateWouldBlock: Waiting here would keep a gate's buttons from working.
            RunInterrupted: Ctrl-C or Stop: it was stopped and can be resumed.
            RunAtBreakpoint: It is stopped at a breakpoint, and no live view can continue it.
            RunLocked: Another process took it over.
            RunError: It runs in the event loop that runs here.
            StorageError: Its directory could not be written.
        """
        give_up = None if timeout is None else time.monotonic() + timeout
        with held_interrupts(self.cancel) as interrupt:
            future = self._future()
            if self._work.is_in_this_loop and not future.done():
                raise RunError(
                    f"{self._work.what} runs in this event loop, and waiting here would stop it",
                    hint='use `await run`, or host="thread"',
                )
            try:
                while not (interrupt.is_noted or future.done()):
                    left = SLICE_SECONDS if give_up is None else min(SLICE_SECONDS, give_up - time.monotonic())
                    wait_for_end({future}, max(0.0, left))
                    if give_up is not None and time.monotonic() >= give_up and not future.done():
                        raise TimeoutError(f"{self._work.what} has not ended in {timeout} s; it is still running")
                    self._check_wait(is_blocking=True)
                if not interrupt.is_noted:
                    return future.result()
                if wait_for_end({future}, STOP_SECONDS).done:
                    future.result()  # raises what kept it from ending in order
            except KeyboardInterrupt:
                if not interrupt.is_noted:  # by a handler of the program's own
                    self._stop_quietly(future)
            except CancelledError:
                raise self._never_begun() from None
            raise self._interruption()

    wait = result

    def __await__(self) -> Generator[Any, None, ResultT]:
        return self._wait().__await__()

    async def _wait(self) -> ResultT:
        waiting = asyncio.ensure_future(asyncio.wrap_future(self._future()))
        waiting.add_done_callback(_take_error)
        with held_interrupts(self.cancel) as interrupt:
            try:
                while not (interrupt.is_noted or waiting.done()):
                    await asyncio.wait({waiting}, timeout=SLICE_SECONDS)
                    if not waiting.done():
                        self._check_wait(is_blocking=False)
                if not interrupt.is_noted:
                    return waiting.result()
                await self._stopped(waiting)
                if waiting.done():
                    waiting.result()  # raises what kept it from ending in order
            except (asyncio.CancelledError, KeyboardInterrupt):
                self.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._stopped(waiting)
                raise RunStopped(self._where_stopped(), hint=self._work.resume_hint) from None
            raise self._interruption()

    async def _stopped(self, waiting: asyncio.Future[Any]) -> None:
        """Wait for the end of what was told to stop, for a while.

        ``waiting`` hears of it from callbacks of this thread, any of which an interrupt may have broken off.
        """
        future, give_up = self._future(), time.monotonic() + STOP_SECONDS
        while not waiting.done() and time.monotonic() < give_up:
            await asyncio.wait({waiting}, timeout=SLICE_SECONDS)
            if future.done():
                await asyncio.sleep(0)  # for what is on its way
                return

    def _check_wait(self, *, is_blocking: bool) -> None:
        """Continue to wait, or raise when nothing can end the wait."""
        check_wait([gate for gate in self.gates if not gate.is_with_interviewer], is_blocking=is_blocking)
        stop, now = next(iter(self.stops), None), time.monotonic()
        if stop is None or can_be_clicked(is_blocking=is_blocking):
            self._pause = None
        elif self._pause is None or self._pause[0] is not stop:
            self._pause = stop, now
        elif now - self._pause[1] >= PAUSE_SECONDS:
            raise RunAtBreakpoint(
                f"{self._work.what} is {stop} and cannot end",
                hint="continue it first: run.debugger.continue_(), or step()",
            )

    def _future(self) -> Future[ResultT]:
        if self._work.job is not None:
            return self._work.job.future
        done: Future[ResultT] = Future()
        if self._work.result is None:
            raise RunError(
                f"{self._work.what} runs elsewhere and has no result yet",
                hint="load it again when it has ended: Run.load(…)",
            )
        done.set_result(self._work.result)
        return done

    def _stop_for_nobody(self) -> None:
        job = self._work.job
        if job is None:
            return
        job.cancel()
        if job.is_in_this_thread:
            return
        try:
            if wait_for_end({job.future}, STOP_SECONDS).done:
                job.future.result()  # raises what kept it from ending in order
        except CancelledError:
            raise self._never_begun() from None
        raise self._interruption()

    def _stop_quietly(self, future: Future[ResultT]) -> None:
        """Stop the engine and wait for its end; another interrupt leaves at once."""
        with contextlib.suppress(KeyboardInterrupt):
            self.cancel()
            wait_for_end({future}, STOP_SECONDS)

    def _interruption(self) -> RunInterrupted:
        """The error for an interrupt: where the run stopped, or that it had just ended."""
        return RunInterrupted(self._where_stopped(), hint=self._work.resume_hint)

    def _never_begun(self) -> RunInterrupted:
        return RunInterrupted(f"{self._work.what} was stopped before it began")

    def _where_stopped(self) -> str:
        return f"{self._work.what} was stopped"


def _nothing() -> None:
    """Do nothing: the default of ``stop_for_nobody``."""


def _take_error(waiting: asyncio.Future[Any]) -> None:
    """Retrieve an exception that is not awaited any more, so that asyncio does not log it."""
    if not waiting.cancelled():
        waiting.exception()


# Hosts of the engine's coroutines: a separate thread, or the running loop.
#
# The thread host is the default: one daemon thread per process with its own loop, so that a cell or a
# script continues at once and a button's click finds the kernel free. The kernel host runs in the loop
# of the caller, for places without threads. Context variables of the caller are taken along.
#
# The engine's thread ends with the program, so a program that ends stops its jobs first: a Ctrl-C between
# ``pipeline.run()`` and ``run.result()`` then leaves a run that says that it was interrupted.

LOGGER = own_logger(__name__)
HostedWork = Callable[[], Coroutine[Any, Any, Any]]
T = TypeVar("T")
CALL_SECONDS: Final = 30.0
"""Time limit for a call to reach the loop of a job: a plain function cannot block the loop, a bug can."""
STOP_SECONDS = 10.0
"""Time limit for a job to end after it was stopped."""


class HostedTask:
    """A coroutine that runs on a host.

    Attributes:
        future: Its result or exception, for any thread.
        title: What it does, in words.
        is_asked_to_stop: It was cancelled.
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
        """True if that loop runs it."""
        return self._loop is loop

    @property
    def is_in_this_thread(self) -> bool:
        """True if the loop that runs it is the one that runs here: waiting here would stop it."""
        return is_running_here(self._loop)

    def start(self, work: HostedWork) -> None:
        """Run a coroutine that ``work`` makes, with the context variables of the caller."""
        variables = contextvars.copy_context()
        _LIVE.add(self)
        if self.is_in_this_thread:
            self._start(work, variables)
        else:
            self._loop.call_soon_threadsafe(self._start, work, variables)

    def _start(self, work: HostedWork, variables: contextvars.Context) -> None:
        self._task = self._loop.create_task(self._begin(work), context=variables)
        for _ in range(2):  # in the main thread an interrupt may break off the first: the other is still due
            self._task.add_done_callback(self._deliver)

    async def _begin(self, work: HostedWork) -> Any:
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
        """The result of a function, called in the loop that runs the job. Safe to call from any thread."""
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
    """The jobs of this process that have neither ended nor been cancelled."""
    return frozenset(job for job in tuple(_LIVE) if not job.is_asked_to_stop)


def stop_jobs(jobs: Collection[HostedTask], reason: str) -> None:
    """Stop jobs that no caller waits for, and wait for their end; an interrupt leaves at once.

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
            stop_jobs(mine, "the program ended without waiting for the run")


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop forever: the SystemExit of one run's plug-in must not end all the other runs."""
    while not loop.is_closed():
        try:
            loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            LOGGER.exception("code that a run called tried to end the engine")


_THREAD_HOST = _ThreadHost()


def check_host(host: object) -> None:
    """Check that coroutines can be started on a host from here."""
    if host not in ("thread", "kernel"):
        raise OptionError(f"unknown host {host!r}", hint='use "thread" or "kernel"')
    if host == "kernel":
        try:
            loop_here()
        except RuntimeError:
            raise OptionError(
                'host="kernel" needs a running event loop', hint='use host="thread", or call it from a coroutine'
            ) from None


def new_job(host: str, title: str) -> HostedTask:
    """A job on a host, not yet started: code that may cancel it can register it before.

    Args:
        host: ``thread`` or ``kernel``.
        title: What it does, in words.
    """
    check_host(host)
    return HostedTask(loop_here() if host == "kernel" or not HAS_THREADS else _THREAD_HOST.loop(), title)
