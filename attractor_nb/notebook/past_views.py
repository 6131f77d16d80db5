"""Lists of runs, timelines, replays, stages, comparisons, evaluations as values of cells: widgets, else what lasts."""

from __future__ import annotations

# IPython's display has no types.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
from collections import OrderedDict
from os import urandom
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.notebook.environment import is_live, probe
from attractor_nb.notebook.saved_output import bundle_of, placed

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from attractor_nb.notebook.presenting import Presenter
    from attractor_nb.pipeline.runs import RunTable
    from attractor_nb.studio.compare.compare_runs import Comparison
    from attractor_nb.studio.inspect.inspection import StageInspection
    from attractor_nb.studio.replay_frames import Replay
    from attractor_nb.studio.timeline.run_timeline import RunTimeline

MOST_VIEWS: Final = 16
"""Most of them alive in a session; earlier ones show their saved output."""


class PastViews:
    """The views of one shell."""

    def __init__(self, shell: InteractiveShell, presenter: Presenter) -> None:
        self._shell = shell
        self._presenter = presenter
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

        key = urandom(8).hex()
        self._keep(key, HistoryView(table, key, self._presenter.open_runs()))
        html = table.table.to_html()
        display({"text/html": placed(key, html), "text/plain": str(table)}, raw=True)

    def display_timeline(self, shown: RunTimeline) -> None:
        """A timeline as a cell's value; while the run is active it grows, and its end stays."""
        if not is_live(probe(self._shell)):
            raise NotImplementedError
        from IPython.display import display  # noqa: PLC0415 - %load_ext stays light

        from attractor_nb.notebook.view_actions import TimelineView  # noqa: PLC0415 - as above

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

        from attractor_nb.notebook.view_actions import ReplayView  # noqa: PLC0415 - as above

        key = urandom(8).hex()
        bundle = bundle_of(replay)
        html = placed(key, bundle["text/html"])
        display({"text/html": html, "text/plain": bundle["text/plain"]}, raw=True)
        # After the picture: of a long run all its frames take longer.
        self._keep(key, ReplayView(replay, key, self._presenter.open_runs()))

    def display_stage(self, shown: StageInspection) -> None:
        """A stage as a cell's value: with what can be done with it."""
        if shown.run is None or not is_live(probe(self._shell)):
            raise NotImplementedError
        from IPython.display import display  # noqa: PLC0415 - %load_ext stays light

        from attractor_nb.notebook.stage_view import StageDisplay  # noqa: PLC0415 - as above

        key = urandom(8).hex()
        self._keep(key, StageDisplay(shown, shown.run, key, self._presenter.open_runs()))
        bundle = bundle_of(shown)
        display({**bundle, "text/html": placed(key, bundle["text/html"])}, raw=True)

    def display_comparison(self, shown: Comparison) -> None:
        """Two runs beside each other as a cell's value."""
        if not is_live(probe(self._shell)):
            raise NotImplementedError
        from IPython.display import display  # noqa: PLC0415 - %load_ext stays light

        from attractor_nb.notebook.view_actions import CompareView  # noqa: PLC0415 - as above
        from attractor_nb.studio.compare.comparison_page import comparison_html  # noqa: PLC0415 - as above

        key = urandom(8).hex()
        self._keep(key, CompareView(shown, key))
        html = comparison_html(shown.compared, place=key)
        display({"text/html": html, "text/plain": str(shown)}, raw=True)

    def _keep(self, key: str, view: Any) -> None:
        self._views[key] = view
        while len(self._views) > MOST_VIEWS:
            self._views.popitem(last=False)[1].close()


def _timeline_bundle(key: str, shown: RunTimeline) -> dict[str, str]:
    bundle = bundle_of(shown)
    return {"text/html": placed(key, bundle["text/html"]), "text/plain": bundle["text/plain"]}
