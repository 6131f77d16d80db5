"""Every signal of a run, as one typed value each (spec 9.6; ruling 29).

Events are both what observers see and what the run's log holds: the log *is* the durable events. A
stage ends in exactly one commit: a ``StageCompleted``, or a ``StageFailed`` whose ``will_retry`` is
false. It carries the outcome, the context changes and the chosen next node, so that a resumed run
knows all that a live one knew. ``StageStarted`` is the intent record before each attempt.

The stream stamps ``sequence``, ``time`` and ``run_id`` once, when the event is announced; otherwise
nobody changes an event. Durable events are numbered 1, 2, 3 … without gaps within a run directory;
an ephemeral event (``is_durable`` false) carries the number of the durable one before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, cast

from attractor_nb.model.outcome import Outcome, Usage, no_values


@dataclass(slots=True, kw_only=True)
class Event:
    """What all events have.

    Attributes:
        sequence: Number in the run's log.
        time: When it was announced, in seconds since 1970 (UTC).
        run_id: The run it belongs to.
        branch: Path of the branch in which it happened (``model.branch``); empty outside of fan-outs.
    """

    is_durable: ClassVar[bool] = True
    sequence: int = 0
    time: float = 0.0
    run_id: str = ""
    branch: str = ""

    @property
    def type(self) -> str:
        """The event's name as in spec 9.6."""
        return type(self).__name__

    @property
    def description(self) -> str:
        """One line for people."""
        return self.type

    @property
    def node_id(self) -> str:
        """The node concerned, or empty."""
        return ""

    def to_plain(self) -> dict[str, Any]:
        """JSON values: ``type`` first, then the fields; empty ones are left out."""
        plain: dict[str, Any] = {"type": type(self).__name__}
        for name in _FIELDS[type(self)]:
            value = getattr(self, name)
            if value or (value is not None and type(value) not in _EMPTY_LEFT_OUT):
                plain[name] = value
        return plain


@dataclass(slots=True, kw_only=True)
class PipelineStarted(Event):
    """A run begins (first record of its log).

    Attributes:
        name: Name of the pipeline.
        id: The run id.
        graph_hash: ``Graph.content_hash`` of what runs.
        inputs: Context values given by the caller.
        start_node: Where the traversal begins.
        restart_of: For a ``loop_restart``: the run directory it continues, else empty.
        carried: For a ``loop_restart``: what starting over does not undo (``RunState.carried``).
        goal, model, node_count, backend: As in the manifest, which can be made again from here.
    """

    name: str
    id: str
    graph_hash: str = ""
    inputs: Mapping[str, Any] = field(default_factory=no_values)
    start_node: str = ""
    restart_of: str = ""
    carried: Mapping[str, Any] = field(default_factory=no_values)
    goal: str = ""
    model: str = ""
    node_count: int = 0
    backend: str = ""

    @property
    def description(self) -> str:
        """One line for people."""
        return f"pipeline {self.name or 'without a name'} started"


@dataclass(slots=True, kw_only=True)
class PipelineResumed(Event):
    """A stopped run goes on.

    Attributes:
        next_node: Where it goes on.
        graph_hash: Hash of the graph it goes on with.
        interrupted_node: The stage that was cut off before its commit, or empty.
        on_interrupted: What becomes of it: ``rerun``, ``ask`` or ``fail``.
    """

    next_node: str
    graph_hash: str = ""
    interrupted_node: str = ""
    on_interrupted: str = ""

    @property
    def description(self) -> str:
        """One line for people."""
        return f"resumed at {self.next_node}{_CUT_OFF.get(self.on_interrupted, '')}"

    @property
    def node_id(self) -> str:
        """Where it goes on."""
        return self.next_node


