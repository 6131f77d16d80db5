"""``comparison.export_html()``: wins and losses side by side with the words that differ, and cost against quality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from attractor_nb.evaluation.evaluated_row import short_text
from attractor_nb.evaluation.evaluation_page import facts_table, outputs_of, reasons_text
from attractor_nb.languages.condition.parser import value_text
from attractor_nb.maps.map_page import LINE_CHARS, Made, limit_of, rows_table, value_cell, value_columns
from attractor_nb.redaction import redacted
from attractor_nb.views.frontend import table_page
from attractor_nb.views.markup import element, joined
from attractor_nb.views.table import Table, one_line
from attractor_nb.views.texts.text_diff import word_sides

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from attractor_nb.evaluation.evaluated_row import EvaluatedRow

MAX_PAIRS: Final = 2_000
"""Pairs of outputs whose words are compared for a page."""
_LOOKS: Final = {"lost": "is-fail", "won": "is-success"}


@dataclass(frozen=True, slots=True)
class OutputPair:
    """A row that a variant won or lost, beside the baseline's."""

    variant: str
    score: str
    verdict: str  #: ``won`` or ``lost``.
    id: str
    baseline: EvaluatedRow | None  #: None where only its scores are known, as of a baseline from a file.
    changed: EvaluatedRow | None  #: That of the variant.

    @property
    def known(self) -> EvaluatedRow | None:
        """The row, of either side."""
        return self.changed or self.baseline


def variants_page(baseline: str, lines: Sequence[str], table: Table, pairs: Sequence[OutputPair], plot: str) -> str:
    """The text of the page.

    Args:
        baseline: Name of the baseline.
        lines: The verdicts.
        table: The differences.
        pairs: Rows that were won and lost.
        plot: Cost against quality as SVG; empty without one.
    """
    ranked = sorted(pairs, key=lambda pair: pair.verdict != "lost")
    shown = ranked[:MAX_PAIRS]
    notes = [f"and {len(ranked) - MAX_PAIRS:,} more rows, which are not shown"] if len(ranked) > MAX_PAIRS else []
    drawing = [element("div", {"class": "am-drawing"}, Markup(plot))] if plot else []  # noqa: S704 - by our own writer
    looks = [(_LOOKS[pair.verdict], f"{pair.variant} {pair.verdict}") for pair in shown]
    rows = [rows_table(_columns(baseline, shown), shown, looks)] if shown else []
    body = joined([
        element("div", {"class": "am-top"}, element("div", {"class": "ae-summary"}, facts_table(table)), *drawing),
        *rows,
        *(element("p", {"class": "al-dim am-note"}, note) for note in notes or ["No row differs."] * (not shown)),
    ])  # fmt: skip
    title = f"Variants beside {baseline}"
    return redacted(table_page(title, "\n".join(lines), "evaluation_page", "makeEvaluation", body))


def _columns(baseline: str, pairs: Sequence[OutputPair]) -> Iterator[tuple[str, str, Callable[[OutputPair], Made]]]:
    """The columns: heading, class, and what makes a cell."""
    known = [row for pair in pairs if (row := pair.known) is not None]
    sides = [value for pair in pairs for row in (pair.baseline, pair.changed) if row for value in row.outputs]
    limit = limit_of([*sides, *(value for row in known for value in row.row.inputs.values())])
    yield "row", "is-row", lambda pair: (one_line(pair.id), None)
    yield "variant", "is-row", lambda pair: (one_line(pair.variant), None)
    yield "result", "is-state", lambda pair: (f"{'✕' if pair.verdict == 'lost' else '✓'} {pair.verdict}", None)
    yield "score", "is-output", lambda pair: (one_line(pair.score), None)
    names = list(dict.fromkeys(name for row in known for name in row.row.inputs))
    yield from value_columns("input", names, _inputs_of, limit)
    if any(row.row.expected is not None for row in known):
        yield "expected", "is-output", lambda pair: (value_cell(_expected(pair), limit), None)
    if known:
        cells = {id(pair): _sides(pair, limit) for pair in pairs}
        yield one_line(baseline), "is-output", lambda pair: (cells[id(pair)][0], None)
        yield "the variant's", "is-output", lambda pair: (cells[id(pair)][1], None)
        yield "reason", "is-reason", lambda pair: (value_cell(_reason(pair), limit), None)


def _inputs_of(pair: OutputPair) -> Mapping[str, Any]:
    return {} if pair.known is None else pair.known.row.inputs


def _expected(pair: OutputPair) -> str:
    return "" if pair.known is None else value_text(pair.known.row.expected)


def _reason(pair: OutputPair) -> str:
    """The reasons of the side that is worse."""
    row = pair.changed if pair.verdict == "lost" else pair.baseline
    return "" if row is None else reasons_text(row)


def _sides(pair: OutputPair, limit: int) -> tuple[str | Markup, str | Markup]:
    """Both outputs, the words marked that are in one alone."""
    before, after = (
        "" if row is None else str(outputs_of(row).get("output", ""))[:limit] for row in (pair.baseline, pair.changed)
    )
    found = word_sides(redacted(before), redacted(after)) if before and after and before != after else None
    if found is None:
        return value_cell(before, limit), value_cell(after, limit)
    is_long = any(len(text) > 2 * LINE_CHARS or text.count("\n") > 3 for text in (before, after))
    return _marked(before, found[0], is_long=is_long), _marked(after, found[1], is_long=is_long)


def _marked(text: str, nodes: Sequence[Any], *, is_long: bool) -> Markup:
    """A text whose own words are marked; a long one is folded."""
    parts = [node if isinstance(node, str) else element(node[0].partition(".")[0], None, node[1]) for node in nodes]
    value = element("div", {"class": "ae-value"}, *parts)
    if not is_long:
        return value
    return element("details", None, element("summary", None, short_text(text)), value)
