"""Stages and their attempts: intent, output, end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from attractor_nb.model.events.event import Event
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.model.record import Count, always, no_values


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
        """One line for people."""
        return f"{self.name} started" + (f" (attempt {self.attempt})" if self.attempt > 1 else "")


class StageEnd(AttemptEvent, kw_only=True):
    """The commit of a stage, and with ``will_retry`` the end of an attempt that is not the last."""

    duration: float = always(0.0)  #: Seconds, waits between attempts included.
    outcome: Outcome  #: The final outcome without its context updates, which ``context`` has.
    branch: str = ""
    #: Every context key that the stage changed, with its new value.
    context: Mapping[str, Any] = msgspec.field(default_factory=no_values)
    next_node: str = ""  #: Where the run goes on; empty when it ends here.
    edge: Count | None = None  #: Position of the edge taken in ``Graph.edges``; None for a jump or an end.
    #: Why that way: ``condition``, ``preferred_label``, ``suggested_id``, ``default``, ``weight``, ``retry_target``,
    #: ``end`` …
    route: str = ""
    route_detail: str = ""  #: What decided it, in words: the condition and the values that it saw.
    logs: tuple[str, ...] = ()  #: Entries the stage appended to the run log.
    thread: str = ""  #: The thread whose conversation goes on with what the attempt saved, or empty (spec 5.4).
    commit: str = ""  #: The commit of the run's worktree at which the stage left it; empty where there is none.
    #: What the node has consumed in this run, this attempt included; None when the attempt consumed nothing.
    node_usage: Usage | None = None
    run_usage: Usage | None = None  #: What the whole run has consumed, likewise.
    is_cached: bool = False  #: The result came from the cache: nothing was executed, and it consumed nothing.
    saved: Usage | None = None  #: What it had consumed when it was executed; None when that is not known.

    @property
    def is_commit(self) -> bool:
        """Whether it ends the stage."""
        return True


class StageCompleted(StageEnd, kw_only=True):
    """A stage ended in success, partial success or skipped."""

    @property
    def description(self) -> str:
        """One line for people."""
        if self.is_cached:
            return f"{self.name} {self.outcome.status} from the cache"
        return f"{self.name} {self.outcome.status} in {self.duration:.1f} s"


class StageFailed(StageEnd, kw_only=True):
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


class StageRetrying(StageSignal, kw_only=True):
    """Another attempt follows. ``delay`` in seconds; ``attempt`` is the one to come."""

    delay: float = always(0.0)

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.name} is tried again in {self.delay:.1f} s (attempt {self.attempt})"


class StageOutput(StageSignal, kw_only=True):
    """A piece of a stage's output as it arrives: tokens of a model, lines of a tool."""

    is_durable: ClassVar[bool] = False
    text: str = ""  #: The piece.
    channel: str = always("response")  #: ``response``, ``stdout`` or ``stderr``.
