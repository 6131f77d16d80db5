"""One row of an evaluation with its results and scores, and how it is shown in a line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.evaluation.result_words import NOTHING
from attractor_nb.evaluation.scorers import FAILED, SCORED, UNMEASURED, Score
from attractor_nb.languages.condition.parser import value_text
from attractor_nb.model.states import run_word
from attractor_nb.redaction import redacted
from attractor_nb.views.state import first_words
from attractor_nb.views.table import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.evaluation.evaluation_rows import EvaluationRow
    from attractor_nb.model.row_result import RowResult

VALUE_CHARS: Final = 60
_READ_CHARS: Final = 50_000
"""Characters of a value that are searched for secrets: a secret that begins in the shown ones ends in these."""
_DOTS: Final = {True: "●", False: "○"}


@dataclass(frozen=True, slots=True, repr=False)
class EvaluatedRow:
    """One row: what went in, what came out, and its scores."""

    row: EvaluationRow
    results: Sequence[RowResult]  #: The results of its runs, one for each repeat.
    scores: Mapping[str, Sequence[Score]]  #: Its scores by column, one for each repeat.
    outputs: Sequence[Any]  #: The judged outputs, one for each repeat; None where there is nothing.

    @property
    def id(self) -> str:
        """The row's id."""
        return self.row.id

    @property
    def failed(self) -> tuple[str, ...]:
        """Columns of which at least one run was scored False, or failed by the pipeline."""
        return tuple(name for name, scores in self.scores.items() if any(is_bad(score) for score in scores))

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Columns of which at least one run has no score."""
        return tuple(name for name, scores in self.scores.items() if any(score.state == UNMEASURED for score in scores))

    def reasons(self, state: str = "") -> list[str]:
        """The distinct reasons of scores that are not good, as ``column: reason``; ``column is false`` without one.

        Args:
            state: Of this state alone.
        """
        found = (
            self._reason(name, score)
            for name, scores in self.scores.items()
            for score in scores
            if (score.state == state if state else is_bad(score))
        )
        return list(dict.fromkeys(filter(None, found)))

    def _reason(self, column: str, score: Score) -> str:
        if not score.reason:
            if score.state == SCORED and not is_bad(score):
                return ""
            return f"{column} is {'false' if score.state == SCORED else score.state}"
        return f"{column}: {score.reason}" if len(self.scores) > 1 and score.state != FAILED else score.reason

    def __str__(self) -> str:
        lines = [f"row {self.id}"]
        lines += [f"  {name}: {short_text(value)}" for name, value in self.row.inputs.items()]
        if self.row.expected is not None:
            lines.append(f"  expected: {short_text(self.row.expected)}")
        for repeat, result in enumerate(self.results):
            lines += [
                "",
                f"run {repeat}: {run_word(result.shown_status)}{f' ({result.reason})' if result.reason else ''}",
            ]
            if self.outputs[repeat] is not None:
                lines.append(f"  output: {short_text(self.outputs[repeat])}")
            lines += [f"  {name}: {_score_words(scores[repeat])}" for name, scores in self.scores.items()]
        return "\n".join(lines)

    __repr__ = __str__


def _score_words(score: Score) -> str:
    value = value_text(score.value) if score.state == SCORED else score.state
    return one_line(f"{value}{f' ({score.reason})' if score.reason else ''}")


def is_bad(score: Score) -> bool:
    """True for a score of False, and for one that the pipeline failed."""
    return score.state == FAILED or (score.state == SCORED and score.value is False)


def dots(row: EvaluatedRow) -> str:
    """The runs of a row as signs: ● all pass/fail scores pass, ○ one does not, a dash: one has no score."""
    found: list[str] = []
    for repeat in range(len(row.results)):
        scores = [scores[repeat] for scores in row.scores.values()]
        is_missing = any(score.state == UNMEASURED for score in scores)
        found.append(NOTHING if is_missing else _DOTS[not any(is_bad(score) for score in scores)])
    return "".join(found)


def row_words(row: EvaluatedRow, state: str = "") -> dict[str, str]:
    """The first words of a row's output, expected answer and reasons.

    Args:
        row: The row.
        state: The state of the scores whose reasons are given; empty for those that are not good.
    """
    output = next((output for output in row.outputs if output is not None), None)
    return {
        "output": short_text(output),
        "expected": "" if row.row.expected is None else short_text(row.row.expected),
        "reason": first_words(one_line("; ".join(row.reasons(state))), 2 * VALUE_CHARS),
    }


def short_text(value: object) -> str:
    """The first words of a value, without secrets."""
    return first_words(one_line(redacted(value_text(value)[:_READ_CHARS])), VALUE_CHARS)
