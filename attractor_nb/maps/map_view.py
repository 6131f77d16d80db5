"""What is shown of a map while it runs: counts, the rows under way, and those that failed.

It is told by the map's engine, and read from other threads at any time.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from attractor_nb.model.outcome import Usage
from attractor_nb.model.row_result import ROW_STATUSES

if TYPE_CHECKING:
    from attractor_nb.model.row_result import RowResult, RowStatus

LATEST_ROWS: Final = 20


@dataclass(slots=True)
class RowUnderWay:
    """A row that runs now.

    Attributes:
        row: Its number.
        since: When it was begun or gone on with, on the monotonic clock.
        stage: The stage that runs, or empty.
    """

    row: int
    since: float
    stage: str = ""


@dataclass(slots=True)
class MapView:
    """A map as it stands.

    Attributes:
        name: Name of the pipeline.
        row_count: How many rows there are.
        counts: How many rows ended in which way.
        under_way: The rows that run now, by number.
        failures: The rows that failed, in the order in which they did.
        latest: The rows that ended last, the newest last.
        usage: What all ended rows consumed.
        began: When the call was, on the monotonic clock.
        duration: Seconds of the whole, once it has ended; else None.
        status: ``running``, or how it ended: ``success``, ``fail`` or ``interrupted``.
        reason: Why no further rows are started, or why it ended so; else empty.
    """

    name: str
    row_count: int
    counts: dict[RowStatus, int] = field(default_factory=lambda: dict.fromkeys(ROW_STATUSES, 0))
    under_way: dict[int, RowUnderWay] = field(default_factory=dict[int, RowUnderWay])
    failures: list[RowResult] = field(default_factory=list["RowResult"])
    latest: deque[RowResult] = field(default_factory=lambda: deque["RowResult"](maxlen=LATEST_ROWS))
    usage: Usage = field(default_factory=Usage)
    began: float = field(default_factory=time.monotonic)
    duration: float | None = None
    status: str = "running"
    reason: str = ""

    @property
    def ended_count(self) -> int:
        """How many rows have ended, well or not."""
        return self.counts["success"] + self.counts["fail"]

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self.duration is not None

    @property
    def seconds(self) -> float:
        """How long it has taken, or takes so far."""
        return time.monotonic() - self.began if self.duration is None else self.duration

    def begin(self, row: int) -> None:
        """A row begins."""
        self.under_way[row] = RowUnderWay(row, time.monotonic())

    def enter(self, row: int, stage: str) -> None:
        """A row comes to a stage."""
        if (entry := self.under_way.get(row)) is not None:
            entry.stage = stage

    def leave(self, row: int) -> None:
        """A row runs no more."""
        self.under_way.pop(row, None)

    def take(self, result: RowResult) -> None:
        """A row has ended, or was not started."""
        self.counts[result.status] += 1
        self.usage = self.usage + result.usage
        if result.status == "fail":
            self.failures.append(result)
        if result.status != "not_started":
            self.latest.append(result)

    def end(self, status: str, reason: str) -> None:
        """Nothing more happens."""
        self.duration = self.seconds
        self.status, self.reason = status, reason
