"""The table of the rows of a map, an evaluation or a comparison: found, sorted, and sent part by part.

It is one table on every surface: an exported page holds all rows as values and a script shows those in sight, a server
and a kernel send the rows that are asked for. Without script there is a plain table of the first rows. A cell is text;
nothing in it is markup of the caller.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from markupsafe import Markup, escape

from attractor_nb.languages.condition.parser import value_text
from attractor_nb.redaction import redacted, redacted_value
from attractor_nb.views.frontend import json_text
from attractor_nb.views.markup import clean, element, joined
from attractor_nb.views.metrics import ELLIPSIS
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

MAX_CHARS: Final = 3_000_000
"""Most characters of the values of a page."""
LIMITS: Final = (4_000, 1_000, 300, 80)
"""Characters of a value, tried one after the other until the page is small enough."""
MAX_ROWS: Final = 10_000
STATIC_ROWS: Final = 500
"""Rows of the table that is there without script."""
MAX_COLUMNS: Final = 5
"""More inputs, or outputs, than that share a column."""
LINE_CHARS: Final = 140
"""A longer value is folded."""
WORD_CHARS: Final = 24
"""A longer value may be broken anywhere; a word is not."""
WIDEST_CHARS: Final = 48
"""A column asks for no more room than that."""
_MEASURED_CHARS: Final = 400
_DIGITS: Final = re.compile(r"(\d+)")

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class RowCell:
    """A cell."""

    text: str
    order: float | None = None  #: What it is sorted by, if not by its text.
    look: str = ""  #: Class of its text.
    parts: Sequence[tuple[str, str]] = ()  #: The same text in pieces: ``del``, ``ins`` or nothing, and its words.


@dataclass(frozen=True, slots=True)
class RowColumn(Generic[RowT]):
    """A column: its heading, its class, and a function that makes its cell for a row."""

    title: str
    kind: str
    cell: Callable[[RowT], RowCell | str]


@dataclass(frozen=True, slots=True)
class RowQuery:
    """The rows that are wanted, and their order."""

    words: str = ""  #: Each of them occurs somewhere in the row, in capitals or not.
    status: str = ""  #: The word of its status; empty for all.
    way: str = ""  #: A stage or an edge of the drawing that chooses rows; see ``RowTable.ways``.
    sort: int = -1  #: The column; -1 for the order of the page, failures first.
    descending: bool = False


def no_text(row: object) -> str:
    """Nothing: rows without a key or a link."""
    del row
    return ""


@dataclass(frozen=True)
class RowTable(Generic[RowT]):
    """The table."""

    columns: Sequence[RowColumn[RowT]]
    rows: Sequence[RowT]  #: In the order of the page.
    look: Callable[[RowT], tuple[str, str]]  #: The class of a row, and the word by which it is chosen.
    key: Callable[[RowT], str] = no_text  #: The run that a row opens; empty for none.
    link: Callable[[RowT], str] = no_text  #: The address of its page; empty for none.
    ways: Mapping[str, Sequence[int]] | None = None
    """Places of rows by what a click on the drawing chooses: ``stage NAME`` or ``edge NUMBER``."""

    @cached_property
    def cells(self) -> list[list[RowCell]]:
        """The cells of each row."""
        return [[_as_cell(column.cell(row)) for column in self.columns] for row in self.rows]

    @cached_property
    def looks(self) -> list[tuple[str, str]]:
        """The look of each row."""
        return [self.look(row) for row in self.rows]

    @cached_property
    def _texts(self) -> list[str]:
        return [
            " ".join((word, *(cell.text for cell in cells))).lower()
            for (_, word), cells in zip(self.looks, self.cells, strict=True)
        ]

    @cached_property
    def _widths(self) -> list[int]:
        """The characters that each column asks for."""
        longest = [len(column.title) + 2 for column in self.columns]
        for cells in self.cells:
            for place, cell in enumerate(cells):
                if longest[place] < WIDEST_CHARS and len(cell.text) > longest[place]:
                    longest[place] = max(longest[place], len(one_line(cell.text[:_MEASURED_CHARS])))
        return [min(width, WIDEST_CHARS) for width in longest]

    def choices(self) -> dict[str, int]:
        """The number of rows by the word of their status, in the order of the page."""
        return dict(Counter(word for _, word in self.looks))

    def find(self, query: RowQuery) -> list[int]:
        """The places of the rows that fit a query, in its order."""
        words = query.words.lower().split()
        chosen = None if not query.way else set((self.ways or {}).get(query.way, ()))
        found = [
            place
            for place, (text, (_, word)) in enumerate(zip(self._texts, self.looks, strict=True))
            if (not query.status or word == query.status)
            and (chosen is None or place in chosen)
            and all(each in text for each in words)
        ]
        if not 0 <= query.sort < len(self.columns):
            return found
        column = [self.cells[place][query.sort] for place in found]
        is_number = all(cell.order is not None or not cell.text for cell in column)
        keys = [(cell.order or 0.0) if is_number else _natural(cell.text) for cell in column]
        order = sorted(range(len(found)), key=lambda index: keys[index], reverse=query.descending)  # pyright: ignore[reportArgumentType, reportUnknownLambdaType]
        return [found[index] for index in order]

    def fitting_limit(self, places: Iterable[int]) -> int:
        """The limit of characters of a value, so that all values of these rows together fit a page."""
        lengths = Counter(len(cell.text) for place in places for cell in self.cells[place])
        for limit in LIMITS:
            if sum(min(length, limit) * count for length, count in lengths.items()) <= MAX_CHARS:
                return limit
        return LIMITS[-1]

    def values(self, places: Sequence[int], limit: int) -> dict[str, Any]:
        """JSON values of the rows at some places, without secrets.

        Args:
            places: The places, in the order in which they are shown.
            limit: Most characters of a value.
        """
        looks = list(dict.fromkeys(self.looks))
        numbers = {look: number for number, look in enumerate(looks)}
        rows = [
            [
                place,
                numbers[self.looks[place]],
                self.key(self.rows[place]),
                self.link(self.rows[place]),
                *(_plain_cell(cell, limit) for cell in self.cells[place]),
            ]
            for place in places
        ]
        columns = [[column.title, column.kind, width] for column, width in zip(self.columns, self._widths, strict=True)]
        return redacted_value({"columns": columns, "looks": looks, "choices": self.choices(), "rows": rows})

    def embedded(self) -> Markup:
        """All rows as values for the page's script, and the first of them as a plain table where there is no script."""
        places = range(min(len(self.rows), MAX_ROWS))
        limit = self.fitting_limit(places)
        ways = {} if self.ways is None else {name: list(at) for name, at in self.ways.items()}
        values = {**self.values(places, limit), "ways": ways}
        data = Markup('<script type="application/json" class="am-data">') + Markup(json_text(values))  # noqa: S704 - no < in it
        left = len(self.rows) - STATIC_ROWS
        notes = [f"and {left:,} more rows, which this page shows with JavaScript switched on"] if left > 0 else []
        static = joined([
            element("div", {"class": "am-frame"}, self._static(places[:STATIC_ROWS], limit)),
            *(element("p", {"class": "al-dim am-note"}, note) for note in notes),
        ])  # fmt: skip
        return element("div", {"class": "am-rows"}, data + Markup("</script>"), element("noscript", None, static))

    def notes(self) -> list[str]:
        """Notes on what the table leaves out: rows, and the ends of long values."""
        left = len(self.rows) - MAX_ROWS
        notes = [f"and {left:,} more rows, which are not shown"] if left > 0 else []
        limit = self.fitting_limit(range(min(len(self.rows), MAX_ROWS)))
        if limit < LIMITS[0]:
            notes.append(f"To keep this page small, values are cut to {limit:,} characters.")
        return notes

    def _static(self, places: Sequence[int], limit: int) -> Markup:
        head = [element("th", {"scope": "col", "class": column.kind or None}, column.title) for column in self.columns]
        return element(
            "table",
            {"class": "am-table is-static", "aria-label": "Rows"},
            element("thead", None, element("tr", None, *head)),
            element("tbody", None, *(self._static_row(place, limit) for place in places)),
        )

    def _static_row(self, place: int, limit: int) -> Markup:
        css, word = self.looks[place]
        link = self.link(self.rows[place])
        cells: list[Markup] = []
        for number, (column, cell) in enumerate(zip(self.columns, self.cells[place], strict=True)):
            shown = _folded(cell, limit)
            if link and number == 0:
                shown = element("a", {"href": link}, shown)
            size = "" if cell.text else "is-empty"
            size = "is-long" if len(cell.text) > WORD_CHARS else size
            classes = " ".join(filter(None, (column.kind, size))) or None
            cells.append(element("td", {"data-label": column.title, "class": classes}, shown))
        return element("tr", {"class": css, "data-status": word}, *cells)


