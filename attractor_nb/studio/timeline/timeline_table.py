"""A timeline as a table: every bar in words (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.views.columns import one_line
from attractor_nb.views.state import first_words
from attractor_nb.views.summary_line import duration_text
from attractor_nb.views.table import Column, Table

if TYPE_CHECKING:
    from attractor_nb.studio.timeline.timeline import Bar, Cut, Timeline


def timeline_table(timeline: Timeline) -> Table:
    """Every bar in words, lane by lane; below it where the run stood still."""
    columns = (
        Column("lane", "place"),
        Column("what"),
        Column("visit", "number"),
        Column("try", "number"),
        Column("status", "state"),
        Column("from", "number"),
        Column("took", "number"),
        Column("note"),
    )
    rows: list[list[str]] = []
    states: list[str] = []
    for lane in timeline.lanes:
        for bar in lane.bars:
            note = first_words(bar.reason, 80) or _calls_words(bar)
            rows.append(
                [
                    lane.key,
                    bar.kind if bar.node in lane.key else f"{bar.node}: {bar.kind}",
                    str(bar.visit),
                    str(bar.attempt),
                    bar.status,
                    duration_text(timeline.shown(bar.start)),
                    duration_text(bar.seconds),
                    note,
                ]
            )
            states.append(_STATES.get(bar.status, ""))
    notes = [_cut_words(cut, timeline) for cut in timeline.cuts]
    going = ", goes on" if timeline.is_live else ""
    headline = f"{one_line(timeline.name) or 'run'}: {duration_text(timeline.seconds)}{going}"
    return Table("Timeline", columns, rows, states=states, headline=headline, notes=notes)


_STATES: Final = {
    "success": "ok",
    "partial_success": "ok",
    "cached": "ok",
    "fail": "error",
    "retry": "error",
    "cut off": "warn",
    "waits": "warn",
}


def _cut_words(cut: Cut, timeline: Timeline) -> str:
    after = duration_text(timeline.shown(cut.start))
    return f"stood still for {duration_text(cut.end - cut.start)} after {after}"


def _calls_words(bar: Bar) -> str:
    counts = {kind: sum(call.kind == kind for call in bar.calls) for kind in ("model", "tool")}
    return ", ".join(f"{count} {kind} call{'s' * (count != 1)}" for kind, count in counts.items() if count)
