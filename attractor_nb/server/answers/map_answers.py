"""A map or an evaluation as answers: its state with a part of its rows, and the differences of two maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.languages.condition.parser import value_text
from attractor_nb.model.states import run_word
from attractor_nb.redaction import redacted_value
from attractor_nb.server.replies import Reply
from attractor_nb.server.response_models import MapComparisonState, MapParts, MapState, MapTable
from attractor_nb.server.server_runs import row_id

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.evaluation.evaluated_row import EvaluatedRow
    from attractor_nb.maps.stored_map import RecordedRow
    from attractor_nb.server.map_pages import MapPage
    from attractor_nb.server.request_calls import Call
    from attractor_nb.server.requests import MapQuery
    from attractor_nb.views.row_table import RowQuery, RowTable


def get_map(call: Call) -> Reply:
    """A map or an evaluation and a part of its rows, those that failed first."""
    from attractor_nb.maps.compare_maps import side_plain  # noqa: PLC0415 - see serving.py

    map_id, query = call.path["id"], call.query
    found = call.server.pages.read(call.server.service, map_id)
    wanted = _query(query)
    part = found.page.part(wanted, query.offset, query.limit)
    return Reply(
        MapState(
            **side_plain(found.record),
            id=map_id,
            kind="map" if found.evaluation is None else "evaluation",
            headline="" if found.evaluation is None else found.evaluation.headline(),
            is_live=not found.record.view.is_ended,
            total=part["total"],
            found=part["found"],
            offset=query.offset,
            rows=_rows(map_id, found, [row[0] for row in part["rows"]]),
            page=MapParts(**found.page.parts()) if query.with_page else None,
            table=MapTable(**part) if query.with_table else None,
        )
    )


def _query(query: MapQuery) -> RowQuery:
    from attractor_nb.views.row_table import RowQuery  # noqa: PLC0415 - see serving.py

    return RowQuery(query.words, run_word(query.status), query.way, query.sort, query.descending)


def _rows(map_id: str, found: MapPage, places: list[int]) -> list[dict[str, Any]]:
    """The rows at these places of the page as JSON values."""
    table: RowTable[Any] | None = found.page.table
    if table is None:
        return []
    limit = table.fitting_limit(places)
    if found.evaluation is None:
        return [_plain(map_id, table.rows[place], limit) for place in places]
    return [_scored_plain(map_id, table.rows[place], limit) for place in places]


def _scored_plain(map_id: str, shown: tuple[str, EvaluatedRow], limit: int) -> dict[str, Any]:
    state, row = shown
    runs = [row_id(map_id, result.directory) if result.directory else "" for result in row.results]
    plain = {
        "row": row.row.number,
        "name": row.id,
        "id": next(filter(None, runs), ""),
        "runs": runs,
        "state": state,
        "status": row.results[0].status,
        "reasons": row.reasons() or row.reasons("unmeasured"),
        "inputs": dict(row.row.inputs),
        "outputs": {str(repeat): output for repeat, output in enumerate(row.outputs) if output is not None},
        "expected": row.row.expected,
        "scores": {name: [score.to_plain() for score in scores] for name, scores in row.scores.items()},
    }
    clean: dict[str, Any] = redacted_value(_cut(plain, limit))
    return clean


def get_map_comparison(call: Call) -> Reply:
    """The differences of two maps, and a part of the rows that differ."""
    from attractor_nb.maps.compare_maps import MapComparison  # noqa: PLC0415 - see serving.py

    pages, service, map_id, query = call.server.pages, call.server.service, call.path["id"], call.query
    compared = MapComparison(pages.read(service, map_id).record, pages.read(service, query.other).record)
    shown = compared.differing[query.offset : query.offset + query.limit]
    page = compared.page()
    assert page.table is not None, "each of two maps has a row"
    limit = page.table.fitting_limit(range(query.offset, query.offset + len(shown)))
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
            page=MapParts(**page.parts()) if query.with_page else None,
            table=MapTable(**page.part(_everything(), 0, query.limit)) if query.with_page else None,
        )
    )


def _everything() -> RowQuery:
    from attractor_nb.views.row_table import RowQuery  # noqa: PLC0415 - see serving.py

    return RowQuery()


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
