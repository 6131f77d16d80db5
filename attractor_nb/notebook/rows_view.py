"""The rows of a map or an evaluation in a cell: the page that ``export_html`` writes, sent part by part.

The output of the cell is the static summary; in the browser the widget stands in for it once the map has ended
(``views/web/rows_view.js``). A row opens the live view of its run beside the table.
"""

from __future__ import annotations

# anywidget and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedBaseClass=false
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

import anywidget
import traitlets

from attractor_nb.errors import AttractorError
from attractor_nb.evaluation.evaluation import Evaluation
from attractor_nb.evaluation.stored_evaluation import read_evaluation
from attractor_nb.maps.map_page import map_page
from attractor_nb.maps.stored_map import record_of
from attractor_nb.pipeline.run import Run
from attractor_nb.redaction import redacted
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.map_directory import is_evaluation
from attractor_nb.views.frontend import script, widget_styles
from attractor_nb.views.row_table import RowQuery

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.views.rows_page import RowsPage

OpenRun = Callable[[Any, str], object]
"""Shows the live view of a run at the place of a key."""
MOST_ROWS: Final = 1_000
"""Rows that are sent at a time."""


class RowsRequests:
    """Answers what a view asks of the rows of a map, an evaluation, its result or its directory. Knows no widget."""

    def __init__(self, of: object, open_run: OpenRun | None = None) -> None:
        self._of = of
        self._open_run = open_run

    @cached_property
    def page(self) -> RowsPage:
        """The page, made when it is first asked for."""
        if isinstance(self._of, Evaluation):
            return self._of.page(key_of=_directory_of)
        if self.directory is not None and is_evaluation(self.directory):
            return read_evaluation(self.directory).page(key_of=_directory_of)
        return map_page(record_of(self._of), key_of=_directory_of)

    @property
    def directory(self) -> Path | None:
        """The directory that holds the runs of the rows; None when nothing is kept."""
        if isinstance(self._of, Evaluation):
            return self._of.map.directory
        if hasattr(self._of, "view"):
            return cast("Any", self._of).directory
        return as_path(cast("Any", self._of), "the map")

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to a message; None for one that asks nothing of the rows."""
        try:
            match message.get("kind"):
                case "page":
                    return {"kind": "page", "page": self.page.parts()}
                case "rows":
                    return {"kind": "rows", "number": message.get("number"), "table": self._part(message)}
                case "row":
                    return self._opened(str(message.get("key", "")), str(message.get("place", "")))
                case _:
                    return None
        except AttractorError as error:
            return {"kind": "row", "place": message.get("place", ""), "problem": redacted(str(error))}

    def _part(self, message: Mapping[str, Any]) -> dict[str, Any]:
        given: Any = message.get("query")
        query: Mapping[str, Any] = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        sort = query.get("sort")
        wanted = RowQuery(
            str(query.get("words", ""))[:500],
            str(query.get("status", "")),
            str(query.get("way", "")),
            sort if isinstance(sort, int) else -1,
            query.get("descending") is True,
        )
        return self.page.part(
            wanted, _number(message.get("offset"), 0), min(_number(message.get("limit"), 1), MOST_ROWS)
        )

    def _opened(self, key: str, place: str) -> dict[str, Any]:
        reply = {"kind": "row", "place": place, "problem": ""}
        table = self.page.table
        if self.directory is None or table is None or key not in {table.key(row) for row in table.rows} - {""}:
            return {**reply, "problem": "Nothing is kept of this row."}
        if self._open_run is not None:
            self._open_run(Run.load(self.directory / key), place)
        return reply


def _number(value: object, least: int) -> int:
    return max(least, value) if isinstance(value, int) else least


def _directory_of(row: Any) -> str:
    return row.directory


class RowsView(anywidget.AnyWidget):
    """The rows of one map in a cell."""

    _esm = script("rows_view")
    _css = widget_styles()
    place = traitlets.Unicode().tag(sync=True)  #: The key that marks the static output.
    is_ready = traitlets.Bool().tag(sync=True)  #: The map has ended: its rows can be asked for.

    def __init__(self, place: str, open_run: OpenRun | None = None) -> None:
        self._open_run = open_run
        self._requests: RowsRequests | None = None
        super().__init__(place=place)
        self.on_msg(self._on_message)

    def take(self, of: object) -> None:
        """Show a map that has ended; called in any thread."""
        self._requests = RowsRequests(of, self._open_run)
        self.is_ready = True

    def _on_message(self, _widget: object, content: dict[str, Any], _buffers: object) -> None:
        if self._requests is not None and (reply := self._requests.answer(content)) is not None:
            self.send(reply)
