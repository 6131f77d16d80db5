"""The timeline of a run as a value that reads well in a cell."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from attractor_nb.errors import OptionError
from attractor_nb.studio.timeline.heat_map import heat
from attractor_nb.studio.timeline.heat_view import MEASURES
from attractor_nb.studio.timeline.timeline import BY, Timeline, timeline_of, timeline_plain
from attractor_nb.studio.timeline.timeline_svg import timeline_svg
from attractor_nb.studio.timeline.timeline_table import timeline_table
from attractor_nb.views.still import picture_bundle
from attractor_nb.views.table import table_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.runtime.execution import Execution
    from attractor_nb.views.table import Table
    from attractor_nb.views.theme import Theme


class RunTimeline:
    """What each node of a run did when. It is read anew whenever it is shown, so it follows a live run.

    Attributes:
        run: The run.
        by: ``node`` or ``branch``: what a lane stands for.
    """

    def __init__(self, run: Execution, by: str = "node", clock: Callable[[], float] = time.time) -> None:
        if by not in BY:
            raise OptionError(f"there are no lanes by {by!r:.40}", hint=f"by {' or '.join(BY)}")
        self.run = run
        self.by = by
        self._clock = clock

    @property
    def timeline(self) -> Timeline:
        """The timeline as it stands.

        Raises:
            RunNotFound: Nothing of the run is stored.
            CheckpointCorrupt: Its log is damaged.
        """
        now = None if self.run.is_done else self._clock()
        return timeline_of(self.run.journal(), name=self.run.graph.label, by=self.by, now=now)

    @property
    def table(self) -> Table:
        """Every bar in words."""
        return timeline_table(self.timeline)

    def to_svg(self, theme: Theme = "auto") -> str:
        """The picture."""
        return timeline_svg(self.timeline, theme=theme)

    def __str__(self) -> str:
        return table_text(self.table)

    __repr__ = __str__

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:  # noqa: ARG002 - the signature of Jupyter's hook
        return picture_bundle(self.to_svg(), str(self))


def timeline_values(shown: RunTimeline) -> dict[str, Any]:
    """What a front-end's timeline shows of a run as it stands, but for its graph.

    Raises:
        RunNotFound: Nothing of the run is stored.
        CheckpointCorrupt: Its log is damaged.
    """
    run, timeline = shown.run, shown.timeline
    heats: dict[str, Any] = {}
    for by in MEASURES:
        found = heat(run, by).heat
        heats[by] = {name: {"level": found.level(name), "words": found.words(name)} for name in found.nodes}
    return {
        "svg": timeline_svg(timeline),
        "timeline": timeline_plain(timeline),
        "states": {name: state.to_plain() for name, state in run.view.nodes.items()},
        "heats": heats,
    }
