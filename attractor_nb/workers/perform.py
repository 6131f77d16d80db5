"""Execution of a task on a worker: the one function that is shipped.

It keeps nothing between tasks but named backends that were started, and leaves nothing behind: the
stage's files are in a temporary directory until they travel with the report. Whatever happens inside is
a report; it raises only what ends programs. It must not know run directories or who asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import platform
import stat
import threading
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import structs

from attractor_nb.backends import resolve_backend
from attractor_nb.context import Context
from attractor_nb.decisions.commits import checked_outcome
from attractor_nb.decisions.retries import outcome_of_exception
from attractor_nb.engine.handler_calls import keep_traceback
from attractor_nb.engine.time_limits import SystemClock
from attractor_nb.errors import ContextValueError, StorageError
from attractor_nb.maybe_async import call
from attractor_nb.model.calls.call_content import Response
from attractor_nb.model.calls.messages import Attachment
from attractor_nb.model.events import Event, ModelCallEnded, StageOutput
from attractor_nb.model.outcome import Outcome
from attractor_nb.model.vocabulary import environment_variables
from attractor_nb.processes import LocalProcesses
from attractor_nb.protocols import BackendLifetime, CodergenBackend
from attractor_nb.redaction import learn, redacted, secrets_among
from attractor_nb.stage import StageScope, enter_stage
from attractor_nb.storage.files.atomic import entries_below, read_plain_file
from attractor_nb.storage.memory_store import MemoryRunStore, MemoryStageFiles
from attractor_nb.storage.run_directory import VISITS_NAME
from attractor_nb.workers.lifelines import Lifeline, lifeline_of, worker_name
from attractor_nb.workers.task import (
    COMMAND,
    FORM,
    MAX_OUTPUT_CHARACTERS,
    MAX_RETURNED_BYTES,
    MAX_RETURNED_FILES,
    PROMPT,
    StageReport,
    StageTask,
    graph_of,
    node_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping

    Doing = Callable[[StageTask, bytes, Lifeline], Coroutine[Any, Any, StageReport]]


CONTEXT_FILE = "context.json"
HOLD_AFTER_SECONDS = 0.1
"""Work that takes no longer is neither watched nor listened to while it is active."""
ANOTHER_BEGAN = "another worker had begun it before, and was lost"
CUT = "it was cut off: the run was stopped, or its coordinator is gone"


def perform(plain: Mapping[str, Any], plug: bytes = b"") -> dict[str, Any]:
    """Do a stage's task and report. Blocks; called by an executor.

    Args:
        plain: The task, as plain values.
        plug: The pickled backend or handler, unless a backend is named.

    Returns:
        The report, as plain values.
    """
    return perform_as(_done, plain, plug)


def perform_as(doing: Doing, plain: Mapping[str, Any], plug: bytes) -> dict[str, Any]:
    """Do a task in its own way, on its lifeline; otherwise as ``perform``."""
    if plain.get("form") != FORM:
        return _report(refused=_other_form(plain)).to_plain()
    task = StageTask.from_plain(plain)
    _learn_environment()
    lifeline = lifeline_of(task)
    if task.is_once and not lifeline.claim():
        return _report(lost=ANOTHER_BEGAN).to_plain()
    return run_in_loop(_held(doing(task, plug, lifeline), lifeline)).to_plain()


def _learn_environment() -> None:
    """Make this worker's secrets known, when its environment is not the one that was looked at."""
    environment = dict(os.environ)
    if environment != _LOOKED_AT:
        learn(secrets_among(environment))
        _LOOKED_AT.clear()
        _LOOKED_AT.update(environment)


_LOOKED_AT: dict[str, str] = {}


def probe() -> dict[str, Any]:
    """The reply to a coordinator's probe before it ships anything: the worker and its task form."""
    return {"worker": worker_name(), "form": FORM, "python": platform.python_version()}


async def _held(done: Coroutine[Any, Any, StageReport], lifeline: Lifeline) -> StageReport:
    """Do a task on its lifeline."""
    is_cut = False
    work = asyncio.ensure_future(done)

    def cut() -> None:
        nonlocal is_cut
        is_cut = True
        work.cancel()

    async def hold() -> None:
        await asyncio.sleep(HOLD_AFTER_SECONDS)
        await lifeline.hold(cut)

    holding = asyncio.ensure_future(hold())
    try:
        return await work
    except asyncio.CancelledError:
        if not is_cut:
            raise
        return _report(lost=CUT)
    finally:
        holding.cancel()
        await asyncio.wait({holding})
        if is_cut or holding.cancelled():
            lifeline.end()


