"""The state of a traversal, as a fold over the run's events.

A live run and a resumed one share this one code path: whatever a stage's commit changes, it changes
through ``apply``, so what can be decided live can be decided again from the log (ruling 29).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
from msgspec import structs

from attractor_nb.decisions.fidelity import entry_name
from attractor_nb.decisions.log_history import counted_events
from attractor_nb.decisions.notes import OBSERVED, Note, with_note
from attractor_nb.decisions.preamble_page import BRANCHES_KEY, TOOL_ERRORS_KEY, TOOL_OUTPUT_KEY, StageSummary
from attractor_nb.decisions.routing import ConditionOutcome, condition_outcome
from attractor_nb.model.branch import branch_path, enclosing
from attractor_nb.model.checkpoint import EdgeKey, SurvivingTotals, TakenEdge
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
from attractor_nb.model.inputs import ENGINE_KEYS
from attractor_nb.model.outcome import StageStatus, Usage
from attractor_nb.model.texts import last_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


# The states of a run's branches: one for each branch under way (spec 4.8).
#
# The run's own state holds them all, nested ones too, by their paths: the log is one, and each event names its
# branch. When the fan-out commits, or is tried again, the states of its branches are dropped. The visit numbers
# that they used stay, so that no two executions ever share an idempotency key.


class BranchState(msgspec.Struct):
    """A branch of a fan-out that is under way."""

    path: str  #: Its path in the run.
    id: str  #: Its id among the branches of its fan-out.
    fan_out: str  #: The fan-out's node.
    index: int  #: Its place among them, from 0.
    state: RunState  #: State of the run.
    context: dict[str, Any] = {}  #: Context changes of its attempts: the last value of each key, as logged.
    logs: list[str] = []  #: Lines that they appended to the run log.
    end: ParallelBranchCompleted | None = None  #: Its end, or None.

    def take_changes(self, event: StageEnd) -> None:
        """Take in what an attempt in the branch changed."""
        self.context.update(event.context)
        self.logs.extend(event.logs)

    def take_edit(self, event: DebuggerChanged) -> None:
        """Take in a change by hand."""
        self.context.update(event.context)


class BranchStates(msgspec.Struct):
    """All branches that are under way, and what is left of earlier ones."""

    open: dict[str, BranchState] = {}  #: By path.
    _of_fan_outs: dict[tuple[str, str], list[BranchState]] = {}
    """The open ones by the branch and node of their fan-out."""
    #: Of each branch path the highest visit number that each node there used up.
    numbers: dict[str, dict[str, int]] = {}
    steps: int = 0  #: Stages that branches committed, over the whole run.

    def add(self, branch: BranchState) -> None:
        """A branch is under way."""
        self.open[branch.path] = branch
        self._of_fan_outs.setdefault((enclosing(branch.path), branch.fan_out), []).append(branch)

    def use(self, path: str, node_id: str, visit: int) -> None:
        """A visit of a node in a branch begins: its number is used up."""
        self.numbers.setdefault(path, {})[node_id] = visit

    def is_under_way(self, within: str, fan_out: str) -> bool:
        """True if a branch of a fan-out has begun in its latest pass."""
        return (within, fan_out) in self._of_fan_outs

    def executed_in(self, within: str, fan_out: str) -> set[str]:
        """The nodes that any pass of a fan-out began to execute, in fan-outs within it, too."""
        below = branch_path(within, fan_out, "")
        return {node_id for path, used in self.numbers.items() if path.startswith(below) for node_id in used}

    def let_go(self, within: str, fan_out: str) -> None:
        """A fan-out ended: its branches, and those within them, are over."""
        for branch in self._of_fan_outs.pop((within, fan_out), []):
            self.open.pop(branch.path, None)
            for inner, node_id in [key for key in self._of_fan_outs if key[0] == branch.path]:
                self.let_go(inner, node_id)


# Summaries of committed stages for the preambles of later ones (spec 5.4).

RECENT_STAGES: Final = 30
_RECENT_KEYS: Final = 50
_KEYS_OF_A_STAGE: Final = 12
_EXCERPT_LENGTH: Final = 1000
_NOTES_LENGTH: Final = 2000
_HIDDEN_PREFIXES: Final = ("internal.", "graph.", "parallel.", "tool.", "human.gate.")
"""Keys that are the engine's own, or that are told with the stage that has set them."""
_HIDDEN_ENDINGS: Final = (".response", ".run_id", ".logs_root")
"""Endings of keys that are told with their stage, or are of no use to a model."""
_OUTPUT_KEYS: Final = (TOOL_OUTPUT_KEY, BRANCHES_KEY, "human.gate.text", "human.gate.form")
"""Keys of a stage's result, beside its response; it has one of them."""
_MAY_BE_EMPTY: Final = frozenset({TOOL_OUTPUT_KEY, BRANCHES_KEY})
_MORE_KEYS: Final = {TOOL_OUTPUT_KEY: (TOOL_ERRORS_KEY,), "human.gate.text": ("human.gate.form",)}


