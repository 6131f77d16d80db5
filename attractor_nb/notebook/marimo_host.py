"""Runs in a marimo notebook: the live view is the value that a cell shows, and gates are answered in it.

marimo has no IPython shell, so no extension is loaded: ``runtime.handles.presenters`` calls ``register`` when a run
begins in a process that has imported marimo. A cell's output is cut off from the others, so the view is in its own.
"""

# marimo is no dependency; what it returns is unknown here.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from attractor_nb.errors import GateWouldBlock
from attractor_nb.maps.map_view import MapView
from attractor_nb.runtime.handles.presenters import register_presenter, register_review, register_widget

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attractor_nb.engine.gates import Gate
    from attractor_nb.notebook.live.live_run import LiveRun


def register() -> bool:
    """Show the runs of this process; False if the calling thread runs no cell of marimo."""
    if not _is_in_cell():
        return False
    views = MarimoRuns()
    register_presenter(views.present, refuse_wait, is_clickable_while_waiting)
    register_widget(views.widget)
    register_review(_review_box)
    return True


class MarimoRuns:
    """The live views of the runs of one process."""

    def __init__(self) -> None:
        self._views: WeakKeyDictionary[Any, LiveRun] = WeakKeyDictionary()

    def present(self, run: Any) -> None:
        """Show a run that is about to start, in the output of the cell that starts it."""
        if not _is_in_cell() or isinstance(run.view, MapView):
            return
        from marimo import output  # noqa: PLC0415 - only where it runs

        self._views[run] = view = _view_of(run, is_followed=True)
        output.append(view.graph_view)

    def widget(self, run: Any) -> Any:
        """The live view of a run: the one that follows it, or a new one of its current state."""
        view = self._views.get(run) or _view_of(run, is_followed=not run.is_done)
        return view.graph_view


def refuse_wait(gates: Sequence[Gate], *, is_blocking: bool) -> None:  # noqa: ARG001 - the rule's signature
    """Raise when a cell waits for gates: marimo passes on no click while a cell runs, awaiting or not.

    Raises:
        GateWouldBlock: A gate waits without a deadline.
    """
    if _is_in_cell() and (endless := [gate for gate in gates if gate.deadline is None]):
        stage = endless[0].stage
        raise GateWouldBlock(
            f"gate `{stage}` waits for your answer, but its buttons do not work while this cell runs",
            hint=f'end this cell and click; or call run.answer("{stage}", choice) before you wait',
        )


def is_clickable_while_waiting(*, is_blocking: bool) -> bool:  # noqa: ARG001 - the rule's signature
    """False: marimo passes on no click while a cell runs."""
    return False


def _review_box(evaluation: Any, path: Path) -> Any:
    from attractor_nb.notebook.review_box import ReviewBox  # noqa: PLC0415 - imports widgets

    return ReviewBox(evaluation, path)


def _view_of(run: Any, *, is_followed: bool) -> LiveRun:
    from attractor_nb.notebook.live.live_run import LiveRun  # noqa: PLC0415 - imports widgets
    from attractor_nb.notebook.live.live_runs import controls_of  # noqa: PLC0415 - as above

    return LiveRun(run, is_followed=is_followed, has_cards=controls_of(run) is None, is_inline=True)


def _is_in_cell() -> bool:
    from marimo import running_in_notebook  # noqa: PLC0415 - only where it was imported

    return bool(running_in_notebook())
