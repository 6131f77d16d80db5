"""The display of runs and pipelines in a shell: live where a user can click, static elsewhere.

The pipeline package knows no notebook: it calls the presenter that this module registers. Widgets are
imported when the first run is shown live, not before.

A button's click reaches Python through the kernel. A cell that holds the kernel while it waits for
the click waits forever, silently; which ways of waiting hold it depends on ipykernel's version. So the
question is asked before each slice of waiting, and the answer is an error with its remedies in place of
a hang. Measured for 6.31, 7.0.1 to 7.3 and 7.4:

| how the cell waits | 6.x | 7.0 - 7.3 | 7.4 and later |
|---|---|---|---|
| it has returned | works | works | works |
| ``await run`` | hangs | works in a subshell | works |
| a blocking call | hangs | works in a subshell | hangs |

A subshell is a second thread that JupyterLab opens for widgets. In 7.4 messages of widgets go to the
main thread again, between the slices of an ``await``.
"""

from __future__ import annotations

# IPython's display has no types.
# pyright: reportUnknownVariableType=false
import threading
from collections import deque
from os import urandom
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakKeyDictionary

from attractor_nb.errors import AttractorError, GateWouldBlock
from attractor_nb.notebook.environment import Names, Surroundings, is_inline, is_live, probe
from attractor_nb.notebook.saved_output import bundle_of, placed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from IPython.core.interactiveshell import InteractiveShell

    from attractor_nb.maps.map_launch import MapRun
    from attractor_nb.notebook.editing import EditorViews
    from attractor_nb.notebook.live.gate_card import LiveInbox
    from attractor_nb.notebook.live.live_runs import LiveRuns
    from attractor_nb.notebook.live.live_tables import LiveMap
    from attractor_nb.notebook.rows_view import RowsView
    from attractor_nb.studio.edit.editor import Editor
    from attractor_nb.studio.edit.editor_requests import RunForm
    from attractor_nb.studio.history.waiting_gates import Inbox

CONCURRENT_COMMS = (7, 4)
SUBSHELLS = (7, 0)


class PendingGate(Protocol):
    """The part of a waiting gate that is needed here."""

    @property
    def stage(self) -> str:
        """The asking node."""
        ...

    @property
    def deadline(self) -> float | None:
        """The time when its wait times out, or None."""
        ...


def is_click_lost(around: Surroundings, *, is_blocking: bool) -> bool:
    """True if no click can arrive while a cell waits in this way."""
    if not around.is_attended:
        return True
    if around.kernel_version >= CONCURRENT_COMMS:
        return is_blocking
    if around.kernel_version >= SUBSHELLS:
        return around.subshell_count == 0
    return True


def refuse_endless_wait(around: Surroundings, gates: Sequence[PendingGate], *, is_blocking: bool) -> None:
    """Return when the wait can end; raise when it cannot.

    A gate with a deadline ends without a click, so where no user can click it is waited for. Where
    one could, a button that does not work is worse than an error.
    """
    if not around.has_kernel or threading.current_thread() is not threading.main_thread():
        return
    endless = [gate for gate in gates if around.is_attended or gate.deadline is None]
    if not endless or not is_click_lost(around, is_blocking=is_blocking):
        return
    raise _refusal(endless[0].stage, around)


def _refusal(stage: str, around: Surroundings) -> GateWouldBlock:
    answer = f'run.answer("{stage}", choice)'
    if around.is_page_last:
        return GateWouldBlock(
            f"gate `{stage}` waits for your answer, and the page with its buttons appears when all cells have ended",
            hint=f"show run.widget() and do not wait for the run; or call {answer} before you wait",
        )
    if not around.is_attended:
        return GateWouldBlock(
            f"gate `{stage}` waits for an answer, and there are no buttons here",
            hint=f"call {answer} in a cell before the one that waits, or run with an interviewer: "
            'pipeline.run(interviewer="auto")',
        )
    if around.kernel_version >= CONCURRENT_COMMS:
        remedy = "use `await run`, or end this cell and click"
    else:
        remedy = "end this cell, click, and wait in a cell below (with ipykernel 7.4 `await run` works)"
    return GateWouldBlock(
        f"gate `{stage}` waits for your answer, but its buttons do not work while this cell runs",
        hint=f"{remedy}; or call {answer}",
    )


MOST_ROWS_VIEWS: Final = 16
"""Most tables of rows that are alive in a session."""


def _result_of(run: Any) -> Any:
    """The result of a map that has ended; the map itself, if that is an error."""
    try:
        return run.result(0.0)
    except AttractorError:
        return run if run.directory is None else run.directory


