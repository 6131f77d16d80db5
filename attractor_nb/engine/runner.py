"""Drives a traversal: performs its effects, keeps the run directory true, ends the run.

The decisions are all in ``decisions/traversal.py``; here is only how. A run ends as completed,
failed, interrupted (stopped, or a storage fault: it can be resumed) or paused (after the number of
stages that was asked for, or at gates that are to be answered later).
"""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from attractor_nb.context import Context
from attractor_nb.decisions.commits import Commit, Execute, RunEnd
from attractor_nb.decisions.kept_state import checkpoint_entries
from attractor_nb.decisions.notes import OBSERVED
from attractor_nb.decisions.retries import outcome_of_exception
from attractor_nb.decisions.run_endings import end_with_failure
from attractor_nb.decisions.run_state import taken_edges
from attractor_nb.decisions.traversal import Uniform, traverse
from attractor_nb.engine.attempts import Attempts
from attractor_nb.engine.time_limits import RunningTime, SystemClock
from attractor_nb.engine.walking import RunSetup, RunStops, walk
from attractor_nb.errors import OptionError, RunLocked, StorageError
from attractor_nb.logs import own_logger
from attractor_nb.model.events import (
    CheckpointSaved,
    Event,
    PipelineCompleted,
    PipelineFailed,
    PipelineInterrupted,
    PipelineRestarted,
    PipelineResumed,
    PipelineStarted,
    RunWarning,
)
from attractor_nb.model.states import PAUSED
from attractor_nb.model.stop import is_shortage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attractor_nb.decisions.planning.plan import Plan
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.engine.debug_control import Debugging
    from attractor_nb.model.checkpoint import SurvivingTotals
    from attractor_nb.protocols import BackendLifetime


TRAILING_SECONDS = 0.05
"""Without a further stage, checkpoint.json has the latest commits after so long."""
YIELD_SECONDS = 0.005
"""While stages rush, the event loop gets a turn this often: cancelling needs one."""


class RunOutcome(msgspec.Struct, frozen=True):
    """The end of a run: status, reason and duration."""

    status: str  #: ``completed``, ``failed``, ``interrupted`` or ``paused``.
    reason: str  #: Reason, unless completed.
    duration: float  #: Running time in seconds, over all sessions.


