"""The run as a whole: its beginning, its ends, and what the engine has to say of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import msgspec

from attractor_nb.model.carried_state import SurvivingTotals
from attractor_nb.model.events.event import RunEvent
from attractor_nb.model.outcome import Usage
from attractor_nb.model.record import Count, always, no_values
from attractor_nb.model.result_marks import Answers

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
    start_node: str = ""  #: Where the traversal begins.
    restart_of: str = ""  #: For a ``loop_restart``: the run directory it continues, else empty.
    #: For a ``loop_restart``: what starting over does not undo; None for every other beginning.
    carried: SurvivingTotals | None = None
    #: As in the manifest, which can be made again from here.
    goal: str = ""
    model: str = ""
    node_count: Count = always(0)
    backend: str = ""
    answers: Answers = ""
    schema_version: Count = always(LOG_FORM)  #: Version of the form of the log's records.

    @property
    def description(self) -> str:
        """One line for people."""
        return f"pipeline {self.name or 'without a name'} started"


class PipelineResumed(RunEvent, kw_only=True):
    """A stopped run resumes."""

    next_node: str = ""  #: Where it goes on.
    graph_hash: str = ""  #: Hash of the graph it goes on with.
    interrupted_node: str = ""  #: The stage that was cut off before its commit, or empty.
    on_interrupted: str = ""  #: What becomes of it: ``rerun``, ``ask`` or ``fail``.
    #: By node: what attempts had consumed that were cut off with their process (``Usage``). A request that was made and
    #: whose end is not known is a call without a known price.
    cut_off: Mapping[str, Any] = msgspec.field(default_factory=no_values)
    #: What answers from now on, as in the manifest.
    backend: str = ""
    answers: Answers = ""

    @property
    def description(self) -> str:
        """One line for people."""
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
    stages: Count = always(0)  #: How many stages are set aside.
    #: What going back does not undo of a run: what was spent, which visit numbers are used.
    carried: SurvivingTotals | None = None
    #: Values of the context that are others from there on, as the context keeps them.
    context: Mapping[str, Any] = msgspec.field(default_factory=no_values)
    prompt: str = ""  #: The prompt of that node from there on, in this run; empty for that of the graph.

    @property
    def description(self) -> str:
        """One line for people."""
        count = f"{self.stages} stage{'s' * (self.stages != 1)}" if self.stages else "no stage"
        changes = _changes_in_words(self.context, self.prompt)
        return f"rewound to {self.node}, visit {self.visit}: {count} set aside{changes}"

    @property
    def node_id(self) -> str:
        """The node where the run continues."""
        return self.node


class PipelineForked(RunEvent, kw_only=True):
    """The run begins here as a fork: what stands before is a copy of its parent's way."""

    node: str = ""  #: The node that is visited next.
    visit: Count  #: Number of the visit that the parent made there.
    parent_id: str = ""  #: Run id of the parent.
    parent_root: str = ""  #: Its run directory, as it was called then.
    parent_sequence: Count = always(0)  #: The last event of the parent's log that was copied.
    #: Values of the context that are others from here on, as the context keeps them.
    context: Mapping[str, Any] = msgspec.field(default_factory=no_values)
    prompt: str = ""  #: The prompt of that node from here on, in this run; empty for that of the graph.
    spent: Usage | None = None  #: What the parent had consumed by then; the fork counts its own alone.

    @property
    def description(self) -> str:
        """One line for people."""
        changes = _changes_in_words(self.context, self.prompt)
        return f"forked from {self.parent_id} before {self.node}, visit {self.visit}{changes}"

    @property
    def node_id(self) -> str:
        """The node where the run continues."""
        return self.node


def _changes_in_words(context: Mapping[str, Any], prompt: str) -> str:
    parts = [*context, *(["the prompt"] if prompt else [])]
    return f"; changed: {', '.join(parts)}" if parts else ""


class PipelineCompleted(RunEvent, kw_only=True):
    """The run ended in success. ``duration`` in seconds of running time."""

    duration: float
    artifact_count: Count = always(0)

    @property
    def description(self) -> str:
        """One line for people."""
        return f"pipeline completed in {self.duration:.1f} s"


class PipelineFailed(RunEvent, kw_only=True):
    """The run ended in failure."""

    error: str = ""  #: The reason.
    duration: float  #: Seconds of running time.
    is_resumable: bool = False  #: A bound or budget stopped it: with a higher one it may go on.
    bound: str = ""  #: Name of that bound, or empty.

    @property
    def description(self) -> str:
        """One line for people."""
        return f"pipeline failed: {self.error}"


class PipelineInterrupted(RunEvent, kw_only=True):
    """The run was stopped, or paused after a step, and can be resumed."""

    reason: str = ""  #: ``cancelled``, ``paused``, the storage fault, or why a stage could not be executed.
    next_node: str = ""  #: Where a resume goes on.
    duration: float = always(0.0)  #: Seconds of running time.
    is_unmeasured: bool = False  #: A stage could not be executed for a reason outside the pipeline (ruling 51).

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.reason}; continue at {self.next_node}" if self.next_node else self.reason


class PipelineRestarted(RunEvent, kw_only=True):
    """A ``loop_restart`` edge was taken: the run continues in a fresh directory (ruling 21)."""

    target: str = ""  #: Where the fresh run begins.
    restarts: Count  #: How many restarts there were, this one included.
    logs_root: str = ""  #: The fresh run directory.

    @property
    def description(self) -> str:
        """One line for people."""
        return f"restarted at {self.target}"


SessionStart = PipelineStarted | PipelineResumed | PipelineRewound | PipelineForked | PipelineRestarted
SESSION_STARTS: Final = (PipelineStarted, PipelineResumed, PipelineRewound, PipelineForked, PipelineRestarted)
"""With these a run begins or goes on: whoever waited before waits no more."""


class GoalGateUnsatisfied(RunEvent, kw_only=True):
    """At the exit a goal gate was not satisfied, and the run goes back (spec 3.4)."""

    gate: str = ""  #: The unsatisfied gate.
    target: str = ""  #: Where the run goes on.
    redirects: Count  #: How many times gates have sent the run back, this one included.
    passed_over: tuple[str, ...] = ()  #: Gates between target and exit that must be executed again (ruling 17).

    @property
    def node_id(self) -> str:
        """The gate."""
        return self.gate

    @property
    def description(self) -> str:
        """One line for people."""
        return f"goal gate {self.gate} is not satisfied; back to {self.target}"


class RunWarning(RunEvent, kw_only=True):
    """Something a person should know that stops nothing, such as a gate that was never visited."""

    message: str = ""
    node: str = ""

    @property
    def node_id(self) -> str:
        """The node concerned, or empty."""
        return self.node

    @property
    def description(self) -> str:
        """One line for people."""
        return self.message


class CheckpointSaved(RunEvent, kw_only=True):
    """The commit of a stage is durable (ruling 29)."""

    is_durable: ClassVar[bool] = False
    saved_node: str = ""

    @property
    def node_id(self) -> str:
        """The node whose commit it is."""
        return self.saved_node


class EventsDropped(RunEvent, kw_only=True):
    """A consumer was too slow and missed ``count`` events; the log has them all."""

    is_durable: ClassVar[bool] = False
    count: Count

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.count} events were not delivered"


_CUT_OFF = {
    "rerun": ", which was cut off and is run again",
    "ask": ", which was cut off and is asked about",
    "fail": ", which was cut off and is recorded as failed",
}