def value_columns(
    kind: str, names: Sequence[str], values_of: Callable[[RowT], Mapping[str, Any]], side: str = ""
) -> Iterator[RowColumn[RowT]]:
    """The columns of inputs or outputs: one for each, or one for all where there are many.

    Args:
        kind: ``input`` or ``output``.
        names: Their names.
        values_of: Gives those of a row.
        side: Written behind the name.
    """
    if len(names) > MAX_COLUMNS:

        def joint(row: RowT) -> str:
            values = values_of(row)
            return "\n".join(f"{name}: {value_text(values[name])}" for name in names if name in values)

        yield RowColumn(f"{kind}s{side}", f"is-{kind}", joint)
        return
    for name in names:

        def cell(row: RowT, name: str = name) -> RowCell:
            value = values_of(row).get(name)
            order = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
            return RowCell("" if value is None else value_text(value), order)

        yield RowColumn(f"{one_line(name)}{side}", f"is-{kind}", cell)


def _as_cell(made: RowCell | str) -> RowCell:
    return RowCell(made) if isinstance(made, str) else made


def _natural(text: str) -> list[tuple[int, int, str]]:
    """A key that sorts numbers inside of texts by their values."""
    pieces = _DIGITS.split(text.casefold())
    return [(0, int(piece[:300]), "") if place % 2 else (1, 0, piece) for place, piece in enumerate(pieces)]