async def _done(task: StageTask, plug: bytes, lifeline: Lifeline) -> StageReport:
    store = MemoryRunStore(clock=SystemClock())
    forwarder = OutputForwarder(lifeline.say)
    try:
        files = store.open_stage(task.scope["node_id"], task.scope["visit"], task.scope["attempt"])
        scope = StageScope(**task.scope, logs_root=store.logs_root, files=files, announce=forwarder.take)
        thread = None if task.conversation is None else _Thread(scope.thread, task.conversation)
        scope.conversation = thread
        scope.failed = partial(keep_traceback, files)
        enter_stage(scope)
        context = Context(task.work.get("context", {}))
        context.take_changes()
        try:
            async with asyncio.timeout(None if task.kind == COMMAND else task.timeout_seconds):
                report = await _worked(task, plug, scope, context)
        except TimeoutError:
            report = _failed(Outcome.retry(f"timeout: {task.scope['node_id']} took more than its time"))
        scope.end_streams()
        forwarder.finish()
        changes, logs = context.take_changes()
        returned, left_out = files_to_return(files, known={CONTEXT_FILE: task.work.get("stdin", "")})
        return replace(
            report,
            changes=changes,
            logs=logs,
            files=returned,
            left_out=left_out,
            output=forwarder.output,
            calls=tuple(forwarder.calls),
            conversation=None if thread is None else thread.saved,
        )
    finally:
        forwarder.close()
        store.close()


class _Thread:
    """The conversation of a task, which travels with it and back (``stage.Conversation``).

    Attributes:
        saved: What the work saved; None when it saved nothing.
    """

    def __init__(self, thread: str, text: str) -> None:
        self._thread = thread
        self._text = text
        self.saved: str | None = None

    @property
    def thread(self) -> str:
        """The thread's key."""
        return self._thread

    def read(self) -> str:
        """The text of the thread, or the text saved here since."""
        return self._text if self.saved is None else self.saved

    def save(self, text: str) -> None:
        """Keep the whole conversation."""
        self.saved = text


async def _worked(task: StageTask, plug: bytes, scope: StageScope, context: Context) -> StageReport:
    """The result of the work itself; what it raises is an outcome."""
    try:
        if task.kind == COMMAND:
            return await _command(task, scope)
        if task.kind == PROMPT:
            scope.attachments = tuple(map(Attachment.from_plain, task.work["attachments"]))
            return await _prompt(task, plug, context)
        return await _handler(task, plug, scope, context)
    except TimeoutError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a plug raises fails its stage (spec 4.12)
        scope.failed(error)
        outcome = outcome_of_exception(error)
        if isinstance(error, ContextValueError):
            reason = f"stage {scope.node_id}: {outcome.failure_reason}"
            outcome = structs.replace(outcome, failure_reason=reason)
        return _failed(outcome)


async def _command(task: StageTask, scope: StageScope) -> StageReport:
    work = task.work
    directory = scope.files.directory
    scope.files.write_text(CONTEXT_FILE, work["stdin"])
    result = await LocalProcesses().run(
        work["command"],
        cwd=directory,
        env={
            **work["environment"],
            environment_variables.STAGE_DIR: str(directory),
            environment_variables.LOGS_ROOT: str(scope.logs_root),
            environment_variables.CONTEXT_FILE: str(directory / CONTEXT_FILE),
        },
        stdin=work["stdin"].encode(),
        timeout_seconds=task.timeout_seconds,
        output_directory=directory,
        on_output=lambda channel, text: scope.stream(text, channel),
    )
    return _report(
        value={
            "exit_code": result.exit_code,
            "stdout": result.stdout,
            "stderr": result.stderr,
            "is_timed_out": result.is_timed_out,
        }
    )


async def _prompt(task: StageTask, plug: bytes, context: Context) -> StageReport:
    work = task.work
    node = node_of(work["node"])
    async with named_backend(work["backend"]) if work["backend"] else _unpacked(plug) as backend:
        result: Any = await call(backend.run, node, work["prompt"], context)
    if isinstance(result, Outcome):
        return _report(outcome=_plain_outcome(result, node.id))
    if not isinstance(result, str):
        kind = type(result).__name__
        reason = f"the backend returned {kind}; a backend returns text or an Outcome"
        return _failed(Outcome.fail(reason, is_terminal=True))
    facts = result if isinstance(result, Response) else Response(result)
    usage = None if facts.usage is None else facts.usage.to_plain()
    value = {"text": str(result), "usage": usage, "is_truncated": facts.is_truncated, "note": facts.note}
    return _report(value=value)


