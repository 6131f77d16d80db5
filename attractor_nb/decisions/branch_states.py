"""Where the branches of a run stand: for each one that is under way a state of its own (spec 4.8).

The run's own state holds them all, nested ones too, by their paths: the log is one, and each event says in
which branch it happened. When the fan-out commits, or is tried again, its branches are let go; the visit
numbers that they used stay, so that no two executions ever share an idempotency key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from attractor_nb.model.branch import branch_path, enclosing

if TYPE_CHECKING:
    from attractor_nb.decisions.run_state import RunState
    from attractor_nb.model.events import DebuggerChanged, ParallelBranchCompleted, StageEnd


class BranchState(msgspec.Struct):
    """A branch of a fan-out that is under way."""

    path: str  #: Its path in the run.
    id: str  #: Its id among the branches of its fan-out.
    fan_out: str  #: The fan-out's node.
    index: int  #: Its place among them, from 0.
    state: RunState  #: Where it stands.
    context: dict[str, Any] = {}  #: What its attempts changed: the last value of each key, as the log has it.
    logs: list[str] = []  #: What they appended to the run log.
    end: ParallelBranchCompleted | None = None  #: How it ended, or None.

    def take_changes(self, event: StageEnd) -> None:
        """Take in what an attempt in the branch changed."""
        self.context.update(event.context)
        self.logs.extend(event.logs)

    def take_edit(self, event: DebuggerChanged) -> None:
        """Take in what somebody changed by hand."""
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
        """Whether a branch of a fan-out has begun in its latest pass."""
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