class Runner(msgspec.Struct):
    """Runs one run, restarts included."""

    setup: RunSetup
    _committed: int = 0
    _projected: int = 0
    """Number of commits in the latest checkpoint.json."""
    _is_timed: bool = False
    """True if the clock is the machine's: nothing is timed against the clock of a test."""
    _later: asyncio.TimerHandle | None = None
    """Writes checkpoint.json when no further stage is committed."""
    _yielded_at: float = 0.0
    _is_distrusted: bool = False

    async def run(self) -> RunOutcome:
        """Run to the end, a pause, or a stop."""
        setup = self.setup
        begun: list[BackendLifetime] = []
        self._is_timed = isinstance(setup.clock, SystemClock)
        setup.stream.add_sink(self._observe, *OBSERVED)
        try:
            try:
                self._begin()
                if reason := await open_backends(setup.lifetimes, begun):
                    end = RunEnd(is_success=False, reason=reason, is_resumable=True)
                    return self._finish(end, setup.state.elapsed_seconds)
                return await self._run_directories()
            except asyncio.CancelledError:
                return self._interrupted(PAUSED if setup.is_paused else "cancelled")
            except RunStops:
                return self._interrupted(PAUSED)
            except StorageError as fault:
                if is_shortage(fault) and setup.store.sequence:
                    return self._starved(fault)
                self._note_fault(fault)
                raise
        finally:
            setup.instructions.is_over = True
            if self._later is not None:
                self._later.cancel()
            try:
                for lifetime in reversed(begun):
                    await closed(lifetime)
            finally:
                setup.debugging.end()
                setup.stream.close()
                setup.store.close()
                self._close_left()
            with contextlib.suppress(asyncio.CancelledError):  # a caller that stops now does not wait for observers
                await setup.stream.drain()

    def _observe(self, event: Event) -> None:
        """Take in what no traversal announces and later prompts may mention; a sink of the run's stream."""
        self.setup.state.apply(event)

    async def _run_directories(self) -> RunOutcome:
        """Run in this directory, then in each restart's."""
        while True:
            end, attempts = await self._traverse()
            if not end.restart_target:
                return self._finish(end, attempts.time.elapsed_seconds)
            self._restart(end.restart_target)
            self._begin()

    def _close_left(self) -> None:
        left, self.setup.left = self.setup.left, None
        if left is not None:
            left.close()

    def _begin(self) -> None:
        setup = self.setup
        state = setup.state
        setup.context.begin()
        if setup.is_resumed:
            flight = state.in_flight
            event: Event = PipelineResumed(
                next_node=state.next_node or (state.completed[-1] if state.completed else ""),
                graph_hash=setup.plan.graph.content_hash,
                interrupted_node=flight.node_id if flight and flight.is_started else "",
                on_interrupted=state.on_interrupted,
                cut_off={name: usage.to_plain() for name, usage in setup.cut_off.items()},
                backend=setup.backend,
                answers=setup.answers,
            )
            setup.store.save_manifest({"status": "resumed", "end_time": None})
            if setup.rewound is not None:
                if setup.left is not None:
                    setup.left.check_owner()
                setup.stream.announce(setup.rewound, is_synced=True)
                setup.store.save_manifest({"restarted_as": ""})
                setup.rewound = None
                self._close_left()
        else:
            kept = setup.context.snapshot()  # large ones as references: they are on the disk by now
            event = PipelineStarted(
                name=setup.plan.name,
                id=setup.run_id,
                graph_hash=setup.plan.graph.content_hash,
                inputs={key: kept.get(key, value) for key, value in setup.inputs.items()},
                unlisted=setup.unlisted,
                start_node=state.next_node,
                restart_of=setup.restart_of,
                carried=self._carried() if setup.restart_of else None,
                goal=setup.plan.graph.goal,
                model=setup.plan.graph.get("llm_model", str) or "",
                node_count=len(setup.plan.nodes),
                backend=setup.backend,
                answers=setup.answers,
            )
        setup.stream.announce(event, is_synced=True)
        if setup.warning:
            setup.stream.announce(RunWarning(message=setup.warning))
            setup.warning = ""
        setup.debugging.begin()
        self._save_checkpoint(is_forced=True)

    def _carried(self) -> SurvivingTotals:
        """The totals that a restart takes over from the run before it."""
        setup = self.setup
        return msgspec.structs.replace(
            setup.state.carried,
            unsatisfied=tuple(sorted(setup.state.stale_gates)),
            taken=taken_edges(setup.state.taken),
            marks=setup.marks.marks,
            instructions=setup.instructions.waiting,
        )

    async def _traverse(self) -> tuple[RunEnd, Attempts]:
        setup = self.setup
        time = RunningTime(
            setup.clock,
            before=setup.state.elapsed_seconds,
            bound=setup.plan.bounds.max_duration_seconds,
            started_at=setup.clock.monotonic(),
        )
        attempts = Attempts(setup, self, setup.store, setup.context, time)
        setup.debugging.time = attempts.time
        traversal = traverse(
            setup.plan, setup.state, setup.context, run_id=setup.run_id, uniform=setup.randomness.uniform
        )
        try:
            return await walk(traversal, setup.state, attempts, self), attempts
        except RunStops as stop:
            if stop.end is None:
                raise
            return stop.end, attempts
        finally:
            setup.state.elapsed_seconds = attempts.time.elapsed_seconds

    @property
    def state(self) -> RunState:
        """The state of the run."""
        return self.setup.state

    @property
    def uniform(self) -> Uniform:
        """Gives the jitter of retry delays."""
        return self.setup.randomness.uniform

    @property
    def debugging(self) -> Debugging:
        """Pauses walks between their steps."""
        return self.setup.debugging

    @property
    def is_stepping(self) -> bool:
        """True if the run pauses after a number of stages."""
        return self.setup.stop_after is not None

    def before_stage(self, state: RunState, effect: Execute) -> None:
        """Pause when enough was run; otherwise take in the intent. At a gate the disk is made current.

        Args:
            state: The state of the run, or of the branch that the stage is in.
            effect: What is to be executed.
        """
        setup = self.setup
        if setup.stop_after is not None and self._committed >= setup.stop_after:
            raise RunStops(None)
        if effect.planned.handler_type == "wait.human":
            self._save_checkpoint(is_forced=True)  # before the intent, which the log does not have yet
        state.apply(effect.started)

    def distrust_state(self) -> None:
        """Keep the state nowhere any more; what was recorded is in the log."""
        self._is_distrusted = True

    def commit_stage(self, attempts: Attempts, effect: Commit) -> bool:
        """Make a stage's end durable, project it, and say so (ruling 29); whether the loop needs a turn."""
        attempts.announce(effect.event, is_synced=True)
        self._committed += 1
        if self.setup.marks.is_new:
            self._save_marks()
        self._save_checkpoint(is_forced=effect.is_landmark)
        if self._is_timed and self._later is None and self._projected != self._committed:
            self._save_later()
        attempts.announce(CheckpointSaved(saved_node=effect.event.name))
        return self._is_yield_due()

    def _save_later(self) -> None:
        """Have checkpoint.json show what is committed while the next stage takes its time (ruling 29)."""
        loop = asyncio.get_running_loop()
        self._later = loop.call_later(TRAILING_SECONDS, self._save_if_quiet, self._committed)

    def _save_if_quiet(self, committed: int) -> None:
        self._later = None
        if self._projected == self._committed:
            return
        if committed != self._committed:  # stages follow one another: the store says when one is due
            self._save_later()
            return
        with contextlib.suppress(StorageError, RunLocked):  # the next record meets the same, and ends the run
            self._save_checkpoint(is_forced=True)

    def _save_marks(self) -> None:
        """Keep in the manifest, for the lists, what the log says of the result: simulated, pinned (ruling 48)."""
        setup = self.setup
        setup.marks.is_new = False
        marks = setup.marks.marks
        if marks != setup.saved_marks:
            setup.store.save_manifest(marks.to_facts())
            setup.saved_marks = marks

    def _is_yield_due(self) -> bool:
        now = self.setup.clock.monotonic()
        if now - self._yielded_at <= YIELD_SECONDS:
            return False
        self._yielded_at = now
        return True

    def _restart(self, target: str) -> None:
        """Continue in a fresh directory: graph values and inputs only (ruling 21)."""
        setup = self.setup
        number = setup.state.restarts + 1
        store = setup.store.make_restart(number, setup.run_id)
        try:
            setup.stream.announce(
                PipelineRestarted(target=target, restarts=number, logs_root=str(store.logs_root)), is_synced=True
            )
            setup.debugging.restart()
            setup.store.save_manifest({"status": "restarted", "end_time": self._now()})
            setup.restart_of = str(setup.store.logs_root)
            setup.store.close()
        except BaseException:  # an interrupt, too: no caller has it yet, and a resume must find it free
            store.close()
            raise
        setup.store = store
        setup.stream.move_to(store, setup.run_id)
        fresh = Context(store=store.values)
        mirror_graph(setup.plan, fresh)
        fresh.apply_updates(setup.inputs)
        setup.context = fresh
        setup.state = setup.state.restarted(target)
        setup.is_resumed = False

    def _finish(self, end: RunEnd, duration: float) -> RunOutcome:
        if end.is_unmeasured:
            return self._interrupted(end.reason, is_unmeasured=True)
        setup = self.setup
        for told in setup.instructions.undelivered:
            setup.stream.announce(RunWarning(message=told, node=""))
        if end.is_success:
            event: Event = PipelineCompleted(duration=duration, artifact_count=setup.store.artifact_count)
        else:
            end = end_with_failure(setup.state, end)
            event = PipelineFailed(error=end.reason, duration=duration, is_resumable=end.is_resumable, bound=end.bound)
        setup.stream.announce(event, is_synced=True)
        setup.state.apply(event)
        status = "completed" if end.is_success else "failed"
        self._save_checkpoint(is_forced=True)
        self._save_end(status, end.reason)
        return RunOutcome(status, end.reason, duration)

    def _interrupted(self, reason: str, *, is_unmeasured: bool = False) -> RunOutcome:
        setup = self.setup
        state = setup.state
        event = PipelineInterrupted(
            reason=reason, next_node=state.next_node, duration=state.elapsed_seconds, is_unmeasured=is_unmeasured
        )
        setup.stream.announce(event, is_synced=True)
        self._save_checkpoint(is_forced=True)
        status = PAUSED if reason == PAUSED else "interrupted"
        self._save_end(status, reason)
        return RunOutcome(status, reason, state.elapsed_seconds)

    def _save_end(self, status: str, reason: str) -> None:
        end = {"status": status, "reason": reason, "end_time": self._now()}
        totals = {} if self._is_distrusted else self.setup.state.totals()
        self.setup.store.save_manifest({**end, **totals})

    def _starved(self, fault: StorageError) -> RunOutcome:
        """End for want of files or memory, a reason outside the pipeline (ruling 51), as far as the log takes it.

        The state may be ahead of the log here, so it is kept nowhere. An end that is recorded stays the end.
        """
        state = self.setup.state
        if state.ended:
            return RunOutcome(state.ended, state.reason, state.elapsed_seconds)
        self.distrust_state()
        reason = f"the run directory could not be written: {fault.message}"
        self.setup.stream.announce(
            PipelineInterrupted(
                reason=reason, next_node=state.next_node, duration=state.elapsed_seconds, is_unmeasured=True
            ),
            is_synced=True,
        )
        self._note_fault(fault)
        return RunOutcome("interrupted", reason, state.elapsed_seconds)

    def _note_fault(self, fault: StorageError) -> None:
        """Say in the manifest that the run is inactive, if the disk takes that; the log needs no word.

        The state may be ahead of the log here, so nothing else is written.
        """
        if self.setup.state.ended:
            return
        with contextlib.suppress(StorageError):
            self.setup.store.save_manifest({"status": "interrupted", "reason": fault.message, "end_time": self._now()})

    def _save_checkpoint(self, *, is_forced: bool) -> None:
        setup = self.setup
        if self._is_distrusted:
            return
        is_forced = is_forced or setup.is_checkpointed_each_stage
        if not is_forced and not setup.store.is_checkpoint_due():
            return
        state = setup.state
        values, logs = setup.context.committed()
        setup.store.save_checkpoint(
            {
                "timestamp": setup.clock.time(),
                "pipeline_name": setup.plan.name,
                "run_id": setup.run_id,
                "graph_hash": setup.plan.graph.content_hash,
                "current_node": state.completed[-1] if state.completed else "",
                "context": values,
                "logs": list(logs),
                **checkpoint_entries(state),
            },
            is_forced=is_forced,
        )
        self._projected = self._committed

    def _now(self) -> str:
        return datetime.fromtimestamp(self.setup.clock.time(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def mirror_graph(plan: Plan, context: Context) -> None:
    """Mirror graph attributes into the context as ``graph.*`` (spec 3.1, 5.1)."""
    for key, value in plan.graph.mirrored().items():
        context.set(key, value)


# Opens the backends of a run, and closes them when the run has its result.

LOGGER = own_logger(__name__)


async def open_backends(lifetimes: Iterable[BackendLifetime], begun: list[BackendLifetime]) -> str:
    """Start backends one after the other; why that failed, or empty.

    Args:
        lifetimes: What is started.
        begun: Gets each before it is started: even one that did not start must be closed.
    """
    for lifetime in lifetimes:
        begun.append(lifetime)
        try:
            await lifetime.open()
        except (OptionError, StorageError):
            raise
        except Exception as error:  # noqa: BLE001 - a backend that is down is a failure of the run (ruling 30)
            subject = getattr(lifetime, "subject", "the backend")
            return f"{subject} did not start: {outcome_of_exception(error).failure_reason}"
    return ""


async def closed(lifetime: BackendLifetime) -> None:
    """Close a backend; the result exists in any case."""
    try:
        await lifetime.close()
    except asyncio.CancelledError:  # stopped twice: leave at once, with the result that there is
        LOGGER.warning("a backend was not waited for while it closed")
    except Exception:  # the run has its result; a backend that cannot close must not take it away
        LOGGER.exception("a backend did not close")