def remember_keys(recent: dict[str, None], changed: Mapping[str, Any]) -> list[str]:
    """Take in which keys were set, the newest last, of those that have no other place in a preamble; these."""
    keys = list[str]()
    for key in changed:
        if key in ENGINE_KEYS or key.startswith(_HIDDEN_PREFIXES) or key.endswith(_HIDDEN_ENDINGS):
            continue
        recent.pop(key, None)
        recent[key] = None
        keys.append(key)
    while len(recent) > _RECENT_KEYS:
        del recent[next(iter(recent))]
    return keys[-_KEYS_OF_A_STAGE:]


def stage_summary(event: StageEnd, keys: Sequence[str]) -> StageSummary:
    """The summary of a committed stage that has set these keys."""
    changed = event.context
    main = f"{event.name}.response"
    if main not in changed:
        main = next((key for key in _OUTPUT_KEYS if changed.get(key) or (key in changed and key in _MAY_BE_EMPTY)), "")
    output, is_end = changed.get(main, changed.get("last_response", "")), main == TOOL_OUTPUT_KEY
    text = output if isinstance(output, str) else ""
    more = [key for key in _MORE_KEYS.get(main, ()) if key in changed]
    return StageSummary(
        node_id=event.name,
        label=event.name,
        status=event.outcome.status.value,
        notes=(event.outcome.failure_reason or event.outcome.notes)[:_NOTES_LENGTH],
        excerpt=last_lines(text, _EXCERPT_LENGTH) if is_end else text[:_EXCERPT_LENGTH],
        size=len(text),
        keys=(main, *more, *keys)[:_KEYS_OF_A_STAGE] if main else tuple(keys),
    )


class InFlight(msgspec.Struct, array_like=True):
    """A visit that was started and not committed."""

    node_id: str  #: The node.
    visit: int  #: Ordinal of the visit.
    attempt: int  #: The last attempt that was started.
    failures: int  #: Attempts of this visit that ended in failure.
    is_started: bool  #: The last attempt was started and its end is not known.
    fidelity: str = ""  #: Its fidelity mode, of a model stage.
    complaint: str = ""  #: Problem of the last answer that one of its attempts did not accept, or empty.


def _no_stages() -> deque[StageSummary]:
    return deque(maxlen=RECENT_STAGES)


def taken_edges(taken: Mapping[EdgeKey, int]) -> tuple[TakenEdge, ...]:
    """The counts of edges as records store them."""
    return tuple([(*edge, times) for edge, times in taken.items()])


def times_of(edges: Iterable[TakenEdge]) -> dict[EdgeKey, int]:
    """The inverse of ``taken_edges``."""
    return {(source, target, index): times for source, target, index, times in edges}


