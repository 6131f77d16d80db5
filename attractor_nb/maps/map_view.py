"""The view of a map: counts, rows under way, failures; a table for a terminal and a notebook.

The map's engine updates it, and other threads may read it at any time.

It is as long as a screen, whatever the number of rows: the rest is in the result.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from attractor_nb.model.outcome import ResultMarks, Usage
from attractor_nb.model.row_result import ROW_STATUSES, RowResult, RowStatus
from attractor_nb.model.states import PAUSED, WAITING, run_state, run_word
from attractor_nb.views.drawings.theme import Theme, root_class
from attractor_nb.views.markup import element, joined, style_sheet
from attractor_nb.views.output_styles import map_css
from attractor_nb.views.state import first_words
from attractor_nb.views.summary_line import duration_text, usage_words
from attractor_nb.views.table import aligned, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markupsafe import Markup


LATEST_ROWS: Final = 20

SHOWN_FAILURES: Final = 12
SHOWN_ROWS: Final = 20
"""All rows of the live table together, failures too."""
REASON_CHARS: Final = 100
ROW_ORDER: Final = ("success", "fail", PAUSED, "interrupted", WAITING, "running", "not_started")
"""The statuses that people read of a row, in the order of the totals."""


@dataclass(slots=True)
class ActiveRow:
    """A row that runs now."""

    row: int  #: Its number.
    since: float  #: When it was begun or continued, on the monotonic clock.
    stage: str = ""  #: The stage that runs, or empty.
    is_waiting: bool = False  #: A gate of it is open.

    @property
    def shown_status(self) -> str:
        """The status that people read."""
        return WAITING if self.is_waiting else "running"


@dataclass(slots=True)
class MapView:
    """The current state of a map."""

    name: str  #: Name of the pipeline.
    row_count: int
    #: Number of rows by status.
    counts: dict[RowStatus, int] = field(default_factory=lambda: dict.fromkeys(ROW_STATUSES, 0))
    paused: int = 0  #: Number of interrupted rows that were paused.
    under_way: dict[int, ActiveRow] = field(default_factory=dict[int, ActiveRow])  #: The rows that run now, by number.
    #: The rows that failed, in the order in which they did.
    failures: list[RowResult] = field(default_factory=list["RowResult"])
    #: The rows that ended last, the newest last.
    latest: deque[RowResult] = field(default_factory=lambda: deque["RowResult"](maxlen=LATEST_ROWS))
    usage: Usage = field(default_factory=Usage)  #: Usage of all ended rows.
    marks: ResultMarks = field(default_factory=ResultMarks)  #: Mark of their results together (ruling 48).
    began: float = field(default_factory=time.monotonic)  #: When the call was, on the monotonic clock.
    duration: float | None = None  #: Seconds of the whole, once it has ended; else None.
    status: str = "running"  #: ``running``, or how it ended: ``success``, ``fail`` or ``interrupted``.
    reason: str = ""  #: Reason why no further rows are started, or of its end; else empty.

    @property
    def ended_count(self) -> int:
        """The number of rows that have ended, successful or not."""
        return self.counts["success"] + self.counts["fail"]

    @property
    def is_ended(self) -> bool:
        """True if nothing more will happen by itself."""
        return self.duration is not None

    @property
    def shown_counts(self) -> dict[str, int]:
        """The number of rows by the status that people read, in order; without those that have none."""
        active = Counter(entry.shown_status for entry in tuple(self.under_way.values()))
        interrupted = self.counts["interrupted"] - self.paused
        found = {**self.counts, "interrupted": interrupted, PAUSED: self.paused, **active}
        return {status: found[status] for status in ROW_ORDER if found.get(status)}

    @property
    def seconds(self) -> float:
        """The duration of the map in seconds, so far or in total."""
        return time.monotonic() - self.began if self.duration is None else self.duration

    def begin(self, row: int) -> None:
        """A row begins."""
        self.under_way[row] = ActiveRow(row, time.monotonic())

    def enter(self, row: int, stage: str) -> None:
        """A row reaches a stage."""
        if (entry := self.under_way.get(row)) is not None:
            entry.stage, entry.is_waiting = stage, False

    def ask(self, row: int, *, is_open: bool) -> None:
        """A gate of a row is open, or was answered."""
        if (entry := self.under_way.get(row)) is not None:
            entry.is_waiting = is_open

    def leave(self, row: int) -> None:
        """A row runs no more."""
        self.under_way.pop(row, None)

    def take(self, result: RowResult) -> None:
        """A row has ended, or was not started."""
        self.counts[result.status] += 1
        self.paused += result.shown_status == PAUSED
        self.usage = self.usage + result.usage
        self.marks += result.marks
        if result.status == "fail":
            self.failures.append(result)
        if result.status != "not_started":
            self.latest.append(result)

    def end(self, status: str, reason: str) -> None:
        """Nothing more happens."""
        self.duration = self.seconds
        self.status, self.reason = status, reason


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row as the table shows it."""

    status: str  #: The status that people read: ``running``, ``waiting``, or how it ended.
    row: str  #: Its number, or empty.
    time: str  #: Its duration so far.
    words: str  #: The stage that runs, or why it failed.

    @property
    def state(self) -> str:
        """Mark and word of its status."""
        return run_state(self.status)


