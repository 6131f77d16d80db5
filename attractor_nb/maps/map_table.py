"""A map as a table: text for a terminal, HTML for a notebook. Failures stand first, then what runs now.

It is as long as a screen, whatever the number of rows: the rest is in the result.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from attractor_nb.views.columns import aligned, one_line
from attractor_nb.views.drawings.marks import RUN_LETTERS, STATUS_LETTERS
from attractor_nb.views.drawings.theme import map_css, root_class
from attractor_nb.views.markup import element, joined, style_sheet
from attractor_nb.views.state import NodeStatus, RunStatus, first_words
from attractor_nb.views.summary_line import duration_text, usage_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from markupsafe import Markup

    from attractor_nb.maps.map_view import MapView
    from attractor_nb.model.row_result import RowResult
    from attractor_nb.views.drawings.theme import Theme

SHOWN_FAILURES: Final = 12
SHOWN_ROWS: Final = 20
"""All rows of the live table together, failures too."""
REASON_CHARS: Final = 100
ROW_MARKS: Final[dict[str, str]] = {
    "running": STATUS_LETTERS[NodeStatus.RUNNING],
    "success": STATUS_LETTERS[NodeStatus.SUCCESS],
    "fail": STATUS_LETTERS[NodeStatus.FAIL],
    "interrupted": RUN_LETTERS[RunStatus.INTERRUPTED],
    "not_started": STATUS_LETTERS[NodeStatus.PENDING],
}
_WORDS: Final[dict[str, str]] = {
    "success": "success",
    "fail": "failed",
    "interrupted": "interrupted",
    "not_started": "not started",
}


@dataclass(frozen=True, slots=True)
class ShownRow:
    """What is shown of a row.

    Attributes:
        status: ``running``, or how it ended.
        row: Its number, or empty.
        time: How long it took, or takes so far.
        words: The stage that runs, or why it failed.
    """

    status: str
    row: str
    time: str
    words: str

    @property
    def state(self) -> str:
        """Mark and word of its status."""
        return f"{ROW_MARKS[self.status]} {_WORDS.get(self.status, self.status)}"


def map_headline(view: MapView, *, has_times: bool = True) -> str:
    """One line: how the map stands, how many rows ended in which way, for how long, at what price.

    Args:
        view: The map.
        has_times: Show time, tokens and cost, which differ from run to run.
    """
    counts: dict[str, int] = {**view.counts}
    by_status = ", ".join(f"{counts[status]:,} {word}" for status, word in _WORDS.items() if counts[status])
    parts = [
        f"{ROW_MARKS[view.status]} {view.status}",
        f"{view.ended_count:,} of {view.row_count:,} rows",
        by_status,
        *([_seconds(view), *usage_words(view.usage)] if has_times else []),
        one_line(view.reason),
    ]
    return "   ".join(part for part in parts if part)


def map_summary(view: MapView, *, next_call: str = "") -> str:
    """Headline, rows that failed, and the call that comes next; nothing that differs from run to run."""
    lines = [map_headline(view, has_times=False)]
    failures = sorted(view.failures, key=_row_of)
    if failures:
        lines += [
            "",
            rows_table(failures[:SHOWN_FAILURES], left=len(failures) - SHOWN_FAILURES, has_times=False),
        ]
    if next_call:
        lines += [""] * bool(failures) + [f"next: {next_call}"]
    return "\n".join(lines)


def shown_rows(view: MapView) -> list[ShownRow]:
    """The rows worth a look: failures, then those under way, then those that ended last."""
    now, running = time.monotonic(), list(view.under_way.values())
    failed = tuple(view.failures)[-SHOWN_FAILURES:]
    failures = [_ended_row(entry) for entry in (sorted(failed, key=_row_of) if view.is_ended else failed)]
    under_way = [
        ShownRow("running", str(entry.row), f"{int(now - entry.since)} s", one_line(entry.stage))
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
        view: The map.
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
    state = f"{ROW_MARKS[view.status]} {view.status}"
    rest = map_headline(view, has_times=has_times).removeprefix(state)
    headline = element(
        "div", {"class": f"headline status-{view.status}"}, element("span", {"class": "state"}, state), rest
    )
    classes = {"class": f"attractor-map {root_class()} {theme}"}
    return str(element("div", classes, style_sheet(map_css()), headline, _bar(view), table))


def rows_table(rows: Sequence[RowResult], *, left: int = 0, has_times: bool = True) -> str:
    """Rows as a plain table.

    Args:
        rows: The rows.
        left: How many more there are.
        has_times: Show how long each took.
    """
    shown = [_ended_row(entry) for entry in rows]
    width = max((len(row.row) for row in shown), default=0)
    times = max((len(row.time) for row in shown), default=0)
    lines = [
        [row.state, row.row.rjust(width), *([row.time.rjust(times)] if has_times else []), row.words]
        for row in shown
    ]
    text = aligned(lines) if lines else ""
    return f"{text}\n… and {left:,} more" if left > 0 else text


def _row_of(entry: RowResult) -> int:
    return entry.row


def _ended_row(entry: RowResult) -> ShownRow:
    spent = duration_text(entry.duration) if entry.status != "not_started" else ""
    return ShownRow(entry.status, str(entry.row), spent, first_words(one_line(entry.reason), REASON_CHARS))


def _seconds(view: MapView) -> str:
    seconds = view.seconds
    # What still runs is counted in whole seconds: tenths that race say nothing.
    return f"{int(seconds)} s" if not view.is_ended and seconds < 60 else duration_text(seconds)


def _bar(view: MapView) -> Markup:
    """How much is done and how much of it failed, as parts of a bar."""
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
