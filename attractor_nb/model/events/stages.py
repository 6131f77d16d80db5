"""Stages and their attempts: intent, output, end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from attractor_nb.model.events.event import Event
from attractor_nb.model.outcome import Outcome, Usage, no_values

if TYPE_CHECKING:
    from collections.abc import Mapping


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
        is_cached: The result came from the cache: nothing was executed, and it consumed nothing.
        saved: What it had consumed when it was executed; None when that is not known.
        thread: The thread whose conversation goes on with what the attempt saved, or empty (spec 5.4).
        commit: The commit of the run's worktree at which the stage left it; empty where there is none.
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
    thread: str = ""
    is_cached: bool = False
    saved: Usage | None = None
    commit: str = ""

    @property
    def is_commit(self) -> bool:
        """Whether it ends the stage."""
        return True

    def to_plain(self) -> dict[str, Any]:  # noqa: C901 - a field a line; a loop over them would be one more call
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
        if self.thread:
            plain["thread"] = self.thread
        if self.commit:
            plain["commit"] = self.commit
        if self.node_usage is not None or self.run_usage is not None or self.is_cached:
            self._add_spending(plain)
        return plain

    def _add_spending(self, plain: dict[str, Any]) -> None:
        """Add what was consumed, and what the cache saved."""
        if self.node_usage is not None:
            plain["node_usage"] = self.node_usage.to_plain()
        if self.run_usage is not None:
            plain["run_usage"] = self.run_usage.to_plain()
        if self.is_cached:
            plain["is_cached"] = True
            if self.saved is not None:
                plain["saved"] = self.saved.to_plain()


@dataclass(slots=True, kw_only=True)
class StageCompleted(StageEnd):
    """A stage ended in success, partial success or skipped."""

    @property
    def description(self) -> str:
        """One line for people."""
        if self.is_cached:
            return f"{self.name} {self.outcome.status} from the cache"
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
class StageOutput(StageEvent):
    """A piece of a stage's output as it arrives: tokens of a model, lines of a tool.

    Attributes:
        text: The piece.
        channel: ``response``, ``stdout`` or ``stderr``.
    """

    is_durable: ClassVar[bool] = False
    text: str = ""
    channel: str = "response"
