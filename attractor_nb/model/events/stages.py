"""Events of stages: attempts, calls of models and tools, fan-outs and their branches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from attractor_nb.model.events.event import Event
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.model.record import Count, always, no_values
from attractor_nb.model.states import stage_word


class StageEvent(Event, kw_only=True):
    """The common fields of the events of one stage.

    Attributes:
        name: The node's id.
        index: Ordinal of the visit in the run, from 1.
        visit: Ordinal of the visit to this node, from 1.
        attempt: Ordinal of the try within the visit, from 1.
    """

    if TYPE_CHECKING:  # fields of both kinds below, which have the branch at other places
        name: str = ""
        index: int = 0
        visit: int = 1
        attempt: int = 1

    @property
    def node_id(self) -> str:
        """The node's id."""
        return self.name


class StageSignal(StageEvent, kw_only=True):
    """An event of a stage that is still running."""

    branch: str = ""
    name: str = ""
    index: Count = always(0)
    visit: Count = always(1)
    attempt: Count = always(1)


class AttemptEvent(StageEvent, kw_only=True):
    """An attempt begins or ends."""

    name: str = ""
    index: Count = always(0)
    visit: Count = always(1)
    attempt: Count = always(1)


class StageStarted(AttemptEvent, kw_only=True):
    """An attempt begins: the intent record."""

    branch: str = ""
    handler_type: str = ""  #: The handler that runs it.
    fidelity: str = ""  #: Resolved fidelity mode of a model stage (spec 5.4), else empty.
    thread: str = ""  #: Thread key under ``full`` fidelity, else empty.

    @property
    def description(self) -> str:
        """One line for users."""
        return f"{self.name} started" + (f" (attempt {self.attempt})" if self.attempt > 1 else "")


class StageEnd(AttemptEvent, kw_only=True):
    """The commit of a stage, and with ``will_retry`` the end of an attempt that is not the last."""

    duration: float = always(0.0)  #: Seconds, waits between attempts included.
    outcome: Outcome  #: The final outcome without its context updates, which ``context`` has.
    branch: str = ""
    #: Every context key that the stage changed, with its new value.
    context: Mapping[str, Any] = msgspec.field(default_factory=no_values)
    next_node: str = ""  #: Node where the run continues; empty when it ends here.
    edge: Count | None = None  #: Position of the edge taken in ``Graph.edges``; None for a jump or an end.
    #: Deciding rule: ``condition``, ``preferred_label``, ``suggested_id``, ``default``, ``weight``, ``retry_target``,
    #: ``end`` …
    route: str = ""
    route_detail: str = ""  #: Reason of the decision, in words: the condition and the values that it saw.
    logs: tuple[str, ...] = ()  #: Entries the stage appended to the run log.
    thread: str = ""  #: The thread whose conversation continues what the attempt saved, or empty (spec 5.4).
    commit: str = ""  #: The commit of the run's worktree at which the stage left it; empty where there is none.
    #: Usage of the node in this run, this attempt included; None when the attempt consumed nothing.
    node_usage: Usage | None = None
    run_usage: Usage | None = None  #: Usage of the whole run, likewise.
    is_cached: bool = False  #: The result came from the cache: nothing was executed, and it consumed nothing.
    saved: Usage | None = None  #: Usage of its original execution; None when that is unknown.

    @property
    def is_commit(self) -> bool:
        """True if it ends the stage."""
        return True


class StageCompleted(StageEnd, kw_only=True):
    """A stage ended in success, partial success or skipped."""

    @property
    def description(self) -> str:
        """One line for users."""
        if self.is_cached:
            return f"{self.name} {stage_word(self.outcome.status)} from the cache"
        return f"{self.name} {stage_word(self.outcome.status)} in {self.duration:.1f} s"


class StageFailed(StageEnd, kw_only=True):
    """An attempt failed: for good, or to be tried again when ``will_retry``."""

    error: str = ""  #: Reason of the failure.
    will_retry: bool = False  #: Another attempt follows.

    @property
    def is_commit(self) -> bool:
        """True if it ends the stage."""
        return not self.will_retry

    @property
    def description(self) -> str:
        """One line for users."""
        return f"{self.name} failed: {self.error}"


class StageRetrying(StageSignal, kw_only=True):
    """Another attempt follows. ``delay`` in seconds; ``attempt`` is the one to come."""

    delay: float = always(0.0)  #: Seconds until the next attempt.

    @property
    def description(self) -> str:
        """One line for users."""
        return f"{self.name} is tried again in {self.delay:.1f} s (attempt {self.attempt})"


class StageOutput(StageSignal, kw_only=True):
    """A piece of a stage's output as it arrives: tokens of a model, lines of a tool."""

    is_durable: ClassVar[bool] = False
    text: str = ""  #: The piece.
    channel: str = always("response")  #: ``response``, ``stdout`` or ``stderr``.


# Calls within an attempt: of a model, and of the tools that it asked for (spec 4.5, 9.7).


