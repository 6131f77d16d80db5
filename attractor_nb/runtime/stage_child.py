"""A child run as the stage of its parent sees it: live, in another process, or over (``stage.Child``)."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

from attractor_nb.model.child import ChildSnapshot, ListItem, spent
from attractor_nb.model.events import (
    ChildEnded,
    ChildEvent,
    ChildStarted,
    ChildSteered,
    Event,
    PipelineFailed,
    StageEnd,
    StageFailed,
)
from attractor_nb.model.events.pipelines import child_path
from attractor_nb.model.outcome import Usage
from attractor_nb.model.states import RunStatus
from attractor_nb.runtime.handles.handle import new_job
from attractor_nb.runtime.stored_execution import load_execution

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from attractor_nb.engine.instruction_inbox import Instructions
    from attractor_nb.protocols import Clock
    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.wired_run import RunningEngine
    from attractor_nb.stage import StageScope

STOP_SECONDS = 1.0
"""Time limit for a child to stop; the stage continues without waiting further."""
OBSERVED_SECONDS = 1.0
"""Default interval of checks of a child in another process."""
MAX_LISTED_ARTIFACTS = 1000


class _Known(Protocol):
    """A child run as the parent's log records it."""

    scope: StageScope
    root: Path
    item: ListItem | None

    @property
    def name(self) -> str: ...

    @property
    def run_id(self) -> str: ...


def announce_start(child: _Known, *, is_taken_up: bool) -> None:
    """Record in the parent's log that the stage has this child."""
    scope = child.scope
    scope.announce(
        ChildStarted(
            **scope.place,
            child_id=child.run_id,
            child_root=_recorded(child.root, scope.logs_root),
            pipeline=child.name,
            is_taken_up=is_taken_up,
            item=None if child.item is None else child.item.index,
            item_count=0 if child.item is None else child.item.count,
        )
    )


def announce_end(child: _Known, look: ChildSnapshot) -> None:
    """Record in the parent's log that the stage is done with its child."""
    scope = child.scope
    scope.announce(
        ChildEnded(
            **scope.place,
            child_id=child.run_id,
            child_root=_recorded(child.root, scope.logs_root),
            status=look.status,
            reason=look.reason,
            marks=look.marks,
            item=None if child.item is None else child.item.index,
            usage=spent(look.usage),
        )
    )


def path_of(scope: StageScope, item: ListItem | None) -> str:
    """The path of the stage whose child run it is, or of the item."""
    return child_path(scope.branch, scope.node_id, None if item is None else item.index)


def _recorded(root: Path, parent: Path) -> str:
    return root.relative_to(parent).as_posix() if root.is_relative_to(parent) else str(root)


