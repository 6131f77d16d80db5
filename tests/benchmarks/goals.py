"""The goals as values: what was compared, how far it may be, how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from measuring import Figures, Ratio


@dataclass(frozen=True)
class Scale:
    """Amounts of what is measured.

    Attributes:
        rounds: Rounds of quick contenders.
        slow_rounds: Rounds of contenders that take seconds.
        steps: Length of a chain; the long one is ten times as long.
        durable_steps: Length of a chain whose every step is flushed.
        branches: Branches of a wide fan-out; the narrow one has a tenth.
        nodes: Nodes of a text that every peer reads; the long one has ten times as many.
        pictures: Sizes that are drawn against ``dot``, and those beyond what it can take.
        kept: Runs of a folder that is listed; a large one has ten times as many.
        load: Runs, clients of their events, and how often, for a server under load.
        with_peers: Whether peers are installed and measured.
    """

    rounds: int = 5
    slow_rounds: int = 3
    steps: int = 1000
    durable_steps: int = 1000
    branches: int = 1000
    nodes: int = 1000
    pictures: tuple[int, ...] = (20, 100, 200)
    large_pictures: tuple[int, ...] = (500,)
    kept: int = 2000
    load: tuple[int, int, int] = (1000, 1000, 3)
    with_peers: bool = True


TINY = Scale(1, 1, 10, 5, 20, 10, (5,), (310,), 40, (4, 6, 1), with_peers=False)
QUICK = Scale(3, 1, 300, 50, 300, 300, (20, 100), (500,), 500, (100, 100, 3))


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        subject: What was compared with what.
        limit: The goal: the figure is at most this.
        figure: What was measured, by the median.
        best: The same by the best times, or None.
        unit: ``x`` for a ratio, or the unit of an absolute goal.
        detail: The figures behind it.
        missing: Why there is no figure, or empty.
    """

    subject: str
    limit: float
    figure: float = 0.0
    best: float | None = None
    unit: str = "x"
    detail: str = ""
    missing: str = ""

    @property
    def is_met(self) -> bool:
        return not self.missing and self.figure <= self.limit


@dataclass(frozen=True)
class Goal:
    """A goal and its measurement.

    Attributes:
        key: ``P1`` …
        title: The subject.
        measure: Gives its rows.
        remark: How it was measured, and what stands in the way of the rows that are not met.
    """

    key: str
    title: str
    measure: Callable[[Scale], list[Row]]
    remark: str = ""


def compared(subject: str, limit: float, ours: Figures, theirs: Figures, *, per: float = 1.0, unit: str = "µs") -> Row:
    """A row from two sets of figures in seconds.

    Args:
        subject: What is compared with what.
        limit: The goal.
        ours: Seconds of ours.
        theirs: Seconds of the other.
        per: How many pieces of work a figure is for.
        unit: Of the detail: ``µs`` or ``ms``.
    """
    ratio = Ratio.of(ours, theirs)
    factor = {"µs": 1e6, "ms": 1e3}[unit] / per
    detail = " / ".join(f"{entry.median * factor:.4g} {unit}" for entry in (ours, theirs))
    return Row(subject, limit, ratio.median, ratio.minimum, detail=detail)