@dataclass(slots=True, kw_only=True)
class PipelineRewound(Event):
    """The run goes back to just before a visit; what came after is set aside, and stays in the log.

    Attributes:
        node: The node that is visited next.
        visit: Number of the visit that it goes back behind; the next one has a new number.
        to_sequence: The last event before that visit: those after it, up to this one, count no more.
        stages: How many stages are set aside.
        carried: What going back does not undo (``RunState.carried``): what was spent, which visit
            numbers are used.
    """

    node: str
    visit: int
    to_sequence: int
    stages: int = 0
    carried: Mapping[str, Any] = field(default_factory=no_values)

    @property
    def description(self) -> str:
        """One line for people."""
        count = f"{self.stages} stage{'s' * (self.stages != 1)}" if self.stages else "no stage"
        return f"rewound to {self.node}, visit {self.visit}: {count} set aside"

    @property
    def node_id(self) -> str:
        """Where it goes on."""
        return self.node


_CUT_OFF = {
    "rerun": ", which was cut off and is run again",
    "ask": ", which was cut off and is asked about",
    "fail": ", which was cut off and is recorded as failed",
}


@dataclass(slots=True, kw_only=True)
class PipelineCompleted(Event):
    """The run ended in success. ``duration`` in seconds of running time."""

    duration: float
    artifact_count: int = 0

    @property
    def description(self) -> str:
        """One line for people."""
        return f"pipeline completed in {self.duration:.1f} s"


@dataclass(slots=True, kw_only=True)
class PipelineFailed(Event):
    """The run ended in failure.

    Attributes:
        error: The reason.
        duration: Seconds of running time.
        is_resumable: A bound or budget stopped it: with a higher one it may go on.
        bound: Name of that bound, or empty.
    """

    error: str
    duration: float
    is_resumable: bool = False
    bound: str = ""

    @property
    def description(self) -> str:
        """One line for people."""
        return f"pipeline failed: {self.error}"


@dataclass(slots=True, kw_only=True)
class PipelineInterrupted(Event):
    """The run was stopped, or paused after a step, and can be resumed.

    Attributes:
        reason: ``cancelled``, ``paused``, or the storage fault.
        next_node: Where a resume goes on.
        duration: Seconds of running time.
    """

    reason: str
    next_node: str = ""
    duration: float = 0.0

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.reason}; continue at {self.next_node}" if self.next_node else self.reason


@dataclass(slots=True, kw_only=True)
class StageEvent(Event):
    """What the events of one stage have.

    Attributes:
        name: The node's id.
        index: Ordinal of the visit in the run, from 1.
        visit: Ordinal of the visit to this node, from 1.
        attempt: Ordinal of the try within the visit, from 1.
    """

    name: str
    index: int = 0
    visit: int = 1
    attempt: int = 1

    @property
    def node_id(self) -> str:
        """The node's id."""
        return self.name


@dataclass(slots=True, kw_only=True)
class StageStarted(StageEvent):
    """An attempt begins: the intent record.

    Attributes:
        handler_type: The handler that runs it.
        fidelity: Resolved fidelity mode of a model stage (spec 5.4), else empty.
        thread: Thread key under ``full`` fidelity, else empty.
    """

    handler_type: str = ""
    fidelity: str = ""
    thread: str = ""

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.name} started" + (f" (attempt {self.attempt})" if self.attempt > 1 else "")

    def to_plain(self) -> dict[str, Any]:
        """JSON values, as of all events, in a third of the time: there is one for each step."""
        plain: dict[str, Any] = {
            "type": "StageStarted",
            "sequence": self.sequence,
            "time": self.time,
            "run_id": self.run_id,
            "name": self.name,
            "index": self.index,
            "visit": self.visit,
            "attempt": self.attempt,
        }
        if self.branch:
            plain["branch"] = self.branch
        if self.handler_type:
            plain["handler_type"] = self.handler_type
        if self.fidelity:
            plain["fidelity"] = self.fidelity
        if self.thread:
            plain["thread"] = self.thread
        return plain


