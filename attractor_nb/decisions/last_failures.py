"""The last failure of a run, and how often in a row it was the same (ruling 52)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from attractor_nb.model.events import StageEnd

MAX_SAME_FAILURES: Final = 3
"""A failure that trying again cannot change ends the run instead of being tried a fourth time in a row."""
_SHOWN: Final = 300


class LastFailure(msgspec.Struct, array_like=True, frozen=True):
    """A stage that failed and has not succeeded since."""

    node_id: str  #: The stage.
    reason: str  #: Why it failed.
    #: How often in a row it ended for this reason, when trying again cannot help; else 0. It counts anew when any stage
    #: succeeds, which may have changed something, and when a run is resumed.
    times: int = 0
    is_unmeasured: bool = False  #: The stage could not be executed for a reason outside the pipeline (ruling 51).

    def __str__(self) -> str:
        return f"{self.node_id}: {self.reason[:_SHOWN]}"


def failure_after(failure: LastFailure | None, event: StageEnd, *, is_passed_through: bool) -> LastFailure | None:
    """The last failure after an attempt ended.

    Args:
        failure: The one before.
        event: How the attempt ended.
        is_passed_through: It was a diamond that judges the stage before it: its own success counts for nothing.
    """
    outcome = event.outcome
    if outcome.status.is_failure:
        reason = outcome.failure_reason or "it failed without a reason"
        is_same = failure is not None and (failure.node_id, failure.reason) == (event.name, reason)
        before = failure.times if failure is not None and is_same else 0
        times = before + 1 if outcome.is_terminal else 0
        return LastFailure(event.name, reason, times, outcome.is_unmeasured)
    if failure is None or is_passed_through or not outcome.status.is_success:
        return failure
    return None if failure.node_id == event.name else msgspec.structs.replace(failure, times=0)
