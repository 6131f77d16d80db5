"""What is past as widgets: a replay with a slider, a timeline that may still grow, two runs compared.

As of ``history_view`` the output of the cell is static, and the widget stands in for it. Everything that is
seen is in its values: all moments of a replay can be scrubbed through when the kernel is gone, too.
"""

from __future__ import annotations

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
import contextvars
import sys
import threading
import zlib
from typing import TYPE_CHECKING, Any, Final

import anywidget
import traitlets

from attractor_nb.errors import AttractorError
from attractor_nb.logs import own_logger
from attractor_nb.notebook.view_actions import ActingView
from attractor_nb.redaction import redacted
from attractor_nb.storage.files.strict_json import json_bytes
from attractor_nb.studio.compare.compare_runs import PLAIN_TEXT_CHARS
from attractor_nb.studio.compare.comparison_page import comparison_values
from attractor_nb.studio.timeline.run_timeline import timeline_values
from attractor_nb.views.drawings.marks import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.frontend import script, widget_styles

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.notebook.view_actions import OpenViews
    from attractor_nb.studio.compare.compare_runs import Comparison
    from attractor_nb.studio.replay.replay_run import Replay
    from attractor_nb.studio.timeline.run_timeline import RunTimeline

LOGGER = own_logger(__name__)
INTERVAL_SECONDS: Final = 1.0


class PastView(anywidget.AnyWidget):
    """A picture of something past, and what dresses it."""

    _css = widget_styles()
    #: The picture: of the graph without states, of the timeline, or of both paths.
    svg = traitlets.Unicode().tag(sync=True)
    marks = traitlets.Dict().tag(sync=True)  #: Path of the sign of each status.
    states = traitlets.Dict().tag(sync=True)  #: States of the nodes; a replay has them in its frames.
    #: Name of the pipeline, for screen readers; a comparison has it in its picture.
    caption = traitlets.Unicode().tag(sync=True)
    place = traitlets.Unicode().tag(sync=True)  #: The key that marks the static output.


class ReplayView(PastView, ActingView):
    """A replay with its drawing."""

    _esm = script("replay")
    #: The frames (``replay_frames.replay_of``), as zlib's bytes of their JSON: as plain values those of 10,000 steps
    #: would go through every layer of the kernel, of Jupyter and of the page.
    packed = traitlets.Bytes().tag(sync=True)
    stages = traitlets.Dict().tag(sync=True)  #: Inspections by ``node@visit``; empty here, for the kernel is asked.

    def __init__(self, shown: Replay, place: str = "", views: OpenViews | None = None) -> None:
        values = shown.values()
        packed = zlib.compress(json_bytes(values.pop("replay")), 1)
        super().__init__(place=place, packed=packed, **values)
        self._run = shown.run
        self.act_on(shown.run, views)
        self.on_msg(self._on_message)

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        self.hear_acts(self._run, content)


class TimelineView(PastView):
    """A timeline with its graph."""

    _esm = script("timeline")
    timeline = traitlets.Dict().tag(sync=True)  #: The words of its bars (``views.timeline.timeline_plain``).
    graph = traitlets.Unicode().tag(sync=True)  #: The graph's picture, without states.
    #: For each measure, of each node its tint (``level``) and number (``words``).
    heats = traitlets.Dict().tag(sync=True)

    def __init__(self, shown: RunTimeline, place: str = "") -> None:
        self._shown = shown
        run = shown.run
        super().__init__(
            graph=render_svg(run.graph),
            marks={status.value: path for status, path in MARK_PATHS.items()},
            caption=redacted(run.graph.label),
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


class CompareView(PastView):
    """A comparison with its drawing."""

    _esm = script("compare")
    #: The steps of both runs (``studio.compare.comparison_view.comparison_plain``).
    comparison = traitlets.Dict().tag(sync=True)
    legend = traitlets.List().tag(sync=True)  #: What the strokes mean.

    def __init__(self, shown: Comparison, place: str = "") -> None:
        super().__init__(place=place, **comparison_values(shown.compared, text_chars=PLAIN_TEXT_CHARS))
