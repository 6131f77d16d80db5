"""Views whose buttons act: what they need of a run and its output; what a click begins is shown beneath.

A handler of a click cannot display anything. It makes the live view of the run that begins, and names its
place in a trait; the browser puts the place beneath (``views/web/beneath.js``), and the view is in there.
"""

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import contextvars
import threading
import zlib
from typing import TYPE_CHECKING, Any, Final, Protocol

import anywidget
import traitlets

from attractor_nb.errors import AttractorError
from attractor_nb.logs import own_logger
from attractor_nb.pipeline.run_actions import InspectorActions
from attractor_nb.platforms import HAS_THREADS
from attractor_nb.redaction import redacted
from attractor_nb.storage.files.strict_json import json_bytes
from attractor_nb.studio.compare.compare_runs import PLAIN_TEXT_CHARS, Comparison
from attractor_nb.studio.compare.comparison_page import comparison_values
from attractor_nb.studio.inspect.inspect_run import answer_inspection
from attractor_nb.studio.timeline.run_timeline import RunTimeline, timeline_values
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.frontend import script, widget_styles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from attractor_nb.model.events import Event
    from attractor_nb.model.graph import Graph
    from attractor_nb.pipeline.run import Run
    from attractor_nb.studio.debugger import Debugger
    from attractor_nb.studio.replay_frames import Replay
    from attractor_nb.views.state import RunView


MOST_BENEATH: Final = 8
"""Most runs below a view: those that were started last."""


class ActingView(anywidget.AnyWidget):
    """A view of one run that can begin others."""

    #: Runs that were started here: ``place`` of the live view, and a ``title``; the latest last.
    beneath = traitlets.List().tag(sync=True)
    _inspector: InspectorActions | None = None
    _runs: OpenViews | None = None

    def act_on(self, run: Any, views: OpenViews | None) -> None:
        """Let its buttons act on a run.

        Args:
            views: Makes the live views of those that begin; without it there are no buttons.
        """
        self._inspector = None if views is None else InspectorActions(run, self._begin)
        self._runs = views

    def with_actions(self, reply: dict[str, Any]) -> dict[str, Any]:
        """An answer of the inspector, with what can be done with its stage."""
        return reply if self._inspector is None else self._inspector.with_actions(reply)

    def hear_acts(self, run: Any, content: dict[str, Any]) -> None:
        """Answer what an inspector asks and asks for."""
        match content.get("kind"):
            case "inspect":
                self.send(self.with_actions(answer_inspection(run, content)))
            case "act":
                self.act(content)
            case _:
                pass

    def act(self, content: dict[str, Any]) -> None:
        """Do what a button asks for, and say what came of it."""
        if self._inspector is not None:
            self.send(self._inspector.answer(content))

    def _begin(self, title: str, start: Callable[[], Run]) -> Run:
        assert self._runs is not None, "there is no inspector without it"
        with self._runs.caught() as views:
            run = start()
        begun = [{"place": view.key, "title": title} for view in views]
        self.beneath = [*self.beneath, *begun][-MOST_BENEATH:]
        return run


class ShownRun(Protocol):
    """The part of a run that the live view needs; the public ``Run`` implements it."""

    @property
    def graph(self) -> Graph:
        """The graph that runs."""
        ...

    @property
    def id(self) -> str:
        """The run's id."""
        ...

    @property
    def logs_root(self) -> Path:
        """Its run directory."""
        ...

    @property
    def view(self) -> RunView:
        """The current view of the run."""
        ...

    @property
    def children(self) -> Mapping[str, ShownRun]:
        """The child runs of its stages by node, in a branch by ``branch/node``."""
        ...

    @property
    def debugger(self) -> Debugger:
        """Breakpoints, steps, changes by hand."""
        ...

    @property
    def is_done(self) -> bool:
        """True if it has ended."""
        ...

    def __getitem__(self, node_id: str, /) -> Any:
        """The result of a stage."""
        ...

    def on_event(self, observer: Callable[[Event], None], /) -> Callable[[], None]:
        """Hear every event."""
        ...

    def answer(
        self,
        gate: str,
        choice: str = "",
        *,
        text: str = "",
        form: Mapping[str, Any] | None = None,
        answered_by: str = "",
    ) -> object:
        """Answer a gate."""
        ...

    def cancel(self) -> None:
        """Stop it."""
        ...


class Output(Protocol):
    """An output that can be updated, such as a display handle."""

    def update(self, bundle: dict[str, str], /, *, raw: bool) -> None:
        """Keep this instead."""
        ...


class OpenViews(Protocol):
    """The live views of a shell, as a view needs them that opens others (``live_runs.LiveRuns``)."""

    def view_of(self, run: object) -> Any:
        """The view of a run that is alive, or None."""
        ...

    def open(self, run: ShownRun, *, is_followed: bool = False, key: str = "") -> Any:
        """A view of a run."""
        ...

    def caught(self) -> AbstractContextManager[Sequence[Any]]:
        """While this lasts views of runs that begin are not shown, but handed over."""
        ...

    def waiting_beside(self, run: ShownRun) -> list[dict[str, str]]:
        """The other runs of the same pipeline under way here that wait for a person: ``run``, ``words``."""
        ...

    def run_here(self, run_id: str) -> Any:
        """The active run of this process with an id; None if there is none."""
        ...

    def let_go(self) -> None:
        """Close views that are over, where there are many newer ones."""
        ...


# History as widgets: a replay with a slider, a timeline that may still grow, two runs compared.
#
# As in ``history_view`` the output of the cell is static, and the widget replaces it. All content is in its values:
# every moment of a replay remains available without the kernel.

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
        """Show the run in its current state."""
        with self.hold_sync():
            for name, value in timeline_values(self._shown).items():
                setattr(self, name, value)

    def follow(self, when_done: Callable[[], None]) -> None:
        """Follow a live run in a thread; at its end call ``when_done``."""
        if not HAS_THREADS:  # shown in its current state
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
    #: The steps of both runs (``studio.compare.comparison_page.comparison_plain``).
    comparison = traitlets.Dict().tag(sync=True)
    legend = traitlets.List().tag(sync=True)  #: Meaning of the strokes.

    def __init__(self, shown: Comparison, place: str = "") -> None:
        super().__init__(place=place, **comparison_values(shown.compared, text_chars=PLAIN_TEXT_CHARS))