class ModelCallEnded(StageSignal, kw_only=True):
    """A model was asked once, and answered or failed."""

    model: str = ""  #: The model, with its provider: ``openai:gpt-5.2``.
    duration: float = always(0.0)  #: Seconds from the request to the end of the answer.
    usage: Usage | None = None  #: Its usage; None when it is unknown.
    #: Finish reason of the answer: ``stop``, ``length``, ``tool_call``, ``content_filter``; empty when the call failed.
    finish: str = ""
    error: str = ""  #: Reason of the failure, or empty.
    #: The kind of failure in a word of few: the HTTP status (``429``), ``timeout``, or the name of an exception's
    #: class; empty when it did not fail.
    error_type: str = ""
    thread: str = ""  #: The conversation that it continued, or empty.
    #: The model as its server names it in the answer: ``gpt-5.2-2026-05-01``; empty when it does not.
    answered_by: str = ""

    @property
    def description(self) -> str:
        """One line for users."""
        if self.error:
            return f"{self.name}: {self.model} failed: {self.error}"
        tokens = f", {self.usage.total_tokens} tokens" if self.usage else ""
        return f"{self.name}: {self.model} answered in {self.duration:.1f} s{tokens}"


class ModelCallWaiting(StageSignal, kw_only=True):
    """A request waits until the rates of its provider allow it; announced when that takes over a second."""

    model: str = ""  #: The model that will be asked, with its provider.
    seconds: float = always(0.0)  #: Shortest wait in seconds.
    rates: str = ""  #: The bounds, in words: ``60 requests a minute``.

    @property
    def description(self) -> str:
        """One line for users."""
        return f"{self.name}: waits about {self.seconds:.0f} s for {self.model} ({self.rates})"


class ToolCallEnded(StageSignal, kw_only=True):
    """A tool that a model asked for was called, or skipped by a hook (spec 9.7)."""

    tool: str = ""  #: Its name.
    call_id: str = ""  #: The model's name of the call.
    #: Its arguments; long texts are cut off.
    arguments: Mapping[str, Any] = msgspec.field(default_factory=no_values)
    duration: float = always(0.0)  #: Seconds, hooks included.
    result: str = ""  #: The beginning of what the model was told.
    error: str = ""  #: Reason of the failure, or empty.
    skipped: str = ""  #: Reason why the pre-hook skipped it, or empty.
    #: Results of the hooks, oldest first: ``pre`` or ``post``, the exit code, and the end of their output on
    #: stderr.
    hooks: tuple[tuple[str, int, str], ...] = ()

    @property
    def description(self) -> str:
        """One line for users."""
        if self.skipped:
            return f"{self.name}: {self.tool} was skipped: {self.skipped}"
        return f"{self.name}: {self.tool} failed: {self.error}" if self.error else f"{self.name}: {self.tool}"


# Fan-outs and their branches (spec 4.8).


class ParallelStarted(StageSignal, kw_only=True):
    """A fan-out begins, or begins again because it is tried again."""

    branch_count: Count = always(0)  #: Number of branches.
    join: str = ""  #: Their join; empty when they run to their ends.
    join_policy: str = ""  #: When it has succeeded.
    error_policy: str = ""  #: Effect of a failed branch on the others.
    max_parallel: Count = always(0)  #: Number of branches that run at the same time.

    @property
    def description(self) -> str:
        """One line for users."""
        count = f"{self.branch_count} branch{'es' * (self.branch_count != 1)}"
        return f"{self.name}: {count}, {self.max_parallel} at a time, {self.join_policy}"


class ParallelBranchStarted(StageSignal, kw_only=True):
    """A branch begins. ``name`` is the fan-out, ``branch`` its own path, ``index`` its place from 0."""

    id: str = ""  #: Its id among the branches.
    start_node: str = ""  #: First node.
    edge: Count | None = None  #: Position of the edge that leads there in ``Graph.edges``.

    @property
    def description(self) -> str:
        """One line for users."""
        return f"{self.name}: branch {self.id} started"


class ParallelBranchCompleted(StageSignal, kw_only=True):
    """A branch ended. ``name`` is the fan-out, ``branch`` its own path, ``index`` its place from 0."""

    id: str = ""  #: Its id among the branches.
    duration: float = always(0.0)  #: Seconds, in this session.
    success: bool = False  #: True if it counts as a success.
    status: str = ""  #: ``success``, ``partial_success``, ``fail``, or ``skipped`` when it was cancelled.
    failure_reason: str = ""  #: Reason of the failure or cancellation, or empty.
    exit_id: str = ""  #: The exit node that it reached, or empty.
    veto: str = ""  #: Reason why the fan-out fails under any policy, or empty.
    return_target: str = ""  #: Node where the fan-out continues then, or empty.

    @property
    def description(self) -> str:
        """One line for users."""
        why = f": {self.failure_reason}" if self.failure_reason else ""
        return f"{self.name}: branch {self.id} {stage_word(self.status)} in {self.duration:.1f} s{why}"


class ParallelCompleted(StageSignal, kw_only=True):
    """All branches of a fan-out ended. ``duration`` in seconds, in this session."""

    duration: float = always(0.0)  #: Seconds of all branches.
    success_count: Count = always(0)  #: Branches that succeeded.
    failure_count: Count = always(0)  #: Branches that failed.

    @property
    def description(self) -> str:
        """One line for users."""
        return f"{self.name}: {self.success_count} succeeded, {self.failure_count} failed"
