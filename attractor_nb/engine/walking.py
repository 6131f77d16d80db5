"""Walks: the effects of a traversal, performed one after the other, for a run or one of its branches."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from msgspec.structs import replace

from attractor_nb.decisions.commits import Announce, Ask, Commit, Execute, RunEnd, Traversal, Wait
from attractor_nb.decisions.log_folds import MarkFold
from attractor_nb.decisions.run_endings import is_idle, unanswered_gate
from attractor_nb.decisions.traversal import Uniform, traverse_branch
from attractor_nb.engine.handler_calls import Failures
from attractor_nb.errors import TerminalError
from attractor_nb.lazy_imports import later
from attractor_nb.model.branch import BranchResult, branch_ids, branch_path, parts_of
from attractor_nb.model.events import (
    ParallelBranchCompleted,
    ParallelBranchStarted,
    ParallelCompleted,
    ParallelStarted,
    PipelineRewound,
    StageFailed,
    StageStarted,
)
from attractor_nb.model.outcome import Answers, ResultMarks, StageStatus, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attractor_nb import side_by_side
    from attractor_nb.context import Context
    from attractor_nb.decisions.planning.plan import Plan, PlannedNode
    from attractor_nb.decisions.run_state import BranchState, RunState
    from attractor_nb.engine.attempt_spending import Funds
    from attractor_nb.engine.attempts import Attempts
    from attractor_nb.engine.debug_control import Debugging
    from attractor_nb.engine.event_stream import EventStream
    from attractor_nb.engine.instruction_inbox import Instructions
    from attractor_nb.engine.stage_cache import StageCache
    from attractor_nb.model.child import Children
    from attractor_nb.protocols import BackendLifetime, Clock, Handler, Interviewer, Randomness, RunStore
    from attractor_nb.stage import Workplace
else:
    side_by_side = later("attractor_nb.side_by_side")


class RunStops(Exception):
    """The whole run stops at a stage of a branch: at a bound, or because it is paused there.

    Attributes:
        end: How the run ends; None when it is paused.
    """

    def __init__(self, end: RunEnd | None) -> None:
        super().__init__("the run stops" if end is None else end.reason)
        self.end = end


class StageCommitter(Protocol):
    """Commits the results of walks to the state, the log and the checkpoint: the runner."""

    @property
    def state(self) -> RunState:
        """The state of the run."""
        ...

    @property
    def uniform(self) -> Uniform:
        """Gives the jitter of retry delays."""
        ...

    @property
    def is_stepping(self) -> bool:
        """True if the run pauses after a number of stages: then its branches go one after the other."""
        ...

    @property
    def debugging(self) -> Debugging:
        """Pauses walks between their steps."""
        ...

    def before_stage(self, state: RunState, effect: Execute) -> None:
        """Take an intent into the state of the run or of a branch; raises ``RunStops`` to pause there."""
        ...

    def distrust_state(self) -> None:
        """Keep the state nowhere any more: a walk broke off in a step, and it may be ahead of the log."""
        ...

    def commit_stage(self, attempts: Attempts, effect: Commit) -> bool:
        """Make a stage's end durable, and say so (ruling 29); whether the loop needs a turn."""
        ...


async def walk(  # noqa: C901 - a call for each effect would be paid in each step
    traversal: Traversal, state: RunState, attempts: Attempts, keeper: StageCommitter
) -> RunEnd:
    """Perform effects until the traversal ends."""
    result: Any = None
    debugging, attempts.task = keeper.debugging, asyncio.current_task()
    while True:
        try:
            effect = traversal.send(result)
        except StopIteration as stop:
            end: RunEnd = stop.value
            return end
        result = None
        if isinstance(effect, Execute):
            if debugging.is_active:
                effect = await debugging.before(state, effect, attempts)
            keeper.before_stage(state, effect)
            result = await attempts.run(effect)
            if debugging.is_active:
                result = await debugging.after(state, effect, attempts, result)
        elif isinstance(effect, Commit):
            if keeper.commit_stage(attempts, effect):
                await asyncio.sleep(0)
        elif isinstance(effect, Announce):
            attempts.announce(effect.event, is_synced=isinstance(effect.event, StageFailed))
        elif isinstance(effect, Wait):
            result = await attempts.wait(effect.seconds)
        elif isinstance(effect, Ask):
            result = await attempts.ask(effect.question)
        else:
            attempts.record(effect)


