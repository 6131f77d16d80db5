"""Two maps beside each other: which rows came out otherwise, and at what price.

Rows are matched by their inputs, not by their numbers. Inputs that only one of the maps has, and those that have one
value in all rows of A and another one in all rows of B (a common ``--param``), are what differs between the maps, and
match nothing. Of rows with the same inputs the first of A belongs to the first of B, and so on. Each step is linear
in the number of rows.
"""

from __future__ import annotations

import json
import textwrap
from collections import Counter, defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from attractor_nb.languages.condition.parser import value_text
from attractor_nb.maps.map_view import ROW_ORDER, map_headline
from attractor_nb.maps.stored_map import MapRecord, RecordedRow, record_of
from attractor_nb.model.outcome import Usage
from attractor_nb.model.states import run_state, run_word
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.files.user_files import write_file
from attractor_nb.studio.compare.compare_runs import graph_changes
from attractor_nb.studio.compare.run_alignment import unite
from attractor_nb.views.display import Displayed
from attractor_nb.views.drawings.theme import root_class
from attractor_nb.views.markup import element, style_sheet
from attractor_nb.views.metrics import ELLIPSIS
from attractor_nb.views.output_styles import compare_css
from attractor_nb.views.row_table import RowCell, RowColumn, RowTable, value_columns
from attractor_nb.views.rows_page import RowsPage
from attractor_nb.views.summary_line import cost_text, duration_text, price_text
from attractor_nb.views.table import Column, Table, cells, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

MAX_ROWS: Final = 60
"""Rows in a table; all are in ``rows`` and in JSON."""
VALUE_CHARS: Final = 60
NOTHING: Final = "\N{EN DASH}"
_MINUS: Final = "\N{MINUS SIGN}"
_ABSENT: Final = object()
_OF_THE_ROW: Final = frozenset({"outcome", "reason"})
"""Differences that are none of outputs."""
_LOOKS: Final = {
    "≠": ("is-fail", "other outcome"),
    "≈": ("is-interrupted", "other outputs"),
    "A": ("is-interrupted", "only in A"),
    "B": ("is-interrupted", "only in B"),
    "": ("is-not_started", "same"),
}
"""The class of a row of the page, and its word, by sign."""
_STATES: Final = {"≠": "error", "≈": "warn", "A": "warn", "B": "warn"}


@dataclass(frozen=True, slots=True)
class RowPair:
    """A row of both maps, or of one."""

    a: RecordedRow | None  #: That of the first map, or None.
    b: RecordedRow | None  #: That of the second, or None.
    #: ``outcome``, ``reason``, and the outputs that are not the same; nothing where one is missing.
    differences: tuple[str, ...] = ()

    @property
    def either(self) -> RecordedRow:
        """That of the first map, else that of the second."""
        row = self.a or self.b
        assert row is not None, "a pair has a row"
        return row

    @property
    def is_same(self) -> bool:
        """True if both are there and nothing differs."""
        return self.a is not None and self.b is not None and not self.differences

    @property
    def sign(self) -> str:
        """``A`` or ``B`` for a row of one map, ``≠`` for another outcome, ``≈`` for other outputs or reasons."""
        if self.b is None:
            return "A"
        if self.a is None:
            return "B"
        return "≠" if "outcome" in self.differences else "≈" if self.differences else ""

    def to_plain(self) -> dict[str, Any]:
        """JSON values."""
        inputs = self.either.inputs
        return {
            "inputs": None if inputs is None else dict(inputs),
            "differs": list(self.differences),
            "a": None if self.a is None else row_plain(self.a),
            "b": None if self.b is None else row_plain(self.b),
        }


