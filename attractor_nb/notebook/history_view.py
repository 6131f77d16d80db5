"""The list of runs in a notebook: a click does what a call does, and says which.

The output of the cell is the static table; in the browser the widget stands in for it
(``views/web/place.js``), so a saved notebook has the table and nothing that needs a kernel.
"""

from __future__ import annotations

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from attractor_nb.errors import AttractorError, RunNotFound
from attractor_nb.maps.compare_maps import MapComparison
from attractor_nb.model.states import run_word
from attractor_nb.notebook.rows_view import RowsRequests
from attractor_nb.pipeline.compare import diff
from attractor_nb.pipeline.runs import RunRow, RunTable
from attractor_nb.redaction import redacted
from attractor_nb.studio.compare.compare_runs import PLAIN_TEXT_CHARS
from attractor_nb.studio.compare.comparison_page import comparison_values
from attractor_nb.studio.history.history_table import RunsQuery, mark_of, rows_part, run_plain, state_of
from attractor_nb.studio.history.waiting_gates import questions_of, shown_place
from attractor_nb.views.drawings.drawing import MARK_PATHS
from attractor_nb.views.frontend import script, widget_styles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.notebook.view_actions import OpenViews
    from attractor_nb.pipeline.run import Run


class HistoryRequests:
    """Does what a view asks of a table of runs, and says what came of it. Knows no widget."""

    def __init__(self, table: RunTable, views: OpenViews | None = None) -> None:
        """Serve a table; ``views`` makes the live views of the runs that are opened, without it they are pictures."""
        self.table = table
        self._views = views
        self._maps: dict[str, RowsRequests] = {}
        self.query = RunsQuery()
        self.resumed: dict[str, Run] = {}

    def rows(self) -> list[dict[str, Any]]:
        """The displayed values of each run; one that was resumed here is followed until the list ends."""
        rows = [run_plain(index, row, shown_place(row.logs_root)) for index, row in enumerate(self.table)]
        return [
            {**row, **_live_values(self.resumed[row["key"]])} if row["key"] in self.resumed else row for row in rows
        ]

    def part(self) -> tuple[list[dict[str, Any]], dict[str, int]]:
        """The rows that were asked for last, and how many there are."""
        return rows_part(self.rows(), self.query)

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any] | None:
        """Do what a message asks; what is said of it, or None for nothing. The table is read again."""
        kind, key = str(message.get("kind", "")), str(message.get("key", ""))
        doing: dict[str, Callable[[RunRow], dict[str, Any]]] = {
            "open": self._open,
            "resume": self._resume,
            "tag": lambda row: _tagged(row, row.tag(str(message.get("tag", ""))), "tag", message),
            "untag": lambda row: _tagged(row, row.untag(str(message.get("tag", ""))), "untag", message),
            "delete": _deleted,
            "compare": lambda row: _compared(row, self._row(str(message.get("other", "")))),
        }
        reply: dict[str, Any] | None = None
        if kind == "find":
            self.query = RunsQuery.of(message)
            return None
        if (of_map := self._maps.get(str(message.get("map", "")))) is not None:
            return of_map.answer(message)
        try:
            if kind in doing:
                reply = doing[kind](self._row(key))
            over = [name for name, run in self.resumed.items() if run.is_done]
            self.table = self.table.refreshed()
            for name in over:
                del self.resumed[name]
        except AttractorError as error:
            reply = {"title": f"{kind} {key}", "words": redacted(str(error)), "isError": True}
        return None if reply is None else {"kind": "said", **reply}

    def _row(self, key: str) -> RunRow:
        self.table = self.table.refreshed()
        for row in self.table:
            if row.logs_root.name == key:
                return row
        raise RunNotFound(f"run {key} no longer exists", hint="the list is out of date: refresh it")

    def _open(self, row: RunRow) -> dict[str, Any]:
        if row.is_map:
            return self._opened_map(row)
        found = row.load()
        assert not isinstance(found, RunTable), "a map is opened as its page"
        title = f"{row.pipeline_name or 'run'} · {row.logs_root.name}"
        if self._views is None:
            return {"title": title, "call": _loading(row), **_drawn(found)}
        here = self._views.run_here(found.id)
        if here is not None:
            view = self._views.view_of(here) or self._views.open(here, is_joined=True)
            return {"title": title, "place": view.key, "call": _loading(row)}
        view = self._views.open(found)
        for asked in questions_of(row):
            view.offer(asked)
        return {"title": title, "place": view.key, "call": _loading(row)}

    def _opened_map(self, row: RunRow) -> dict[str, Any]:
        key, views = row.logs_root.name, self._views

        def open_run(run: Any, place: str) -> object:
            return None if views is None else views.open(run, key=place)

        self._maps[key] = requests = RowsRequests(row.logs_root, open_run)
        return {
            "title": f"{row.pipeline_name or row.kind} · {key}",
            "call": f'runs("{redacted(shown_place(row.logs_root))}")',
            "map": key,
            "page": requests.page.parts(),
        }

    def _resume(self, row: RunRow) -> dict[str, Any]:
        # A handler of the kernel must not be kept: its gates wait for a click, or for an answer in the inbox.
        run = self.resumed[row.logs_root.name] = row.resume(is_shown=False, interviewer="deferred")
        said = {"title": f"Resumed {row.logs_root.name}", "call": f"{_loading(row)}.resume()"}
        if self._views is None:
            return {**said, "words": "It is active; this list follows it. gates() has its questions."}
        return {**said, "place": self._views.open(run, is_joined=True).key}