class RunState(msgspec.Struct, eq=False):
    """The state of a run."""

    next_node: str  #: The next node; empty when the last stage had no next edge.
    completed: list[str] = []  #: Ids of committed stages in order; a node visited twice is in it twice.
    #: Latest status of each node, in order of first visit; skipped ones are not in it.
    outcomes: dict[str, StageStatus] = {}
    skipped: dict[str, None] = {}  #: Nodes of which each visit so far was skipped, in order of their first.
    visits: dict[str, int] = {}  #: Number of commits of each node.
    #: Highest visit number of each node that was used up, where that is not ``visits``: a rewind and a restart count
    #: anew and never use a number twice.
    numbers: dict[str, int] = {}
    taken: dict[
        EdgeKey, int
    ] = {}  #: Number of times that each edge was taken; of a branch, in this pass of its fan-out.
    retries: dict[str, int] = {}  #: Failed attempts of each node's latest visit; back to nothing after a success.
    #: Nodes that, as goal gates, must be executed again: a redirect passed over them, they had not succeeded when a
    #: restart began, or a new pass of their fan-out began (rulings 17, 45).
    stale_gates: set[str] = set()
    #: Of each node the branch paths in which its latest execution was no success (ruling 45).
    failed_in: dict[str, list[str]] = {}
    #: Number of committed stages at which a run of a single stage ends; 0 for any other run.
    last_step: int = 0
    redirects: int = 0  #: Number of redirects by goal gates.
    restarts: int = 0  #: Number of ``loop_restart`` edges that led here.
    usage: Usage = Usage()  #: Usage of all attempts of all stages.
    usage_by_node: dict[str, Usage] = {}  #: The same by node, for those that said.
    elapsed_seconds: float = 0.0  #: Running time so far.
    #: Outcome that a condition sees: that of the last stage that is no diamond (ruling 16).
    seen: ConditionOutcome = ConditionOutcome(StageStatus.SUCCESS)
    last_status: StageStatus = StageStatus.SUCCESS  #: Status of the latest commit.
    last_route: str = ""  #: Its route; it decides how a run without a way on ends.
    last_reason: str = ""  #: Reason of the last failure, or why there was no next edge.
    last_notes: str = ""  #: Its notes.
    #: The stage that failed last and has not succeeded since, in a branch or not; or None.
    failure: LastFailure | None = None
    incoming_edge: int | None = None  #: Position of the edge that leads to ``next_node``, or None.
    in_flight: InFlight | None = None  #: The visit under way, or None.
    ended: str = ""  #: ``completed``, ``failed`` or empty.
    reason: str = ""  #: Reason of the failure.
    is_resumable: bool = False  #: It failed by a bound: with a higher one it may continue.
    restart_target: str = ""  #: Node where the run continues in a restart directory, or empty.
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
    #: For the run: the positions of its active branches.
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
                of the stage before it (ruling 16), so its own success is ignored.
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
        """Take in values that were set by hand; other changes of a debugger are no part of a state."""
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
            self.last_step = len(self.completed) + 1 if event.is_single_stage else 0
        if isinstance(event, PipelineForked | PipelineRewound):
            remember_keys(self.recent_keys, event.context)

    def spend(self, node_id: str, usage: Usage) -> None:
        """Count what an attempt consumed, whether it succeeded or not; a branch's counts for the run, too."""
        if self.root is not None:
            self.root.spend(node_id, usage)
        self.usage += usage
        own = self.usage_by_node.get(node_id)
        self.usage_by_node[node_id] = usage if own is None else own + usage

    def _commit(self, event: StageEnd, *, is_passed_through: bool) -> None:  # noqa: C901 - a call costs in each step
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
            self.seen = condition_outcome(outcome)
        self.next_node, self.incoming_edge = event.next_node, event.edge
        if event.edge is not None:
            edge = (event.name, event.next_node, event.edge)
            self.taken[edge] = self.taken.get(edge, 0) + 1
        self.last_status, self.last_route = status, event.route
        self.last_reason = outcome.failure_reason or event.route_detail
        self.last_notes = outcome.notes
        summary = stage_summary(event, remember_keys(self.recent_keys, event.context))
        has_news = summary.notes or summary.size or not set(summary.keys).issubset(self.inputs)
        if has_news and not is_passed_through:
            self.recent.append(summary)

    def _commit_to_run(self, run: RunState, event: StageEnd) -> None:
        """Report a commit of this branch to all states around it: its place in the count, its status."""
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
        """The state in which a ``loop_restart`` begins: what bounds a whole run continues (rulings 18, 21, 45)."""
        fresh = RunState(target, inputs=self.inputs)
        failed = [name for name, status in self.outcomes.items() if not status.is_success]
        unsatisfied = tuple(dict.fromkeys([*self.stale_gates, *self.failed_in, *failed]))
        taken = taken_edges(self.taken)
        fresh._carry(structs.replace(self.carried, restarts=self.restarts + 1, unsatisfied=unsatisfied, taken=taken))
        return fresh

    def next_visit(self, node_id: str) -> int:
        """The number of the next visit to a node: one that the run never used."""
        return self.numbers.get(node_id, self.visits.get(node_id, 0)) + 1

    @property
    def carried(self) -> SurvivingTotals:
        """The totals that neither a restart nor a rewind undoes, for its record."""
        numbers = {**self.visits, **self.numbers}
        if self.in_flight is not None:
            numbers[self.in_flight.node_id] = self.in_flight.visit
        return SurvivingTotals(
            restarts=self.restarts,
            elapsed_seconds=self.elapsed_seconds,
            usage=self.usage,
            usage_by_node=dict(self.usage_by_node),
            visits=numbers,
            branch_visits={path: dict(used) for path, used in self.branches.numbers.items()},
            branch_steps=self.branches.steps,
        )

    def _carry(self, carried: SurvivingTotals) -> None:
        self.restarts, self.elapsed_seconds = carried.restarts, carried.elapsed_seconds
        self.usage, self.usage_by_node = carried.usage, dict(carried.usage_by_node)
        self.numbers = dict(carried.visits)
        self.stale_gates.update(carried.unsatisfied)
        self.taken.update(times_of(carried.taken))
        used = {path: dict(numbers) for path, numbers in carried.branch_visits.items()}
        self.branches = BranchStates(numbers=used, steps=carried.branch_steps)

    def reopen(self) -> None:
        """Continue after an end that allows it: a bound that was raised."""
        self.ended, self.reason, self.is_resumable, self.bound = "", "", False, ""
        if self.failure is not None:
            self.failure = structs.replace(self.failure, times=0)

    def totals(self) -> dict[str, Any]:
        """The totals of an ended run for its manifest, as lists of runs show them: seconds, stages, usage."""
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


