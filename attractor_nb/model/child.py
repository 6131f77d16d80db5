"""A child run as its parent's stage sees it: its status, and what can be done with it (spec 4.11)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from attractor_nb.model.outcome import ResultMarks, Usage
from attractor_nb.model.states import RunStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.events import StageEnd
    from attractor_nb.model.graph import Node

PREFIX: Final = "stack.child."
"""Context keys that describe a supervised child begin so (spec 5.1)."""
CHILD_SEPARATOR: Final = ">"
"""Between the nodes of a path into child runs: no identifier has it."""


class ChildSnapshot(msgspec.Struct, frozen=True):
    """A look at a child run."""

    run_id: str  #: Its id.
    logs_root: str  #: Its run directory, as text.
    status: str = "running"  #: ``running``, ``waiting`` for a person, ``completed``, ``failed``, or ``interrupted``.
    reason: str = ""  #: Reason of the failure or stop, or empty.
    active_stage: str = ""  #: The node under way, or empty between two.
    completed: tuple[str, ...] = ()  #: Nodes of the committed stages, in order.
    outcomes: Mapping[str, str] = {}  #: Latest status of each committed node.
    retries: Mapping[str, int] = {}  #: Failed attempts by node.
    artifacts: tuple[str, ...] = ()  #: Ids of the artifacts that it has stored.
    usage: Usage = msgspec.field(default_factory=Usage)  #: Usage of its model calls.
    #: Part of that usage that an earlier attempt of its stage has already counted.
    counted: Usage = msgspec.field(default_factory=Usage)
    marks: ResultMarks = ResultMarks()  #: Mark of its result.
    steered_ago: float | None = None  #: Seconds since it was given its latest instruction; None when it never was.
    is_unmeasured: bool = False  #: A stage of it could not be executed for a reason outside the pipeline (ruling 51).

    @property
    def outcome(self) -> str:
        """``success`` or ``fail`` once it has ended, else empty."""
        found = RunStatus.of(self.status)
        return found.value if found.is_over else ""

    @property
    def own_usage(self) -> Usage | None:
        """The usage of the child run in this attempt of its stage, or None."""
        return spent(self.usage.beyond(self.counted))

    @property
    def is_over(self) -> bool:
        """True if nothing more happens in it by itself: it has completed, failed, or was stopped."""
        return RunStatus.of(self.status).is_ended

    def to_context(self) -> dict[str, Any]:
        """The ``stack.child.*`` values of the parent's context.

        >>> ChildSnapshot("r1", "runs/r1", active_stage="plan").to_context()["stack.child.active_stage"]
        'plan'
        """
        return {
            f"{PREFIX}run_id": self.run_id,
            f"{PREFIX}logs_root": self.logs_root,
            **self.status_values(),
            f"{PREFIX}active_stage": self.active_stage,
            f"{PREFIX}completed": list(self.completed),
            f"{PREFIX}outcomes": dict(self.outcomes),
            f"{PREFIX}retries": sum(self.retries.values()),
            f"{PREFIX}retries_by_node": dict(self.retries),
            f"{PREFIX}artifacts": list(self.artifacts),
            f"{PREFIX}usage": self.usage.to_plain(),
        }

    def status_values(self) -> dict[str, Any]:
        """Of those values the ones that tell whether it has ended, and how."""
        return {f"{PREFIX}status": self.status, f"{PREFIX}outcome": self.outcome, f"{PREFIX}reason": self.reason}


def spent(usage: Usage) -> Usage | None:
    """A usage, or None for none at all."""
    return None if usage == Usage() else usage


class ListItem(msgspec.Struct, frozen=True):
    """An item of the list of a stage with `for_each`."""

    index: int  #: Its place in the list, from 0.
    count: int  #: Number of items.
    value: Any  #: The value.


class ChildProblem(msgspec.Struct, frozen=True):
    """The reason why a child pipeline cannot run."""

    node_id: str  #: The node that names it.
    attribute: str  #: The attribute that names it, or empty when none does.
    message: str  #: The problem.
    remedy: str  #: The remedy.
    is_of_graph: bool = False  #: The attribute is on the graph and not on the node.
    lacks_handler: bool = False  #: It can be read, and a node of it has no handler here.


class Child(Protocol):
    """A child run of the stage that is under way: a real run, with its own run directory (spec 4.11)."""

    @property
    def name(self) -> str:
        """Name of its pipeline."""
        ...

    def snapshot(self) -> ChildSnapshot:
        """The current state of the child run."""
        ...

    async def changed(self, timeout_seconds: float | None) -> float:
        """Wait until something happens in it: a stage begins or ends, a gate opens, it ends.

        What happened since the last call counts, so nothing is missed.

        Args:
            timeout_seconds: How long to wait, by the run's clock; None for as long as it takes.

        Returns:
            Seconds that it waited. For a child in another process, which can only be looked at, always the
            whole time.
        """
        ...

    def steer(self, text: str) -> bool:
        """Give it an instruction for its next prompt; False when it runs elsewhere or has ended."""
        ...

    def value(self, key: str, default: Any = None) -> Any:
        """A value of its context as of its last commit."""
        ...

    def commit_of(self, node_id: str) -> StageEnd | None:
        """The latest commit of a node of it; None while there is none."""
        ...

    async def end(self) -> ChildSnapshot:
        """Be done with it: one that still runs is stopped, and its end is recorded here.

        The next attempt of the stage begins its own child.
        """
        ...

    async def stop(self) -> None:
        """Stop it within a second at its current stage, so that this stage can take it up when it is run again."""
        ...


class Children(Protocol):
    """The source of a stage's child runs (spec 4.11, 9.4)."""

    async def start(self, node: Node, inputs: Mapping[str, Any], item: ListItem | None = None) -> Child:
        """Start the child run of a node, or take up the one of an attempt that was cut off.

        A child that had ended by then is only read; another is resumed, and nothing that it had committed
        is run again.

        Args:
            node: The node, which names the child's pipeline.
            inputs: What its context begins with.
            item: The item whose run it is, when the stage has one for each.
        """
        ...

    async def ended(self, node: Node, item: ListItem) -> Child | None:
        """The run of an item that had ended before this attempt, to be read; None when there is none."""
        ...

    async def join(self, node: Node, logs_root: str) -> Child:
        """Take up a child run that another caller started.

        One that has an owner is observed, one that has none is resumed.

        Args:
            logs_root: Its run directory; empty for the latest that this node has had.
        """
        ...
