"""``evaluation.export_html()``: an evaluation as one file that opens anywhere, without a kernel and without a network.

Its table is that of a map's page, which sorts and searches. A click on an edge or a stage of the drawing shows the rows
behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from attractor_nb.evaluation.evaluated_row import EvaluatedRow, dots
from attractor_nb.evaluation.result_words import NOTHING, number_text
from attractor_nb.evaluation.scorers import SCORED, UNMEASURED, Score
from attractor_nb.languages.condition.parser import value_text
from attractor_nb.maps.map_page import LIMITS, MAX_ROWS, Made, limit_of, rows_table, value_cell, value_columns
from attractor_nb.redaction import redacted
from attractor_nb.views.frontend import json_text, table_page
from attractor_nb.views.markup import element, joined
from attractor_nb.views.summary_line import cost_text, duration_text
from attractor_nb.views.table import Table, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from attractor_nb.evaluation.on_graph import EvaluationGraph

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
    name: str, line: str, scores: Table, rows: Sequence[EvaluatedRow], graph: EvaluationGraph | None = None
) -> str:
    """The text of the page.

    Args:
        name: The pipeline.
        line: The verdict.
        scores: A line for each score.
        rows: The rows.
        graph: The rows on the graph; None without a drawing.
    """
    order = list(_LOOKS)
    ranked = sorted(((state_of(row), row) for row in rows), key=lambda pair: order.index(pair[0]))
    shown = ranked[:MAX_ROWS]
    limit = limit_of(value for _, row in shown for value in (*row.row.inputs.values(), *row.outputs))
    notes = [f"and {len(ranked) - MAX_ROWS:,} more rows, which are not shown"] if len(ranked) > MAX_ROWS else []
    if limit < LIMITS[0]:
        notes.append(f"To keep this page small, values are cut to {limit:,} characters.")
    drawing = [_drawing(graph, [row.id for _, row in shown])] if graph is not None else []
    body = joined([
        element("div", {"class": "am-top"}, element("div", {"class": "ae-summary"}, facts_table(scores)), *drawing),
        rows_table(_columns(shown, limit), shown, [(_LOOKS[state][0], state) for state, _ in shown]),
        *(element("p", {"class": "al-dim am-note"}, note) for note in notes),
    ])  # fmt: skip
    return redacted(table_page(f"Evaluation of {name}", line, "evaluation_page", "makeEvaluation", body))


def state_of(row: EvaluatedRow) -> str:
    """``failed``, ``unmeasured``, ``passed``, or ``scored`` where no score is True or False."""
    if row.failed:
        return "failed"
    if row.unmeasured:
        return "unmeasured"
    return "passed" if any(score.value is True for scores in row.scores.values() for score in scores) else "scored"


def facts_table(table: Table) -> Markup:
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
    return joined([element("table", {"class": "ae-facts", "aria-label": table.label}, *whole), *notes])


def _drawing(graph: EvaluationGraph, ids: Sequence[str]) -> Markup:
    """The drawing, and for its script the places of rows in the table, by edge and by stage."""
    places = {each: place for place, each in enumerate(ids)}

    def found(*of: str) -> list[int]:
        return [places[each] for each in of if each in places]

    ways = {
        "edges": {str(edge.index): found(*edge.failed, *edge.passed) for edge in graph.edges if edge.share is not None},
        "stages": {node: found(*stage.failed) for node, stage in graph.nodes.items() if stage.failed},
    }
    return element(
        "div",
        {"class": "ae-graph", "data-ways": json_text(ways)},
        element("div", {"class": "am-drawing"}, Markup(graph.to_svg())),  # noqa: S704 - by our own writer
        *(element("p", {"class": "am-note"}, one_line(words)) for words in (graph.words, *graph.notes)),
    )


def _columns(shown: Sequence[Shown], limit: int) -> Iterator[tuple[str, str, Callable[[Shown], Made]]]:
    """The columns: heading, class, and what makes a cell."""
    rows = [row for _, row in shown]
    yield "row", "is-row", lambda pair: (one_line(pair[1].id), None)
    yield "status", "is-state", lambda pair: (_LOOKS[pair[0]][1], None)
    if any(len(row.results) > 1 for row in rows):
        yield "runs", "is-dots", lambda pair: (dots(pair[1]), None)
    if any(state in {"failed", "unmeasured"} for state, _ in shown):
        yield "reason", "is-reason", lambda pair: (value_cell(reasons_text(pair[1]), limit), None)
    yield from value_columns("output", ["output"], _outputs, limit)
    if any(row.row.expected is not None for row in rows):
        yield "expected", "is-output", lambda pair: (value_cell(value_text(pair[1].row.expected), limit), None)
    inputs = list(dict.fromkeys(name for row in rows for name in row.row.inputs))
    yield from value_columns("input", inputs, _inputs, limit)
    for name in rows[0].scores if rows else ():

        def score(pair: Shown, name: str = name) -> Made:
            return _score_cell(pair[1].scores[name])

        yield one_line(name), "is-number", score
    if any(result.duration for row in rows for result in row.results):
        yield "time", "is-number", _time
    if any(result.usage.cost_usd for row in rows for result in row.results):
        yield "cost", "is-number", _cost


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


def _score_cell(scores: Sequence[Score]) -> Made:
    """A score; of several runs how many pass, the mean, or each class once."""
    values = [score.value for score in scores if score.state == SCORED]
    failed = sum(score.state not in {SCORED, UNMEASURED} for score in scores)
    if not values and not failed:
        return NOTHING, -1.0
    numbers = [float(value) for value in values if not isinstance(value, str) and value is not None]
    if any(isinstance(value, str) for value in values):
        return ", ".join(dict.fromkeys(map(str, values))), None
    mean = sum(numbers) / (len(numbers) + failed)
    if not values:
        return "failed", mean
    if any(isinstance(value, bool) for value in values):
        count = len(numbers) + failed
        return (f"{sum(numbers):.0f} of {count}" if count > 1 else "pass" if mean else "fail"), mean
    return number_text(mean), mean


def _time(pair: Shown) -> Made:
    seconds = sum(result.duration for result in pair[1].results)
    return duration_text(seconds) if seconds else "", seconds


def _cost(pair: Shown) -> Made:
    cost = sum(result.usage.cost_usd or 0.0 for result in pair[1].results)
    return cost_text(cost) if cost else "", cost