# The last failure of a run, and how often in a row it was the same (ruling 52).

MAX_SAME_FAILURES: Final = 3
"""A failure that trying again cannot change ends the run instead of being tried a fourth time in a row."""
_SHOWN: Final = 300


class LastFailure(msgspec.Struct, array_like=True, frozen=True):
    """A stage that failed and has not succeeded since."""

    node_id: str  #: The stage.
    reason: str  #: Reason of the failure.
    #: Times in a row that it ended for this reason, when a retry cannot help; else 0. It counts anew when any stage
    #: succeeds, which may have changed something, and when a run is resumed.
    times: int = 0
    is_unmeasured: bool = False  #: The stage could not be executed for a reason outside the pipeline (ruling 51).

    def __str__(self) -> str:
        return f"{self.node_id}: {self.reason[:_SHOWN]}"


def failure_after(failure: LastFailure | None, event: StageEnd, *, is_passed_through: bool) -> LastFailure | None:
    """The last failure after an attempt ended.

    Args:
        failure: The one before.
        event: How the attempt ended.
        is_passed_through: It was a diamond that judges the stage before it: its own success is ignored.
    """
    outcome = event.outcome
    if outcome.status.is_failure:
        reason = outcome.failure_reason or "it failed without a reason"
        is_same = failure is not None and (failure.node_id, failure.reason) == (event.name, reason)
        before = failure.times if failure is not None and is_same else 0
        times = before + 1 if outcome.is_terminal else 0
        return LastFailure(event.name, reason, times, outcome.is_unmeasured)
    if failure is None or is_passed_through or not outcome.status.is_success:
        return failure
    return None if failure.node_id == event.name else msgspec.structs.replace(failure, times=0)
