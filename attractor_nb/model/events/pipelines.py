"""Events of runs: beginning, end, messages of the engine, child runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import msgspec

from attractor_nb.model.checkpoint import SurvivingTotals
from attractor_nb.model.events.event import RunEvent
from attractor_nb.model.events.stages import StageSignal
from attractor_nb.model.instruction import Instruction
from attractor_nb.model.outcome import Answers, ResultMarks, Usage
from attractor_nb.model.record import Count, always, no_values
from attractor_nb.model.states import run_word

LOG_FORM: Final = 1
"""Version of the form of the log's records: a change that older readers would take wrongly is a new one."""


class PipelineStarted(RunEvent, kw_only=True):
    """A run begins (first record of its log)."""

    name: str = ""  #: Name of the pipeline.
    id: str = ""  #: The run id.
    graph_hash: str = ""  #: ``Graph.content_hash`` of what runs.
    inputs: Mapping[str, Any] = msgspec.field(default_factory=no_values)  #: Context values given by the caller.
    #: Names of those of them that prompts do not carry by themselves: what an item of a list has of the run around it.
    unlisted: tuple[str, ...] = ()
    start_node: str = ""  #: First node of the traversal.
    restart_of: str = ""  #: For a ``loop_restart``: the run directory it continues, else empty.
    #: For a ``loop_restart``: what starting over does not undo; None for every other beginning.
    carried: SurvivingTotals | None = None
    #: As in the manifest, which can be made again from here.
    goal: str = ""
    model: str = ""  #: Model of the graph, or empty.
    node_count: Count = always(0)  #: Nodes of the graph.
    backend: str = ""  #: Name of the backend.
    answers: Answers = ""  #: Kind of answers that prompts and commands get: ``real``, ``simulated`` or empty for none.
    schema_version: Count = always(LOG_FORM)  #: Version of the form of the log's records.

    @property
    def description(self) -> str:
        """One line for users."""
        return f"pipeline {self.name or 'without a name'} started"


class PipelineResumed(RunEvent, kw_only=True):
    """A stopped run resumes."""

    next_node: str = ""  #: Node where it continues.
    graph_hash: str = ""  #: Hash of the graph with which it continues.
    interrupted_node: str = ""  #: The stage that was cut off before its commit, or empty.
    on_interrupted: str = ""  #: Rule for it: ``rerun``, ``ask`` or ``fail``.
    #: By node: what attempts had consumed that were cut off with their process (``Usage``). A request that was made and
    #: whose end is not known is a call without a known price.
    cut_off: Mapping[str, Any] = msgspec.field(default_factory=no_values)
    #: Backend from now on, as in the manifest.
    backend: str = ""
    answers: Answers = ""  #: Kind of answers that prompts and commands get: ``real``, ``simulated`` or empty for none.

    @property
    def description(self) -> str:
        """One line for users."""
        return f"resumed at {self.next_node}{self.what_becomes_of_it}"

    @property
    def what_becomes_of_it(self) -> str:
        """The fate of the interrupted stage, in words that follow its name; empty if there is none."""
        return _CUT_OFF.get(self.on_interrupted, "")

    @property
    def node_id(self) -> str:
        """The node where the run continues."""
        return self.next_node


class PipelineRewound(RunEvent, kw_only=True):
    """The run goes back to just before a visit; what came after is set aside, and stays in the log."""

    node: str = ""  #: The node that is visited next.
    visit: Count  #: Number of the visit that it goes back behind; the next one has a new number.
    to_sequence: Count  #: The last event before that visit: those after it, up to this one, count no more.
    stages: Count = always(0)  #: Number of stages that are set aside.
    #: Totals of a run that a rewind does not undo: spending, and used visit numbers.
    carried: SurvivingTotals | None = None
    #: Values of the context that are others from there on, as the context keeps them.
    context: Mapping[str, Any] = msgspec.field(default_factory=no_values)
    prompt: str = ""  #: The prompt of that node from there on, in this run; empty for that of the graph.

    @property
    def description(self) -> str:
        """One line for users."""
        count = f"{self.stages} stage{'s' * (self.stages != 1)}" if self.stages else "no stage"
        changes = _changes_in_words(self.context, self.prompt)
        return f"rewound to {self.node}, visit {self.visit}: {count} set aside{changes}"

    @property
    def node_id(self) -> str:
        """The node where the run continues."""
        return self.node