@contextlib.asynccontextmanager
async def _unpacked(plug: bytes) -> AsyncGenerator[Any]:
    """A backend of the user's own, started if it wants that, for one task."""
    backend: Any = pickle.loads(plug)  # noqa: S301 - made by the coordinator, brought by the user's executor
    async with opened(backend):
        yield backend


@contextlib.asynccontextmanager
async def opened(backend: Any) -> AsyncGenerator[None]:
    """Start a backend of the user's own, if it wants that, for as long as it is used."""
    try:
        if isinstance(backend, BackendLifetime):
            await backend.open()
        yield
    finally:
        if isinstance(backend, BackendLifetime):
            await backend.close()


async def _handler(task: StageTask, plug: bytes, scope: StageScope, context: Context) -> StageReport:
    work = task.work
    node = node_of(work["node"])
    handler: Any = pickle.loads(plug)  # noqa: S301 - made by the coordinator, brought by the user's executor
    result: Any = await call(handler.execute, node, context, graph_of(work["graph"]), scope.logs_root)
    if result is None:
        return _report()
    if not isinstance(result, Outcome):
        kind = type(result).__name__
        return _failed(Outcome.fail(f"the handler of {node.id} returned {kind}, not an Outcome"))
    return _report(outcome=_plain_outcome(result, node.id))


def _plain_outcome(outcome: Outcome, node_id: str) -> dict[str, Any]:
    """An outcome whose values can travel, or the FAIL that it is when a context would refuse one."""
    outcome = checked_outcome(outcome, node_id)
    try:
        Context(outcome.context_updates)
    except ContextValueError as error:
        refused = Outcome.fail(f"stage {node_id}: {error.message}", is_terminal=True)
        outcome = structs.replace(refused, usage=outcome.usage)
    return outcome.to_plain()


def _failed(outcome: Outcome) -> StageReport:
    return _report(outcome=outcome.to_plain(), is_failure=True)


def _report(**facts: Any) -> StageReport:
    return StageReport(worker_name(), **facts)


def _other_form(plain: Mapping[str, Any]) -> str:
    return f"worker {worker_name()} reads tasks of form {FORM}, not {plain.get('form')!r}"


# On a worker: the event loop that tasks run in, and the named backends that stay started in it.
#
# One loop in a daemon thread per process, so that a model server of a backend outlives the task that
# started it and is not left in a stopped loop. A backend that was idle for a while is closed again.

T = TypeVar("T")
IDLE_SECONDS: Final = 60.0
"""After that long without a task a named backend is closed."""


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in this process's loop and wait for it; interrupting the wait ends it."""
    future = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return future.result()
    except BaseException:  # an interrupt, too: the work ends with who waits for it
        future.cancel()
        raise


@contextlib.asynccontextmanager
async def named_backend(name: str) -> AsyncGenerator[CodergenBackend]:
    """The backend of a name, started; the same one for all tasks of this process."""
    kept = _KEPT.get(name)
    if kept is None:
        kept = _KEPT[name] = _Kept(name, resolve_backend(name), asyncio.get_running_loop())
    kept.begin()
    try:
        yield await kept.opened()
    finally:
        kept.end()


@dataclass(slots=True)
class _Kept:
    """A backend that is started, and how many tasks use it."""

    name: str
    backend: CodergenBackend
    loop: asyncio.AbstractEventLoop
    opening: asyncio.Future[None] | None = None
    users: int = 0
    timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        self.users += 1
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    async def opened(self) -> CodergenBackend:
        if isinstance(self.backend, BackendLifetime):
            if self.opening is None:
                self.opening = asyncio.ensure_future(self.backend.open())
            try:
                await asyncio.shield(self.opening)
            except Exception:  # whatever a backend raises: the next task opens it anew
                self._close()
                raise
        return self.backend

    def end(self) -> None:
        self.users -= 1
        if not self.users and _KEPT.get(self.name) is self:
            self.timer = self.loop.call_later(IDLE_SECONDS, self._close)

    def _close(self) -> None:
        if _KEPT.get(self.name) is not self:
            return
        del _KEPT[self.name]
        if isinstance(self.backend, BackendLifetime):
            _CLOSING.add(task := self.loop.create_task(self.backend.close()))
            task.add_done_callback(_CLOSING.discard)