def _show_rows(rows: RowsView, run: Any) -> None:
    """Let the rows of a map stand in for its last picture; an evaluation has its own, which is the cell's value."""
    from attractor_nb.storage.map_directory import is_evaluation  # noqa: PLC0415 - %load_ext stays light

    if run.directory is None or not is_evaluation(run.directory):
        rows.take(_result_of(run))


class Presenter:
    """Shows the runs of one shell.

    Attributes:
        live_mode: One of ``LIVE_MODES``, or empty for what the environment says.
    """

    def __init__(self, shell: InteractiveShell, names: Names) -> None:
        self.live_mode = ""
        self._shell = shell
        self._names = names
        self._runs: LiveRuns | None = None
        self._reopener: object | None = None
        self._maps: WeakKeyDictionary[Any, LiveMap] = WeakKeyDictionary()
        self._rows: deque[RowsView] = deque()
        self._cells: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._live_run_ids: set[str] = set()
        self._editors: EditorViews | None = None
        self._inbox: LiveInbox | None = None

    def present(self, run: Any) -> None:
        """Show a run, or a map, that is about to start, in the output of the cell that starts it."""
        around = probe(self._shell)
        if not around.has_kernel:
            return
        from attractor_nb.maps.map_view import MapView  # noqa: PLC0415 - %load_ext stays light
        from attractor_nb.notebook.live.live_runs import controls_of  # noqa: PLC0415 - as above

        is_map = isinstance(run.view, MapView)
        if is_live(around, self.live_mode):
            if is_map:
                self._present_map(run)
            else:
                self.open_runs().present(run)
            self._cells[run] = self._shell.execution_count
            self._live_run_ids.add(run.id)
        if not is_map and (interviewer := controls_of(run)):
            interviewer.show(run)

    def _present_map(self, run: MapRun) -> None:
        from attractor_nb.notebook.live.live_tables import LiveMap  # noqa: PLC0415 - as above

        key = urandom(8).hex()
        # The view of the rows is made behind the first picture: widgets take a while to import.
        view = LiveMap(place=key, at_end=lambda ended: _show_rows(rows, ended))
        view.show(run)
        rows = self._rows_view(key)
        view.follow(run)
        self._maps[run] = view
        self._cells[run] = self._shell.execution_count
        self._live_run_ids.add(run.id)

    def check_wait(self, gates: Sequence[PendingGate], *, is_blocking: bool) -> None:
        """Refuse a wait in which the gates could not be answered, as this shell works."""
        if gates:
            refuse_endless_wait(probe(self._shell), gates, is_blocking=is_blocking)

    def can_click(self, *, is_blocking: bool) -> bool:
        """True if a user sees runs in this shell and can click while a cell waits in this way."""
        around = probe(self._shell)
        return is_live(around, self.live_mode) and not is_click_lost(around, is_blocking=is_blocking)

    # -- formatters ----------------------------------------------------------------------------------

    def display_run(self, run: Any) -> None:
        """A run as a cell's value: its live view, whether it runs, has ended or was loaded; else its picture.

        The value of the very cell that started it is not shown twice.
        """
        self._names.note(run)
        if not self._is_live():
            self._display_with_words(run)
        elif self._cells.get(run) != self._shell.execution_count:
            self.open_runs().show(run)

    def display_result(self, result: Any) -> None:
        """A result as a cell's value, where no live view has shown it: its picture, and its words below."""
        self._names.note(result)
        if result.run_id in self._live_run_ids:
            raise NotImplementedError  # IPython then asks ``bundle_result``
        self._display_with_words(result)

    def bundle_result(self, result: Any, **_: Any) -> dict[str, str]:
        """A result as a cell's value: words alone where the picture has just been shown live."""
        if result.run_id in self._live_run_ids:
            return {"text/plain": str(result)}
        return bundle_of(result)

    def display_inbox(self, inbox: Inbox) -> None:
        """The questions that wait as a cell's value: as cards where a user can click."""
        if not is_live(probe(self._shell), self.live_mode):
            raise NotImplementedError  # IPython then asks the inbox itself
        from attractor_nb.notebook.live.gate_card import LiveInbox  # noqa: PLC0415 - as above

        self._inbox = self._inbox or LiveInbox()
        self._inbox.show(inbox)

    def display_form(self, form: RunForm) -> None:
        """The form of a pipeline's inputs as a cell's value: fields where a user can fill them in."""
        if not is_live(probe(self._shell), self.live_mode):
            raise NotImplementedError  # IPython then asks the form itself
        from attractor_nb.notebook.editing import RunFormView  # noqa: PLC0415 - %load_ext stays light

        RunFormView(form, self.open_runs()).show()

    def display_map(self, run: Any) -> None:
        """A map as a cell's value: its live table while it runs, otherwise its rows."""
        view = self._maps.get(run)
        if view is None or view.is_over:
            self.display_rows(_result_of(run) if run.is_done else run)
            return
        if self._cells.get(run) != self._shell.execution_count:
            view.show(run)

    def display_map_result(self, result: Any) -> None:
        """A map's result as a cell's value: its rows, where they have not just been shown."""
        if result.map_id in self._live_run_ids:
            raise NotImplementedError  # IPython then asks ``bundle_map_result``
        self.display_rows(result)

    def display_evaluation_run(self, run: Any) -> None:
        """The handle of an evaluation as a cell's value: the evaluation, once it has ended."""
        if not run.is_done:
            raise NotImplementedError  # IPython then asks the handle itself
        self.display_rows(run.result(0.0))

    def display_rows(self, of: Any) -> None:
        """The rows of a map, its result or an evaluation as a cell's value; its summary is what is saved."""
        if not self._is_live():
            raise NotImplementedError  # IPython then asks the value itself
        from IPython.display import display  # noqa: PLC0415 - %load_ext stays light

        key, bundle = urandom(8).hex(), bundle_of(of)
        display({**bundle, "text/html": placed(key, bundle["text/html"])}, raw=True)
        self._rows_view(key).take(of)

    def _rows_view(self, key: str) -> RowsView:
        from attractor_nb.notebook.rows_view import RowsView  # noqa: PLC0415 - imports widgets

        view = RowsView(key, lambda run, place: self.open_runs().open(run, key=place))
        self._rows.append(view)
        while len(self._rows) > MOST_ROWS_VIEWS:
            self._rows.popleft().close()  # its output has the summary
        return view

    def bundle_map_result(self, result: Any, **_: Any) -> dict[str, str]:
        """A map's result as a cell's value: its first line alone where its rows have just been shown live."""
        if result.map_id in self._live_run_ids:
            return {"text/plain": str(result).partition("\n")[0]}
        return bundle_of(result)

    def display_pipeline(self, pipeline: Any) -> None:
        """A pipeline as a cell's value: its picture, and under it the findings, if there are any.

        A terminal needs no output of ours: the pipeline's text has its findings.
        """
        if not pipeline.diagnostics or not probe(self._shell).has_kernel:
            raise NotImplementedError  # IPython then asks the pipeline itself
        from IPython.display import display  # noqa: PLC0415 - %load_ext stays light

        from attractor_nb.views.findings_table import findings_html  # noqa: PLC0415 - %load_ext stays light

        display(bundle_of(pipeline), raw=True)
        place = self._open_desks().place_findings(pipeline) if self._is_live() else ""
        html = findings_html(pipeline.diagnostics, place=place)
        display({"text/html": html, "text/plain": str(pipeline.lint())}, raw=True)

    def display_editor(self, editor: Editor) -> None:
        """An editor as a cell's value: interactive where a user can click, else its picture and words."""
        if not self._is_live():
            raise NotImplementedError  # IPython then asks the editor itself
        from IPython.display import display  # noqa: PLC0415 - %load_ext stays light

        from attractor_nb.notebook.editing import editor_html  # noqa: PLC0415 - imports widgets

        html = editor_html(editor, self._open_desks().place_editor(editor))
        display({"text/html": html, "text/plain": str(editor)}, raw=True)

    def _is_live(self) -> bool:
        return is_live(probe(self._shell), self.live_mode)

    def open_runs(self) -> LiveRuns:
        """The live views of this shell."""
        if self._runs is None:
            from attractor_nb.notebook.live.live_runs import LiveRuns  # noqa: PLC0415 - %load_ext stays light

            self._runs = LiveRuns(is_inline=lambda: is_inline(probe(self._shell), self.live_mode))
        return self._runs

    def offer_to_reopen(self, _result: object = None) -> None:
        """After the first cell: runs that the notebook shows from before this kernel get a button."""
        if self._reopener is None and self._is_live():
            from attractor_nb.notebook.reopening import Reopener  # noqa: PLC0415 - %load_ext stays light

            self._reopener = Reopener(lambda run, key: self.open_runs().open(run, key=key))

    def _open_desks(self) -> EditorViews:
        if self._editors is None:
            from attractor_nb.notebook.editing import EditorViews  # noqa: PLC0415 - imports widgets

            self._editors = EditorViews()
        return self._editors

    def _display_with_words(self, ended: Any) -> None:
        """The picture of a run, and under it the line that only a terminal would show otherwise."""
        if not probe(self._shell).has_kernel:
            raise NotImplementedError  # IPython then asks the object itself
        from IPython.display import display  # noqa: PLC0415 - %load_ext stays light

        display(bundle_of(ended), raw=True)
        display({"text/plain": str(ended)}, raw=True)
