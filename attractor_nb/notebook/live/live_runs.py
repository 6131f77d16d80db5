"""The live views of the runs of one shell: made, found again, and closed when there are many newer ones.

It stays apart from ``live_run``, which imports widgets: the picture of the first run is sent before that.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from os import urandom
from threading import RLock
from time import localtime, strftime
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.notebook.live.kept_output import show_kept
from attractor_nb.runtime.execution import Execution, interviewer_of_run
from attractor_nb.runtime.wired_run import runs_under_way
from attractor_nb.studio.inspect.final_answer import final_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from attractor_nb.notebook.live.live_run import LiveRun
    from attractor_nb.notebook.view_actions import ShownRun

MOST_OVER: Final = 16
"""Most live views of ended runs; older ones are replaced by their saved output."""


class LiveRuns:
    """The live views of one shell."""

    def __init__(self, most_over: int = MOST_OVER, *, is_inline: Callable[[], bool] = lambda: False) -> None:
        """Make it.

        Args:
            most_over: Most views of ended runs.
            is_inline: Whether a view made now is a part of the output that shows it; see ``LiveRun``.
        """
        self._most_over = most_over
        self._is_inline = is_inline
        self._views: list[LiveRun] = []
        self._changes = RLock()
        self._caught: ContextVar[list[LiveRun] | None] = ContextVar("caught", default=None)

    def view_of(self, run: object) -> LiveRun | None:
        """The view of a run that is alive, or None."""
        with self._changes:
            return next((view for view in self._views if view.run is run), None)

    def present(self, run: ShownRun) -> LiveRun:
        """Show a run that is about to start: in the current cell, or where it was asked for."""
        caught = self._caught.get()
        view = self.open(run, is_followed=True, is_shown=caught is None)
        if caught is not None:
            caught.append(view)
        return view

    def show(self, run: ShownRun) -> None:
        """Show a run in its current state, in the current cell."""
        if view := self.view_of(run):
            view.show()
        else:
            self.open(run, is_shown=True)

    def open(
        self,
        run: ShownRun,
        *,
        is_followed: bool = False,
        is_joined: bool = False,
        is_shown: bool = False,
        key: str = "",
    ) -> LiveRun:
        """A view of a run.

        Args:
            is_followed: It is about to start; otherwise it is shown in its current state.
            is_joined: It is active already, and followed from here on.
            is_shown: Display it in the current cell: what is kept first, then the view in its place.
            key: Of the place where it is in; a new one by default.
        """
        key = key or urandom(8).hex()
        is_followed = is_followed or is_joined
        answer = None if is_followed else final_answer(run, run.view)
        others = [other["words"] for other in self.waiting_beside(run)]
        output = show_kept(run, key, answer, others) if is_shown else None

        # Widgets take a while to import: the picture is there before.
        from attractor_nb.notebook.live.live_run import LiveRun  # noqa: PLC0415 - as above

        has_cards = controls_of(run) is None
        is_inline = is_shown and self._is_inline()
        view = LiveRun(
            run,
            views=self,
            is_followed=is_followed,
            is_joined=is_joined,
            output=output,
            key=key,
            has_cards=has_cards,
            is_inline=is_inline,
        )
        with self._changes:
            self._views.append(view)
        self.let_go()
        return view

    @contextmanager
    def caught(self) -> Generator[list[LiveRun]]:
        """Runs that start meanwhile are not displayed: who starts them gives their views a place."""
        views: list[LiveRun] = []
        token = self._caught.set(views)
        try:
            yield views
        finally:
            self._caught.reset(token)

    def waiting_beside(self, run: ShownRun) -> list[dict[str, str]]:
        """The other runs of the same pipeline under way here that wait for a person: ``run``, ``words``."""
        return [
            {"run": other.id, "words": _words(other)}
            for other in runs_under_way()
            if other is not run  # pyright: ignore[reportUnnecessaryComparison] - a Run is both
            and other.graph.label == run.graph.label
            and other.gates
        ]

    def run_here(self, run_id: str) -> Any:
        """The active run of this process with an id; None if there is none."""
        return next((run for run in runs_under_way() if run.id == run_id), None)

    def let_go(self) -> None:
        """Close the oldest views of runs that are over, but for the newest of them."""
        with self._changes:
            over = [view for view in self._views if view.is_over]
            gone = over[: max(0, len(over) - self._most_over)]
            self._views = [view for view in self._views if view not in gone]
            others = [view for view in self._views if not view.is_over]
        for view in gone:
            view.close()
        for view in others:
            view.look_beside()


def controls_of(run: object) -> Any:
    """The interviewer of a run that shows controls of its own (``interviewer="widgets"``), or None."""
    asked = interviewer_of_run(run) if isinstance(run, Execution) else None
    return asked if getattr(asked, "shows_controls", False) else None


def _words(run: Any) -> str:
    gate = run.gates[0]
    since = strftime("%H:%M:%S", localtime(gate.since))
    return f"another run of this pipeline, {run.id}, waits at `{gate.stage}` since {since}"
