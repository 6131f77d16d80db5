"""The stop of a run: its place and its reason, among them shortages of this machine (ruling 51)."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any, Final

import msgspec

from attractor_nb.model.states import stage_word

if TYPE_CHECKING:
    from attractor_nb.model.outcome import Outcome


class Stop(msgspec.Struct, frozen=True):
    """A place at which a run, or a branch of it, is paused until it is continued."""

    number: int  #: Ordinal of the stop in this session, from 1.
    node: str  #: The stage that is next, or that has just ended.
    moment: str  #: ``before`` the stage, or ``after`` it, before an edge is chosen.
    visit: int  #: Number of its visit.
    breakpoint: str  #: Reason of the stop: the text of a breakpoint, ``step`` or ``pause``.
    branch: str = ""  #: Path of the paused branch, or empty.
    path: str = ""  #: Nodes whose child runs lead there: ``review>``; empty for the run itself.
    edge: str = ""  #: The edge by which the stage is entered: ``plan->review``; empty after a jump and ``after`` it.
    #: ``before``: outcome of the previous stage, None at the first; ``after``: its own.
    outcome: Outcome | None = None

    @property
    def words(self) -> str:
        """Place and reason in one line, without the branch."""
        if self.moment == "after":
            status = stage_word(self.outcome.status) if self.outcome else "unknown"
            reason = f" ({self.outcome.failure_reason})" if self.outcome and self.outcome.failure_reason else ""
            return f"after `{self.node}`: {status}{reason}, no edge is chosen yet"
        visit = f", visit {self.visit}" if self.visit > 1 else ""
        entered = f", entered by `{self.edge}`" if self.edge else ""
        return f"before `{self.node}`{visit}{entered}"

    def to_plain(self) -> dict[str, Any]:
        """JSON values, for a view."""
        return {
            "number": self.number,
            "node": self.node,
            "moment": self.moment,
            "visit": self.visit,
            "breakpoint": self.breakpoint,
            "branch": self.branch,
            "path": self.path,
            "edge": self.edge,
            "status": self.outcome.status.value if self.outcome else "",
            "words": self.words,
        }

    def __str__(self) -> str:
        child = f" in the child run of `{self.path.rstrip('>')}`" if self.path else ""
        branch = f" in branch {self.branch}" if self.branch else ""
        return f"stopped {self.words}{branch}{child}; by {self.breakpoint}"


# Shortages of this machine: reasons outside the pipeline why an attempt cannot be made (ruling 51).

_SHORTAGES: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
"""Open files of the process and of the machine, memory, processes."""
_MAX_CAUSES: Final = 8
"""Most causes of an error that are followed: a foreign exception may be its own."""


def is_shortage(error: BaseException) -> bool:
    """True if an error, or one that it was raised from, says that files, memory or processes have run out.

    >>> is_shortage(OSError(errno.EMFILE, "Too many open files")), is_shortage(FileNotFoundError(errno.ENOENT, "no"))
    (True, False)
    """
    seen: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if seen is None:
            return False
        if isinstance(seen, OSError) and seen.errno in _SHORTAGES:
            return True
        seen = seen.__cause__
    return False