class MapComparison(Displayed):
    """Two maps beside each other. Its ``repr`` is a table, in a notebook as HTML.

    Attributes:
        a: The first map.
        b: The second map.
        rows: Each row beside that of the other map which has its inputs, in the order of A; then what only B has.
        changes: What differs between pipelines, inputs and options, in words.
    """

    def __init__(self, a: MapRecord, b: MapRecord) -> None:
        self.a, self.b = a, b
        names, input_changes = _key_names(a, b)
        varying = [name for name in names if _is_varying(a, name) or _is_varying(b, name)]
        self._shown_names = varying or names
        self.changes: tuple[str, ...] = (*_pipeline_changes(a, b), *input_changes)
        self.rows: tuple[RowPair, ...] = tuple(_paired(a, b, names))

    @property
    def is_same(self) -> bool:
        """True if nothing differs but times, ids and what it cost."""
        return self.a.view.status == self.b.view.status and not self.changes and not self.differing

    @property
    def differing(self) -> tuple[RowPair, ...]:
        """The rows that are not the same, those with another outcome first."""
        return tuple(sorted((pair for pair in self.rows if not pair.is_same), key=lambda pair: pair.sign != "≠"))

    @property
    def transitions(self) -> dict[tuple[str, str], int]:
        """The number of rows for each change of status from A to B; unchanged rows are left out."""
        pairs = ((pair.a, pair.b) for pair in self.rows)
        counted = Counter((a.status, b.status) for a, b in pairs if a and b and a.status != b.status)
        return dict(counted.most_common())

    def to_html(self) -> str:
        """Headlines and tables as one piece of HTML without script."""
        return self._html(has_times=True)

    def export_html(self, path: str | PathLike[str] = "comparison.html") -> Path:
        """Write both as one page, whose table of rows can be sorted and searched; no kernel, no network."""
        place = as_path(path, "the page")
        write_file(place, self.page().to_html())
        return place

    def to_plain(self, rows: Sequence[RowPair] | None = None) -> dict[str, Any]:
        """Everything as JSON values; of the rows those that differ.

        Args:
            rows: A part of these rows.
        """
        return {
            "is_same": self.is_same,
            "a": side_plain(self.a),
            "b": side_plain(self.b),
            "changes": list(self.changes),
            "transitions": [{"a": a, "b": b, "rows": count} for (a, b), count in self.transitions.items()],
            "same_rows": sum(pair.is_same for pair in self.rows),
            "rows": [pair.to_plain() for pair in (self.differing if rows is None else rows)],
        }

    def details(self, width: int = 0) -> str:
        """The tables with times.

        Args:
            width: Columns of the terminal; longer rows become blocks of lines. 0: as long as they are.
        """
        return self._text(has_times=True, width=width)

    def _text(self, *, has_times: bool, width: int = 0) -> str:
        tables = (_shown_text(table, width) for table in self._tables(has_times=has_times))
        words = [*map(one_line, self.changes), self._words()]
        heads = ("\n".join(_wrapped(lines, width)) for lines in (self.headlines(), words))
        return "\n\n".join([*heads, *tables])

    def headlines(self) -> list[str]:
        """A line for each map."""
        sides = (("A", self.a), ("B", self.b))
        return [f"{name} {map_headline(side.view, has_times=False)}" for name, side in sides]

    def _words(self) -> str:
        """The number of rows that differ, by kind of difference, in words."""
        signs = Counter(pair.sign for pair in self.rows)
        if not self.differing:
            return "no row differs"
        turned = ", ".join(f"{count:,} {run_word(a)} → {run_word(b)}" for (a, b), count in self.transitions.items())
        parts = [
            f"{_count(signs['≠'], 'row')} with another status: {turned}" if signs["≠"] else "",
            f"{_count(signs['≈'], 'row')} with other outputs or reasons" if signs["≈"] else "",
            f"{_count(signs['A'], 'row')} only in A" if signs["A"] else "",
            f"{_count(signs['B'], 'row')} only in B" if signs["B"] else "",
        ]
        return "; ".join(filter(None, parts))

    def _tables(self, *, has_times: bool) -> Iterator[Table]:
        yield _totals_table(self.a, self.b, has_times=has_times)
        if (rows := _rows_table(self.differing, self._shown_names)).rows:
            yield rows
        if (outputs := _outputs_table(self.rows)).rows:
            yield outputs

    def page(self) -> RowsPage:
        """The page that ``export_html`` writes, for a front-end: rows that differ come first."""
        shown = [*self.differing, *(pair for pair in self.rows if pair.is_same)]
        totals = _totals_html(_totals_table(self.a, self.b, has_times=True))
        notes = (element("p", {"class": "am-note"}, one_line(words)) for words in (*self.changes, self._words()))
        return RowsPage(
            "Two maps beside each other",
            "\n".join(self.headlines()),
            element("div", {"class": "am-summary"}, totals, *notes),
            RowTable(tuple(_page_columns(shown, self.a.outputs)), shown, lambda pair: _LOOKS[pair.sign]),
        )

    def _html(self, *, has_times: bool = False) -> str:
        parts = [
            style_sheet(compare_css()),
            *(element("div", {"class": "headline"}, line) for line in self.headlines()),
            *(element("div", {"class": "note"}, one_line(words)) for words in (*self.changes, self._words())),
            *(Markup(table.to_html()) for table in self._tables(has_times=has_times)),  # noqa: S704 - by our own builder
        ]
        return str(element("div", {"class": f"attractor-compare {root_class()} auto"}, *parts))

    def __str__(self) -> str:
        return self._text(has_times=False)