@dataclass(slots=True, kw_only=True)
class StageEnd(StageEvent):
    """The commit of a stage, and with ``will_retry`` the end of an attempt that is not the last.

    Attributes:
        duration: Seconds, waits between attempts included.
        outcome: The final outcome; its context updates are inside ``context``.
        context: Every context key that the stage changed, with its new value.
        next_node: Where the run goes on; empty when it ends here.
        edge: Position of the edge taken in ``Graph.edges``; None for a jump or an end.
        route: Why that way: ``condition``, ``preferred_label``, ``suggested_id``, ``default``,
            ``weight``, ``retry_target``, ``end`` …
        route_detail: What decided it, in words: the condition and the values that it saw.
        logs: Entries the stage appended to the run log.
        node_usage: What the node has consumed in this run, this attempt included; None when the attempt
            consumed nothing.
        run_usage: What the whole run has consumed, likewise.
    """

    duration: float = 0.0
    outcome: Outcome
    context: Mapping[str, Any] = field(default_factory=no_values)
    next_node: str = ""
    edge: int | None = None
    route: str = ""
    route_detail: str = ""
    logs: tuple[str, ...] = ()
    node_usage: Usage | None = None
    run_usage: Usage | None = None

    @property
    def is_commit(self) -> bool:
        """Whether it ends the stage."""
        return True

    def to_plain(self) -> dict[str, Any]:
        """JSON values; the outcome without its updates, which ``context`` has. One for each step, too."""
        plain: dict[str, Any] = {
            "type": type(self).__name__,
            "sequence": self.sequence,
            "time": self.time,
            "run_id": self.run_id,
            "name": self.name,
            "index": self.index,
            "visit": self.visit,
            "attempt": self.attempt,
            "duration": self.duration,
            "outcome": self.outcome.to_plain(with_updates=False),
        }
        if self.branch:
            plain["branch"] = self.branch
        if self.context:
            plain["context"] = self.context
        if self.next_node:
            plain["next_node"] = self.next_node
        if self.edge is not None:
            plain["edge"] = self.edge
        if self.route:
            plain["route"] = self.route
        if self.route_detail:
            plain["route_detail"] = self.route_detail
        if self.logs:
            plain["logs"] = self.logs
        if self.node_usage is not None:
            plain["node_usage"] = self.node_usage.to_plain()
        if self.run_usage is not None:
            plain["run_usage"] = self.run_usage.to_plain()
        return plain


@dataclass(slots=True, kw_only=True)
class StageCompleted(StageEnd):
    """A stage ended in success, partial success or skipped."""

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.name} {self.outcome.status} in {self.duration:.1f} s"


@dataclass(slots=True, kw_only=True)
class StageFailed(StageEnd):
    """An attempt failed: for good, or to be tried again when ``will_retry``."""

    error: str = ""
    will_retry: bool = False

    @property
    def is_commit(self) -> bool:
        """Whether it ends the stage."""
        return not self.will_retry

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.name} failed: {self.error}"

    def to_plain(self) -> dict[str, Any]:
        """JSON values; as those of any end of a stage, with the error."""
        plain = StageEnd.to_plain(self)
        if self.error:
            plain["error"] = self.error
        if self.will_retry:
            plain["will_retry"] = True
        return plain


@dataclass(slots=True, kw_only=True)
class StageRetrying(StageEvent):
    """Another attempt follows. ``delay`` in seconds; ``attempt`` is the one to come."""

    delay: float = 0.0

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.name} is tried again in {self.delay:.1f} s (attempt {self.attempt})"


@dataclass(slots=True, kw_only=True)
class GoalGateUnsatisfied(Event):
    """At the exit a goal gate was not satisfied, and the run goes back (spec 3.4).

    Attributes:
        gate: The unsatisfied gate.
        target: Where the run goes on.
        redirects: How many times gates have sent the run back, this one included.
        passed_over: Gates between target and exit that must be executed again (ruling 17).
    """

    gate: str
    target: str
    redirects: int
    passed_over: tuple[str, ...] = ()

    @property
    def node_id(self) -> str:
        """The gate."""
        return self.gate

    @property
    def description(self) -> str:
        """One line for people."""
        return f"goal gate {self.gate} is not satisfied; back to {self.target}"


@dataclass(slots=True, kw_only=True)
class PipelineRestarted(Event):
    """A ``loop_restart`` edge was taken: the run goes on in a fresh directory (ruling 21).

    Attributes:
        target: Where the fresh run begins.
        restarts: How many restarts there were, this one included.
        logs_root: The fresh run directory.
    """

    target: str
    restarts: int
    logs_root: str = ""

    @property
    def description(self) -> str:
        """One line for people."""
        return f"restarted at {self.target}"


