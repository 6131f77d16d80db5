"""Lists of runs, timelines and replays as values of cells: widgets where somebody clicks, else what lasts."""

from __future__ import annotations

# IPython's display has no types.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
from collections import OrderedDict
from os import urandom
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.notebook.pictures import bundle_of
from attractor_nb.notebook.surroundings import is_live, probe

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from attractor_nb.pipeline.history import RunTable
    from attractor_nb.pipeline.replaying import Replay
    from attractor_nb.pipeline.timing import RunTimeline

MOST_VIEWS: Final = 16
"""How many of them stay alive in a session; those before show what lasts."""


class PastViews:
    """The views of one shell."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._views: OrderedDict[str, Any] = OrderedDict()

    def display_runs(self, table: RunTable) -> None:
        """A list of runs as a cell's value."""
        around = probe(self._shell)
        if not around.has_kernel:
            print(table)  # noqa: T201 - what a terminal shows, times too
            return
        if not is_live(around):
            raise NotImplementedError  # IPython then asks the table itself, which leaves out what is volatile
        from IPython.display import display  # noqa: PLC0415 - %load_ext stays light

        from attractor_nb.notebook.history_view import HistoryView  # noqa: PLC0415 - the first imports widgets
        from attractor_nb.views.table import table_html  # noqa: PLC0415 - as above

        key = urandom(8).hex()
        self._keep(key, HistoryView(table, key))
        html = table_html(table.table)
        display({"text/html": _placed(key, html), "text/plain": str(table)}, raw=True)

    def display_timeline(self, shown: RunTimeline) -> None:
        """A timeline as a cell's value; while the run goes on it grows, and its end stays."""
        if not is_live(probe(self._shell)):
            raise NotImplementedError
        from IPython.display import display  # noqa: PLC0415 - %load_ext stays light

        from attractor_nb.notebook.timeline_view import TimelineView  # noqa: PLC0415 - as above

        key = urandom(8).hex()
        view = TimelineView(shown, key)
        self._keep(key, view)
        handle = display(_timeline_bundle(key, shown), raw=True, display_id=True)
        if not shown.run.is_done and handle is not None:
            view.follow(lambda: handle.update(_timeline_bundle(key, shown), raw=True))

    def display_replay(self, replay: Replay) -> None:
        """A replay as a cell's value."""
        if not is_live(probe(self._shell)):
            raise NotImplementedError  # IPython then asks the replay itself: its last moment
        from IPython.display import display  # noqa: PLC0415 - %load_ext stays light

        from attractor_nb.notebook.replay_view import ReplayView  # noqa: PLC0415 - as above

        key = urandom(8).hex()
        self._keep(key, ReplayView(replay, key))
        bundle = bundle_of(replay)
        html = _placed(key, bundle["image/svg+xml"])
        display({"text/html": html, "text/plain": bundle["text/plain"]}, raw=True)

    def _keep(self, key: str, view: Any) -> None:
        self._views[key] = view
        while len(self._views) > MOST_VIEWS:
            self._views.popitem(last=False)[1].close()


def _timeline_bundle(key: str, shown: RunTimeline) -> dict[str, str]:
    bundle = bundle_of(shown)
    return {"text/html": _placed(key, bundle["image/svg+xml"]), "text/plain": bundle["text/plain"]}


def _placed(key: str, html: str) -> str:
    """A static output that a view stands in for."""
    from markupsafe import Markup  # noqa: PLC0415 - %load_ext stays light

    from attractor_nb.views.markup import element  # noqa: PLC0415 - as above

    inner = Markup(html)  # noqa: S704 - by our own writers, which escape
    return str(element("div", {"data-attractor-place": key}, inner))
