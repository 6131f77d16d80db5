"""Tables and text in columns: text for a terminal, HTML for a notebook. The caller gives the facts."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from attractor_nb.errors import OptionError
from attractor_nb.model.texts import shown
from attractor_nb.views.display import Displayed
from attractor_nb.views.drawings.theme import Theme, root_class
from attractor_nb.views.markup import clean, element, joined, style_sheet
from attractor_nb.views.output_styles import compare_css, table_css

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Column:
    """A column."""

    title: str  #: Its heading.
    kind: str = "text"  #: ``text``, ``number`` (aligned right), ``place`` (an id) or ``state`` (coloured by its row).


@dataclass(frozen=True, slots=True, repr=False)
class Table(Displayed):
    """A table."""

    label: str  #: Its description for screen readers.
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[str]]  #: The cells of each row.
    states: Sequence[str] = ()  #: For each row ``ok``, ``warn``, ``error`` or nothing; empty when no row has any.
    total: Sequence[str] = ()  #: The last row, set apart; empty for none.
    headline: str = ""  #: A line above.
    notes: Sequence[str] = ()  #: Lines below.

    def __str__(self) -> str:
        """Headline, table and notes. Without a row there is no table."""
        lines = [one_line(self.headline)] if self.headline else []
        if self.rows:
            shown = [[column.title for column in self.columns], *self.rows, *([self.total] if self.total else [])]
            grid = [[one_line(cell) for cell in row] for row in shown]
            for index, column in enumerate(self.columns):
                if column.kind == "number":
                    width = max(cells(row[index]) for row in grid)
                    for row in grid:
                        row[index] = " " * (width - cells(row[index])) + row[index]
            lines += [""] * bool(lines) + aligned(grid).split("\n")
        notes = [one_line(note) for note in self.notes]
        return "\n".join([*lines, *([""] * bool(lines and notes)), *notes])

    def to_html(self, theme: Theme = "auto") -> str:
        """The same as HTML; everything of the input is escaped."""
        head = element("tr", None, *(_heading(column) for column in self.columns))
        states = self.states or [""] * len(self.rows)
        body = [
            element("tr", {"class": f"state-{state}" if state else None}, *_cells(self.columns, row))
            for row, state in zip(self.rows, states, strict=True)
        ]
        if self.total:
            body.append(element("tr", {"class": "total"}, *_cells(self.columns, self.total)))
        parts = [style_sheet(table_css())]
        if self.headline:
            parts.append(element("div", {"class": "headline"}, self.headline))
        if body:
            whole = (element("thead", None, head), element("tbody", None, joined(body)))
            parts.append(element("table", {"aria-label": self.label}, *whole))
        parts += [element("div", {"class": "note"}, note) for note in self.notes]
        return str(element("div", {"class": f"attractor-table {root_class()} {theme}"}, *parts))

    def _html(self) -> str:
        return self.to_html()


class DisplayedTable(Displayed):
    """A value that is shown as its table."""

    __slots__ = ()

    @property
    def table(self) -> Table:
        """The value as a table."""
        raise NotImplementedError

    def _html(self) -> str:
        return self.table.to_html()

    def __str__(self) -> str:
        return str(self.table)


def stacked_html(headlines: Sequence[str], parts: Sequence[Table | Markup]) -> str:
    """Lines in bold, and tables or pictures below one another; everything of the input is escaped."""
    body = [
        style_sheet(compare_css()),
        *(element("div", {"class": "headline"}, line) for line in headlines),
        *(element("div", None, Markup(part.to_html()) if isinstance(part, Table) else part) for part in parts),  # noqa: S704 - by our own builder
    ]
    return str(element("div", {"class": f"attractor-compare {root_class()} auto"}, *body))


def required_pandas() -> Any:
    """The module pandas, for a method ``to_frame``.

    Raises:
        OptionError: It is not installed.
    """
    try:
        return import_module("pandas")  # optional, and slow to import
    except ImportError:
        raise OptionError("to_frame() needs pandas, which is not installed", hint="pip install pandas") from None


def _heading(column: Column) -> Markup:
    return element("th", {"scope": "col", "class": _css_class(column)}, column.title)


def _cells(columns: Sequence[Column], row: Sequence[str]) -> list[Markup]:
    return [element("td", {"class": _css_class(column)}, cell) for column, cell in zip(columns, row, strict=True)]


def _css_class(column: Column) -> str | None:
    return None if column.kind == "text" else column.kind


# Text in columns, for terminals and for ``text/plain``. It knows characters only.

_GAP: Final = "  "


def one_line(text: str) -> str:
    """The text on one line, with the escapes of characters that would move the cursor (ruling 38)."""
    return clean(shown(" ".join(text.split())))


def cells(text: str) -> int:
    """The width of a text in columns of a terminal.

    >>> cells("plan"), cells("計画")
    (4, 4)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(char) in {"Mn", "Me", "Cf"} else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as columns of equal width, without trailing blanks."""
    widths = [max(cells(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        _GAP.join(cell + " " * (width - cells(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
