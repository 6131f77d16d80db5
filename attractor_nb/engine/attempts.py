"""Runs one attempt of a stage: scope, handler, time limit, and whose word counts (ruling 27)."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attractor_nb.calling import awaitable
from attractor_nb.decisions.effects import Execute, StageResult
from attractor_nb.decisions.outcome_checks import checked_outcome
from attractor_nb.decisions.retries import outcome_of_exception
from attractor_nb.errors import StatusFileError, StorageError, TerminalError
from attractor_nb.model.outcome import Outcome, StageStatus
from attractor_nb.stage import StageFiles, StageScope, enter_stage
from attractor_nb.storage.status_file import read_status_file, status_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from attractor_nb.context import Context
    from attractor_nb.decisions.plan import Plan, PlannedNode
    from attractor_nb.engine.event_stream import EventStream
    from attractor_nb.model.events import Event
    from attractor_nb.protocols import Clock, Handler, RunStore

STATUS_FILE = "status.json"
REJECTED_STATUS_FILE = "status.rejected.json"
"""Where a status.json that does not keep its contract is kept (ruling 27)."""
AUTO_STATUS_NOTES = "auto-status: handler completed without writing status"


@dataclass(slots=True)
class Attempts:
    """Everything an attempt needs that stays the same within a run directory.

    Attributes:
        plan: The compiled graph.
        handlers: The handler of each node, resolved once.
        context: The run's context.
        store: The run directory.
        stream: Where events go.
        clock: Time.
        run_id: The run.
        started_at: Monotonic time at which the running time was ``elapsed_before``.
        elapsed_before: Running time before this process, in seconds.
    """

    plan: Plan
    handlers: Mapping[str, Handler]
    context: Context
    store: RunStore
    stream: EventStream
    clock: Clock
    run_id: str
    started_at: float
    elapsed_before: float
    _executes: dict[int, Callable[..., Awaitable[Any]]] = field(
        default_factory=dict[int, "Callable[..., Awaitable[Any]]"]
    )
    """By handler: how it is called."""

    @property
    def elapsed_seconds(self) -> float:
        """Running time of the run."""
        return self.elapsed_before + self.clock.monotonic() - self.started_at

    async def run(self, effect: Execute) -> StageResult:
        """Run the attempt; whatever happens inside the handler is an outcome.

        Raises:
            StorageError: The run directory cannot be written.
            asyncio.CancelledError: The run itself is being stopped.
        """
        planned, started = effect.planned, effect.started
        began = self.clock.monotonic()
        files = self.store.open_stage(planned.id, started.visit, started.attempt)
        self.stream.announce(started, is_synced=planned.on_interrupted != "rerun")
        scope = StageScope(
            run_id=self.run_id,
            node_id=planned.id,
            visit=started.visit,
            attempt=started.attempt,
            logs_root=self.store.logs_root,
            files=files,
            announce=self.stream.announce,
            fidelity=started.fidelity,
            thread=started.thread,
            preamble=effect.preamble,
            index=started.index,
        )
        enter_stage(scope)
        try:
            returned = await self._call(planned)
        finally:
            scope.files, scope.announce = cast("StageFiles", _ClosedFiles()), _ignore
        ended = self.clock.monotonic()
        duration = ended - began
        outcome, is_file = self._arbitrate(planned, files, returned)
        if not is_file:
            files.write_deferred(
                STATUS_FILE,
                partial(
                    status_text,
                    outcome,
                    attempt=started.attempt,
                    visit=started.visit,
                    duration_ms=round(duration * 1000),
                ),
            )
        return StageResult(outcome, duration, self.elapsed_before + ended - self.started_at)

    async def _call(self, planned: PlannedNode) -> Any:
        """Call the handler, within the node's time if it has one."""
        task = asyncio.current_task()
        before = task.cancelling() if task else 0
        handler = self.handlers[planned.id]
        execute = self._executes.get(id(handler))
        if execute is None:
            execute = self._executes[id(handler)] = awaitable(handler.execute)
        try:
            work = execute(planned.node, self.context, self.plan.graph, self.store.logs_root)
            if planned.timeout_seconds is None or _keeps_own_time(handler):
                returned = await work
            else:
                returned = await self._within(planned, _contained(work), planned.timeout_seconds)
        except BaseException as error:  # whatever a handler raises fails its stage (spec 4.12)
            if _is_from_keyboard(error) or self._is_of_this_run(error):
                raise
            returned = outcome_of_exception(error)
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError  # also when the handler kept it to itself
        return returned

    def _is_of_this_run(self, error: BaseException) -> bool:
        """Whether the run's own directory refused: then the run stops and no stage is recorded as failed."""
        return isinstance(error, StorageError) and Path(error.path).is_relative_to(self.store.logs_root)

    async def _within(self, planned: PlannedNode, call: Awaitable[Any], seconds: float) -> Any:
        """Race the handler against its time; a handler that ignores its cancellation is left behind."""
        work = asyncio.ensure_future(call)
        timer = asyncio.ensure_future(self.clock.sleep(seconds))
        try:
            await asyncio.wait({work, timer}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            return Outcome.retry(f"timeout: {planned.id} took more than {planned.node.timeout}")
        finally:
            timer.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work}, timeout=CANCEL_GRACE_SECONDS)
                work.add_done_callback(_forget)

    def _arbitrate(self, planned: PlannedNode, files: StageFiles, returned: Any) -> tuple[Outcome, bool]:
        """Whose word counts: this attempt's file, the returned outcome, auto_status, nobody's (ruling 27).

        Returns:
            The outcome, and whether a valid file said it.
        """
        try:
            text = files.read_text(STATUS_FILE)
            if text is not None:
                targets = {edge.edge.target for edge in planned.edges}
                if isinstance(returned, Outcome):
                    returned = checked_outcome(returned, planned.id)
                return _with_usage(read_status_file(text, targets=targets), returned), True
        except StatusFileError as error:
            files.rename(STATUS_FILE, REJECTED_STATUS_FILE)
            return Outcome.fail(f"{planned.id}: {error.message}"), False
        if isinstance(returned, Outcome):
            return checked_outcome(returned, planned.id), False
        if returned is None and planned.auto_status:
            return Outcome(StageStatus.SUCCESS, notes=AUTO_STATUS_NOTES), False
        if returned is None:
            return Outcome.fail(f"no status: {planned.id} returned nothing and wrote no status.json"), False
        kind = type(returned).__name__
        return Outcome.fail(f"the handler of {planned.id} returned {kind}, not an Outcome"), False


