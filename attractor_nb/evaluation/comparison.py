"""Comparison of scored rows: differences over pairs of rows, a test of each, and a verdict in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from attractor_nb.evaluation.columns import bounded
from attractor_nb.evaluation.cost_plot import CostPoint, plot_svg, plot_words
from attractor_nb.evaluation.evaluation import markdown_table
from attractor_nb.evaluation.gate_numbers import gate_number, gate_numbers
from attractor_nb.evaluation.result_words import (
    counted,
    interval_text,
    listed,
    number_text,
    percent_points,
    percent_text,
    signed,
)
from attractor_nb.evaluation.scorers import SCORED
from attractor_nb.evaluation.statistics import (
    LEVEL,
    IntervalEstimate,
    holm,
    mcnemar,
    paired_means,
    paired_shares,
    paired_test,
    smallest_visible_mean,
    smallest_visible_share,
)
from attractor_nb.evaluation.variants_page import OutputPair, variants_page
from attractor_nb.model.texts import no_such_key
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.files.user_files import write_file
from attractor_nb.views.drawings.svg import picture_html
from attractor_nb.views.table import Column, DisplayedTable, Table, one_line, stacked_html

if TYPE_CHECKING:
    from os import PathLike
    from pathlib import Path

    from attractor_nb.evaluation.columns import ScoreColumn
    from attractor_nb.evaluation.scored_rows import ScoredRows
    from attractor_nb.views.drawings.theme import Theme

BETTER, WORSE, UNDECIDED = "better", "worse", "not decided"
_STATES: Final = {BETTER: "ok", WORSE: "error", UNDECIDED: ""}


@dataclass(frozen=True, slots=True)
class Difference:
    """One column of a variant beside that of the baseline, over rows that both measured."""

    variant: str  #: Name of the variant.
    column: str  #: The score.
    kind: str  #: ``pass/fail`` or ``number``.
    is_lower_better: bool
    baseline_mean: float
    variant_mean: float
    difference: IntervalEstimate  #: Variant minus baseline, with its 95 % interval.
    p: float  #: Two-sided p value, adjusted over the variants (Holm).
    test: str  #: Name of the test.
    wins: tuple[str, ...]  #: Ids of rows that the variant has better.
    losses: tuple[str, ...]  #: Ids of rows that the variant has worse.
    smallest_visible: float | None  #: Smallest difference that so many rows show with a power of 0.8.
    unpaired: int  #: Rows without a value on either side, which are not compared.

    @property
    def verdict(self) -> str:
        """``better``, ``worse`` or ``not decided`` at the 5 % level."""
        value = self.difference.value
        if value is None or value == 0 or self.p >= 1 - LEVEL:
            return UNDECIDED
        return BETTER if (value < 0) == self.is_lower_better else WORSE

    @property
    def gain_low(self) -> float | None:
        """The smallest improvement that the interval allows, negative for a loss; None without an interval."""
        bound = self.difference.high if self.is_lower_better else self.difference.low
        return None if bound is None else -bound if self.is_lower_better else bound

    @property
    def size(self) -> str:
        """The difference with its interval, in words."""
        text = percent_points if self.kind == "pass/fail" else signed
        found = self.difference
        return text(found.value or 0.0) + interval_text(found.low, found.high, text)

    @property
    def words(self) -> str:
        """The verdict as a sentence."""
        found = f"{self.column}: {self.variant} is {self.verdict}"
        if self.verdict != UNDECIDED:
            return f"{found}, {self.size}, p = {self.p:.2g}"
        if self.smallest_visible is None:
            seen = "no difference can be seen"
        else:
            is_share = self.kind == "pass/fail"
            size = percent_points(self.smallest_visible)[1:] if is_share else number_text(self.smallest_visible)
            seen = f"only differences above {size} can be seen"
        return f"{found}: with {counted(self.difference.count, 'row')} {seen}"


@dataclass(frozen=True, repr=False)
class EvaluationComparison(DisplayedTable):
    """Variants beside a baseline. ``comparison["short"]`` has the differences of a variant by column."""

    baseline: ScoredRows
    variants: Sequence[ScoredRows]
    differences: Sequence[Difference]
    changed_rows: Mapping[str, Sequence[str]] = field(default_factory=dict[str, "Sequence[str]"])
    """By variant, ids of rows whose inputs differ or that only one side has: they are not compared."""
    notes: Sequence[str] = ()  #: Further facts, such as stages from the cache.
    evaluations: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)  #: Evaluations by variant.

    def __getitem__(self, variant: str) -> dict[str, Difference]:
        found = {each.column: each for each in self.differences if each.variant == variant}
        names = [each.name for each in self.variants]
        if variant not in names:
            raise no_such_key("the comparison", "variant", variant, names)
        return found

    @property
    def words(self) -> list[str]:
        """The verdict on each variant in a sentence, for the first score."""
        first = self.differences[0].column if self.differences else ""
        return [each.words for each in self.differences if each.column == first]

    def check(self, *, at_most_worse_by: float | Mapping[str, float], max_unmeasured: int = 0) -> list[str]:
        """Reasons why a variant may be worse than the baseline by more than a margin; empty when none may.

        A variant that lost no row passes. One that lost rows passes if the interval of the difference excludes
        what is worse than the margin: what is not decided fails, and so does a score that cannot be compared. Rows of
        the baseline that are missing, or whose inputs changed, count as not compared: a failing row cannot be deleted.

        Args:
            at_most_worse_by: The margin, in units of each score: 0.02 is 2 percentage points of a pass/fail score.
                A dict of them by column judges these columns alone.
            max_unmeasured: Most rows that are not compared.
        """
        margins = self._margins(at_most_worse_by)
        gate_number("max_unmeasured", max_unmeasured, least=0)
        problems: list[str] = []
        for variant in self.variants:
            found = {each.column: each for each in self.differences if each.variant == variant.name}
            changed = set(self.changed_rows.get(variant.name, ()))
            gone = [row.id for row in self.baseline.rows if row.id in changed]
            if len(gone) > max_unmeasured:
                words = f"{counted(len(gone), 'row')} of {self.baseline.name} missing or changed in {variant.name}"
                problems.append(f"{words}: {listed(gone)}")
            for name, margin in margins.items():
                if name in found:
                    problems += _problems(found[name], margin, max_unmeasured)
                else:
                    problems.append(f"{name}: no row of {variant.name} can be compared with {self.baseline.name}")
        return problems

    def _margins(self, given: float | Mapping[str, float]) -> Mapping[str, float]:
        """The margin of each column that is judged; classes have no better and worse."""
        known = self.baseline.head.columns
        if isinstance(given, Mapping):
            if unknown := next((name for name in given if name not in known), None):
                raise no_such_key(self.baseline.name, "score", unknown, known)
            return gate_numbers("at_most_worse_by", given, least=0)
        gate_number("at_most_worse_by", given, least=0)
        rows = range(len(self.baseline.rows))
        return {name: given for name in known if self.baseline.column(name, rows).kind != "class"}

    def to_markdown(self) -> str:
        """The verdicts, the differences and the rows that were lost as Markdown, for a pull request."""
        parts = [*(f"**{words}**" for words in self.words), markdown_table(self.table)]
        parts += ["\n".join(f"- {note}" for note in notes)] if (notes := self._notes()) else []
        return "\n\n".join(parts) + "\n"

    @property
    def table(self) -> Table:
        """The differences as a table."""
        columns = (
            Column("score", "place"),
            Column("variant", "place"),
            Column(self.baseline.name, "number"),
            Column("variant's", "number"),
            Column("difference", "text"),
            Column("p", "number"),
            Column("won", "number"),
            Column("lost", "number"),
            Column("verdict", "state"),
        )
        rows = [_cells(each) for each in self.differences]
        states = [_STATES[each.verdict] for each in self.differences]
        notes = self._notes()
        return Table("Variants beside the baseline", columns, rows, states, notes=notes)

    @property
    def points(self) -> list[CostPoint]:
        """Mean cost of a row and mean of the first score by variant, the baseline first; those of known cost."""
        if not self.differences:
            return []
        name = self.differences[0].column
        found = [(each, each.column(name, range(len(each.rows))).estimate) for each in (self.baseline, *self.variants)]
        return [
            CostPoint(
                each.name,
                cost,
                estimate.value,
                estimate.value if estimate.low is None else estimate.low,
                estimate.value if estimate.high is None else estimate.high,
            )
            for each, estimate in found
            if estimate.value is not None and (cost := self._cost_of(each)) is not None
        ]

    def _cost_of(self, scored: ScoredRows) -> float | None:
        """The mean cost of a row as if nothing had come from the cache; None where no row has a cost."""
        evaluation = self.evaluations.get(scored.name)
        if evaluation is None:
            costs = [row.cost_usd / scored.head.repeat for row in scored.rows if row.cost_usd is not None]
        else:
            results = [result for result in evaluation.map.rows if not result.usage.unpriced_calls]
            costs = [(result.usage + result.saved).cost_usd for result in results]
            costs = [cost for cost in costs if cost is not None]
        return sum(costs) / len(costs) if any(costs) else None

    def to_svg(self, theme: Theme = "auto") -> str:
        """Cost against quality as SVG; empty where the costs are not known."""
        points = self.points
        return plot_svg(points, self.differences[0].column, is_share=self._is_share, theme=theme) if points else ""

    @property
    def _is_share(self) -> bool:
        return self.differences[0].kind == "pass/fail"

    def export_html(self, path: str | PathLike[str] = "comparison.html") -> Path:
        """Write wins and losses side by side as one page that opens without kernel and network.

        Args:
            path: The file; one that is there is replaced.
        """
        place = as_path(path, "the page")
        table = replace(self.table, notes=self._notes())
        page = variants_page(self.baseline.name, self.words, table, self._pairs(), self.to_svg())
        write_file(place, page.to_html())
        return place

    def _pairs(self) -> list[OutputPair]:
        found: list[OutputPair] = []
        for each in self.differences:
            before, after = (self.evaluations.get(name) for name in (self.baseline.name, each.variant))
            for verdict, ids in (("lost", each.losses), ("won", each.wins)):
                found += [
                    OutputPair(each.variant, each.column, verdict, row, before and before[row], after and after[row])
                    for row in ids
                ]
        return found

    def _html(self) -> str:
        plot = self.to_svg()
        words = plot_words(self.points, self.differences[0].column, is_share=self._is_share) if plot else ""
        picture = [Markup(picture_html(plot, words))] if plot else []  # noqa: S704 - by our own writer
        return stacked_html(self.words, [self.table, *picture])

    def __str__(self) -> str:
        return "\n\n".join(filter(None, ["\n".join(map(one_line, self.words)), str(self.table)]))

    def _notes(self) -> list[str]:
        found = list(self.notes)
        for name, ids in self.changed_rows.items():
            if ids:
                found.append(f"{name}: {counted(len(ids), 'row')} with other inputs, not compared: {listed(ids)}")
        found += [
            f"{each.column}: {each.variant} lost {counted(len(each.losses), 'row')}: {listed(each.losses)}"
            for each in self.differences
            if each.losses and each.kind == "pass/fail"
        ]
        for variant in self.variants:
            found += self._uncompared(variant)
            found += _doubts(self.baseline, variant)
        return [one_line(note) for note in found]

    def _uncompared(self, variant: ScoredRows) -> list[str]:
        """Scores of the baseline that say nothing of a variant, with the reason."""
        compared = {each.column for each in self.differences if each.variant == variant.name}
        return [
            f"{name}: {variant.name} is not compared: {_obstacle(name, self.baseline, variant)}"
            for name in self.baseline.head.columns
            if name not in compared
        ]


def _obstacle(name: str, a: ScoredRows, b: ScoredRows) -> str:
    """Reason that a score of two sides is not compared."""
    if name not in b.head.columns:
        return f"{b.name} has no such score"
    kinds = [side.column(name, range(len(side.rows))).kind for side in (a, b)]
    if "class" in kinds:
        return "classes have no better and worse"
    return f"it is {kinds[0]} in {a.name}, and {kinds[1]} in {b.name}" if kinds[0] != kinds[1] else "no row has both"


def _doubts(a: ScoredRows, b: ScoredRows) -> list[str]:
    """Differences of two sides, beside the pipeline, that change scores."""
    found = [
        f"{name}: the scorer of {b.name} is not that of {a.name}: its version differs"
        for name, column in a.head.columns.items()
        if (other := b.head.columns.get(name)) and column.version != other.version
    ]
    if a.head.mark != b.head.mark:
        found.append(f"{a.name} is {a.head.mark or 'unmarked'}, and {b.name} is {b.head.mark or 'unmarked'}")
    return found


def _problems(each: Difference, margin: float, max_unmeasured: int) -> list[str]:
    problems: list[str] = []
    low = each.gain_low
    if each.losses and (low is None or low < -margin):
        reach = "" if low is None else f", and the interval of the difference reaches {signed(low)}"
        problems.append(
            f"{each.column}: {each.variant} may be worse by more than {number_text(margin)}: "
            f"it lost {len(each.losses):,} of {counted(each.difference.count, 'row')}{reach}"
        )
    if each.unpaired > max_unmeasured:
        problems.append(f"{each.column}: {counted(each.unpaired, 'row')} of {each.variant} not compared")
    return problems


def _cells(each: Difference) -> list[str]:
    text = percent_text if each.kind == "pass/fail" else number_text
    return [
        each.column,
        each.variant,
        text(each.baseline_mean),
        text(each.variant_mean),
        each.size,
        f"{each.p:.2g}",
        f"{len(each.wins):,}",
        f"{len(each.losses):,}",
        each.verdict,
    ]


def compare_scored(
    baseline: ScoredRows,
    variants: Sequence[ScoredRows],
    *,
    notes: Sequence[str] = (),
    evaluations: Mapping[str, Any] | None = None,
) -> EvaluationComparison:
    """Variants beside a baseline: paired by row id and hash of the inputs.

    Args:
        baseline: The rows that they are compared with.
        variants: The rows of each variant.
        notes: Further facts that must be known.
        evaluations: The evaluations behind them, by name.
    """
    found: list[Difference] = []
    changed: dict[str, list[str]] = {}
    names = [name for name in baseline.head.columns if all(name in each.head.columns for each in variants)]
    pairs: dict[str, list[tuple[int, int]]] = {}
    for variant in variants:
        pairs[variant.name], changed[variant.name] = _pairs(baseline, variant)
    for name in names:
        raw = [each for variant in variants if (each := _difference(name, baseline, variant, pairs[variant.name]))]
        adjusted = holm([each.p for each in raw])
        found += [replace(each, p=p) for each, p in zip(raw, adjusted, strict=True)]
    return EvaluationComparison(baseline, variants, found, changed, notes, evaluations or {})


def _pairs(a: ScoredRows, b: ScoredRows) -> tuple[list[tuple[int, int]], list[str]]:
    """Positions of rows with the same id and inputs, and the ids of the others."""
    there = {row.id: position for position, row in enumerate(b.rows)}
    found: list[tuple[int, int]] = []
    changed: list[str] = []
    for position, row in enumerate(a.rows):
        other = there.pop(row.id, None)
        if other is None or b.rows[other].inputs != row.inputs:
            changed.append(row.id)
        else:
            found.append((position, other))
    return found, [*changed, *there]


def _difference(name: str, a: ScoredRows, b: ScoredRows, pairs: Sequence[tuple[int, int]]) -> Difference | None:
    before, after = a.column(name, [left for left, _ in pairs]), b.column(name, [right for _, right in pairs])
    if "class" in (before.kind, after.kind):
        return None
    if before.kind != after.kind and before.count(SCORED) and after.count(SCORED):
        return None  # True beside 5 is no difference of 4
    kind = "pass/fail" if before.kind == after.kind == "pass/fail" else "number"
    measured = [
        row for row in range(len(pairs)) if before.row_value(row) is not None and after.row_value(row) is not None
    ]
    values = [(before.row_value(row) or 0.0, after.row_value(row) or 0.0) for row in measured]
    if not values:
        return None
    ids = [a.rows[pairs[row][0]].id for row in measured]
    gains = [(left - right) if before.is_lower_better else (right - left) for left, right in values]
    wins = tuple(row for row, gain in zip(ids, gains, strict=True) if gain > 0)
    losses = tuple(row for row, gain in zip(ids, gains, strict=True) if gain < 0)
    difference, p, test, visible = _tested(kind, values, len(wins), len(losses), _groups(before, after, measured))
    count = len(values)
    return Difference(
        b.name,
        name,
        kind,
        before.is_lower_better,
        sum(left for left, _ in values) / count,
        sum(right for _, right in values) / count,
        difference,
        p,
        test,
        wins,
        losses,
        visible,
        len(pairs) - count,
    )


def _groups(before: ScoreColumn, after: ScoreColumn, rows: Sequence[int]) -> list[str] | None:
    """The group of each row, of the variant where the baseline has none: an old one may know of no groups."""
    groups = before.groups or after.groups
    return None if groups is None else [groups[row] for row in rows]


def _tested(
    kind: str, values: Sequence[tuple[float, float]], wins: int, losses: int, groups: Sequence[str] | None
) -> tuple[IntervalEstimate, float, str, float | None]:
    """The difference, its p value, the name of the test, and the smallest difference that it shows."""
    differences = [right - left for left, right in values]
    is_single = all(value in (0.0, 1.0) for pair in values for value in pair)
    if kind == "pass/fail" and is_single and groups is None:
        count = len(values)
        visible = smallest_visible_share(count, (wins + losses) / count)
        return paired_shares(wins, losses, count), mcnemar(wins, losses), "exact McNemar", visible
    p, test = paired_test(differences, groups)
    found = paired_means(differences, groups)
    found = bounded(found, -1.0, 1.0) if kind == "pass/fail" else found
    return found, p, test, smallest_visible_mean(differences)