_KEPT: dict[str, _Kept] = {}
_CLOSING: set[asyncio.Task[None]] = set()
_LOCKS = [threading.Lock()]
_LOOPS: dict[int, asyncio.AbstractEventLoop] = {}
"""By process: a fork takes no thread along, so it makes its own loop."""


def _loop() -> asyncio.AbstractEventLoop:
    with _LOCKS[0]:
        loop = _LOOPS.get(os.getpid())
        if loop is None:
            loop = _LOOPS[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="attractor-worker", daemon=True).start()
        return loop


if hasattr(os, "register_at_fork"):

    def _forget() -> None:
        _LOCKS.clear()  # another thread may have held it when the process forked
        _LOCKS.append(threading.Lock())
        _KEPT.clear()

    os.register_at_fork(after_in_child=_forget)


# On a worker: the output and the files of a stage that travel back with its report.

FLUSH_SECONDS: Final = 0.1
"""Output is passed on this often at most: a message for each word would cost more than the word."""


MAX_CALLS: Final = 1000
"""Most model calls in a report."""


class OutputForwarder:
    """Collects output by channel, and calls of models. ``take`` may be called from any thread.

    Attributes:
        output: All output, by channel, once it has finished.
        calls: What was announced of calls of models.
    """

    def __init__(self, pass_on: Callable[[str, str], None]) -> None:
        """Take the way by which pieces leave; called in the loop that runs now."""
        self.output: dict[str, str] = {}
        self.calls: list[Mapping[str, Any]] = []
        self._pass_on = pass_on
        self._pieces: dict[str, list[str]] = {}
        self._sizes: dict[str, int] = {}
        self._forwarded: dict[str, int] = {}
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._timer: asyncio.TimerHandle | None = None

    def take(self, event: Event) -> None:
        """Take an event of the stage; only output and calls of models travel."""
        if isinstance(event, ModelCallEnded) and len(self.calls) < MAX_CALLS:
            self.calls.append(event.to_plain())
        if not isinstance(event, StageOutput):
            return
        if threading.get_ident() == self._thread:
            self._keep(event.channel, event.text)
        else:  # what a thread of a plain function says is here before its result is
            self._loop.call_soon_threadsafe(self._keep, event.channel, event.text)

    def _keep(self, channel: str, text: str) -> None:
        size = self._sizes.get(channel, 0)
        text = text[: MAX_OUTPUT_CHARACTERS - size]
        if not text:
            return
        self._pieces.setdefault(channel, []).append(text)
        self._sizes[channel] = size + len(text)
        if self._timer is None:
            self._timer = self._loop.call_later(FLUSH_SECONDS, self._flush)

    def _flush(self) -> None:
        self._timer = None
        for channel, pieces in self._pieces.items():
            fresh = pieces[self._forwarded.get(channel, 0) :]
            self._forwarded[channel] = len(pieces)
            if fresh:
                self._pass_on(channel, "".join(fresh))

    def close(self) -> None:
        """Pass nothing on any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def finish(self) -> None:
        """Bind ``output``: all that was taken, by channel."""
        self.output = {channel: "".join(pieces) for channel, pieces in self._pieces.items()}


def files_to_return(files: MemoryStageFiles, *, known: Mapping[str, str]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files of a stage, by relative path, and those that stay behind, each with the reason.

    Args:
        files: The stage's, on this worker.
        known: Texts that the coordinator has already, by name; they travel back only when they changed.
    """
    if not files.is_on_disk:
        found = {name: text.encode("utf-8", "backslashreplace") for name, text in files.texts.items()}
        return _without_known(found, known), ()
    returned: dict[str, bytes] = {}
    left_out: list[str] = []
    root, room = files.directory, MAX_RETURNED_BYTES
    for name, facts in entries_below(root, is_left_out=VISITS_NAME.__eq__):
        if not stat.S_ISREG(facts.st_mode):
            left_out.append(f"{name}: not a plain file")
            continue
        if len(returned) >= MAX_RETURNED_FILES:
            left_out.append(f"{name}: more than {MAX_RETURNED_FILES} files")
            continue
        try:
            data = read_plain_file(root / name, max_bytes=room)
        except StorageError as error:
            left_out.append(f"{name}: {error}")
            continue
        if data is not None:
            returned[name] = data
            room -= len(data)
    return _without_known(returned, known), tuple(left_out[:MAX_RETURNED_FILES])


def _without_known(found: dict[str, bytes], known: Mapping[str, str]) -> dict[str, bytes]:
    for name, text in known.items():
        if found.get(name) == redacted(text).encode("utf-8", "backslashreplace"):
            del found[name]
    return found
