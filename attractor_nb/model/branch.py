"""Results and paths of the branches of a fan-out (spec 4.8; ruling 22).

A branch has its own id among its fan-out's (its first node, as a rule) and a path in the run:
``fan/a``, and ``fan/a/inner/x`` for a fan-out within it. The parts of a path are percent-quoted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

import msgspec

from attractor_nb.model.outcome import StageStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from attractor_nb.model.outcome import Usage


IDLE_KEY: Final = "is_idle"
"""Of an entry in ``parallel.results``: each stage of the branch was skipped."""


class BranchResult(msgspec.Struct, frozen=True):
    """The result of a branch."""

    id: str  #: The branch, among those of its fan-out.
    #: The outcome of its last stage; FAIL when a failure had no way on; SKIPPED when it was cancelled.
    status: StageStatus
    notes: str = ""  #: Notes of its last stage.
    context_updates: Mapping[str, Any] = {}  #: Context changes of its stages, with the last value of each key.
    score: float = 0.0  #: A number by which branches are ranked, from the key ``score``; 0 without one.
    failure_reason: str = ""  #: Reason of the failure or cancellation, or empty.
    usage: Usage | None = None  #: Usage of its stages, or None.
    exit_id: str = ""  #: The exit node that it reached, or empty.
    veto: str = ""  #: Reason why the fan-out fails under any policy, or empty.
    return_target: str = ""  #: Node where the fan-out continues then, or empty (ruling 36).
    is_unmeasured: bool = False  #: Its last stage could not be executed for a reason outside the pipeline (ruling 51).
    is_idle: bool = False  #: Each of its stages was skipped, and it has no other (ruling 17a).

    @property
    def is_success(self) -> bool:
        """True if it counts as a success."""
        return self.status.is_success

    @property
    def has_worked(self) -> bool:
        """True if it is a success of stages that were executed."""
        return self.is_success and not self.is_idle

    @property
    def is_cancelled(self) -> bool:
        """True if it was not brought to its end because the others had decided."""
        return self.status is StageStatus.SKIPPED

    def to_plain(self) -> dict[str, Any]:
        """The entry in ``parallel.results``: all keys of ruling 22, always, and ``is_idle`` if it is."""
        return {
            "id": self.id,
            "status": self.status.value,
            "notes": self.notes,
            "context_updates": dict(self.context_updates),
            "score": self.score,
            "failure_reason": self.failure_reason,
            "usage": None if self.usage is None else self.usage.to_plain(),
            **({IDLE_KEY: True} if self.is_idle else {}),
        }


class ItemResult(BranchResult, frozen=True, kw_only=True):
    """The result of one item of a stage that runs once for each item of a list."""

    index: int  #: The item's place in the list, from 0.
    run_id: str = ""  #: The run's id; empty when it never began.
    output: Any = None  #: Its result: the response text, or the outputs of a sub-pipeline; None when it failed.

    def to_plain(self) -> dict[str, Any]:
        """The entry in ``<node>.results``: all keys, always."""
        return {
            "index": self.index,
            "status": self.status.value,
            "reason": self.failure_reason,
            "notes": self.notes,
            "context_updates": dict(self.context_updates),
            "usage": None if self.usage is None else self.usage.to_plain(),
            "run_id": self.run_id,
        }


def branch_ids(starts: Iterable[str]) -> tuple[str, ...]:
    """An id for each branch: its first node, numbered where two begin at the same.

    >>> branch_ids(["a", "b", "a"])
    ('a', 'b', 'a-2')
    """
    starts = tuple(starts)
    taken = set(starts)
    found: dict[str, None] = {}
    for start in starts:
        number, name = 1, start
        while name in found or (number > 1 and name in taken):
            number += 1
            name = f"{start}-{number}"
        found[name] = None
    return tuple(found)


def branch_path(within: str, fan_out: str, branch_id: str) -> str:
    """The path of a branch.

    >>> branch_path("", "fan", "a"), branch_path("fan/a", "inner", "x/y")
    ('fan/a', 'fan/a/inner/x%2Fy')
    """
    own = f"{_quoted(fan_out)}/{_quoted(branch_id)}"
    return f"{within}/{own}" if within else own


def _quoted(part: str) -> str:
    return part if part.isidentifier() and part.isascii() else quote(part, safe="")


def parts_of(path: str) -> tuple[str, ...]:
    """Fan-out, branch, fan-out within it and so on.

    >>> parts_of("fan/a/inner/x%2Fy")
    ('fan', 'a', 'inner', 'x/y')
    """
    return tuple(unquote(part) for part in path.split("/")) if path else ()


def enclosing(path: str) -> str:
    """The path of the branch in which a branch's fan-out is; empty when that is the run itself.

    >>> enclosing("fan/a/inner/x"), enclosing("fan/a")
    ('fan/a', '')
    """
    return path.rpartition("/")[0].rpartition("/")[0]