@dataclass(slots=True, kw_only=True)
class RunWarning(Event):
    """Something a person should know that stops nothing, such as a gate that was never visited."""

    message: str
    node: str = ""

    @property
    def node_id(self) -> str:
        """The node concerned, or empty."""
        return self.node

    @property
    def description(self) -> str:
        """One line for people."""
        return self.message


@dataclass(slots=True, kw_only=True)
class InterviewStarted(Event):
    """A question was put to a person.

    Attributes:
        question: The question's text.
        stage: The asking node.
        question_id: Id to answer by.
        kind: The question's type.
        options: ``[key, label]`` of each choice.
        deadline: When it times out, in seconds since 1970; None for never.
        metadata: What a front-end may show beside it.
    """

    question: str
    stage: str
    question_id: str = ""
    kind: str = ""
    options: tuple[tuple[str, str], ...] = ()
    deadline: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=no_values)

    @property
    def node_id(self) -> str:
        """The asking node."""
        return self.stage

    @property
    def description(self) -> str:
        """One line for people."""
        return f"gate {self.stage} waits for an answer"


@dataclass(slots=True, kw_only=True)
class InterviewCompleted(Event):
    """The durable answer to a question; the first one wins (ruling 23).

    Attributes:
        question: The question's text.
        answer: Value of the answer: an option's key, yes/no, or the text.
        duration: Seconds from question to answer.
        question_id: Which question.
        stage: The asking node.
        label: Label of the chosen option, or empty.
        keys: Keys of all chosen options, for a multi-select.
        text: Free text, or empty.
        answered_by: Who or what answered.
    """

    question: str
    answer: str
    duration: float
    question_id: str = ""
    stage: str = ""
    label: str = ""
    keys: tuple[str, ...] = ()
    text: str = ""
    answered_by: str = ""

    @property
    def node_id(self) -> str:
        """The asking node."""
        return self.stage

    @property
    def description(self) -> str:
        """One line for people."""
        by = f", by {self.answered_by}" if self.answered_by else ""
        return f"{self.stage}: {self.label or self.text or self.answer}{by}"


@dataclass(slots=True, kw_only=True)
class InterviewTimeout(Event):
    """Nobody answered in time. ``duration`` in seconds."""

    question: str
    stage: str
    duration: float
    question_id: str = ""

    @property
    def node_id(self) -> str:
        """The asking node."""
        return self.stage

    @property
    def description(self) -> str:
        """One line for people."""
        return f"gate {self.stage} got no answer in {self.duration:.0f} s"


@dataclass(slots=True, kw_only=True)
class InterviewInformed(Event):
    """A message to people that asks for nothing (``Interviewer.inform``)."""

    message: str
    stage: str = ""

    @property
    def node_id(self) -> str:
        """The node it is about."""
        return self.stage

    @property
    def description(self) -> str:
        """One line for people."""
        return self.message


@dataclass(slots=True, kw_only=True)
class CheckpointSaved(Event):
    """The commit of a stage is durable (ruling 29)."""

    is_durable: ClassVar[bool] = False
    saved_node: str

    @property
    def node_id(self) -> str:
        """The node whose commit it is."""
        return self.saved_node


@dataclass(slots=True, kw_only=True)
class StageOutput(StageEvent):
    """A piece of a stage's output as it arrives: tokens of a model, lines of a tool.

    Attributes:
        text: The piece.
        channel: ``response``, ``stdout`` or ``stderr``.
    """

    is_durable: ClassVar[bool] = False
    text: str = ""
    channel: str = "response"


@dataclass(slots=True, kw_only=True)
class EventsDropped(Event):
    """A consumer was too slow and missed ``count`` events; the log has them all."""

    is_durable: ClassVar[bool] = False
    count: int

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.count} events were not delivered"


@dataclass(slots=True, kw_only=True)
class ParallelStarted(StageEvent):
    """A fan-out begins, or begins again because it is tried again.

    Attributes:
        branch_count: How many branches it has.
        join: Where they meet; empty when they run to their ends.
        join_policy: When it has succeeded.
        error_policy: What a failed branch means for the others.
        max_parallel: How many run at the same time.
    """

    branch_count: int = 0
    join: str = ""
    join_policy: str = ""
    error_policy: str = ""
    max_parallel: int = 0

    @property
    def description(self) -> str:
        """One line for people."""
        count = f"{self.branch_count} branch{'es' * (self.branch_count != 1)}"
        return f"{self.name}: {count}, {self.max_parallel} at a time, {self.join_policy}"


