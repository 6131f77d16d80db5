"""``map.export_html()``: a whole map as one file that opens anywhere, without a kernel and without a network.

The server and a cell show the same page, part by part. The file is for sending away, so everything in it is without
secrets, and nothing says where on this machine the map lies.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from attractor_nb.errors import AttractorError, OptionError
from attractor_nb.maps.stored_map import MapRecord, RecordedRow, record_of
from attractor_nb.model.states import PAUSED, WAITING, NodeStatus, run_state, run_word
from attractor_nb.redaction import redacted
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.runtime.stored_execution import load_execution
from attractor_nb.storage.files.user_files import write_file
from attractor_nb.studio.export_page import run_page
from attractor_nb.views.drawings.drawing import draw_scene
from attractor_nb.views.drawings.svg import render_svg
from attractor_nb.views.layout.flow import extents_of
from attractor_nb.views.markup import element, joined
from attractor_nb.views.row_table import RowCell, RowColumn, RowTable, no_text, value_columns
from attractor_nb.views.rows_page import RowsPage
from attractor_nb.views.state import NodeState
from attractor_nb.views.summary_line import cost_text, duration_text, price_text
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from attractor_nb.model.graph import Graph


ROWS: Final = ("failed", "all")
NO_LINKS: Final[Mapping[int, str]] = MappingProxyType({})
_ROW_NOTE: Final = "A row is a run. Its prompts, responses and path as a page: attractor-nb export MAP_DIR/row-00000"
_ORDER: Final = ("fail", "interrupted", "running", "not_started", "success")
_BESIDE_FACTS: Final = 840.0
"""The width that a drawing has beside the facts, on a laptop."""
_BESIDE_NODES: Final = 40
"""No graph of more is measured: hardly one has room there."""
_BAR: Final = frozenset({"success", "fail", PAUSED, "interrupted", WAITING})
"""The statuses that have their own part of the bar."""


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
    page = map_page(record, links)
    is_kept = record.directory is not None and not links
    write_file(place, replace(page, notes=(_ROW_NOTE,) if is_kept else ()).to_html())
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


def map_page(
    record: MapRecord, links: Mapping[int, str] = NO_LINKS, key_of: Callable[[RecordedRow], str] = no_text
) -> RowsPage:
    """The page of a map, those rows first that failed.

    Args:
        record: The map.
        links: Addresses of the pages of rows, by number.
        key_of: The run that a row opens where the page is shown.
    """
    title = redacted(record.graph.label if record.graph is not None else "") or record.view.name or "a pipeline"
    order = failures_first(record.rows)
    ways: dict[str, list[int]] = {}
    for place, row in enumerate(order):
        if row.stage:
            ways.setdefault(f"stage {row.stage}", []).append(place)
    table = RowTable(
        tuple(_columns(record)), order, _look, key=key_of, link=lambda row: links.get(row.row, ""), ways=ways
    )
    return RowsPage(f"Map of {title}", map_line(record), map_facts(record), table, map_drawing(record))


def failures_first(rows: Iterable[RecordedRow]) -> list[RecordedRow]:
    """Rows in the order of the page."""
    return sorted(rows, key=lambda row: (_ORDER.index(row.status), row.row))


def map_line(record: MapRecord) -> str:
    """The status of the map in one line; the numbers are below."""
    view = record.view
    ended = f"{view.ended_count:,} of {view.row_count:,} rows"
    return "   ".join([run_state(view.status), one_line(view.reason) or ended])


def map_facts(record: MapRecord) -> Markup:
    """Totals, where the failures are, and what ran."""
    view = record.view
    facts = {
        "rows": f"{len(record.rows):,}",
        **{run_word(status): f"{count:,}" for status, count in view.shown_counts.items()},
        "failed in": failed_in(record),
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


def failed_in(record: MapRecord) -> str:
    """The stages in which most rows failed, each with their number."""
    stages = Counter(row.stage for row in record.rows if row.stage)
    return ", ".join(f"{node} ({count:,})" for node, count in stages.most_common(5))


def _cost_of_a_row(record: MapRecord) -> str:
    usage = record.view.usage
    if not usage.cost_usd or usage.unpriced_calls or not record.view.ended_count:
        return ""
    return f"{cost_text(usage.cost_usd / record.view.ended_count)} on average"


def _bar(record: MapRecord) -> Markup:
    counts = {status: count for status, count in record.view.shown_counts.items() if status in _BAR}
    label = ", ".join(f"{count:,} {run_word(status)}" for status, count in counts.items())
    parts = [
        element("span", {"class": f"is-{status}", "style": f"flex-grow:{count}"}, "")
        for status, count in {**counts, "left": len(record.rows) - sum(counts.values())}.items()
        if count
    ]
    return element("div", {"class": "am-bar", "role": "img", "aria-label": label or "no row has ended"}, *parts)


def _to_the_right(graph: Graph) -> Graph:
    """The graph, flowing to the right where that fits beside the facts: so the rows begin higher on the page."""
    if "rankdir" in graph.attrs or len(graph.nodes) > _BESIDE_NODES:
        return graph
    (_, height), (length, across) = extents_of(draw_scene(graph))
    is_better = length <= _BESIDE_FACTS and across < height
    return replace(graph, attrs={**graph.attrs, "rankdir": "LR"}) if is_better else graph


def map_drawing(record: MapRecord) -> Markup:
    """The pipeline as SVG, with the stages in which rows failed; empty when its text is lost."""
    if record.graph is None:
        return Markup("")
    failed = Counter(row.stage for row in record.rows if row.stage in record.graph.nodes)
    states = {
        node: NodeState(NodeStatus.FAIL, reason=f"{count:,} of {len(record.rows):,} failed")
        for node, count in failed.items()
    }
    return Markup(render_svg(_to_the_right(record.graph), states=states))  # noqa: S704 - by our own writer


# -- the table -----------------------------------------------------------------------------------------------


def _columns(record: MapRecord) -> Iterator[RowColumn[RecordedRow]]:
    """The columns of the rows."""
    rows = record.rows
    yield RowColumn("row", "is-number", lambda row: RowCell(str(row.row), row.row))
    yield RowColumn("status", "is-state", _state)
    if any(map(_reason, rows)):
        yield RowColumn("reason", "is-reason", _reason)
    inputs = list(dict.fromkeys(name for row in rows for name in row.inputs or ()))
    yield from value_columns("input", inputs, _inputs_of)
    outputs = [key for key in record.outputs if any(key in row.outputs for row in rows)]
    yield from value_columns("output", outputs, _outputs_of)
    if any(row.seconds for row in rows):
        yield RowColumn(
            "time", "is-number", lambda row: RowCell(duration_text(row.seconds) if row.seconds else "", row.seconds)
        )
    if any(row.usage.total_tokens for row in rows):
        yield RowColumn("tokens", "is-number", _tokens)
    if any(price_text(row.usage) for row in rows):
        yield RowColumn("cost", "is-number", lambda row: RowCell(price_text(row.usage), row.usage.cost_usd or 0.0))


def _look(row: RecordedRow) -> tuple[str, str]:
    return f"is-{row.shown_status}", run_word(row.shown_status)


def _inputs_of(row: RecordedRow) -> Mapping[str, Any]:
    return row.inputs or {}


def _outputs_of(row: RecordedRow) -> Mapping[str, Any]:
    return row.outputs


def _tokens(row: RecordedRow) -> RowCell:
    total = row.usage.total_tokens
    return RowCell(f"{total:,}" if total else "", total)


def _state(row: RecordedRow) -> str:
    state = run_state(row.shown_status)
    return f"{state} ({row.mark})" if row.mark else state


def _reason(row: RecordedRow) -> str:
    if row.shown_status == PAUSED:  # the status says so
        return ""
    return f"{row.stage}: {row.reason}" if row.stage and row.reason else row.reason
