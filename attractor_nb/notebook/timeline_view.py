"""The timeline of a run in a notebook: hover and click, the graph beside it, growing while the run goes on.

As of ``history_view`` the output of the cell is static, and the widget stands in for it.
"""

from __future__ import annotations

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
import contextvars
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

import anywidget
import traitlets

from attractor_nb.errors import AttractorError
from attractor_nb.logs import own_logger
from attractor_nb.studio.timeline.run_timeline import timeline_values
from attractor_nb.views.drawings.marks import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.frontend import script, widget_styles

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.studio.timeline.run_timeline import RunTimeline

LOGGER = own_logger(__name__)
INTERVAL_SECONDS: Final = 1.0


class TimelineView(anywidget.AnyWidget):
    """A timeline with its graph.

    Attributes:
        svg: The timeline's picture.
        timeline: The words of its bars (``views.timeline.timeline_plain``).
        graph: The graph's picture, without states.
        states: States of its nodes.
        heats: For each measure, of each node its tint (``level``) and number (``words``).
        marks: Path of the sign of each status.
        caption: Name of the pipeline, for screen readers.
        place: The key that marks the static output.
    """

    _esm = script("timeline")
    _css = widget_styles()
    svg = traitlets.Unicode().tag(sync=True)
    timeline = traitlets.Dict().tag(sync=True)
    graph = traitlets.Unicode().tag(sync=True)
    states = traitlets.Dict().tag(sync=True)
    heats = traitlets.Dict().tag(sync=True)
    marks = traitlets.Dict().tag(sync=True)
    caption = traitlets.Unicode().tag(sync=True)
    place = traitlets.Unicode().tag(sync=True)

    def __init__(self, shown: RunTimeline, place: str = "") -> None:
        self._shown = shown
        run = shown.run
        super().__init__(
            graph=render_svg(run.graph),
            marks={status.value: path for status, path in MARK_PATHS.items()},
            caption=run.graph.label,
            place=place,
            **timeline_values(shown),
        )

    def refresh(self) -> None:
        """Show the run as it stands."""
        with self.hold_sync():
            for name, value in timeline_values(self._shown).items():
                setattr(self, name, value)

    def follow(self, when_done: Callable[[], None]) -> None:
        """Follow a run that goes on, in a thread; at its end call ``when_done``."""
        if sys.platform == "emscripten":  # no threads: shown as it stood
            return
        context = contextvars.copy_context()  # carries the cell's identity; see ``painting``
        target: tuple[Any, ...] = (self._follow, when_done)
        threading.Thread(target=context.run, args=target, name="attractor-timeline", daemon=True).start()

    def _follow(self, when_done: Callable[[], None]) -> None:
        run, over = self._shown.run, threading.Event()
        try:
            while not run.is_done and self.comm is not None:
                over.wait(INTERVAL_SECONDS)
                self.refresh()
            self.refresh()
            when_done()
        except AttractorError:
            LOGGER.warning("the timeline of run %s could not be read any more", run.id)
        except Exception:  # a fault of the display is never the run's
            LOGGER.exception("the timeline could not follow the run")