@dataclass(slots=True, kw_only=True)
class ParallelBranchStarted(StageEvent):
    """A branch begins. ``name`` is the fan-out, ``branch`` its own path, ``index`` its place from 0.

    Attributes:
        id: Its id among the branches.
        start_node: Where it begins.
        edge: Position of the edge that leads there in ``Graph.edges``.
    """

    id: str = ""
    start_node: str = ""
    edge: int | None = None

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.name}: branch {self.id} started"


@dataclass(slots=True, kw_only=True)
class ParallelBranchCompleted(StageEvent):
    """A branch ended. ``name`` is the fan-out, ``branch`` its own path, ``index`` its place from 0.

    Attributes:
        id: Its id among the branches.
        duration: Seconds, in this session.
        success: Whether it counts as a success.
        status: ``success``, ``partial_success``, ``fail``, or ``skipped`` when it was cancelled.
        failure_reason: Why it failed or was cancelled, or empty.
        exit_id: The exit node that it came to, or empty.
    """

    id: str = ""
    duration: float = 0.0
    success: bool = False
    status: str = ""
    failure_reason: str = ""
    exit_id: str = ""

    @property
    def description(self) -> str:
        """One line for people."""
        why = f": {self.failure_reason}" if self.failure_reason else ""
        return f"{self.name}: branch {self.id} {self.status} in {self.duration:.1f} s{why}"


@dataclass(slots=True, kw_only=True)
class ParallelCompleted(StageEvent):
    """All branches of a fan-out ended. ``duration`` in seconds, in this session."""

    duration: float = 0.0
    success_count: int = 0
    failure_count: int = 0

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.name}: {self.success_count} succeeded, {self.failure_count} failed"


@dataclass(slots=True, kw_only=True)
class ChildStarted(StageEvent):
    """A stage has started a child run, or has taken up the one that it had (spec 4.11, 9.4).

    Attributes:
        child_id: Run id of the child.
        child_root: Its run directory: relative to this run's own one where it is inside.
        pipeline: Name of its pipeline.
        is_taken_up: The child run existed already.
    """

    child_id: str = ""
    child_root: str = ""
    pipeline: str = ""
    is_taken_up: bool = False

    @property
    def stage_path(self) -> str:
        """The node, in a branch ``branch/node``."""
        return f"{self.branch}/{self.name}" if self.branch else self.name

    @property
    def description(self) -> str:
        """One line for people."""
        verb = "took up" if self.is_taken_up else "started"
        return f"{self.name} {verb} the child run {self.child_id} of {self.pipeline or 'a pipeline'}"


@dataclass(slots=True, kw_only=True)
class ChildEnded(StageEvent):
    """A stage is done with its child run, which has ended or was stopped for good.

    Attributes:
        child_id: Run id of the child.
        child_root: Its run directory, as in ``ChildStarted``.
        status: ``completed``, ``failed`` or ``interrupted``.
        reason: Why it failed or was stopped, or empty.
    """

    child_id: str = ""
    child_root: str = ""
    status: str = ""
    reason: str = ""

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.name}: child run {self.child_id} {self.status}{': ' * bool(self.reason)}{self.reason}"


@dataclass(slots=True, kw_only=True)
class ChildSteered(StageEvent):
    """A supervisor gave its child run an instruction (spec 4.11).

    Attributes:
        child_id: Run id of the child.
        child_stage: The node that was under way there, or empty.
        text: The instruction.
    """

    child_id: str = ""
    child_stage: str = ""
    text: str = ""

    @property
    def description(self) -> str:
        """One line for people."""
        where = f" at {self.child_stage}" if self.child_stage else ""
        return f"{self.name} steers its child{where}: {self.text}"