class PipelineForked(RunEvent, kw_only=True):
    """The run begins here as a fork: what is before is a copy of its parent's way."""

    node: str = ""  #: The node that is visited next.
    visit: Count  #: Number of the visit that the parent made there.
    parent_id: str = ""  #: Run id of the parent.
    parent_root: str = ""  #: Its run directory, as it was called then.
    parent_sequence: Count = always(0)  #: The last event of the parent's log that was copied.
    #: Values of the context that are others from here on, as the context keeps them.
    context: Mapping[str, Any] = msgspec.field(default_factory=no_values)
    prompt: str = ""  #: The prompt of that node from here on, in this run; empty for that of the graph.
    spent: Usage | None = None  #: Usage of the parent by then; the fork counts its own alone.
    is_single_stage: bool = False  #: The run ends after that visit.

    @property
    def description(self) -> str:
        """One line for users."""
        changes = _changes_in_words(self.context, self.prompt)
        end = ", to execute it alone" if self.is_single_stage else ""
        return f"forked from {self.parent_id} before {self.node}, visit {self.visit}{changes}{end}"

    @property
    def node_id(self) -> str:
        """The node where the run continues."""
        return self.node


def _changes_in_words(context: Mapping[str, Any], prompt: str) -> str:
    parts = [*context, *(["the prompt"] if prompt else [])]
    return f"; changed: {', '.join(parts)}" if parts else ""


class PipelineCompleted(RunEvent, kw_only=True):
    """The run ended in success. ``duration`` in seconds of running time."""

    duration: float  #: Seconds that the run took.
    artifact_count: Count = always(0)  #: Artifacts that stages stored.

    @property
    def description(self) -> str:
        """One line for users."""
        return f"pipeline completed in {self.duration:.1f} s"


class PipelineFailed(RunEvent, kw_only=True):
    """The run ended in failure."""

    error: str = ""  #: The reason.
    duration: float  #: Seconds of running time.
    is_resumable: bool = False  #: A bound or budget stopped it: with a higher one it may continue.
    bound: str = ""  #: Name of that bound, or empty.

    @property
    def description(self) -> str:
        """One line for users."""
        return f"pipeline failed: {self.error}"


class PipelineInterrupted(RunEvent, kw_only=True):
    """The run was stopped, or paused after a step, and can be resumed."""

    reason: str = ""  #: ``cancelled``, ``paused``, the storage fault, or why a stage could not be executed.
    next_node: str = ""  #: Node where a resume continues.
    duration: float = always(0.0)  #: Seconds of running time.
    is_unmeasured: bool = False  #: A stage could not be executed for a reason outside the pipeline (ruling 51).

    @property
    def description(self) -> str:
        """One line for users."""
        return f"{self.reason}; resume at {self.next_node}" if self.next_node else self.reason


class PipelineRestarted(RunEvent, kw_only=True):
    """A ``loop_restart`` edge was taken: the run continues in a fresh directory (ruling 21)."""

    target: str = ""  #: First node of the fresh run.
    restarts: Count  #: Number of restarts, this one included.
    logs_root: str = ""  #: The fresh run directory.

    @property
    def description(self) -> str:
        """One line for users."""
        return f"restarted at {self.target}"


SessionStart = PipelineStarted | PipelineResumed | PipelineRewound | PipelineForked | PipelineRestarted
SESSION_STARTS: Final = (PipelineStarted, PipelineResumed, PipelineRewound, PipelineForked, PipelineRestarted)
"""With these a run begins or continues: earlier waits are over."""
SESSION_ENDS: Final = (PipelineCompleted, PipelineFailed, PipelineInterrupted)
"""The last event of a run in one process is one of these."""


class GoalGateUnsatisfied(RunEvent, kw_only=True):
    """At the exit a goal gate was not satisfied, and the run goes back (spec 3.4)."""

    gate: str = ""  #: The unsatisfied gate.
    target: str = ""  #: Node where the run continues.
    redirects: Count  #: Number of redirects by goal gates, this one included.
    passed_over: tuple[str, ...] = ()  #: Gates between target and exit that must be executed again (ruling 17).

    @property
    def node_id(self) -> str:
        """The gate."""
        return self.gate

    @property
    def description(self) -> str:
        """One line for users."""
        return f"goal gate `{self.gate}` is not satisfied; back to {self.target}"


class RunWarning(RunEvent, kw_only=True):
    """Something a person should know that stops nothing, such as a gate that was never visited."""

    message: str = ""  #: The warning, in a sentence.
    node: str = ""  #: The node that it is about, or empty.

    @property
    def node_id(self) -> str:
        """The node concerned, or empty."""
        return self.node

    @property
    def description(self) -> str:
        """One line for users."""
        return self.message


class CheckpointSaved(RunEvent, kw_only=True):
    """The commit of a stage is durable (ruling 29)."""

    is_durable: ClassVar[bool] = False
    saved_node: str = ""  #: The node whose stage was committed.

    @property
    def node_id(self) -> str:
        """The node whose commit it is."""
        return self.saved_node


class EventsDropped(RunEvent, kw_only=True):
    """A consumer was too slow and missed ``count`` events; the log has them all."""

    is_durable: ClassVar[bool] = False
    count: Count  #: Events that an observer did not receive.

    @property
    def description(self) -> str:
        """One line for users."""
        return f"{self.count} events were not delivered"


