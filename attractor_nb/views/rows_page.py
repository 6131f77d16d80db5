"""A page of rows: a line, a summary, a drawing and the table of rows, as one file or part by part.

A map, an evaluation, and the comparison of two maps or of variants are such pages: on a server and in a cell the same
parts are shown as in the exported file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from attractor_nb.redaction import redacted
from attractor_nb.views.frontend import table_page
from attractor_nb.views.markup import element, joined
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.views.row_table import RowQuery, RowTable

NO_MARKUP = Markup("")


@dataclass(frozen=True, slots=True)
class RowsPage:
    """The parts of a page."""

    title: str
    line: str  #: The verdict or status; several lines are possible.
    summary: Markup  #: The numbers.
    table: RowTable[Any] | None  #: None where there is no row.
    drawing: Markup = NO_MARKUP  #: The graph as SVG.
    words: Sequence[str] = ()  #: Lines below the drawing.
    notes: Sequence[str] = ()  #: Lines below the table.

    def to_html(self) -> str:
        """The page as one file, without secrets; it works without kernel and network."""
        drawing = [self._drawing()] if self.drawing else []
        notes = [*self.notes, *(self.table.notes() if self.table is not None else ())]
        body = joined([
            element("div", {"class": "am-top"}, self.summary, *drawing),
            *([self.table.embedded()] if self.table is not None else []),
            *(element("p", {"class": "al-dim am-note"}, one_line(note)) for note in notes),
        ])  # fmt: skip
        return redacted(table_page(self.title, self.line, body))

    def _drawing(self) -> Markup:
        notes = (element("p", {"class": "am-note"}, one_line(words)) for words in self.words)
        return element("div", {"class": "am-graph"}, element("div", {"class": "am-drawing"}, self.drawing), *notes)

    def parts(self) -> dict[str, Any]:
        """The parts as values for a front-end that is sent the rows one part after the other."""
        ways = list(self.table.ways or ()) if self.table is not None else []
        return {
            "title": redacted(self.title),
            "line": redacted(self.line),
            "summary": redacted(str(self.summary)),
            "drawing": redacted(str(self.drawing)),
            "words": [redacted(one_line(words)) for words in self.words],
            "notes": [redacted(one_line(note)) for note in self.notes],
            "ways": ways,
        }

    def part(self, query: RowQuery, offset: int, limit: int) -> dict[str, Any]:
        """A part of the rows that fit a query: their values, their number, and where they begin."""
        if self.table is None:
            return {"columns": [], "looks": [], "choices": {}, "rows": [], "found": 0, "total": 0, "offset": 0}
        found = self.table.find(query)
        shown = found[offset : offset + limit]
        values = self.table.values(shown, self.table.fitting_limit(shown))
        return {**values, "found": len(found), "total": len(self.table.rows), "offset": offset}