@dataclass(slots=True, kw_only=True)
class InstructionGiven(Event):
    """The run's supervisor gave it an instruction, which the next prompt carries.

    Attributes:
        text: The instruction.
        given_by: The supervising node, by its path.
        stage: The node that was under way, or empty.
        file: Name of the file of that stage which holds it, or empty.
    """

    text: str
    given_by: str = ""
    stage: str = ""
    file: str = ""

    @property
    def node_id(self) -> str:
        """The node that was under way, or empty."""
        return self.stage

    @property
    def description(self) -> str:
        """One line for people."""
        return f"instruction from {self.given_by or 'outside'}: {self.text}"


@dataclass(slots=True, kw_only=True)
class ChildEvent(StageEvent):
    """An event of a child run, for who watches the parent; it is recorded in the child's own log.

    Attributes:
        child_id: Run id of the child.
        event: What happened there; for a child's child a ``ChildEvent`` again.
    """

    is_durable: ClassVar[bool] = False
    child_id: str = ""
    event: Event

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.name} > {self.event.description}"

    def to_plain(self) -> dict[str, Any]:
        """JSON values, the child's event likewise."""
        plain = Event.to_plain(self)
        plain["event"] = self.event.to_plain()
        return plain


EVENT_TYPES: Mapping[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        PipelineStarted,
        PipelineResumed,
        PipelineRewound,
        PipelineCompleted,
        PipelineFailed,
        PipelineInterrupted,
        PipelineRestarted,
        StageStarted,
        StageCompleted,
        StageFailed,
        StageRetrying,
        StageOutput,
        GoalGateUnsatisfied,
        RunWarning,
        InterviewStarted,
        InterviewCompleted,
        InterviewTimeout,
        InterviewInformed,
        CheckpointSaved,
        EventsDropped,
        ParallelStarted,
        ParallelBranchStarted,
        ParallelBranchCompleted,
        ParallelCompleted,
        ChildStarted,
        ChildEnded,
        ChildSteered,
        ChildEvent,
        InstructionGiven,
    )
}
"""All events by name: the page where every signal can be seen."""

_FIELDS: dict[type[Event], tuple[str, ...]] = {
    kind: tuple(entry.name for entry in fields(kind)) for kind in EVENT_TYPES.values()
}
_EMPTY_LEFT_OUT = frozenset({str, tuple, dict, bool})
_REQUIRED_TEXTS: dict[type[Event], dict[str, Any]] = {
    kind: {entry.name: "" for entry in fields(kind) if entry.type == "str" and entry.default is MISSING}
    for kind in EVENT_TYPES.values()
}
"""Texts without a default: an empty one was left out all the same, such as the name of a graph."""

EventObserver = Callable[[Event], None]


def _tuple_from_plain(value: list[Any]) -> tuple[Any, ...]:
    return tuple(tuple(cast("list[str]", item)) if isinstance(item, list) else item for item in value)


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "options": _tuple_from_plain,
    "keys": _tuple_from_plain,
    "logs": _tuple_from_plain,
    "passed_over": _tuple_from_plain,
    "outcome": Outcome.from_plain,
    "node_usage": Usage.from_plain,
    "run_usage": Usage.from_plain,
    "event": lambda plain: event_from_plain(plain),  # noqa: PLW0108 - it is defined below
}
_READERS_OF: dict[type[Event], tuple[tuple[str, Callable[[Any], Any]], ...]] = {
    kind: tuple((name, _READERS[name]) for name in names if name in _READERS)
    for kind, names in _FIELDS.items()
}
"""The fields of an event whose value is not what JSON has, and what makes it of that."""


def event_from_plain(plain: Mapping[str, Any]) -> Event:
    """The inverse of ``Event.to_plain``; what an event of that type does not have is left out.

    Raises:
        KeyError, TypeError, ValueError: The record is of no known type or shape; the reader of the
            log turns that into its own error.
    """
    kind = EVENT_TYPES[plain["type"]]
    # By our own names: a call compares names by identity first, and those of a text are others.
    values = {**_REQUIRED_TEXTS[kind], **{name: plain[name] for name in _FIELDS[kind] if name in plain}}
    for name, read in _READERS_OF[kind]:
        if name in values:
            values[name] = read(values[name])
    return kind(**values)