CANCEL_GRACE_SECONDS = 1.0
"""How long a handler may take to clean up after its time ran out."""


async def _contained(call: Awaitable[Any]) -> Any:
    """A call in a task of its own, from which an exception that ends programs would end the loop."""
    try:
        return await call
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        if _is_from_keyboard(error):
            raise
        return outcome_of_exception(error)


def _is_from_keyboard(error: BaseException) -> bool:
    """Whether somebody pressed Ctrl-C. Python says so in the main thread; elsewhere a handler did."""
    return isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()


class _ClosedFiles:
    """What is left of a stage's files for a handler that goes on after its attempt was given up.

    The directory is the next attempt's by then: a late status.json would be taken for its own.
    """

    def __getattr__(self, name: str) -> Any:
        raise TerminalError("the attempt is over, and its files are closed", hint="end when the call ends")


def _ignore(event: Event) -> None:
    """What a handler says after its attempt is heard by nobody."""


def _keeps_own_time(handler: Handler) -> bool:
    """Whether a handler ends by itself at the node's timeout, and knows better how: a tool, a gate."""
    return bool(getattr(handler, "keeps_own_time", False))


def _with_usage(outcome: Outcome, returned: Any) -> Outcome:
    """A status file says how it went; what it cost only the backend knows."""
    if outcome.usage is None and isinstance(returned, Outcome) and returned.usage is not None:
        return Outcome(
            outcome.status,
            outcome.preferred_label,
            outcome.suggested_next_ids,
            {**returned.context_updates, **outcome.context_updates},
            outcome.notes,
            outcome.failure_reason,
            is_terminal=outcome.is_terminal,
            usage=returned.usage,
        )
    if isinstance(returned, Outcome) and returned.context_updates:
        return outcome.with_updates({**returned.context_updates, **outcome.context_updates})
    return outcome


def _forget(work: asyncio.Future[Any]) -> None:
    """Take the late result of a handler that was given up, so that nobody warns about it."""
    if not work.cancelled():
        work.exception()