def map_headline(view: MapView, *, has_times: bool = True) -> str:
    """One line: the status of the map, its rows by status, its duration and its price.

    Args:
        has_times: Show time, tokens and cost, which differ from run to run.
    """
    counts = {status: count for status, count in view.shown_counts.items() if status != "running"}
    by_status = ", ".join(f"{count:,} {run_word(status)}" for status, count in counts.items())
    parts = [
        run_state(view.status),
        f"{view.ended_count:,} of {view.row_count:,} rows",
        by_status,
        one_line(view.marks.words),
        *([_seconds(view), *usage_words(view.usage)] if has_times else []),
        one_line(view.reason),
    ]
    return "   ".join(part for part in parts if part)


def map_summary(view: MapView, *, next_step: str = "") -> str:
    """Headline, rows that failed, and what to call then; nothing that differs from run to run."""
    lines = [map_headline(view, has_times=False)]
    failures = sorted(view.failures, key=_row_of)
    if failures:
        lines += ["", rows_table(failures[:SHOWN_FAILURES], left=len(failures) - SHOWN_FAILURES, has_times=False)]
    if next_step:
        lines += [""] * bool(failures) + [next_step]
    return "\n".join(lines)


def shown_rows(view: MapView) -> list[ShownRow]:
    """The rows worth a look: failures, then those under way, then those that ended last."""
    now, running = time.monotonic(), list(view.under_way.values())
    failed = tuple(view.failures)[-SHOWN_FAILURES:]
    failures = [_ended_row(entry) for entry in (sorted(failed, key=_row_of) if view.is_ended else failed)]
    under_way = [
        ShownRow(entry.shown_status, str(entry.row), f"{int(now - entry.since)} s", one_line(entry.stage))
        for entry in sorted(running, key=lambda entry: entry.since)
    ]
    rows = [*failures, *under_way][:SHOWN_ROWS]
    room = SHOWN_ROWS - len(rows)
    latest = [entry for entry in reversed(tuple(view.latest)) if entry.status != "fail"][:room]
    if view.is_ended:
        latest.sort(key=_row_of)
    return [*rows, *(_ended_row(entry) for entry in latest)]


def map_html(view: MapView, *, has_times: bool = True, theme: Theme = "auto") -> str:
    """Headline, progress bar and the rows worth a look as HTML; everything of the input is escaped.

    Args:
        has_times: Show time, tokens and cost, which differ from run to run.
        theme: Which colours.
    """
    rows = shown_rows(view)
    hidden = view.row_count - len(rows)
    body = [_html_row(row if has_times else replace(row, time="")) for row in rows]
    if hidden > 0:
        words = f"{hidden:,} more row{'s' * (hidden != 1)}"
        body.append(element("tr", {"class": "more"}, element("td", {"colspan": "4"}, words)))
    table = element("table", {"aria-label": "Rows"}, element("tbody", None, joined(body)))
    state = run_state(view.status)
    rest = map_headline(view, has_times=has_times).removeprefix(state)
    headline = element(
        "div", {"class": f"headline status-{view.status}"}, element("span", {"class": "state"}, state), rest
    )
    classes = {"class": f"attractor-map {root_class()} {theme}"}
    return str(element("div", classes, style_sheet(map_css()), headline, _bar(view), table))


def rows_table(rows: Sequence[RowResult], *, left: int = 0, has_times: bool = True) -> str:
    """Rows as a plain table.

    Args:
        left: How many more there are.
        has_times: Show how long each took.
    """
    return shown_rows_table([_ended_row(entry) for entry in rows], left=left, has_times=has_times)


def shown_rows_table(rows: Sequence[ShownRow], *, left: int = 0, has_times: bool = True) -> str:
    """The same of rows in words, which may be under way.

    Args:
        left: How many more there are.
        has_times: Show how long each took.
    """
    width = max((len(row.row) for row in rows), default=0)
    times = max((len(row.time) for row in rows), default=0)
    lines = [
        [row.state, row.row.rjust(width), *([row.time.rjust(times)] if has_times else []), row.words] for row in rows
    ]
    text = aligned(lines) if lines else ""
    return f"{text}\n… and {left:,} more" if left > 0 else text


def _row_of(entry: RowResult) -> int:
    return entry.row


def _ended_row(entry: RowResult) -> ShownRow:
    spent = duration_text(entry.duration) if entry.status != "not_started" else ""
    reason = "" if entry.shown_status == PAUSED else entry.reason
    words = "; ".join(filter(None, (entry.mark, reason)))
    return ShownRow(entry.shown_status, str(entry.row), spent, first_words(one_line(words), REASON_CHARS))


def _seconds(view: MapView) -> str:
    seconds = view.seconds
    # What still runs is counted in whole seconds: tenths that race say nothing.
    return f"{int(seconds)} s" if not view.is_ended and seconds < 60 else duration_text(seconds)


def _bar(view: MapView) -> Markup:
    """A progress bar: the shares of the rows that succeeded and failed."""
    shares = (("done", view.counts["success"]), ("bad", view.counts["fail"]))
    # The part of a hundredth is wide enough to be seen.
    parts: Iterable[Markup] = (
        element("span", {"class": name, "style": f"width:{max(1.0, 100 * count / view.row_count):.1f}%"}, "")
        for name, count in shares
        if count
    )
    label = f"{view.ended_count} of {view.row_count} rows"
    return element("div", {"class": "bar", "role": "img", "aria-label": label}, joined(parts))


def _html_row(row: ShownRow) -> Markup:
    return element(
        "tr",
        {"class": f"status-{row.status}"},
        element("td", {"class": "state"}, row.state),
        element("td", {"class": "place"}, row.row),
        element("td", {"class": "time"}, row.time),
        element("td", {"class": "words"}, row.words),
    )
