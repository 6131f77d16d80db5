"""Agreement of a judge with labels of persons: kappa with its interval, and the rows on which they disagree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Final, cast

from attractor_nb.errors import OptionError
from attractor_nb.evaluation.evaluation import Evaluation
from attractor_nb.evaluation.evaluation_rows import id_text
from attractor_nb.evaluation.result_words import interval_text, listed, number_text, percent_text
from attractor_nb.evaluation.reviews import ReviewLog
from attractor_nb.evaluation.scorers import SCORED
from attractor_nb.evaluation.statistics import IntervalEstimate, kappa, share
from attractor_nb.languages.condition.parser import value_text
from attractor_nb.model.texts import no_such_key
from attractor_nb.redaction import redacted
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.views.display import Displayed
from attractor_nb.views.state import first_words
from attractor_nb.views.table import Column, Table, one_line, stacked_html

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attractor_nb.evaluation.columns import Kind, ScoreColumn
    from attractor_nb.evaluation.scorers import Value

MAX_CLASSES: Final = 20
"""Most different values of judge and labels together: kappa compares classes."""
SHOWN_ROWS: Final = 12
_REASON_CHARS: Final = 120
_TRUE: Final = frozenset({"true", "1"})
_FALSE: Final = frozenset({"false", "0"})
_FORMS: Final[Mapping[Kind, str]] = {
    "pass/fail": "True or False, as the judge's verdicts are",
    "number": "a number, as the judge's verdicts are",
    "class": "a text, as the judge's verdicts are",
}


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A row of which judge and label differ."""

    id: str
    judged: Value  #: The judge's value.
    label: Value  #: The label.
    reason: str  #: The judge's reason.


@dataclass(frozen=True, repr=False)
class Agreement(Displayed):
    """A judge beside labels, over the rows that have both."""

    column: str  #: The judge's column.
    kappa: IntervalEstimate  #: Agreement beyond chance, with its 95 % interval.
    raw: IntervalEstimate  #: Share of rows that agree, with its 95 % interval.
    counts: Mapping[tuple[Value, Value], int]  #: Rows by the judge's value and the label.
    disagreements: Sequence[Disagreement]  #: Rows that differ, in the order of the evaluation.
    unmeasured: Sequence[str] = ()  #: Ids of labelled rows without a value of the judge.
    unknown: Sequence[str] = ()  #: Ids of labels that no row has.
    unlabelled: int = 0  #: Rows without a label.

    @property
    def classes(self) -> list[Value]:
        """All values of judge and labels."""
        found = {value for pair in self.counts for value in pair}
        return sorted(found, key=lambda value: (isinstance(value, str), value), reverse=found <= {True, False})

    def headline(self) -> str:
        """Kappa and raw agreement in one line."""
        agreed = sum(count for (judged, label), count in self.counts.items() if judged == label)
        raw = f"{agreed:,} of {self.raw.count:,} rows agree"
        if self.raw.value is not None:
            raw = f"{raw} = {percent_text(self.raw.value)}{interval_text(self.raw.low, self.raw.high, percent_text)}"
        if self.kappa.value is None:
            return f"{self.column}: kappa is undefined: {self._undefined()}; {raw}"
        interval = interval_text(self.kappa.low, self.kappa.high, number_text)
        return f"{self.column}: kappa {number_text(self.kappa.value)}{interval}; {raw}"

    def _undefined(self) -> str:
        return "judge and labels have one class" if self.counts else "no row has both a value and a label"

    def _tables(self) -> list[Table]:
        shown = self.disagreements[:SHOWN_ROWS]
        cells = [
            [
                each.id,
                value_text(each.judged),
                value_text(each.label),
                first_words(one_line(redacted(each.reason)), _REASON_CHARS),
            ]
            for each in shown
        ]
        columns = (Column("row", "place"), Column("judge"), Column("label"), Column("judge's reason"))
        left = len(self.disagreements) - len(shown)
        headline = f"Disagreements: {len(self.disagreements):,} of {self.raw.count:,} rows"
        notes = [f"and {left:,} more"] if left else []
        first = Table("Disagreements", columns, cells, ["error"] * len(cells), headline=headline, notes=notes)
        return [first, self._counts_table()]

    def _counts_table(self) -> Table:
        classes = self.classes
        columns = (Column("judge", "place"), *(Column(f"label {value_text(each)}", "number") for each in classes))
        cells = [
            [value_text(judged), *(f"{self.counts.get((judged, label), 0):,}" for label in classes)]
            for judged in classes
        ]
        left = {"labels of unknown rows": self.unknown, "labelled rows without a value of the judge": self.unmeasured}
        notes = [one_line(f"{words} ({len(ids):,}): {listed(ids)}") for words, ids in left.items() if ids]
        notes += [f"rows without a label: {self.unlabelled:,}"] if self.unlabelled else []
        return Table("Judge and labels", columns, cells, notes=notes)

    def __str__(self) -> str:
        return "\n\n".join([self.headline(), *map(str, self._tables())])

    def _html(self) -> str:
        return stacked_html([self.headline()], self._tables())


