"""The final result of one row of a map: a small value, so that thousands of them fit in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec.structs import force_setattr

from attractor_nb.model.outcome import ResultMarks, Usage
from attractor_nb.model.record import Count, Record, always
from attractor_nb.model.states import shown_run_status

RowStatus = Literal["success", "fail", "interrupted", "not_started"]
_NOTHING: Final = Usage()
ROW_STATUSES: Final[tuple[RowStatus, ...]] = ("success", "fail", "interrupted", "not_started")


class RowResult(Record, frozen=True):
    """The result of one row of a map."""

    row: Count  #: Its number, from 0, in the order of the inputs.
    status: RowStatus  #: ``success``, ``fail``, ``interrupted`` (a resume continues it) or ``not_started``.
    reason: str = ""  #: Reason, unless success.
    run_id: str = ""  #: Its run, or empty when there was none.
    directory: str = ""  #: Name of its run directory in the map's, or empty when nothing is kept.
    stages: Count = always(0)  #: Number of committed stages.
    duration: float = always(0.0, name="duration_seconds")  #: Running time in seconds; ``duration_seconds`` in JSON.
    usage: Usage = _NOTHING  #: Usage of its model calls.
    saved: Usage = _NOTHING  #: Usage that results from the cache had when they were made; not in ``usage``.
    outputs: Mapping[str, Any] = {}  #: The context values that the map was asked to keep.
    is_unmeasured: bool = False  #: A stage of it could not be tried for a reason outside the pipeline (ruling 51).
    was_finished: bool = False  #: It had ended before, and was read from its directory.
    marks: ResultMarks = ResultMarks()  #: Mark of its result (ruling 48).

    def __post_init__(self) -> None:
        if self.usage == _NOTHING:  # what is left out of the JSON is this very value
            force_setattr(self, "usage", _NOTHING)
        if self.saved == _NOTHING:
            force_setattr(self, "saved", _NOTHING)

    @property
    def mark(self) -> str:
        """``simulated``, ``partly simulated``, ``pinned: NODE``; empty for a result without a mark."""
        return self.marks.words

    @property
    def shown_status(self) -> str:
        """The status that people read: ``paused`` for a row whose run was paused, else ``status``."""
        return shown_run_status(self.status, self.reason)

    @property
    def is_success(self) -> bool:
        """True if the row's run succeeded."""
        return self.status == "success"