_CUT_OFF = {
    "rerun": ", which was cut off and is run again",
    "ask": ", which was cut off and is asked about",
    "fail": ", which was cut off and is recorded as failed",
}


# Child runs, and what supervisors and users tell a run (spec 4.11).


def child_path(branch: str, node_id: str, item: int | None) -> str:
    """The path of the stage whose child run it is, or of the item.

    >>> child_path("", "review", None), child_path("fan/a", "review", 3)
    ('review', 'fan/a/review/3')
    """
    parts = (branch, node_id) if item is None else (branch, node_id, str(item))
    return "/".join(filter(None, parts))


class ChildStarted(StageSignal, kw_only=True):
    """A stage has started a child run, or has taken up the one that it had (spec 4.11, 9.4)."""

    child_id: str = ""  #: Run id of the child.
    child_root: str = ""  #: Its run directory: relative to this run's own one where it is inside.
    pipeline: str = ""  #: Name of its pipeline.
    is_taken_up: bool = False  #: The child run existed already.
    item: Count | None = None  #: The index of the item whose run it is; None for the child run of a whole stage.
    item_count: Count = 0  #: Number of items of the stage.

    @property
    def stage_path(self) -> str:
        """The node, in a branch ``branch/node``, of an item ``node/index``."""
        return child_path(self.branch, self.name, self.item)

    @property
    def description(self) -> str:
        """One line for users."""
        verb = "took up" if self.is_taken_up else "started"
        what = f"of {self.pipeline or 'a pipeline'}"
        if self.item is not None:
            what = f"of item {self.item} ({self.item + 1} of {self.item_count})"
        return f"{self.name} {verb} the child run {self.child_id} {what}"


class ChildEnded(StageSignal, kw_only=True):
    """A stage is done with its child run, which has ended or was stopped for good."""

    child_id: str = ""  #: Run id of the child.
    child_root: str = ""  #: Its run directory, as in ``ChildStarted``.
    status: str = ""  #: ``completed``, ``failed`` or ``interrupted``.
    reason: str = ""  #: Reason of the failure or stop, or empty.
    marks: ResultMarks = ResultMarks()  #: Mark of its result, and so of this run's (ruling 48).
    item: Count | None = None  #: As in ``ChildStarted``.
    usage: Usage | None = None  #: Its usage by then; None for nothing.

    @property
    def description(self) -> str:
        """One line for users."""
        what = f"child run {self.child_id}" if self.item is None else f"item {self.item}"
        return f"{self.name}: {what} {run_word(self.status)}{': ' * bool(self.reason)}{self.reason}"


class ChildSteered(StageSignal, kw_only=True):
    """A supervisor gave its child run an instruction (spec 4.11)."""

    child_id: str = ""  #: Run id of the child.
    child_stage: str = ""  #: The node that was under way there, or empty.
    text: str = ""  #: The instruction.

    @property
    def description(self) -> str:
        """One line for users."""
        where = f" at {self.child_stage}" if self.child_stage else ""
        return f"{self.name} steers its child{where}: {self.text}"


class InstructionGiven(RunEvent, kw_only=True):
    """The run's supervisor, or a person, gave it an instruction, which the next prompt carries."""

    text: str = ""  #: The instruction.
    given_by: str = ""  #: The supervising node, by its path; or how a person gave it: ``ada (page)``.
    stage: str = ""  #: The model stage that was under way, or empty.
    file: str = ""  #: Name of the file of that stage which holds it, or empty.
    node: str = ""  #: The node whose prompts alone carry it; empty for any.
    is_from_person: bool = False  #: A person gave it.

    @property
    def instruction(self) -> Instruction:
        """The instruction that waits for a prompt."""
        return Instruction(self.text, self.node, self.is_from_person)

    @property
    def node_id(self) -> str:
        """The node that it is for, else the one that was under way; or empty."""
        return self.node or self.stage

    @property
    def description(self) -> str:
        """One line for users."""
        whom = f" for {self.node}" if self.node else ""
        return f"instruction from {self.given_by or 'outside'}{whom}: {self.text}"


class InstructionCarried(StageSignal, kw_only=True):
    """An attempt under way received instructions that its prompt did not have."""

    numbers: tuple[Count, ...] = ()  #: Their numbers: the first in this run directory is 1.
    #: ``request``: with the next request of its loop of tools; ``turn``: as the next turn of its agent.
    reach: str = ""

    @property
    def description(self) -> str:
        """One line for users."""
        what = "an instruction" if len(self.numbers) == 1 else f"{len(self.numbers)} instructions"
        how = "as the next turn of its agent" if self.reach == "turn" else "with its next request"
        return f"{self.name} received {what} {how}"