def agreement(judge: Evaluation, labels: object, *, column: str = "") -> Agreement:
    """Compare a judge's verdicts with labels of persons. Of repeats the first run counts, which a review shows.

    Args:
        judge: The evaluation that the judge has scored.
        labels: A mapping of row ids to values, a JSONL file of reviews (``evaluation.review()``), or the name of a
            column of the rows.
        column: The judge's column; needed if the evaluation has several.

    Raises:
        OptionError: An argument is unusable, or a label is of another kind than the verdicts.
    """
    if not isinstance(judge, Evaluation):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        kind = type(cast("object", judge)).__name__
        raise OptionError(f"agreement takes an evaluation, not {kind}", hint="agreement(evaluation, labels)")
    found = _column(judge, column)
    given = _labels(judge, labels)
    by_id = {name: _read(name, value, found.kind) for name, value in given.items() if value is not None}
    pairs: list[tuple[Value, Value]] = []
    disagreements: list[Disagreement] = []
    unmeasured: list[str] = []
    for row in judge.rows:
        if row.id not in by_id:
            continue
        label, score = by_id[row.id], found.cells[row.number][0]
        if score.state != SCORED or score.value is None:
            unmeasured.append(row.id)
            continue
        pairs.append((score.value, label))
        if score.value != label:
            disagreements.append(Disagreement(row.id, score.value, label, score.reason))
    ids = {row.id for row in judge.rows}
    return Agreement(
        found.name,
        _checked_kappa(found.name, pairs),
        share(len(pairs) - len(disagreements), len(pairs)),
        Counter(pairs),
        disagreements,
        unmeasured,
        [name for name in by_id if name not in ids],
        len(ids - by_id.keys()),
    )


def _checked_kappa(name: str, pairs: Sequence[tuple[Value, Value]]) -> IntervalEstimate:
    classes = {value for pair in pairs for value in pair}
    if len(classes) > MAX_CLASSES:
        raise OptionError(
            f"{name} and the labels have {len(classes):,} different values; kappa compares at most {MAX_CLASSES}",
            hint='let the judge answer True or False, or by choices=["good", "bad"]',
        )
    return kappa([judged for judged, _ in pairs], [label for _, label in pairs])


def _column(evaluation: Evaluation, name: str) -> ScoreColumn:
    columns = evaluation.scores
    if not name and len(columns) > 1:
        raise OptionError(
            f"the evaluation has {len(columns)} columns: {', '.join(columns)}", hint='column="judge" says which'
        )
    name = name or next(iter(columns))
    if name not in columns:
        raise no_such_key("the evaluation", "score", name, columns)
    return columns[name]


def _labels(evaluation: Evaluation, given: object) -> Mapping[str, object]:
    """Labels by row id."""
    if isinstance(given, Mapping):
        return {id_text(name): value for name, value in cast("Mapping[object, object]", given).items()}
    if isinstance(given, str) and any(given in row.columns for row in evaluation.rows):
        return {row.id: row.columns.get(given) for row in evaluation.rows}
    if isinstance(given, PathLike) or (isinstance(given, str) and given.endswith(".jsonl")):
        return _of_file(as_path(cast("str", given), "labels"))
    if isinstance(given, str):
        raise no_such_key(
            "a row", "column", given, dict.fromkeys(key for row in evaluation.rows for key in row.columns)
        )
    raise OptionError(
        f"labels must be a mapping, a file or a column, not {type(given).__name__}",
        hint='labels={"41": True}, labels="reviews.jsonl" or labels="label"',
    )


def _of_file(path: Path) -> Mapping[str, object]:
    if not path.is_file():
        raise OptionError(f"labels: there is no file {path}", hint="evaluation.review() writes reviews.jsonl")
    return {name: review.value for name, review in ReviewLog(path).latest().items()}


def _read(row: str, label: object, kind: Kind) -> Value:
    """A label as a value of the kind of the verdicts; files of text have only texts."""
    text = value_text(label).strip()
    if kind == "pass/fail" and text.casefold() in _TRUE | _FALSE:
        return text.casefold() in _TRUE
    if kind == "number" and not isinstance(label, bool):
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return int(number) if number.is_integer() else number
    if kind == "class" and isinstance(label, str):
        return text
    raise OptionError(f'the label of row "{row}" is {label!r}, but must be {_FORMS[kind]}', hint="change the label")
