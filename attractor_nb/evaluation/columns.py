"""Columns of an evaluation: the scores of one name over all rows and repeats, and what they say together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from msgspec import structs

from attractor_nb.evaluation.repeats import Spread, flip_rate, pass_at_k, pass_hat_k, spread
from attractor_nb.evaluation.scorers import FAILED, SCORED, UNMEASURED, Score, Scorer
from attractor_nb.evaluation.statistics import IntervalEstimate, mean, share, share_by_group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.evaluation.evaluation_rows import EvaluationRow

Kind = Literal["pass/fail", "number", "class"]
_WORDS: Final[Mapping[Kind, str]] = {"pass/fail": "true or false", "number": "a number", "class": "a text"}
NOT_RUN: Final = "the row was not run and scored to its end"


@dataclass(frozen=True, slots=True)
class ScoreColumn:
    """The scores of one name."""

    name: str  #: The scorer, or ``scorer.key``.
    kind: Kind  #: ``pass/fail``, ``number`` or ``class``.
    is_lower_better: bool  #: A smaller number is better.
    cells: Sequence[Sequence[Score]]  #: The scores of each row, one for each repeat.
    groups: Sequence[str] | None = None  #: The group of each row; None where no row has one.

    @property
    def values(self) -> list[float | None]:
        """The mean of each row over its measured repeats, True being 1; None for a row without one."""
        return [self.row_value(row) for row in range(len(self.cells))]

    def row_value(self, row: int) -> float | None:
        """The mean of a row over its measured repeats; None without one."""
        found = self.row_values(row)
        return sum(found) / len(found) if found else None

    def row_values(self, row: int) -> list[float]:
        """The values of the measured repeats of a row; a failed one is 0, unless a smaller number is better."""
        if self.kind == "class":
            return []
        found: list[float] = []
        for score in self.cells[row]:
            if score.state == SCORED and score.value is not None and not isinstance(score.value, str):
                found.append(float(score.value))
            elif score.state == FAILED and not self.is_lower_better:
                found.append(0.0)
        return found

    @property
    def estimate(self) -> IntervalEstimate:
        """The mean over rows with its 95 % interval; nothing for classes."""
        rows = [(value, index) for index, value in enumerate(self.values) if value is not None]
        values = [value for value, _ in rows]
        groups = None if self.groups is None else [self.groups[index] for _, index in rows]
        if self.kind == "pass/fail" and all(value in (0.0, 1.0) for value in values):
            if groups is not None:
                return share_by_group(values, groups)
            return share(sum(value == 1.0 for value in values), len(values))
        found = mean(values, groups)
        return bounded(found, 0.0, 1.0) if self.kind == "pass/fail" else found

    def count(self, state: str) -> int:
        """The number of runs whose score has a state."""
        return sum(score.state == state for row in self.cells for score in row)

    @property
    def unmeasured(self) -> int:
        """The number of runs without a score."""
        return self.count(UNMEASURED)

    @property
    def failed(self) -> int:
        """The number of runs that the pipeline failed."""
        return self.count(FAILED)

    @property
    def classes(self) -> dict[str, int]:
        """The number of runs by class, the most frequent first."""
        found = Counter(str(score.value) for row in self.cells for score in row if score.state == SCORED)
        return dict(found.most_common())

    @property
    def repeats(self) -> int:
        """Runs of each row."""
        return max((len(row) for row in self.cells), default=0)

    def _passes(self) -> list[list[bool]]:
        return [[value == 1.0 for value in self.row_values(row)] for row in range(len(self.cells))]

    def pass_at(self, k: int) -> float | None:
        """The probability that at least one of ``k`` runs of a row passes (pass@k); None without enough repeats."""
        return _over_rows([pass_at_k(sum(row), len(row), k) for row in self._passes() if len(row) >= k])

    def pass_all(self, k: int) -> float | None:
        """The probability that all of ``k`` runs of a row pass (pass^k); None without enough repeats."""
        return _over_rows([pass_hat_k(sum(row), len(row), k) for row in self._passes() if len(row) >= k])

    @property
    def flip_rate(self) -> float | None:
        """The share of pairs of runs of one row that disagree; None without repeats."""
        return flip_rate(self._passes()) if self.kind == "pass/fail" else None

    @property
    def spread(self) -> Spread | None:
        """Variance between rows and within them; None without repeats."""
        return spread([values for row in range(len(self.cells)) if (values := self.row_values(row))])

    def passed(self, row: int) -> bool | None:
        """True if all measured runs of a row pass, False if one does not, None for what is not pass/fail."""
        values = self.row_values(row)
        return None if self.kind != "pass/fail" or not values else all(value == 1.0 for value in values)


def bounded(estimate: IntervalEstimate, least: float, most: float) -> IntervalEstimate:
    """An estimate whose interval ends where no value can be, such as above 100 % of a share."""
    if estimate.low is None or estimate.high is None:
        return estimate
    return replace(estimate, low=max(least, estimate.low), high=min(most, estimate.high))


def _over_rows(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def columns_of(
    rows: Sequence[EvaluationRow], repeat: int, scorers: Sequence[Scorer], scores: Mapping[int, Sequence[Score]]
) -> list[ScoreColumn]:
    """The columns of an evaluation.

    Args:
        rows: Its rows.
        repeat: Runs of each.
        scorers: Its scorers, in order.
        scores: Scores by number of the map's row: row + repeat * number of rows.
    """
    has_groups = any(row.group is not None for row in rows)
    groups = [row.group or f"row {row.id}" for row in rows] if has_groups else None
    found: list[ScoreColumn] = []
    for scorer in scorers:
        for name in _names(scorer, scores):
            cells = [
                [_cell(scorer, name, scores.get(row.number + each * len(rows))) for each in range(repeat)]
                for row in rows
            ]
            found.append(checked_column(name, cells, is_lower_better=scorer.is_lower_better, groups=groups))
    return found


def checked_column(
    name: str, cells: Sequence[Sequence[Score]], *, is_lower_better: bool, groups: Sequence[str] | None
) -> ScoreColumn:
    """A column whose kind is that of most of its values; values of another kind are unmeasured."""
    kind = _kind(cells)
    return ScoreColumn(name, kind, is_lower_better, [[_of_kind(score, kind) for score in row] for row in cells], groups)


def _names(scorer: Scorer, scores: Mapping[int, Sequence[Score]]) -> list[str]:
    """The columns of a scorer: its own, or those of the dicts that it returned."""
    prefix = f"{scorer.name}."
    seen = dict.fromkeys(
        score.name
        for row in scores.values()
        for score in row
        if score.name == scorer.name or score.name.startswith(prefix)
    )
    parts = [name for name in seen if name != scorer.name]
    is_scored = any(score.name == scorer.name and score.state == SCORED for row in scores.values() for score in row)
    return [scorer.name] * (is_scored or not parts) + parts


def _cell(scorer: Scorer, name: str, scores: Sequence[Score] | None) -> Score:
    """The score of a run in a column; where the scorer gave none of that name, what it said of itself."""
    if scores is None:
        return Score(name, state=UNMEASURED, reason=NOT_RUN)
    for score in scores:
        if score.name == name:
            return score
    for score in scores:
        if score.name == scorer.name and score.state != SCORED:
            return Score(name, state=score.state, reason=score.reason)
    return Score(name, state=UNMEASURED, reason=f"{scorer.name} returned no value of this name")


def _kind(cells: Sequence[Sequence[Score]]) -> Kind:
    """The kind of most values."""
    kinds: Counter[Kind] = Counter(_kind_of(score) for row in cells for score in row if score.state == SCORED)
    return kinds.most_common(1)[0][0] if kinds else "pass/fail"


def _kind_of(score: Score) -> Kind:
    if isinstance(score.value, bool):
        return "pass/fail"
    return "class" if isinstance(score.value, str) else "number"


def _of_kind(score: Score, kind: Kind) -> Score:
    if score.state != SCORED or _kind_of(score) == kind:
        return score
    reason = f"the scorer returned {score.value!r}, and {_WORDS[kind]} for most rows"
    return structs.replace(score, value=None, state=UNMEASURED, reason=reason)
