"""The timeline of a run as a value that reads well in a cell."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from attractor_nb.errors import OptionError
from attractor_nb.model.states import row_look
from attractor_nb.redaction import redacted_value
from attractor_nb.studio.timeline.heat_view import MEASURES, heat
from attractor_nb.studio.timeline.timeline import BY, MESSAGE, Bar, Cut, Timeline, timeline_of, timeline_plain
from attractor_nb.studio.timeline.timeline_svg import timeline_svg
from attractor_nb.views.display import DisplayedPicture
from attractor_nb.views.state import first_words
from attractor_nb.views.summary_line import duration_text
from attractor_nb.views.table import Column, Table, one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.runtime.execution import Execution
    from attractor_nb.views.drawings.theme import Theme


class RunTimeline(DisplayedPicture):
    """The timeline of a run's nodes. It is read anew on each display, so it follows a live run.

    Attributes:
        by: ``node`` or ``branch``: the subject of a lane.
    """

    def __init__(self, run: Execution, by: str = "node", clock: Callable[[], float] = time.time) -> None:
        if by not in BY:
            raise OptionError(f"there are no lanes by {by!r:.40}", hint=f"by {' or '.join(BY)}")
        self.run = run
        self.by = by
        self._clock = clock

    @property
    def timeline(self) -> Timeline:
        """The timeline in its current state."""
        now = None if self.run.is_done else self._clock()
        return timeline_of(self.run.journal(), name=self.run.pipeline.title, by=self.by, now=now, mark=self.run.mark)

    @property
    def table(self) -> Table:
        """Every bar in words."""
        return timeline_table(self.timeline)

    def to_svg(self, theme: Theme = "auto") -> str:
        """The picture."""
        return timeline_svg(self.timeline, theme=theme)

    def __str__(self) -> str:
        return str(self.table)


def timeline_values(shown: RunTimeline, words: Callable[[str], str] = str) -> dict[str, Any]:
    """The values for a front-end's timeline of a run, without secrets, but for its graph.

    Args:
        shown: The timeline.
        words: The reason of a failure in the words of the front-end.
    """
    run, timeline = shown.run, shown.timeline.reworded(words)
    heats: dict[str, Any] = {}
    for by in MEASURES:
        found = heat(run, by)
        heats[by] = {name: {"level": found.level(name), "words": found.words(name)} for name in found.nodes}
    values = {
        "svg": timeline_svg(timeline),
        "timeline": timeline_plain(timeline),
        "states": {name: state.to_plain() for name, state in run.view.nodes.items()},
        "heats": heats,
    }
    return redacted_value(values)


def timeline_table(timeline: Timeline) -> Table:
    """Every bar in words, lane by lane; below it where the run was inactive."""
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
            states.append(row_look(bar.status))
    notes = [_cut_words(cut, timeline) for cut in timeline.cuts]
    ending = ", active" * timeline.is_live + (f", {timeline.mark}" if timeline.mark else "")
    headline = f"{one_line(timeline.name) or 'run'}: {duration_text(timeline.seconds)}{ending}"
    return Table("Timeline", columns, rows, states=states, headline=headline, notes=notes)


def _cut_words(cut: Cut, timeline: Timeline) -> str:
    after = duration_text(timeline.shown(cut.start))
    return f"inactive for {duration_text(cut.end - cut.start)} after {after}"


def _calls_words(bar: Bar) -> str:
    counts = {kind: sum(call.kind == kind for call in bar.calls) for kind in ("model", "tool")}
    words = [f"{count} {kind} call{'s' * (count != 1)}" for kind, count in counts.items() if count]
    told = sum(call.kind == MESSAGE for call in bar.calls)
    return ", ".join([*words, *([f"{told} message{'s' * (told != 1)}"] if told else [])])
