"""Fan-outs and their branches (spec 4.8)."""

from __future__ import annotations

from attractor_nb.model.events.stages import StageSignal
from attractor_nb.model.record import Count, always


class ParallelStarted(StageSignal, kw_only=True):
    """A fan-out begins, or begins again because it is tried again."""

    branch_count: Count = always(0)  #: How many branches it has.
    join: str = ""  #: Where they meet; empty when they run to their ends.
    join_policy: str = ""  #: When it has succeeded.
    error_policy: str = ""  #: What a failed branch means for the others.
    max_parallel: Count = always(0)  #: How many run at the same time.

    @property
    def description(self) -> str:
        """One line for people."""
        count = f"{self.branch_count} branch{'es' * (self.branch_count != 1)}"
        return f"{self.name}: {count}, {self.max_parallel} at a time, {self.join_policy}"


class ParallelBranchStarted(StageSignal, kw_only=True):
    """A branch begins. ``name`` is the fan-out, ``branch`` its own path, ``index`` its place from 0."""

    id: str = ""  #: Its id among the branches.
    start_node: str = ""  #: Where it begins.
    edge: Count | None = None  #: Position of the edge that leads there in ``Graph.edges``.

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.name}: branch {self.id} started"


class ParallelBranchCompleted(StageSignal, kw_only=True):
    """A branch ended. ``name`` is the fan-out, ``branch`` its own path, ``index`` its place from 0."""

    id: str = ""  #: Its id among the branches.
    duration: float = always(0.0)  #: Seconds, in this session.
    success: bool = False  #: Whether it counts as a success.
    status: str = ""  #: ``success``, ``partial_success``, ``fail``, or ``skipped`` when it was cancelled.
    failure_reason: str = ""  #: Why it failed or was cancelled, or empty.
    exit_id: str = ""  #: The exit node that it came to, or empty.
    veto: str = ""  #: Why the fan-out fails whatever its policies say, or empty.
    return_target: str = ""  #: Where the fan-out is to go on, then, or empty.

    @property
    def description(self) -> str:
        """One line for people."""
        why = f": {self.failure_reason}" if self.failure_reason else ""
        return f"{self.name}: branch {self.id} {self.status} in {self.duration:.1f} s{why}"


class ParallelCompleted(StageSignal, kw_only=True):
    """All branches of a fan-out ended. ``duration`` in seconds, in this session."""

    duration: float = always(0.0)
    success_count: Count = always(0)
    failure_count: Count = always(0)

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.name}: {self.success_count} succeeded, {self.failure_count} failed"