# Walks the branches of a fan-out side by side (spec 3.8, 4.8; ruling 22).
#
# Each branch is a separate traversal with a copy of the context, and commits on its own to the one log, so
# a crash repeats only stages that no branch had committed. The fan-out's handler decides when the others need not
# continue; when the run itself stops, all of them do.

MAX_DEPTH = 8
"""Fan-outs within fan-outs."""
_OWN_KEYS = frozenset({"outcome", "preferred_label", "current_node", "last_stage"})


class FanOut(msgspec.Struct):
    """The branches of a fan-out that is under way (``stage.Branches``)."""

    keeper: StageCommitter  #: Commits the results of the branches.
    attempts: Attempts  #: Attempts of the stages around the fan-out; branches get their own.
    planned: PlannedNode  #: The fan-out.
    started: StageStarted  #: The intent record of its attempt.
    _ids: tuple[str, ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The branches, in edge order."""
        self._ids = self._ids or branch_ids(edge.target for edge in self.planned.branches)
        return self._ids

    async def walk(
        self, *, max_parallel: int, settled: Callable[[Sequence[BranchResult]], str]
    ) -> tuple[BranchResult, ...]:
        """Walk all branches; see ``stage.Branches``."""
        self._check_depth()
        ids, clock = self.ids, self.attempts.setup.clock
        began = clock.monotonic()
        self._begin(len(ids), max_parallel)
        work = side_by_side.SideBySide(lambda index: self._walk_one(index, ids[index]), settled)
        waiting: deque[int] = deque()
        for index, branch_id in enumerate(ids):
            branch = self.keeper.state.branches.open.get(self._path(branch_id))
            if branch is None or branch.end is None:
                waiting.append(index)
            else:
                work.recall(index, self._result(branch))
        await work.work_off(waiting, 1 if self.keeper.is_stepping else max_parallel)
        for index in sorted(waiting):
            work.results[index] = self._cancelled(index, ids[index], work.reason)
        ordered = tuple(work.results[index] for index in range(len(ids)))
        self._complete(ordered, clock.monotonic() - began)
        return ordered

    def _check_depth(self) -> None:
        if len(parts_of(self.attempts.branch)) // 2 >= MAX_DEPTH:
            raise TerminalError(
                f"{self.planned.id} is nested more than {MAX_DEPTH} fan-outs deep in {self.attempts.branch}",
                hint="nest less deep, or make a pipeline of its own of an inner one",
            )

    def _begin(self, count: int, max_parallel: int) -> None:
        node = self.planned.node
        self.attempts.announce(
            ParallelStarted(
                **self._stage(),
                branch_count=count,
                join=self.planned.join,
                join_policy=node.get("join_policy", str, "wait_all"),
                error_policy=node.get("error_policy", str, "continue"),
                max_parallel=max_parallel,
            )
        )

    def _stage(self) -> dict[str, Any]:
        return {"name": self.planned.id, "visit": self.started.visit, "attempt": self.started.attempt}

    def _complete(self, results: Sequence[BranchResult], duration: float) -> None:
        succeeded = sum(result.is_success for result in results)
        cancelled = sum(result.is_cancelled for result in results)
        self.attempts.announce(
            ParallelCompleted(
                **self._stage(),
                index=self.started.index,
                duration=duration,
                success_count=succeeded,
                failure_count=len(results) - succeeded - cancelled,
            )
        )

    def _path(self, branch_id: str) -> str:
        return branch_path(self.attempts.branch, self.planned.id, branch_id)

    def _opened(self, index: int, branch_id: str) -> BranchState:
        """A branch, begun now unless it was before a stop."""
        branches = self.keeper.state.branches
        path = self._path(branch_id)
        if path not in branches.open:
            edge = self.planned.branches[index]
            started = ParallelBranchStarted(
                **self._stage(), index=index, id=branch_id, start_node=edge.target, edge=edge.index
            )
            self.attempts.announce_in(path, started)
            self.keeper.state.apply(started)
        return branches.open[path]

    async def _walk_one(self, index: int, branch_id: str) -> BranchResult:
        """Walk a branch to its end.

        Its task alone breaks off where the disk refuses, or the user presses Ctrl-C, between state and log;
        others continue until they are cancelled, and the run then says that it was interrupted.
        """
        try:
            return await self._walk_to_end(index, branch_id)
        except (asyncio.CancelledError, RunStops):
            raise
        except BaseException:  # an interrupt, too, may come between state and log
            self.keeper.distrust_state()
            raise

    async def _walk_to_end(self, index: int, branch_id: str) -> BranchResult:
        branch, work = self._opened(index, branch_id), self.attempts
        setup = work.setup
        context = work.context.clone()
        context.restore(branch.context, tuple(branch.logs))
        own = replace(work, context=context, branch=branch.path)
        began = setup.clock.monotonic()
        traversal = traverse_branch(
            setup.plan, branch.state, context, join=self.planned.join, run_id=setup.run_id, uniform=self.keeper.uniform
        )
        setup.walking.add(branch.path)
        try:
            end = await walk(traversal, branch.state, own, self.keeper)
        finally:
            setup.walking.discard(branch.path)
            work.store.close_branch(branch.path)
        if end.is_resumable:
            raise RunStops(end)
        return self._ends(branch, end, setup.clock.monotonic() - began)

    def _ends(self, branch: BranchState, end: RunEnd, duration: float) -> BranchResult:
        """Record how a branch ended that was walked to its end."""
        planned = self.attempts.setup.plan.nodes.get(branch.state.next_node)
        seen = branch.state.seen.status
        status = seen if end.is_success and not seen.is_failure else StageStatus.FAIL
        reason = end.reason or branch.state.last_reason if status.is_failure else ""
        exit_id = planned.id if planned is not None and planned.is_exit else ""
        return self._record(branch, replace(end, reason=reason), status, duration, exit_id)

    def _cancelled(self, index: int, branch_id: str, reason: str) -> BranchResult:
        end = RunEnd(is_success=False, reason=reason)
        return self._record(self._opened(index, branch_id), end, StageStatus.SKIPPED, 0.0)

    def _record(
        self, branch: BranchState, end: RunEnd, status: StageStatus, duration: float, exit_id: str = ""
    ) -> BranchResult:
        veto = end.veto
        if not status.is_success and not veto and self.attempts.setup.plan.is_gate_strict:
            gate = unanswered_gate(self.attempts.setup.plan, branch.state, self.planned.id)
            veto = f"strict_gates: no one answered the human gate `{gate}` in branch {branch.id}" if gate else ""
        event = ParallelBranchCompleted(
            **self._stage(),
            index=branch.index,
            id=branch.id,
            duration=duration,
            success=status.is_success,
            status=status.value,
            failure_reason=end.reason,
            exit_id=exit_id,
            veto=veto,
            return_target=end.return_target,
        )
        self.attempts.announce_in(branch.path, event)
        self.keeper.state.apply(event)
        return self._result(branch)

    def _result(self, branch: BranchState) -> BranchResult:
        """The result of a branch, from the log: the same live and after a resume."""
        end, state = branch.end, branch.state
        assert end is not None, "only a branch that has ended has a result"
        resolved = self.attempts.context.resolved
        updates = {
            key: resolved(key, value)
            for key, value in branch.context.items()
            if key not in _OWN_KEYS and not key.startswith("internal.")
        }
        score = updates.get("score")
        status = StageStatus(end.status)
        return BranchResult(
            branch.id,
            status,
            notes=state.last_notes,
            context_updates=updates,
            score=float(score) if isinstance(score, int | float) and not isinstance(score, bool) else 0.0,
            failure_reason=end.failure_reason,
            usage=state.usage if state.usage_by_node else None,
            exit_id=end.exit_id,
            veto=end.veto,
            return_target=end.return_target,
            is_unmeasured=status.is_failure and state.failure is not None and state.failure.is_unmeasured,
            is_idle=is_idle(self.attempts.setup.plan, state),
        )


# The parts of a run: its services, which stay the same, and its state.


class RunSetup(msgspec.Struct):
    """All that a run is made of; wired by the pipeline package, and the same for all its attempts."""

    plan: Plan  #: The compiled graph.
    handlers: Mapping[str, Handler]  #: The handler of each node.
    context: Context  #: Its context, inputs applied.
    inputs: Mapping[str, Any]  #: The values given by the caller, for restarts.
    state: RunState  #: Its state.
    store: RunStore  #: Its directory.
    stream: EventStream  #: Its events.
    clock: Clock  #: Time.
    randomness: Randomness  #: Jitter and ids.
    run_id: str  #: Its id.
    debugging: Debugging  #: Pauses it between its steps.
    instructions: Instructions  #: Its instructions, of a supervisor or of users.
    lifetimes: tuple[BackendLifetime, ...] = ()  #: Backends to open before and close after.
    gates: Interviewer | None = None  #: Puts the engine's own questions, as handlers put theirs.
    stop_after: int | None = None  #: Number of stages to run before pausing; None for no pause.
    is_checkpointed_each_stage: bool = False  #: Write checkpoint.json after every stage (the letter of 5.3).
    is_resumed: bool = False  #: It continues from a recorded state.
    restart_of: str = ""  #: Of a restart, the directory that it continues from; else empty.
    warning: str = ""  #: Something to say at the beginning, or empty.
    #: The record of a rewind, to be written first: it puts the run there.
    rewound: PipelineRewound | None = None
    #: The later directory of the run that a rewind leaves; owned until that record is written, so that nobody continues
    #: in it meanwhile.
    left: RunStore | None = None
    backend: str = ""  #: Description of the backend, for the record.
    answers: Answers = ""  #: Source of answers in this session, for the record.
    marks: MarkFold = msgspec.field(default_factory=MarkFold)  #: Mark of the result so far.
    saved_marks: ResultMarks = ResultMarks()  #: Marks in the manifest.
    children: Children | None = None  #: Factory of child runs.
    workplace: Workplace | None = None  #: Working directory of agents and of the tools of models.
    cache: StageCache | None = None  #: Cache of results; None when it is not used.
    #: For a resume: by node, what attempts had consumed that were cut off with their process, as in the state.
    cut_off: Mapping[str, Usage] = {}
    funds: Funds | None = None  #: Its account, below those that share its bounds; None without bounds.
    #: The same of nodes with bounds of their own, by their ids, once they are executed.
    node_funds: dict[str, Funds] = msgspec.field(default_factory=dict[str, "Funds"])
    #: Gives the stores of the runs whose child this one is, the nearest first.
    above: Callable[[], tuple[RunStore, ...]] = tuple
    failures: Failures = msgspec.field(default_factory=Failures)  #: Keeps the latest exceptions of the user's Python.
    unlisted: tuple[str, ...] = ()  #: Those of them that prompts do not carry by themselves.
    walking: set[str] = msgspec.field(default_factory=set[str])  #: Paths of the branches that are being walked.
    is_paused: bool = False  #: It is being stopped because all that is active in it waits at gates.

    def read_stage_file(self, node_id: str, name: str, branch: str = "") -> str | None:
        """The text of a file of a stage's latest visit; the store is another one after a restart."""
        return self.store.read_stage_file(node_id, name, branch)
