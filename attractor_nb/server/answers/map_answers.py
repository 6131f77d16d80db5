"""A map as answers: its state with a part of its rows, and its differences from another map."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from attractor_nb.errors import RunNotFound
from attractor_nb.languages.condition.parser import value_text
from attractor_nb.server.replies import Reply
from attractor_nb.server.request_words import reason_in_requests
from attractor_nb.server.response_models import MapChoice, MapComparisonState, MapParts, MapState
from attractor_nb.server.server_runs import row_id
from attractor_nb.storage.map_directory import is_map
from attractor_nb.studio.history.history_table import holds_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.maps.stored_map import MapRecord, RecordedRow
    from attractor_nb.server.request_calls import Call
    from attractor_nb.server.requests import MapQuery
    from attractor_nb.server.run_service import RunService


def get_map(call: Call) -> Reply:
    """A map and a part of its rows, those that failed first."""
    from attractor_nb.maps.compare_maps import side_plain  # noqa: PLC0415 - see serving.py
    from attractor_nb.maps.map_page import failures_first, fitting_limit  # noqa: PLC0415 - as above

    map_id, query = call.path["id"], call.query
    record = _record(call.server.service, map_id)
    fitting = [row for row in failures_first(record.rows) if _is_wanted(row, query)]
    shown = fitting[query.offset : query.offset + query.limit]
    limit = fitting_limit(shown)
    return Reply(
        MapState(
            **side_plain(record),
            id=map_id,
            is_live=not record.view.is_ended,
            total=len(record.rows),
            found=len(fitting),
            offset=query.offset,
            rows=[_plain(map_id, row, limit) for row in shown],
            page=_parts(map_id, record, shown, limit, query.status) if query.with_page else None,
        )
    )


def get_map_comparison(call: Call) -> Reply:
    """The differences of two maps, and a part of the rows that differ."""
    from attractor_nb.maps.compare_maps import MapComparison  # noqa: PLC0415 - see serving.py
    from attractor_nb.maps.map_page import fitting_limit  # noqa: PLC0415 - as above

    service, map_id, query = call.server.service, call.path["id"], call.query
    compared = MapComparison(_record(service, map_id), _record(service, query.other))
    shown = compared.differing[query.offset : query.offset + query.limit]
    limit = fitting_limit(row for pair in shown for row in (pair.a, pair.b) if row is not None)
    plain = compared.to_plain(shown)
    for pair, both in zip(shown, plain["rows"], strict=True):
        _cut(both, limit)
        for name, row, own_id in (("a", pair.a, map_id), ("b", pair.b, query.other)):
            both[name] = None if row is None else _plain(own_id, row, limit)
    return Reply(
        MapComparisonState(
            **plain,
            id=map_id,
            other=query.other,
            found=len(compared.differing),
            offset=query.offset,
            headlines=compared.headlines(),
            page=str(compared.page_body(query.limit)) if query.with_page else "",
        )
    )


def _record(service: RunService, map_id: str) -> MapRecord:
    """A map, its reasons in requests."""
    from attractor_nb.maps.stored_map import read_map_record  # noqa: PLC0415 - see serving.py

    place = service.place(map_id)
    if not is_map(place):
        raise RunNotFound(f"{map_id} is not a map", hint=f"GET /pipelines/{map_id} shows a run")
    record = read_map_record(place)
    record.view.reason = reason_in_requests(record.view.reason)
    return replace(record, rows=tuple(replace(row, reason=reason_in_requests(row.reason)) for row in record.rows))


def _is_wanted(row: RecordedRow, query: MapQuery) -> bool:
    if query.status and row.status != query.status:
        return False
    if not query.words:
        return True
    values = map(value_text, chain((row.inputs or {}).values(), row.outputs.values()))
    return holds_words(" ".join((str(row.row), row.status, row.stage, row.reason, *values)), query.words)


def _parts(map_id: str, record: MapRecord, shown: Sequence[RecordedRow], limit: int, chosen: str) -> MapParts:
    """The parts of the page that ``export_html`` writes, with links to the pages of rows here.

    A status that is ``chosen`` is offered although no row has it any more.
    """
    from attractor_nb.maps import map_page  # noqa: PLC0415 - see serving.py

    links = {row.row: f"#run={row_id(map_id, row.directory)}" for row in shown if row.directory}
    return MapParts(
        line=map_page.map_line(record),
        facts=map_page.map_facts(record),
        drawing=map_page.map_drawing(record),
        table=map_page.map_table(replace(record, rows=tuple(shown)), shown, links, limit),
        choices=[
            MapChoice(status=status, words=f"{words} {count:,}")
            for status, words, count in map_page.present_statuses(record, chosen)
        ],
        notes=map_page.page_notes(record, 0, limit, has_links=True),
    )


def _plain(map_id: str, row: RecordedRow, limit: int) -> dict[str, Any]:
    from attractor_nb.maps.compare_maps import row_plain  # noqa: PLC0415 - see serving.py

    own_id = row_id(map_id, row.directory) if row.directory else ""
    inputs = None if row.inputs is None else dict(row.inputs)
    return _cut({"id": own_id, "inputs": inputs, **row_plain(row)}, limit)


def _cut(plain: dict[str, Any], limit: int) -> dict[str, Any]:
    """The row with values of at most ``limit`` characters; a longer one is a cut text, and the row has ``is_cut``."""
    for name in ("inputs", "outputs"):
        values: Mapping[str, Any] = plain.get(name) or {}
        long = {key: text[:limit] for key, value in values.items() if len(text := value_text(value)) > limit}
        if long:
            plain |= {name: {**values, **long}, "is_cut": True}
    return plain
