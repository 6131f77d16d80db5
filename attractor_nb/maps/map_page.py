"""``map.export_html()``: a whole map as one file that opens anywhere, without a kernel and without a network.

The page is its own table: all of it also works without script, and with it the rows can be sorted and found.
It is for sending away, so everything in it is without secrets, and nothing says where on this machine the map lies.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from markupsafe import Markup, escape

from attractor_nb.errors import AttractorError, OptionError
from attractor_nb.languages.condition.parser import value_text
from attractor_nb.maps.map_view import STATUS_WORDS
from attractor_nb.maps.stored_map import MapRecord, RecordedRow, record_of
from attractor_nb.model.states import NodeStatus, RunStatus
from attractor_nb.redaction import redacted
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.runtime.stored_execution import load_execution
from attractor_nb.storage.files.user_files import write_file
from attractor_nb.studio.export_page import run_page
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.frontend import table_page
from attractor_nb.views.markup import clean, element, joined
from attractor_nb.views.metrics import ELLIPSIS
from attractor_nb.views.state import NodeState
from attractor_nb.views.summary_line import cost_text, duration_text, price_text
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from attractor_nb.model.row_result import RowStatus

ROWS: Final = ("failed", "all")
MAX_CHARS: Final = 3_000_000
"""Most characters of the values of a page."""
LIMITS: Final = (4_000, 1_000, 300, 80)
"""Characters of a value, tried one after the other until the page is small enough."""
MAX_ROWS: Final = 10_000
MAX_COLUMNS: Final = 5
"""More inputs, or outputs, than that share a column."""
LINE_CHARS: Final = 140
"""A longer value is folded."""
WORD_CHARS: Final = 24
"""A longer value may be broken anywhere; a word is not."""
_ORDER: Final = ("fail", "interrupted", "running", "not_started", "success")
_BAR: Final[tuple[RowStatus, ...]] = ("success", "fail", "interrupted")


def export_map(thing: object, path: str | PathLike[str] | None = None, *, rows: str | None = None) -> Path:
    """Write a map as one HTML file, on request with a page of each row beside it.

    Args:
        thing: A map, its result, or its directory.
        path: Where; by default ``map-<id>.html`` in the current directory. A file that is there is replaced.
        rows: ``failed`` or ``all``: each of these rows is written as a separate page, in a folder beside it.

    Returns:
        The file.
    """
    if rows not in (None, *ROWS):
        raise OptionError(f"rows must be failed or all, not {rows!r}")
    record = record_of(thing)
    place = Path(f"map-{record.map_id}.html") if path is None else as_path(path, "the page")
    links: dict[int, str] = {}
    if rows is not None:
        if record.directory is None:
            raise OptionError("nothing is kept of the rows, so they have no pages", hint='durability="full" or "fast"')
        links = _row_pages(record.directory, place, [row for row in record.rows if _is_wanted(row, rows)])
    write_file(place, map_page(record, links))
    return place


def _is_wanted(row: RecordedRow, rows: str) -> bool:
    return bool(row.directory) and (row.status == "fail" if rows == "failed" else row.status != "running")


def _row_pages(directory: Path, place: Path, rows: Sequence[RecordedRow]) -> dict[int, str]:
    """Write the pages of rows; their addresses as seen from the page of the map."""
    folder = place.with_name(f"{place.stem}-rows")
    links: dict[int, str] = {}
    for row in rows:
        try:
            text = run_page(load_execution(directory / row.directory))
        except AttractorError:  # one row that cannot be read does not hide the others
            continue
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / f"{row.directory}.html", text)
        links[row.row] = f"{folder.name}/{row.directory}.html"
    return links


def map_page(record: MapRecord, links: Mapping[int, str]) -> str:
    """The text of the page.

    Args:
        record: The map.
        links: Addresses of the pages of rows, by number.
    """
    title = redacted(record.graph.label if record.graph is not None else "") or record.view.name or "a pipeline"
    order = failures_first(record.rows)
    limit = fitting_limit(record.rows)
    shown = order[:MAX_ROWS]
    notes = page_notes(record, len(order) - len(shown), limit, has_links=bool(links))
    drawing = element("div", {"class": "am-drawing"}, map_drawing(record)) if record.graph is not None else Markup("")
    body = joined([
        element("div", {"class": "am-top"}, map_facts(record), drawing),
        map_table(record, shown, links, limit),
        *(element("p", {"class": "al-dim am-note"}, note) for note in notes),
    ])  # fmt: skip
    text = table_page(f"Map of {title}", map_line(record), "map_page", "makeMapTable", body)
    clean = redacted(text)
    assert clean == text, "a secret was left in a page; every part of it should have been looked through"
    return text


def failures_first(rows: Iterable[RecordedRow]) -> list[RecordedRow]:
    """Rows in the order of the page."""
    return sorted(rows, key=lambda row: (_ORDER.index(row.status), row.row))


def present_statuses(record: MapRecord, chosen: str = "") -> list[tuple[str, str, int]]:
    """The statuses that rows have, or that is chosen, in the order of the page: each with its word and its rows."""
    counts = Counter(row.status for row in record.rows)
    return [
        (status, STATUS_WORDS.get(status, status), counts[status])
        for status in _ORDER
        if counts[status] or status == chosen
    ]


def map_line(record: MapRecord) -> str:
    """The status of the map in one line; the numbers are below."""
    view = record.view
    ended = f"{view.ended_count:,} of {view.row_count:,} rows"
    return "   ".join([f"{RunStatus.of(view.status).letter} {view.status}", one_line(view.reason) or ended])


def fitting_limit(rows: Iterable[RecordedRow]) -> int:
    """The limit of characters for each value, so that all values together fit the page."""
    return limit_of(value for row in rows for value in (*(row.inputs or {}).values(), *row.outputs.values()))


def limit_of(values: Iterable[Any]) -> int:
    """The limit of characters for each of these values, so that all together fit a page."""
    lengths = Counter(len(value_text(value)) for value in values)
    for limit in LIMITS:
        if sum(min(length, limit) * count for length, count in lengths.items()) <= MAX_CHARS:
            return limit
    return LIMITS[-1]


def page_notes(record: MapRecord, left: int, limit: int, *, has_links: bool) -> list[str]:
    """Notes below the table.

    Args:
        record: The map.
        left: Number of rows that are not shown.
        limit: Characters of a value.
        has_links: The number of a row is a link to its page.
    """
    notes = [f"and {left:,} more rows, which are not shown"] if left > 0 else []
    if limit < LIMITS[0]:
        notes.append(f"To keep this page small, values are cut to {limit:,} characters.")
    if record.directory is not None and not has_links:
        notes.append("A row is a run. Its prompts, responses and path as a page: attractor-nb export MAP_DIR/row-00000")
    return notes


def map_facts(record: MapRecord) -> Markup:
    """Totals, where the failures are, and what ran."""
    view = record.view
    stages = Counter(row.stage for row in record.rows if row.stage)
    facts = {
        "rows": f"{len(record.rows):,}",
        **{STATUS_WORDS[status]: f"{count:,}" for status, count in view.counts.items() if count},
        "running": f"{len(view.under_way):,}" if view.under_way else "",
        "failed in": ", ".join(f"{node} ({count:,})" for node, count in stages.most_common(5)),
        "time": duration_text(view.seconds),
        "tokens": f"{view.usage.total_tokens:,}" if view.usage.total_tokens else "",
        "cost": price_text(view.usage),
        "cost of a row": _cost_of_a_row(record),
        "results": view.marks.words,
        **record.facts,
    }
    cells = [
        joined([element("dt", None, name), element("dd", {"class": f"is-{name.replace(' ', '-')}"}, one_line(words))])
        for name, words in facts.items()
        if words
    ]
    return element("div", {"class": "am-facts"}, _bar(record), element("dl", None, *cells))


def _cost_of_a_row(record: MapRecord) -> str:
    usage = record.view.usage
    if not usage.cost_usd or usage.unpriced_calls or not record.view.ended_count:
        return ""
    return f"{cost_text(usage.cost_usd / record.view.ended_count)} on average"


def _bar(record: MapRecord) -> Markup:
    counts: dict[str, int] = {status: record.view.counts[status] for status in _BAR}
    label = ", ".join(f"{count:,} {STATUS_WORDS[status]}" for status, count in counts.items() if count)
    parts = [
        element("span", {"class": f"is-{status}", "style": f"flex-grow:{count}"}, "")
        for status, count in {**counts, "left": len(record.rows) - sum(counts.values())}.items()
        if count
    ]
    return element("div", {"class": "am-bar", "role": "img", "aria-label": label or "no row has ended"}, *parts)


def map_drawing(record: MapRecord) -> Markup:
    """The pipeline as SVG, with the stages in which rows failed; empty when its text is lost."""
    if record.graph is None:
        return Markup("")
    failed = Counter(row.stage for row in record.rows if row.stage in record.graph.nodes)
    states = {
        node: NodeState(NodeStatus.FAIL, reason=f"{count:,} of {len(record.rows):,} rows failed")
        for node, count in failed.items()
    }
    return Markup(render_svg(record.graph, states=states))  # noqa: S704 - by our own writer


# -- the table -----------------------------------------------------------------------------------------------


def map_table(record: MapRecord, rows: Sequence[RecordedRow], links: Mapping[int, str], limit: int) -> Markup:
    """The table of rows.

    Args:
        record: The map.
        rows: The rows that are shown.
        links: Addresses of the pages of rows, by number.
        limit: Characters of a value.
    """
    looks = [(f"is-{row.status}", STATUS_WORDS.get(row.status, row.status)) for row in rows]
    return rows_table(_columns(record, links, limit), rows, looks)


Made = tuple["str | Markup", "float | None"]
"""What stands in a cell, and what it is sorted by if not by that."""
RowT = TypeVar("RowT")


def rows_table(
    columns: Iterable[tuple[str, str, Callable[[RowT], Made]]], rows: Sequence[RowT], looks: Iterable[tuple[str, str]]
) -> Markup:
    """A table that the page's script sorts and searches.

    Args:
        columns: Heading, class, and what makes a cell.
        rows: What they are made of.
        looks: The class of each row, and the word by which it is chosen.
    """
    made = list(columns)
    head = [
        element("th", {"scope": "col", "class": kind or None, "data-name": title}, title) for title, kind, _ in made
    ]
    makers = [(_cell_maker(title, kind), make) for title, kind, make in made]
    starts: dict[tuple[str, str], str] = {}
    body: list[str] = []
    for row, look in zip(rows, looks, strict=True):
        start = starts.get(look) or starts.setdefault(look, _start("tr", {"class": look[0], "data-status": look[1]}))
        body += (start, *(cell(*make(row)) for cell, make in makers), "</tr>")
    table = element(
        "table",
        {"class": "am-table", "aria-label": "Rows"},
        element("thead", None, element("tr", None, *head)),
        element("tbody", None, Markup("".join(body))),  # noqa: S704 - every part was escaped
    )
    return element("div", {"class": "am-frame"}, table)


def _start(tag: str, attributes: Mapping[str, str | None]) -> str:
    """The start tag of an element."""
    return str(element(tag, attributes, "")).removesuffix(f"</{tag}>")


def _cell_maker(title: str, kind: str) -> Callable[[str | Markup, float | None], str]:
    """A function that makes the cells of a column; a table has many, and few start tags."""
    sizes = ("", "is-empty", "is-long")
    starts = {
        size: _start("td", {"data-label": title, "class": " ".join(filter(None, (kind, size))) or None})
        for size in sizes
    }

    def cell(shown: str | Markup, order: float | None) -> str:
        length = len(shown.striptags() if isinstance(shown, Markup) else shown)
        start = starts["is-empty" if not shown else "is-long" if length > WORD_CHARS else ""]
        if order is not None:
            start = f'{start[:-1]} data-order="{order:g}">'
        return f"{start}{shown if isinstance(shown, Markup) else escape(clean(shown))}</td>"

    return cell


def _columns(
    record: MapRecord, links: Mapping[int, str], limit: int
) -> Iterator[tuple[str, str, Callable[[RecordedRow], Made]]]:
    """The columns: heading, class, and what makes a cell."""
    rows = record.rows
    yield "row", "is-number", lambda row: (_number(row, links), row.row)
    yield "status", "is-state", lambda row: (_state(row), None)
    if any(row.reason for row in rows):
        yield "reason", "is-reason", lambda row: (value_cell(_reason(row), limit), None)
    inputs = list(dict.fromkeys(name for row in rows for name in row.inputs or ()))
    yield from value_columns("input", inputs, _inputs_of, limit)
    outputs = [key for key in record.outputs if any(key in row.outputs for row in rows)]
    yield from value_columns("output", outputs, _outputs_of, limit)
    if any(row.seconds for row in rows):
        yield "time", "is-number", lambda row: (duration_text(row.seconds) if row.seconds else "", row.seconds)
    if any(row.usage.total_tokens for row in rows):
        yield ("tokens", "is-number", _tokens)
    if any(price_text(row.usage) for row in rows):
        yield "cost", "is-number", lambda row: (price_text(row.usage), row.usage.cost_usd or 0.0)


def _inputs_of(row: RecordedRow) -> Mapping[str, Any]:
    return row.inputs or {}


def _outputs_of(row: RecordedRow) -> Mapping[str, Any]:
    return row.outputs


def value_columns(
    kind: str, names: Sequence[str], values_of: Callable[[RowT], Mapping[str, Any]], limit: int, side: str = ""
) -> Iterator[tuple[str, str, Callable[[RowT], Made]]]:
    """The columns of inputs or outputs: one for each, or one for all where there are many.

    Args:
        kind: ``input`` or ``output``.
        names: Their names.
        values_of: Gives those of a row.
        limit: Characters of a value.
        side: What is written behind the name.
    """
    if len(names) > MAX_COLUMNS:

        def joint(row: RowT) -> Made:
            values = values_of(row)
            lines = (f"{name}: {value_text(values[name])[:limit]}" for name in names if name in values)
            return value_cell("\n".join(lines), limit * len(names)), None

        yield f"{kind}s{side}", f"is-{kind}", joint
        return
    for name in names:

        def cell(row: RowT, name: str = name) -> Made:
            value = values_of(row).get(name)
            order = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
            return value_cell("" if value is None else value_text(value), limit), order

        yield f"{one_line(name)}{side}", f"is-{kind}", cell


def _number(row: RecordedRow, links: Mapping[int, str]) -> str | Markup:
    text = str(row.row)
    if (link := links.get(row.row)) is None:
        return element("span", {"title": row.directory or None}, text)
    return element("a", {"href": link, "title": f"Row {text} as a page"}, text)


def _tokens(row: RecordedRow) -> Made:
    total = row.usage.total_tokens
    return f"{total:,}" if total else "", total


def _state(row: RecordedRow) -> str:
    state = f"{RunStatus.of(row.status).letter} {STATUS_WORDS.get(row.status, row.status)}"
    return f"{state} ({row.mark})" if row.mark else state


def _reason(row: RecordedRow) -> str:
    return f"{row.stage}: {row.reason}" if row.stage and row.reason else row.reason


def value_cell(text: str, limit: int) -> str | Markup:
    """A value: on its line, else folded with its beginning in sight."""
    left = len(text) - limit
    shown = f"{text[:limit]}{ELLIPSIS} {left:,} more characters" if left > 0 else text
    line = one_line(shown[: 4 * LINE_CHARS])
    if len(line) <= LINE_CHARS and "\n" not in shown.strip():
        return line
    summary = line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS].rstrip()}{ELLIPSIS}"
    return element("details", None, element("summary", None, summary), element("pre", None, shown))