def compare_maps(a: object, b: object) -> MapComparison:
    """The differences of two maps; one that is still running is compared as far as it has come."""
    return MapComparison(record_of(a), record_of(b))


# -- matching ------------------------------------------------------------------------------------------------


def _key_names(a: MapRecord, b: MapRecord) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The inputs by which rows are matched, and what is said of the others."""
    in_a, in_b = _values_by_name(a), _values_by_name(b)
    words = [f"input {name}: only in {word}" for word, names in (("A", in_a.keys() - in_b), ("B", in_b.keys() - in_a))
             for name in sorted(names)]  # fmt: skip
    shared = [name for name in in_a if name in in_b]
    common = [
        name
        for name in shared
        if len(a.rows) > 1 and len(b.rows) > 1 and len(in_a[name]) == len(in_b[name]) == 1 and in_a[name] != in_b[name]
    ]
    if len(common) == len(shared):
        return tuple(shared), tuple(words)
    for name in common:
        before, now = (_short(value_text(json.loads(*values[name]))) for values in (in_a, in_b))
        words.append(f"input {name}: {before} in A, {now} in B")
    return tuple(name for name in shared if name not in common), tuple(words)


def _is_varying(record: MapRecord, name: str) -> bool:
    values = (None if row.inputs is None else row.inputs.get(name) for row in record.rows)
    first = next(values, None)
    return any(value != first for value in values)


def _values_by_name(record: MapRecord) -> dict[str, set[str]]:
    """Up to two values, as JSON, of each input of a map: whether it is the same in all rows."""
    found: dict[str, set[str]] = {}
    counts: Counter[str] = Counter()
    for row in record.rows:
        for name, value in (row.inputs or {}).items():
            counts[name] += 1
            values = found.setdefault(name, set())
            if len(values) < 2:
                values.add(json.dumps(value, sort_keys=True))
    for name, values in found.items():
        if counts[name] < len(record.rows):
            values.add("")  # it is missing in some rows, so it is not common to all
    return found


def _paired(a: MapRecord, b: MapRecord, names: Sequence[str]) -> Iterator[RowPair]:
    waiting: defaultdict[str, deque[RecordedRow]] = defaultdict(deque)
    for row in b.rows:
        waiting[_key(row, names)].append(row)
    keys = {*a.outputs, *b.outputs} if a.outputs == b.outputs else {*a.outputs} & {*b.outputs}
    matched = set[int]()
    for row in a.rows:
        found = waiting.get(_key(row, names))
        other = found.popleft() if found else None
        if other is not None:
            matched.add(other.row)
        yield RowPair(row, other, _differences(row, other, sorted(keys)) if other is not None else ())
    yield from (RowPair(None, row) for row in b.rows if row.row not in matched)


def _key(row: RecordedRow, names: Sequence[str]) -> str:
    if row.inputs is None or not names:
        return row.inputs_hash
    return json.dumps([row.inputs.get(name) for name in names], sort_keys=True)


def _differences(a: RecordedRow, b: RecordedRow, outputs: Sequence[str]) -> tuple[str, ...]:
    found = ["outcome"] if a.status != b.status else []
    if a.status == b.status and a.reason != b.reason:
        found.append("reason")
    if a.status == b.status == "success":
        found += [key for key in outputs if a.outputs.get(key, _ABSENT) != b.outputs.get(key, _ABSENT)]
    return tuple(found)


def _pipeline_changes(a: MapRecord, b: MapRecord) -> Iterator[str]:
    if a.graph is not None and b.graph is not None:
        yield from (f"graph: {words}" for words in graph_changes(a.graph, b.graph, unite(a.graph, b.graph)))
    for name in dict.fromkeys((*a.facts, *b.facts)):
        before, now = a.facts.get(name, ""), b.facts.get(name, "")
        if before != now:
            yield f"{name}: {before or NOTHING} in A, {now or NOTHING} in B"


# -- tables --------------------------------------------------------------------------------------------------


def _totals_table(a: MapRecord, b: MapRecord, *, has_times: bool) -> Table:
    sides = (a.view, b.view)
    rows: list[tuple[str, ...]] = [_numbers("rows", len(a.rows), len(b.rows))]
    for status in ROW_ORDER:
        before, now = (sum(row.shown_status == status for row in side.rows) for side in (a, b))
        if before or now:
            rows.append(_numbers(run_word(status), before, now))
    if any(side.marks.words for side in sides):
        rows.append(("mark", *(one_line(side.marks.words) or NOTHING for side in sides), ""))
    if any(side.usage.total_tokens for side in sides):
        rows.append(_numbers("tokens", *(side.usage.total_tokens for side in sides)))
    if any(price_text(side.usage) for side in sides):
        rows.append(("cost", *(price_text(side.usage) or NOTHING for side in sides), _cost_difference(a, b)))
    if has_times:
        spent = b.view.seconds - a.view.seconds
        shown = (duration_text(side.seconds) for side in sides)
        rows.append(("time", *shown, _signed(spent, duration_text(abs(spent)))))
    columns = (Column("", "place"), Column("A", "number"), Column("B", "number"), Column(f"B {_MINUS} A", "number"))
    return Table("Both maps", columns, rows)


def _numbers(word: str, a: int, b: int) -> tuple[str, str, str, str]:
    return word, f"{a:,}", f"{b:,}", _signed(b - a, f"{abs(b - a):,}")


def _signed(difference: float, text: str) -> str:
    return "" if not difference else f"{'+' if difference > 0 else _MINUS}{text}"


def _cost_difference(a: MapRecord, b: MapRecord) -> str:
    before, now = a.view.usage, b.view.usage
    if before.unpriced_calls or now.unpriced_calls:
        return ""  # a part of a price has no difference
    spent = (now.cost_usd or 0.0) - (before.cost_usd or 0.0)
    return _signed(spent, cost_text(abs(spent)))


def _wrapped(lines: Sequence[str], width: int) -> Iterator[str]:
    for line in lines:
        yield from textwrap.wrap(line, width, subsequent_indent="  ") if width and cells(line) > width else [line]


def _shown_text(table: Table, width: int) -> str:
    """A table; where it is wider than a terminal a block of lines for each row, which cuts nothing."""
    text = str(table)
    if not width or max(map(cells, text.split("\n"))) <= width:
        return text
    names = [column.title for column in table.columns]
    lines: list[str] = []
    for row in table.rows:
        shown = [one_line(cell) for cell in row]
        blocks = [" ".join(filter(None, shown[:-2]))]
        blocks += [f"{name} {cell}" for name, cell in zip(names[-2:], shown[-2:], strict=True)]
        for number, block in enumerate(blocks):
            indent = "  " if number else ""
            lines += textwrap.wrap(block, width, initial_indent=indent, subsequent_indent=f"{indent}  ")
    return "\n".join([*lines, *([""] * bool(table.notes)), *table.notes])


def _rows_table(pairs: Sequence[RowPair], names: Sequence[str]) -> Table:
    """The rows that came out otherwise, or that only one map has."""
    shown = [pair for pair in pairs if pair.sign != "≈" or "reason" in pair.differences]
    left = len(shown) - MAX_ROWS
    columns = (Column("", "state"), Column("row", "place"), Column("inputs"), Column("A"), Column("B"))
    return Table(
        "Rows that differ",
        columns,
        [_row_cells(pair, names) for pair in shown[:MAX_ROWS]],
        states=[_STATES[pair.sign] for pair in shown[:MAX_ROWS]],
        notes=[f"{left:,} more rows differ"] if left > 0 else [],
    )


def _row_cells(pair: RowPair, names: Sequence[str]) -> tuple[str, ...]:
    row = pair.either
    return pair.sign, _numbers_of(pair), _inputs_text(row.inputs, names), _row_words(pair.a), _row_words(pair.b)


def _numbers_of(pair: RowPair) -> str:
    """Its number, and that in B where it is another one."""
    return "/".join(dict.fromkeys(str(row.row) for row in (pair.a, pair.b) if row is not None))


def _row_words(row: RecordedRow | None) -> str:
    if row is None:
        return NOTHING
    return _outcome_words(row, _short)


def _outputs_table(pairs: Sequence[RowPair]) -> Table:
    """The outputs that are not the same in rows that both succeeded."""
    changed = [
        (pair.a, pair.b, key, pair)
        for pair in pairs
        if pair.a is not None and pair.b is not None
        for key in pair.differences
        if key not in _OF_THE_ROW or key in pair.a.outputs
    ]
    left = len(changed) - MAX_ROWS
    columns = (Column("row", "place"), Column("output", "place"), Column("A"), Column("B"))
    shown = [(_numbers_of(pair), key, *_around(a.outputs.get(key), b.outputs.get(key)))
             for a, b, key, pair in changed[:MAX_ROWS]]  # fmt: skip
    return Table("Outputs that differ", columns, shown, notes=[f"{left:,} more outputs differ"] if left > 0 else [])


def _around(a: Any, b: Any) -> tuple[str, str]:
    """Two values, cut so that what differs first is in sight."""
    texts = [NOTHING if value is None else one_line(value_text(value)[:10_000]) for value in (a, b)]
    same = next((place for place, pair in enumerate(zip(*texts, strict=False)) if pair[0] != pair[1]), 0)
    begin = max(0, same - VALUE_CHARS // 3) if same > VALUE_CHARS // 2 else 0
    first, second = (_short(ELLIPSIS * bool(begin) + text[begin:]) for text in texts)
    return first, second


def _inputs_text(inputs: Mapping[str, Any] | None, names: Sequence[str]) -> str:
    """The inputs of a row by which it is found, in a line."""
    if inputs is None:
        return NOTHING
    shown = {name: value for name, value in inputs.items() if name in names} if names else inputs
    if len(shown) == 1:
        return _short(value_text(*shown.values()))
    return ", ".join(f"{name}={_short(value_text(value))}" for name, value in shown.items())


def _count(count: int, word: str) -> str:
    return f"{count:,} {word}{'s' * (count != 1)}"


def _short(text: str) -> str:
    line = one_line(text[: 4 * VALUE_CHARS])
    return line if len(line) <= VALUE_CHARS else line[: VALUE_CHARS - 1] + ELLIPSIS


# -- the page ------------------------------------------------------------------------------------------------


def _page_columns(pairs: Sequence[RowPair], outputs: Sequence[str]) -> Iterator[RowColumn[RowPair]]:
    """The columns of the rows."""
    yield RowColumn("difference", "is-state", lambda pair: _LOOKS[pair.sign][1])
    yield RowColumn("row", "is-number", lambda pair: RowCell(_numbers_of(pair), pair.either.row))
    names = list(dict.fromkeys(name for pair in pairs for name in pair.either.inputs or ()))

    def inputs(pair: RowPair) -> Mapping[str, Any]:
        return pair.either.inputs or {}

    yield from value_columns("input", names, inputs)
    changed = {key for pair in pairs for key in pair.differences}
    keys = [key for key in outputs if key in changed]
    sides: dict[str, Callable[[RowPair], RecordedRow | None]] = {"A": lambda pair: pair.a, "B": lambda pair: pair.b}
    for side, row_of in sides.items():

        def outcome(pair: RowPair, row_of: Callable[[RowPair], RecordedRow | None] = row_of) -> RowCell:
            row = row_of(pair)
            return RowCell(NOTHING) if row is None else RowCell(_outcome_words(row), look=f"is-{row.shown_status}")

        yield RowColumn(side, "is-outcome", outcome)
    for key in keys:
        for side, row_of in sides.items():

            def values(pair: RowPair, row_of: Callable[[RowPair], RecordedRow | None] = row_of) -> Mapping[str, Any]:
                row = row_of(pair)
                return {} if row is None else row.outputs

            yield from value_columns("output", [key], values, f" in {side}")


def _outcome_words(row: RecordedRow, cut: Callable[[str], str] = str) -> str:
    state = run_state(row.shown_status)
    words = cut("; ".join(filter(None, (row.mark, row.reason))))
    return f"{state}: {words}" if words else state


def _totals_html(table: Table) -> Markup:
    """The totals of both sides."""
    head = [element("th", {"scope": "col"}, column.title) for column in table.columns]
    body = [
        element("tr", None, element("th", {"scope": "row"}, row[0]), *(element("td", None, cell) for cell in row[1:]))
        for row in table.rows
    ]
    return element(
        "table",
        {"class": "am-sides", "aria-label": table.label},
        element("thead", None, element("tr", None, *head)),
        element("tbody", None, *body),
    )


# -- plain values --------------------------------------------------------------------------------------------


def side_plain(side: MapRecord) -> dict[str, Any]:
    """A map as JSON values, without its rows."""
    view = side.view
    return {
        "map_id": side.map_id,
        "pipeline": view.name,
        "status": view.status,
        "reason": view.reason,
        "is_simulated": view.marks.is_simulated,
        "mark": view.marks.words,
        "counts": {**view.counts, "running": len(view.under_way)},
        "duration_seconds": round(view.seconds, 3),
        "usage": view.usage.to_plain(),
    }


def row_plain(row: RecordedRow) -> dict[str, Any]:
    """A row as JSON values; what is empty is left out."""
    plain = {
        "row": row.row,
        "status": row.status,
        "reason": row.reason,
        "stage": row.stage,
        "mark": row.mark,
        "outputs": dict(row.outputs),
        "duration_seconds": round(row.seconds, 3),
        "usage": {} if row.usage == Usage() else row.usage.to_plain(),
    }
    return {name: value for name, value in plain.items() if value not in ("", {})}
