"""The state of a traversal, as a fold over the run's events.

A live run and a resumed one share this one code path: whatever a stage's commit changes, it changes
through ``apply``, so what can be decided live can be decided again from the log (ruling 29).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec import structs

from attractor_nb.decisions.branch_states import BranchState, BranchStates
from attractor_nb.decisions.fidelity import entry_name
from attractor_nb.decisions.last_failures import LastFailure, failure_after
from attractor_nb.decisions.log_history import counted_events
from attractor_nb.decisions.notes import OBSERVED, Note, with_note
from attractor_nb.decisions.recent_stages import RECENT_STAGES, remember_keys, stage_summary
from attractor_nb.decisions.routing import Seen, seen_of
from attractor_nb.model.branch import enclosing
from attractor_nb.model.carried_state import CarriedState
from attractor_nb.model.events import (
    SESSION_STARTS,
    DebuggerChanged,
    Event,
    GoalGateUnsatisfied,
    ParallelBranchCompleted,
    ParallelBranchStarted,
    PipelineCompleted,
    PipelineFailed,
    PipelineForked,
    PipelineInterrupted,
    PipelineRestarted,
    PipelineResumed,
    PipelineRewound,
    PipelineStarted,
    SessionStart,
    StageEnd,
    StageFailed,
    StageStarted,
)
from attractor_nb.model.outcome import StageStatus, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attractor_nb.decisions.preambles.preamble_past import StageSummary


class InFlight(msgspec.Struct, array_like=True):
    """A visit that was started and not committed."""

    node_id: str  #: The node.
    visit: int  #: Ordinal of the visit.
    attempt: int  #: The last attempt that was started.
    failures: int  #: Attempts of this visit that ended in failure.
    is_started: bool  #: The last attempt was started and its end is not known.
    fidelity: str = ""  #: Its fidelity mode, of a model stage.
    complaint: str = ""  #: What was wrong with the last answer that one of its attempts did not accept, or empty.


def _no_stages() -> deque[StageSummary]:
    return deque(maxlen=RECENT_STAGES)


class RunState(msgspec.Struct, eq=False):
    """Where a run stands."""

    next_node: str  #: Where it goes on; empty when the last stage had no way on.
    completed: list[str] = []  #: Ids of committed stages in order; a node visited twice is in it twice.
    #: Latest status of each node, in order of first visit; skipped ones are not in it.
    outcomes: dict[str, StageStatus] = {}
    skipped: dict[str, None] = {}  #: Nodes of which each visit so far was skipped, in order of their first.
    visits: dict[str, int] = {}  #: How often each node was committed.
    #: Highest visit number of each node that was used up, where that is not ``visits``: a rewind and a restart count
    #: anew and never use a number twice.
    numbers: dict[str, int] = {}
    retries: dict[str, int] = {}  #: Failed attempts of each node's latest visit; back to nothing after a success.
    #: Nodes that, as goal gates, must be executed again: a redirect passed over them, they had not succeeded when a
    #: restart began, or a new pass of their fan-out began (rulings 17, 45).
    stale_gates: set[str] = set()
    #: Of each node the branch paths in which its latest execution was no success (ruling 45).
    failed_in: dict[str, list[str]] = {}
    redirects: int = 0  #: How often goal gates sent the run back.
    restarts: int = 0  #: How many ``loop_restart`` edges led here.
    usage: Usage = Usage()  #: What all attempts of all stages consumed.
    usage_by_node: dict[str, Usage] = {}  #: The same by node, for those that said.
    elapsed_seconds: float = 0.0  #: Running time so far.
    #: What a condition sees: the outcome of the last stage that is no diamond (ruling 16).
    seen: Seen = Seen(StageStatus.SUCCESS)
    last_status: StageStatus = StageStatus.SUCCESS  #: Status of the latest commit.
    last_route: str = ""  #: Its route; it decides how a run without a way on ends.
    last_reason: str = ""  #: Why it failed, or why there was no way on.
    last_notes: str = ""  #: What it said.
    #: The stage that failed last and has not succeeded since, in a branch or not; or None.
    failure: LastFailure | None = None
    incoming_edge: int | None = None  #: Position of the edge that leads to ``next_node``, or None.
    in_flight: InFlight | None = None  #: The visit under way, or None.
    ended: str = ""  #: ``completed``, ``failed`` or empty.
    reason: str = ""  #: Why it failed.
    is_resumable: bool = False  #: It failed by a bound: with a higher one it may go on.
    restart_target: str = ""  #: Where the run goes on in a restart directory, or empty.
    restart_logs_root: str = ""  #: That directory.
    recent: deque[StageSummary] = msgspec.field(default_factory=_no_stages)  #: The newest stages, for preambles.
    inputs: tuple[str, ...] = ()  #: Names of the context values that the run began with, for preambles (ruling 34).
    #: Context keys that stages have set, the newest last, for preambles; the context has the values.
    recent_keys: dict[str, None] = {}
    notes: tuple[Note, ...] = ()  #: The newest notable events and incidents, for preambles.
    fidelity: str = ""  #: Fidelity mode of the last model stage that was committed.
    #: Of each thread the entry that its last committed stage saved: what it has said (spec 5.4).
    threads: dict[str, str] = {}
    resumed_hops: int = 0  #: 1 until the first model stage after a resume has run (spec 5.3, step 6).
    bound: str = ""  #: Name of that bound, or empty.
    #: After a resume: what becomes of the attempt that was cut off (``rerun``, ``ask``, ``fail``); empty when none was,
    #: or when that is decided.
    on_interrupted: str = ""
    is_blindness_reported: bool = False  #: It was said in this session that a bound cannot see all that is consumed.
    branch: str = ""  #: Path of the branch that this is the state of; empty for the run itself.
    root: RunState | None = None  #: For a branch: the state of the run.
    #: For the run: where the branches stand that are under way.
    branches: BranchStates = msgspec.field(default_factory=BranchStates)

    @property
    def whole(self) -> RunState:
        """The state of the run of which this is a branch, or this."""
        return self.root or self

    @property
    def around(self) -> RunState | None:
        """The state in which the fan-out of this branch is under way; None for the run itself."""
        if self.root is None:
            return None
        outer = self.root.branches.open.get(enclosing(self.branch))
        return self.root if outer is None else outer.state

    @property
    def steps(self) -> int:
        """Stages that the whole run has executed, those of branches included."""
        whole = self.root or self
        return len(whole.completed) + whole.branches.steps

    def apply(self, event: Event, *, is_passed_through: bool = False) -> None:
        """Take in an event of the log, or one that was just announced.

        Args:
            event: The event.
            is_passed_through: For a commit: the node is a diamond that shows its edges the outcome
                of the stage before it (ruling 16), so its own success counts for nothing.
        """
        if event.branch and self.root is None:
            self._apply_in_branch(event, is_passed_through=is_passed_through)
        elif isinstance(event, StageEnd):
            self._end(event, is_passed_through=is_passed_through)
        elif (change := self._changes.get(type(event))) is not None:
            change(self, event)

    def _note(self, event: Event) -> None:
        self.notes = with_note(self.notes, event)

    def _go_back(self, event: GoalGateUnsatisfied) -> None:
        self._note(event)
        self.next_node, self.redirects, self.incoming_edge = event.target, event.redirects, None
        self.stale_gates.update(event.passed_over)

    def _amend(self, event: DebuggerChanged) -> None:
        """Take in values that somebody set by hand; other changes of a debugger are no part of a state."""
        if self.root is not None and (branch := self.root.branches.open.get(self.branch)):
            branch.take_edit(event)
        remember_keys(self.recent_keys, event.context)

    def _start(self, event: StageStarted) -> None:
        flight = self.in_flight
        is_retry = flight is not None and flight.node_id == event.name
        self.in_flight = InFlight(
            event.name,
            event.visit,
            event.attempt,
            flight.failures if flight and is_retry else 0,
            is_started=True,
            fidelity=event.fidelity,
            complaint=flight.complaint if flight and is_retry else "",
        )
        if self.root is not None:
            self.root.branches.use(self.branch, event.name, event.visit)

    def _end(self, event: StageEnd, *, is_passed_through: bool) -> None:
        if event.outcome.usage is not None:
            self.spend(event.name, event.outcome.usage)
        for state in (self,) if self.root is None else (self, self.root):
            if state.failure is not None or isinstance(event, StageFailed):
                state.failure = failure_after(state.failure, event, is_passed_through=is_passed_through)
        all_branches = (self.root or self).branches
        if all_branches.open:
            if self.root is not None and (branch := all_branches.open.get(self.branch)):
                branch.take_changes(event)
            all_branches.let_go(self.branch, event.name)
        if not (isinstance(event, StageFailed) and event.will_retry):
            self._commit(event, is_passed_through=is_passed_through)
        elif self.in_flight is not None:
            self.in_flight.failures += 1
            self.in_flight.is_started = False
            if event.outcome.complaint or event.outcome.status is not StageStatus.RETRY:
                self.in_flight.complaint = event.outcome.complaint  # a request that failed hides none
            self.retries[event.name] = self.in_flight.failures
        if isinstance(event, StageFailed):
            self._note(event)

    def _apply_in_branch(self, event: Event, *, is_passed_through: bool) -> None:
        """Take in what happened in a branch."""
        if isinstance(event, ParallelBranchStarted):
            within = enclosing(event.branch)
            if not self.branches.is_under_way(within, event.name):
                self._begin_pass(within, event.name)
            self.branches.add(BranchState(event.branch, event.id, event.name, event.index, self._branched(event)))
        elif (branch := self.branches.open.get(event.branch)) is None:
            return  # it is over, and the event came late
        elif isinstance(event, ParallelBranchCompleted):
            branch.end = event
        else:
            branch.state.apply(event, is_passed_through=is_passed_through)

    def _begin_pass(self, within: str, fan_out: str) -> None:
        """Make what earlier passes of a fan-out executed stale: only its latest pass counts (ruling 45).

        What was set aside by a rewind, or is of the run before a restart, has no status here and is left out.
        """
        executed = self.branches.executed_in(within, fan_out)
        outer = self.branches.open.get(within)
        state = self if outer is None else outer.state
        while state is not None:
            state.stale_gates.update(name for name in executed if name in state.outcomes)
            state = state.around

    def _branched(self, event: ParallelBranchStarted) -> RunState:
        """The state in which a branch begins: it remembers what its fan-out could see."""
        outer = self.branches.open.get(enclosing(event.branch))
        before = self if outer is None else outer.state
        fresh = RunState(event.start_node, branch=event.branch, root=self, seen=before.seen)
        fresh.numbers = dict(self.branches.numbers.get(event.branch, {}))
        fresh.incoming_edge = event.edge
        fresh.elapsed_seconds = before.elapsed_seconds
        fresh.recent.extend(before.recent)
        fresh.inputs = before.inputs
        fresh.recent_keys = dict(before.recent_keys)
        fresh.notes = before.notes
        fresh.threads = dict(before.threads)
        return fresh

    def _go_on(self, event: SessionStart) -> None:
        self.reopen()
        if isinstance(event, PipelineResumed):
            for node_id, usage in event.cut_off.items():
                self.spend(node_id, Usage.from_plain(usage))
        if isinstance(event, PipelineStarted):
            self.next_node = event.start_node
            self.inputs = tuple(name for name in event.inputs if name not in event.unlisted)
        elif isinstance(event, PipelineRestarted):
            self.restart_target, self.restart_logs_root = event.target, event.logs_root
        if isinstance(event, PipelineStarted | PipelineRewound) and event.carried:
            self._carry(event.carried)
        if isinstance(event, PipelineForked):  # what its parent spent is its parent's
            self.usage, self.usage_by_node, self.elapsed_seconds = Usage(), {}, 0.0
        if isinstance(event, PipelineForked | PipelineRewound):
            remember_keys(self.recent_keys, event.context)

    def spend(self, node_id: str, usage: Usage) -> None:
        """Count what an attempt consumed, whether it succeeded or not; a branch's counts for the run, too."""
        if self.root is not None:
            self.root.spend(node_id, usage)
        self.usage += usage
        own = self.usage_by_node.get(node_id)
        self.usage_by_node[node_id] = usage if own is None else own + usage

    def _commit(self, event: StageEnd, *, is_passed_through: bool) -> None:
        name, outcome = event.name, event.outcome
        status = outcome.status
        if self.root is not None:
            self._commit_to_run(self.root, event)
        if self.in_flight is not None:
            self.fidelity = self.in_flight.fidelity or self.fidelity
        if event.thread:
            self.threads[event.thread] = entry_name(self.branch, name, event.visit, event.attempt)
        self.in_flight = None
        self.completed.append(name)
        self.visits[name] = self.visits.get(name, 0) + 1
        if name in self.numbers:
            self.numbers[name] = event.visit
        self.note_status(name, status)
        if self.root is None and self.failed_in:
            self._note_path(name, status, "")
        if status.is_success:
            self.retries.pop(name, None)
        elif isinstance(event, StageFailed):
            self.retries[name] = self.retries.get(name, 0) + 1
        if not (is_passed_through and status.is_success):
            self.seen = seen_of(outcome)
        self.next_node, self.incoming_edge = event.next_node, event.edge
        self.last_status, self.last_route = status, event.route
        self.last_reason = outcome.failure_reason or event.route_detail
        self.last_notes = outcome.notes
        summary = stage_summary(event, remember_keys(self.recent_keys, event.context))
        has_news = summary.notes or summary.size or not set(summary.keys).issubset(self.inputs)
        if has_news and not is_passed_through:
            self.recent.append(summary)

    def _commit_to_run(self, run: RunState, event: StageEnd) -> None:
        """What all around must know of a stage of this branch: its place in the count, its status."""
        run.branches.steps += 1
        run._note_path(event.name, event.outcome.status, self.branch)
        around = self.around
        while around is not None:
            around.note_status(event.name, event.outcome.status)
            around = around.around

    def note_status(self, name: str, status: StageStatus) -> None:
        """Take in the status of a stage, here or in a branch; a skipped one leaves the last that counts."""
        if not status.is_skipped:
            self.outcomes[name] = status
            self.skipped.pop(name, None)
            self.stale_gates.discard(name)
        elif name not in self.outcomes:
            self.skipped[name] = None

    def _note_path(self, name: str, status: StageStatus, path: str) -> None:
        """Take in how a stage ended on a branch path: one execution replaces those on the paths within it."""
        if status.is_skipped:
            return
        within = f"{path}/" if path else ""
        paths = [kept for kept in self.failed_in.pop(name, ()) if kept != path and not kept.startswith(within)]
        if path and not status.is_success:
            paths.append(path)
        if paths:
            self.failed_in[name] = paths

    def _stop(self, event: PipelineCompleted | PipelineFailed | PipelineInterrupted) -> None:
        self.elapsed_seconds = event.duration
        if isinstance(event, PipelineCompleted):
            self.ended = "completed"
        elif isinstance(event, PipelineFailed):
            self.ended, self.reason, self.is_resumable = "failed", event.error, event.is_resumable
            self.bound = event.bound

    def restarted(self, target: str) -> RunState:
        """The state in which a ``loop_restart`` begins: what bounds a whole run goes on (rulings 18, 21, 45)."""
        fresh = RunState(target, inputs=self.inputs)
        failed = [name for name, status in self.outcomes.items() if not status.is_success]
        unsatisfied = tuple(dict.fromkeys([*self.stale_gates, *self.failed_in, *failed]))
        fresh._carry(structs.replace(self.carried, restarts=self.restarts + 1, unsatisfied=unsatisfied))
        return fresh

    def next_visit(self, node_id: str) -> int:
        """The number of the next visit to a node: one that the run never used."""
        return self.numbers.get(node_id, self.visits.get(node_id, 0)) + 1

    @property
    def carried(self) -> CarriedState:
        """What neither a restart nor a rewind undoes, for the record of it."""
        numbers = {**self.visits, **self.numbers}
        if self.in_flight is not None:
            numbers[self.in_flight.node_id] = self.in_flight.visit
        return CarriedState(
            restarts=self.restarts,
            elapsed_seconds=self.elapsed_seconds,
            usage=self.usage,
            usage_by_node=dict(self.usage_by_node),
            visits=numbers,
            branch_visits={path: dict(used) for path, used in self.branches.numbers.items()},
            branch_steps=self.branches.steps,
        )

    def _carry(self, carried: CarriedState) -> None:
        self.restarts, self.elapsed_seconds = carried.restarts, carried.elapsed_seconds
        self.usage, self.usage_by_node = carried.usage, dict(carried.usage_by_node)
        self.numbers = dict(carried.visits)
        self.stale_gates.update(carried.unsatisfied)
        used = {path: dict(numbers) for path, numbers in carried.branch_visits.items()}
        self.branches = BranchStates(numbers=used, steps=carried.branch_steps)

    def reopen(self) -> None:
        """Go on after an end that allows it: a bound that was raised."""
        self.ended, self.reason, self.is_resumable, self.bound = "", "", False, ""
        if self.failure is not None:
            self.failure = structs.replace(self.failure, times=0)

    def totals(self) -> dict[str, Any]:
        """What a list of runs says of an ended run, for its manifest: seconds, stages, what was consumed."""
        return {"duration": round(self.elapsed_seconds, 3), "stages": self.steps, "usage": self.usage.to_plain()}

    def apply_all(self, events: Sequence[Event], diamonds: frozenset[str]) -> None:
        """Fold the events of a log that count; ``diamonds`` are the nodes that pass the outcome through."""
        for event in counted_events(events):
            self.apply(event, is_passed_through=bool(diamonds) and event.node_id in diamonds)

    # What each kind of event changes, besides the end of a stage, which also depends on its node.
    _changes: ClassVar[dict[type[Event], Callable[[RunState, Any], None]]] = {
        StageStarted: _start,
        GoalGateUnsatisfied: _go_back,
        DebuggerChanged: _amend,
        **dict.fromkeys(OBSERVED, _note),
        **dict.fromkeys((PipelineCompleted, PipelineFailed, PipelineInterrupted), _stop),
        **dict.fromkeys(SESSION_STARTS, _go_on),
    }
