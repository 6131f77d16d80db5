"""What a worker does with a task: the one function that is shipped.

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
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import structs

from attractor_nb.calling import call
from attractor_nb.context import Context
from attractor_nb.decisions.outcome_checks import checked_outcome
from attractor_nb.decisions.retries import outcome_of_exception
from attractor_nb.engine.system_clock import SystemClock
from attractor_nb.engine.tracebacks import keep_traceback
from attractor_nb.errors import ContextValueError
from attractor_nb.model.calls.attachment import Attachment
from attractor_nb.model.calls.response import Response
from attractor_nb.model.outcome import Outcome
from attractor_nb.processes import LocalProcesses
from attractor_nb.protocols import BackendLifetime
from attractor_nb.redaction import learn, secrets_among
from attractor_nb.stage import StageScope, enter_stage
from attractor_nb.storage.memory_store import MemoryRunStore
from attractor_nb.workers.lifelines import lifeline_of, worker_name
from attractor_nb.workers.stage_output import OutputForwarder, files_to_return
from attractor_nb.workers.task import COMMAND, FORM, PROMPT, StageReport, StageTask, graph_of, node_of
from attractor_nb.workers.worker_loop import named_backend, run_in_loop

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping

    from attractor_nb.workers.lifelines import Lifeline

    Doing = Callable[[StageTask, bytes, Lifeline], Coroutine[Any, Any, StageReport]]

CONTEXT_FILE = "context.json"
HOLD_AFTER_SECONDS = 0.1
"""Work that takes no longer is neither watched nor listened to while it goes on."""
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
    """Do a task in a way of its own, on its lifeline; otherwise as ``perform``."""
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
    """What a coordinator asks before it ships anything: who answers, and in which form."""
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
        """What the thread has said, or what was saved here since."""
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
            "ATTRACTOR_STAGE_DIR": str(directory),
            "ATTRACTOR_LOGS_ROOT": str(scope.logs_root),
            "ATTRACTOR_CONTEXT_FILE": str(directory / CONTEXT_FILE),
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
