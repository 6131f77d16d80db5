"""``evaluation.export_html()``: an evaluation as one file that opens anywhere, without a kernel and without a network.

It is a page of rows as that of a map. A click on an edge or a stage of the drawing shows the rows behind it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from attractor_nb.evaluation.evaluated_row import EvaluatedRow, dots, is_bad
from attractor_nb.evaluation.result_words import NOTHING, number_text
from attractor_nb.evaluation.scorers import SCORED, UNMEASURED, Score
from attractor_nb.languages.condition.parser import value_text
from attractor_nb.views.markup import element, joined
from attractor_nb.views.row_table import RowCell, RowColumn, RowTable, no_text, value_columns
from attractor_nb.views.rows_page import RowsPage
from attractor_nb.views.summary_line import cost_text, duration_text
from attractor_nb.views.table import Table, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from attractor_nb.evaluation.on_graph import EvaluationGraph
    from attractor_nb.model.row_result import RowResult

_LOOKS: Final = {
    "failed": ("is-fail", "✕ failed"),
    "unmeasured": ("is-interrupted", "? unmeasured"),
    "passed": ("is-success", "✓ passed"),
    "scored": ("is-not_started", "scored"),
}
"""The class of a row of the page and its state as it is shown, by state, in the order of the page."""

Shown = tuple[str, EvaluatedRow]
"""A row of the page with its state."""


def evaluation_page(
    name: str,
    line: str,
    scores: Table,
    rows: Sequence[EvaluatedRow],
    graph: EvaluationGraph | None = None,
    *,
    key_of: Callable[[RowResult], str] = no_text,
) -> RowsPage:
    """The page.

    Args:
        name: The pipeline.
        line: The verdict.
        scores: A line for each score.
        rows: The rows.
        graph: The rows on the graph; None without a drawing.
        key_of: The run of a result where the page is shown.
    """
    order = list(_LOOKS)
    shown = sorted(((state_of(row), row) for row in rows), key=lambda pair: order.index(pair[0]))
    table = RowTable(
        tuple(_columns(shown)),
        shown,
        lambda pair: (_LOOKS[pair[0]][0], pair[0]),
        key=lambda pair: key_of(_worst(pair[1])),
        ways=None if graph is None else _ways(graph, [row.id for _, row in shown]),
    )
    page = RowsPage(f"Evaluation of {name}", line, summary(scores), table)
    if graph is None:
        return page
    return replace(page, drawing=Markup(graph.to_svg()), words=(graph.words, *graph.notes))  # noqa: S704 - by our own writer


def _worst(row: EvaluatedRow) -> RowResult:
    """The run of a row that it opens: the first that is not good, else the first."""
    for repeat, result in enumerate(row.results):
        if any(is_bad(scores[repeat]) or scores[repeat].state == UNMEASURED for scores in row.scores.values()):
            return result
    return row.results[0]


def state_of(row: EvaluatedRow) -> str:
    """``failed``, ``unmeasured``, ``passed``, or ``scored`` where no score is True or False."""
    if row.failed:
        return "failed"
    if row.unmeasured:
        return "unmeasured"
    return "passed" if any(score.value is True for scores in row.scores.values() for score in scores) else "scored"


def summary(table: Table) -> Markup:
    """A small table in the classes of the page, with its notes."""
    head = [element("th", {"scope": "col", "class": f"is-{column.kind}"}, column.title) for column in table.columns]
    body = [
        element(
            "tr",
            {"class": f"state-{state}" if state else None},
            *(
                element("td", {"class": f"is-{column.kind}"}, cell)
                for column, cell in zip(table.columns, row, strict=True)
            ),
        )
        for row, state in zip(table.rows, table.states or [""] * len(table.rows), strict=True)
    ]
    whole = (element("thead", None, element("tr", None, *head)), element("tbody", None, joined(body)))
    notes = [element("p", {"class": "am-note al-dim"}, one_line(note)) for note in table.notes]
    facts = element("table", {"class": "am-scores", "aria-label": table.label}, *whole)
    return element("div", {"class": "am-summary"}, facts, *notes)


def _ways(graph: EvaluationGraph, ids: Sequence[str]) -> dict[str, list[int]]:
    """The places of rows in the table, by edge and by stage of the drawing."""
    places = {each: place for place, each in enumerate(ids)}

    def found(*of: str) -> list[int]:
        return [places[each] for each in of if each in places]

    edges = {f"edge {edge.index}": found(*edge.failed, *edge.passed) for edge in graph.edges if edge.share is not None}
    return edges | {f"stage {node}": found(*stage.failed) for node, stage in graph.nodes.items() if stage.failed}


def _columns(shown: Sequence[Shown]) -> Iterator[RowColumn[Shown]]:
    """The columns of the rows."""
    rows = [row for _, row in shown]
    yield RowColumn("row", "is-row", lambda pair: one_line(pair[1].id))
    yield RowColumn("status", "is-state", lambda pair: _LOOKS[pair[0]][1])
    if any(len(row.results) > 1 for row in rows):
        yield RowColumn("runs", "is-dots", lambda pair: dots(pair[1]))
    if any(state in {"failed", "unmeasured"} for state, _ in shown):
        yield RowColumn("reason", "is-reason", lambda pair: reasons_text(pair[1]))
    yield from value_columns("output", ["output"], _outputs)
    if any(row.row.expected is not None for row in rows):
        yield RowColumn("expected", "is-output", _expected)
    inputs = list(dict.fromkeys(name for row in rows for name in row.row.inputs))
    yield from value_columns("input", inputs, _inputs)
    for name in rows[0].scores if rows else ():

        def score(pair: Shown, name: str = name) -> RowCell:
            return _score_cell(pair[1].scores[name])

        yield RowColumn(one_line(name), "is-number", score)
    if any(result.duration for row in rows for result in row.results):
        yield RowColumn("time", "is-number", _time)
    if any(result.usage.cost_usd for row in rows for result in row.results):
        yield RowColumn("cost", "is-number", _cost)


def _expected(pair: Shown) -> str:
    expected = pair[1].row.expected
    return "" if expected is None else value_text(expected)


def _outputs(pair: Shown) -> Mapping[str, Any]:
    return outputs_of(pair[1])


def _inputs(pair: Shown) -> Mapping[str, Any]:
    return pair[1].row.inputs


def reasons_text(row: EvaluatedRow) -> str:
    """The reasons of the scores of a row that fail or are missing, a line each."""
    return "\n".join([*row.reasons(), *row.reasons(UNMEASURED)])


def outputs_of(row: EvaluatedRow) -> Mapping[str, Any]:
    """The judged outputs; of several runs each one once."""
    texts = dict.fromkeys(value_text(output) for output in row.outputs if output is not None)
    return {"output": "\n".join(texts)} if texts else {}


def _score_cell(scores: Sequence[Score]) -> RowCell:
    """A score; of several runs how many pass, the mean, or each class once."""
    values = [score.value for score in scores if score.state == SCORED]
    failed = sum(score.state not in {SCORED, UNMEASURED} for score in scores)
    if not values and not failed:
        return RowCell(NOTHING, -1.0)
    numbers = [float(value) for value in values if not isinstance(value, str) and value is not None]
    if any(isinstance(value, str) for value in values):
        return RowCell(", ".join(dict.fromkeys(map(str, values))))
    mean = sum(numbers) / (len(numbers) + failed)
    if not values:
        return RowCell("failed", mean)
    if any(isinstance(value, bool) for value in values):
        count = len(numbers) + failed
        return RowCell(f"{sum(numbers):.0f} of {count}" if count > 1 else "pass" if mean else "fail", mean)
    return RowCell(number_text(mean), mean)


def _time(pair: Shown) -> RowCell:
    seconds = sum(result.duration for result in pair[1].results)
    return RowCell(duration_text(seconds) if seconds else "", seconds)


def _cost(pair: Shown) -> RowCell:
    cost = sum(result.usage.cost_usd or 0.0 for result in pair[1].results)
    return RowCell(cost_text(cost) if cost else "", cost)