def _cut(text: str, limit: int) -> str:
    left = len(text) - limit
    return f"{text[:limit]}{ELLIPSIS} {left:,} more characters" if left > 0 else text


def _plain_cell(cell: RowCell, limit: int) -> Any:
    """A cell as JSON: its text alone where there is no more to it."""
    text = clean(_cut(cell.text, limit))
    if cell.order is None and not cell.look and not cell.parts:
        return text
    return [text, cell.order, cell.look, [[tag, clean(words)] for tag, words in cell.parts]]


def _folded(cell: RowCell, limit: int) -> Markup | str:
    """A value in the plain table: on its line, else folded with its beginning in sight."""
    shown = redacted(_cut(cell.text, limit))
    line = one_line(shown[: 4 * LINE_CHARS])
    value = joined([_piece(tag, redacted(words)) for tag, words in cell.parts])
    if len(line) <= LINE_CHARS and "\n" not in shown.strip():
        if cell.parts or cell.look:
            return element("span", {"class": cell.look or None}, value or line)
        return line
    summary = line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS].rstrip()}{ELLIPSIS}"
    whole = element("div", {"class": "am-value"}, value or shown)
    return element("details", {"class": cell.look or None}, element("summary", None, summary), whole)


def _piece(tag: str, words: str) -> Markup:
    return element(tag, None, words) if tag else escape(clean(words))
