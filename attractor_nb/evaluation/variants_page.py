"""``comparison.export_html()``: wins and losses side by side with the words that differ, and cost against quality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from attractor_nb.evaluation.evaluation_page import outputs_of, reasons_text, summary
from attractor_nb.languages.condition.parser import value_text
from attractor_nb.redaction import redacted
from attractor_nb.views.row_table import LIMITS, RowCell, RowColumn, RowTable, value_columns
from attractor_nb.views.rows_page import RowsPage
from attractor_nb.views.table import Table, one_line
from attractor_nb.views.texts.text_diff import word_sides

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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


def variants_page(
    baseline: str, lines: Sequence[str], table: Table, pairs: Sequence[OutputPair], plot: str
) -> RowsPage:
    """The page.

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
    rows = RowTable(tuple(_columns(baseline, shown)), shown, _look) if shown else None
    return RowsPage(
        f"Variants beside {baseline}",
        "\n".join(lines),
        summary(table),
        rows,
        Markup(plot),  # noqa: S704 - by our own writer
        notes=notes or ["No row differs."] * (not shown),
    )


def _look(pair: OutputPair) -> tuple[str, str]:
    return _LOOKS[pair.verdict], f"{pair.variant} {pair.verdict}"


def _columns(baseline: str, pairs: Sequence[OutputPair]) -> Iterator[RowColumn[OutputPair]]:
    """The columns of the rows."""
    known = [row for pair in pairs if (row := pair.known) is not None]
    yield RowColumn("row", "is-row", lambda pair: one_line(pair.id))
    yield RowColumn("variant", "is-row", lambda pair: one_line(pair.variant))
    yield RowColumn("result", "is-state", lambda pair: f"{'✕' if pair.verdict == 'lost' else '✓'} {pair.verdict}")
    yield RowColumn("score", "is-output", lambda pair: one_line(pair.score))
    names = list(dict.fromkeys(name for row in known for name in row.row.inputs))
    yield from value_columns("input", names, _inputs_of)
    if any(row.row.expected is not None for row in known):
        yield RowColumn("expected", "is-output", _expected)
    if known:
        cells = {id(pair): _sides(pair) for pair in pairs}
        yield RowColumn(one_line(baseline), "is-output", lambda pair: cells[id(pair)][0])
        yield RowColumn("the variant's", "is-output", lambda pair: cells[id(pair)][1])
        yield RowColumn("reason", "is-reason", _reason)


def _inputs_of(pair: OutputPair) -> Mapping[str, Any]:
    return {} if pair.known is None else pair.known.row.inputs


def _expected(pair: OutputPair) -> str:
    return "" if pair.known is None else value_text(pair.known.row.expected)


def _reason(pair: OutputPair) -> str:
    """The reasons of the side that is worse."""
    row = pair.changed if pair.verdict == "lost" else pair.baseline
    return "" if row is None else reasons_text(row)


def _sides(pair: OutputPair) -> tuple[RowCell, RowCell]:
    """Both outputs, the words marked that are in one alone."""
    before, after = (
        "" if row is None else redacted(str(outputs_of(row).get("output", ""))[: LIMITS[0]])
        for row in (pair.baseline, pair.changed)
    )
    found = word_sides(before, after) if before and after and before != after else None
    if found is None:
        return RowCell(before), RowCell(after)
    return RowCell(before, parts=_marked(found[0])), RowCell(after, parts=_marked(found[1]))


def _marked(nodes: Sequence[Any]) -> list[tuple[str, str]]:
    """A text in pieces, of which its own words are marked."""
    return [("", node) if isinstance(node, str) else (node[0].partition(".")[0], node[1]) for node in nodes]