class HistoryView(anywidget.AnyWidget):
    """The list of runs."""

    _esm = script("history")
    _css = widget_styles()
    rows = traitlets.List().tag(sync=True)  #: As of ``HistoryRequests.part``.
    counts = traitlets.Dict().tag(sync=True)  #: As of ``HistoryRequests.part``.
    caption = traitlets.Unicode().tag(sync=True)  #: The runs base, for screen readers.
    place = traitlets.Unicode().tag(sync=True)  #: The key that marks the static output.

    def __init__(self, table: RunTable, place: str = "", views: OpenViews | None = None) -> None:
        self._requests = HistoryRequests(table, views)
        rows, counts = self._requests.part()
        super().__init__(rows=rows, counts=counts, caption=shown_place(table.base), place=place)
        self.on_msg(self._on_message)

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        reply = self._requests.answer(content)
        rows, counts = self._requests.part()
        with self.hold_sync():  # the view shows rows with their counts
            self.counts = counts
            if rows != self.rows:
                self.rows = rows
        if reply is not None:
            self.send(reply)


def _loading(row: RunRow) -> str:
    return f'Run.load("{redacted(shown_place(row.logs_root))}")'


def _live_values(run: Run) -> dict[str, Any]:
    """The status of a run that was resumed here: the list of the disk is behind it for a moment."""
    status = run.status
    return {"is_live": True, "status": run_word(status), "mark": mark_of(status), "state": state_of(status)}


def _drawn(run: Run) -> dict[str, Any]:
    """A run as words and a picture."""
    words = f"{run}\n{run.details().partition(chr(10) * 2)[0]}"
    marks = {status.value: path for status, path in MARK_PATHS.items()}
    states = {name: state.to_plain() for name, state in run.view.nodes.items()}
    return {"words": redacted(words), "svg": run.to_svg(), "marks": marks, "states": states}


def _compared(a: RunRow, b: RunRow) -> dict[str, Any]:
    both = diff(a.logs_root, b.logs_root)
    places = ", ".join(f'"{redacted(shown_place(row.logs_root))}"' for row in (a, b))
    said = {"title": f"A {a.logs_root.name} · B {b.logs_root.name}", "call": f"diff({places})"}
    if isinstance(both, MapComparison):
        return {**said, "words": redacted(str(both))}
    first = both.first_difference
    words = "No step differs." if first is None else f"They first differ at {first.node}."
    return {
        **said,
        "words": f"{both.a.headline}\n{both.b.headline}\n{words}",
        "both": comparison_values(both.compared, text_chars=PLAIN_TEXT_CHARS),
    }


def _tagged(row: RunRow, tags: tuple[str, ...], verb: str, message: Mapping[str, Any]) -> dict[str, Any]:
    words = f"Tags: {', '.join(tags)}" if tags else "It has no tags."
    tag = redacted(str(message.get("tag", "")))
    return {"title": row.logs_root.name, "words": words, "call": f'runs()[…].{verb}("{tag}")'}


def _deleted(row: RunRow) -> dict[str, Any]:
    words = row.delete(confirm=True)
    return {
        "title": f"Deleted {row.logs_root.name}",
        **({"words": redacted(words)} if words else {}),
        "call": "runs()[…].delete(confirm=True)",
    }