class LiveChild:
    """A child run in this process (``stage.Child``)."""

    def __init__(
        self,
        wired: RunningEngine,
        scope: StageScope,
        clock: Clock,
        before: Iterable[Event],
        item: ListItem | None = None,
    ) -> None:
        self.run = wired.run
        self.scope = scope
        self.item = item
        self.root = wired.run.logs_root
        self._wired = wired
        self._setup = wired.runner.setup
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._something = asyncio.Event()
        self._job = new_job("kernel", f"child run {wired.run.id}")
        self.counted = Usage()
        self._commits = _commits(before)
        self._failures = Counter(event.name for event in before if isinstance(event, StageFailed))
        self._setup.stream.add_sink(self._take)

    def start(self) -> None:
        """Let it run."""
        self._wired.behind.job = self._job
        self._job.future.add_done_callback(lambda _: self._wake())
        self._job.start(self._wired.work)

    def is_at_gates(self, waiting: Collection[str], within: str) -> bool:
        """True if all that is active in it waits at gates; see ``RunningEngine.is_at_gates``."""
        return self._wired.is_at_gates(waiting, f"{within}{path_of(self.scope, self.item)}:{self.scope.visit}/")

    @property
    def name(self) -> str:
        """Name of its pipeline."""
        return self.run.pipeline.name

    @property
    def run_id(self) -> str:
        """Its run id."""
        return self.run.id

    @property
    def stage_path(self) -> str:
        """The stage whose child it is, in a branch ``branch/node``, of an item ``node/index``."""
        return path_of(self.scope, self.item)

    @property
    def is_done(self) -> bool:
        """True if its task has ended."""
        return self._job.future.done()

    def _take(self, event: Event) -> None:
        """Tell who watches the parent, and wake the manager; called in the thread the event came from."""
        if isinstance(event, StageFailed):
            self._failures[event.name] += 1
        if isinstance(event, StageEnd):
            self._commits |= _commits((event,))
        scope = self.scope
        scope.announce(ChildEvent(**scope.place, child_id=self.run.id, event=event))
        if event.is_durable:
            self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and who waited with it
            self._loop.call_soon_threadsafe(self._something.set)

    @property
    def _instructions(self) -> Instructions:
        return self._setup.instructions

    def snapshot(self) -> ChildSnapshot:
        """The current state of the child run."""
        setup, future = self._setup, self._job.future
        result = future.result() if future.done() and not future.cancelled() else None
        status = "waiting" if self.run.gates else "running"  # until its task has ended, with its result
        if future.done():
            status = "interrupted" if future.cancelled() else self.run.status
        last = self._instructions.steered_at
        return ChildSnapshot(
            run_id=self.run.id,
            logs_root=str(setup.store.logs_root),
            status=status,
            reason="" if result is None else result.reason,
            active_stage=self._instructions.active_stage,
            completed=tuple(setup.state.completed),
            outcomes={node: str(found) for node, found in setup.state.outcomes.items()},
            retries=dict(self._failures),
            artifacts=_artifacts_of(setup.store.logs_root),
            usage=setup.state.usage,
            counted=self.counted,
            marks=setup.marks.marks,
            is_unmeasured=result is not None and result.is_unmeasured,
            steered_ago=None if last is None else max(0.0, self._clock.time() - last),
        )

    async def changed(self, timeout_seconds: float | None) -> float:
        """Wait until something happens in it, or the time is over; the seconds that it took."""
        began = self._clock.monotonic()
        waiting = asyncio.ensure_future(self._something.wait())
        time = self._setup.debugging.time  # which a debugger can hold
        timer = None if timeout_seconds is None else asyncio.ensure_future((time or self._clock).sleep(timeout_seconds))
        try:
            await asyncio.wait({waiting, timer} if timer else {waiting}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            is_over = timer is not None and timer.done()
            for future in (waiting, timer):
                if future is not None:
                    future.cancel()
        self._something.clear()
        waited = self._clock.monotonic() - began
        return max(waited, timeout_seconds or 0.0) if is_over else waited

    def steer(self, text: str) -> bool:
        """Give it an instruction for its next prompt."""
        if self.is_done:
            return False
        scope = self.scope
        stage = self._instructions.steer(text, f"{scope.run_id}/{scope.node_id}")
        scope.announce(ChildSteered(**scope.place, child_id=self.run.id, child_stage=stage, text=text))
        return True

    def value(self, key: str, default: Any = None) -> Any:
        """A value of its context."""
        future = self._job.future
        if future.done() and not future.cancelled() and future.exception() is None:
            return future.result().context.get(key, default)
        return self._setup.context.get(key, default)

    def commit_of(self, node_id: str) -> StageEnd | None:
        """The latest commit of a node of it."""
        return self._commits.get(node_id)

    async def end(self) -> ChildSnapshot:
        """Be done with it: one that still runs is stopped, and its end is recorded here."""
        await self.stop()
        look = self.snapshot()
        announce_end(self, look)
        return look

    async def stop(self) -> None:
        """Stop it within a second, wherever it is."""
        if self.is_done:
            return
        self.run.cancel()
        ended = asyncio.wrap_future(self._job.future)
        ended.add_done_callback(_take_error)
        await asyncio.wait({ended}, timeout=STOP_SECONDS)


class _OthersChild:
    """A child run that this process does not run: it can be inspected."""

    def __init__(self, run: Execution, scope: StageScope, root: Path, item: ListItem | None = None) -> None:
        self.run = run
        self.scope = scope
        self.root = root
        self.item = item
        self.counted = Usage()

    @property
    def name(self) -> str:
        """Name of its pipeline."""
        return self.run.pipeline.name

    @property
    def run_id(self) -> str:
        """Its run id."""
        return self.run.id

    def snapshot(self) -> ChildSnapshot:
        """The state of the child run, read from its directory."""
        run = self.run
        result = run.result() if run.is_done else None
        return ChildSnapshot(
            run_id=run.id,
            logs_root=str(run.logs_root),
            status=run.status,
            reason=result.reason if result else "",
            active_stage=_active_stage(run),
            completed=result.completed_nodes if result else tuple(run.outcomes),
            outcomes={node: str(outcome.status) for node, outcome in run.outcomes.items()},
            retries=Counter(event.name for event in run.events() if isinstance(event, StageFailed)),
            artifacts=_artifacts_of(run.logs_root),
            usage=run.view.usage,
            counted=self.counted,
            marks=run.view.marks.marks,
            is_unmeasured=run.view.is_unmeasured,
        )

    def steer(self, text: str) -> bool:  # noqa: ARG002 - the interface of all children
        """It cannot be told anything."""
        return False

    def value(self, key: str, default: Any = None) -> Any:
        """A value of its context, once it is over."""
        return self.run.result().context.get(key, default) if self.run.is_done else default

    def commit_of(self, node_id: str) -> StageEnd | None:
        """The latest commit of a node of it."""
        return _commits(self.run.events()).get(node_id)

    async def stop(self) -> None:
        """It is not ours to stop."""

    async def end(self) -> ChildSnapshot:
        """Be done with it, and leave it as it is."""
        look = self.snapshot()
        announce_end(self, look)
        return look


class FinishedChild(_OthersChild):
    """A child run that had ended before this attempt: it is only read."""

    async def changed(self, timeout_seconds: float | None) -> float:
        """Nothing happens in it any more."""
        return timeout_seconds or 0.0


class ObservedChild(_OthersChild):
    """A child run in another process: its directory is polled."""

    def __init__(self, pipeline: Definition, scope: StageScope, root: Path, clock: Clock) -> None:
        super().__init__(load_execution(root, pipeline), scope, root)
        self._clock = clock

    async def changed(self, timeout_seconds: float | None) -> float:
        """Wait the whole time, then look."""
        seconds = OBSERVED_SECONDS if timeout_seconds is None else timeout_seconds
        await self._clock.sleep(seconds)
        self.run = load_execution(self.root, self.run.pipeline)
        return seconds


def finished_run(pipeline: Definition, root: Path) -> Execution | None:
    """A child run that has ended for good; None when it can continue."""
    run = load_execution(root, pipeline)
    if not RunStatus.of(run.status).is_over:
        return None
    *_, last = (event for event in run.events())
    return None if isinstance(last, PipelineFailed) and last.is_resumable else run


def _commits(events: Iterable[Event]) -> dict[str, StageEnd]:
    """The latest commit of each node."""
    return {event.name: event for event in events if isinstance(event, StageEnd) and event.is_commit}


def _active_stage(run: Execution) -> str:
    active = [node for node, state in run.view.nodes.items() if state.status.is_active]
    return active[-1] if active and not run.is_done else ""


def _artifacts_of(logs_root: Path) -> tuple[str, ...]:
    """Ids of what a run has stored as files."""
    try:
        names = sorted(entry.name for entry in (logs_root / "artifacts").iterdir() if entry.suffix == ".json")
    except OSError:  # none was stored, or the run is in memory
        return ()
    return tuple(name.removesuffix(".json") for name in names[:MAX_LISTED_ARTIFACTS])


def _take_error(future: asyncio.Future[Any]) -> None:
    """Ignore the event: the next look at the child reports it."""
    if not future.cancelled():
        future.exception()
