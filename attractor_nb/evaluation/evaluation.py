"""The result of an evaluation: its verdict line, its scores, the rows that failed, the rows without a score."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import OptionError
from attractor_nb.evaluation.columns import ScoreColumn, columns_of
from attractor_nb.evaluation.evaluated_row import EvaluatedRow, dots, row_words
from attractor_nb.evaluation.evaluation_page import evaluation_page
from attractor_nb.evaluation.gate_numbers import gate_number, gate_numbers
from attractor_nb.evaluation.on_graph import Confusion, EvaluationGraph, confusion_of, graph_of
from attractor_nb.evaluation.rescoring import rescored
from attractor_nb.evaluation.result_words import counted, estimate_words, number_text, repeat_words
from attractor_nb.evaluation.reviews import REVIEWS_NAME
from attractor_nb.evaluation.scored_rows import (
    HASH_CHARS,
    BaselineColumn,
    BaselineHead,
    BaselineRow,
    BaselineScore,
    ScoredRows,
    data_hash,
    write_baseline,
)
from attractor_nb.evaluation.scorers import UNMEASURED, Score, Scorer
from attractor_nb.model.texts import no_such_key
from attractor_nb.runtime.handles.presenters import review_of
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.storage.files.user_files import write_file
from attractor_nb.storage.map_directory import continue_call, inputs_hash
from attractor_nb.views.display import Displayed
from attractor_nb.views.row_table import no_text
from attractor_nb.views.summary_line import cost_text, price_text
from attractor_nb.views.table import Column, Table, one_line, required_pandas, stacked_html

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from attractor_nb.evaluation.evaluation_rows import EvaluationRow
    from attractor_nb.maps.map_launch import MapResult
    from attractor_nb.model.outcome import Usage
    from attractor_nb.model.row_result import RowResult
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.views.rows_page import RowsPage

SHOWN_ROWS: Final = 12
"""Rows of each table of a summary; all are in ``rows`` and in the exported page."""
DRAWN_RUNS: Final = 500
"""Runs that are read to draw a page's graph without being asked to."""
_SIGNS: Final = {"error": "✕", "warn": "?"}
_MOST_SCORES: Final = 3
"""Scores of the headline; all are in the table."""


@dataclass(frozen=True, repr=False)
class Evaluation(Displayed):
    """A pipeline scored on rows. ``evaluation["id"]`` is a row, ``evaluation.scores["correct"]`` a column."""

    map: MapResult  #: The map that ran the rows.
    rows: Sequence[EvaluationRow]  #: The rows, in order.
    scorers: Sequence[Scorer]  #: The scorers.
    repeat: int  #: Runs of each row.
    output: Any  #: The output that is judged: a context key, or a function of a run.
    cells: Mapping[int, Sequence[Score]] = field(repr=False)  #: Scores by number of the map's row.
    only: str = ""  #: The stage that was executed anew in stored runs; empty for whole runs.
    directory: Path | None = None  #: Its directory, with its scores; None for one of runs that existed.

    @cached_property
    def scores(self) -> dict[str, ScoreColumn]:
        """The columns of scores, by name."""
        found = columns_of(self.rows, self.repeat, self.scorers, self.cells)
        return {column.name: column for column in found}

    @property
    def status(self) -> str:
        """``success`` when all rows were run and scored; ``interrupted`` when a resume can add rows."""
        return "interrupted" if self.unfinished else "success"

    @property
    def unfinished(self) -> list[int]:
        """The runs, by number of the map's row, that did not end or were not scored: a resume continues with them."""
        stopped, numbers = self.map.unfinished, range(len(self.rows) * self.repeat)
        return [number for number in numbers if number in stopped or number not in self.cells]

    @property
    def usage(self) -> Usage:
        """The usage of the pipeline's own model calls; see ``scorer_cost_usd``."""
        return self.map.usage

    @property
    def scorer_cost_usd(self) -> float:
        """The cost of the scorers' own calls, such as those of a judge, in USD."""
        return sum(score.cost_usd for scores in self.cells.values() for score in scores)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[EvaluatedRow]:
        return (self._evaluated(row) for row in self.rows)

    def __getitem__(self, key: str | int) -> EvaluatedRow:
        if isinstance(key, int) and 0 <= key < len(self.rows):
            return self._evaluated(self.rows[key])
        if (row := self._by_id.get(str(key))) is None:
            raise no_such_key("the evaluation", "row", str(key), self._by_id)
        return self._evaluated(row)

    @cached_property
    def _by_id(self) -> dict[str, EvaluationRow]:
        return {row.id: row for row in self.rows}

    def _evaluated(self, row: EvaluationRow) -> EvaluatedRow:
        numbers = [row.number + each * len(self.rows) for each in range(self.repeat)]
        results = [self.map.rows[number] for number in numbers]
        scores = {name: column.cells[row.number] for name, column in self.scores.items()}
        return EvaluatedRow(row, results, scores, [self._output(result) for result in results])

    def _output(self, result: RowResult) -> Any:
        return result.outputs.get(self.output) if isinstance(self.output, str) else None

    def run(self, key: str | int, repeat: int = 0) -> Execution:
        """The run of a row, read from its directory.

        Args:
            key: The row's id or number.
            repeat: Which of its runs.
        """
        row = self[key]
        if not 0 <= repeat < self.repeat:
            raise OptionError(f"row {row.id} has no repeat {repeat}", hint=f"its repeats are 0 to {self.repeat - 1}")
        return self.map.run(row.results[repeat].row)

    @property
    def failures(self) -> list[EvaluatedRow]:
        """Rows that a scorer judged False or that the pipeline failed, in at least one run."""
        return [row for row in self if row.failed]

    @property
    def unmeasured(self) -> list[EvaluatedRow]:
        """Rows with at least one run that has no score."""
        return [row for row in self if row.unmeasured]

    def graph(self, score: str | None = None) -> EvaluationGraph:
        """The rows on the graph: which edges passing and failing rows took, and where they part. Reads each run once.

        Args:
            score: A score that is True or False; the first one by default.
        """
        return graph_of(self.map, self.rows, self._pass_column(score))

    def _pass_column(self, score: str | None) -> ScoreColumn:
        if score is not None and score not in self.scores:
            raise no_such_key("the evaluation", "score", score, self.scores)
        columns = list(self.scores.values())
        named = columns if score is None else [self.scores[score]]
        return next((column for column in named if column.kind == "pass/fail"), named[0])

    def export_html(self, path: str | PathLike[str] = "evaluation.html", *, graph: bool | None = None) -> Path:
        """Write the evaluation as one page that opens without kernel and network: scores, graph, and all rows.

        Args:
            path: The file; one that is there is replaced.
            graph: Draw the rows on the graph, which reads each run; by default for up to 500 runs.
        """
        place = as_path(path, "the page")
        write_file(place, self.page(graph=graph).to_html())
        return place

    def page(self, *, graph: bool | None = None, key_of: Callable[[RowResult], str] = no_text) -> RowsPage:
        """The page that ``export_html`` writes, for a front-end.

        Args:
            graph: As of ``export_html``.
            key_of: The run of a result where the page is shown.
        """
        has_graph = graph if graph is not None else self.map.directory is not None and len(self.map) <= DRAWN_RUNS
        is_drawn = has_graph and (graph or any(column.kind == "pass/fail" for column in self.scores.values()))
        drawn = graph_of(self.map, self.rows, self._pass_column(None)) if is_drawn else None
        name = self.map.pipeline.graph.label or self.map.pipeline.name
        scores = replace(self.scores_table, notes=[words for words in (self._price(),) if words])
        return evaluation_page(name, self.headline(), scores, list(self), drawn, key_of=key_of)

    def confusion(self, at: str, field: str = "expected") -> Confusion:
        """The ways that runs took after a stage, by the way that was right. Reads each run once.

        Args:
            at: The stage at which the ways part.
            field: The column that names the node that should follow.
        """
        return confusion_of(self.map, self.rows, self.repeat, at, field)

    def rescore(self, scorers: object, *, output: Any = None) -> Evaluation:
        """Score the stored runs with other scorers; no row is run again. Stored scores of the same scorer are kept.

        Args:
            scorers: A function, a list of them, or a dict of them by name.
            output: The output to judge, if not the same; runs keep all that a function of a run can read.
        """
        judged = self.output if output is None else output
        scoring = rescored(self.map, self.rows, scorers, repeat=self.repeat, output=judged, directory=self.directory)
        return replace(self, scorers=scoring.scorers, output=scoring.output, cells=dict(scoring.scores))

    def review(self, path: str | PathLike[str] | None = None) -> Any:
        """A box in which a person says of one output after the other whether it is good.

        Each answer is appended to the file at once; a box that is opened again continues at the first row without
        an answer. ``agreement(evaluation, path)`` compares the answers with a judge.

        Args:
            path: The file, of JSON lines; by default ``reviews.jsonl`` in the evaluation's directory.

        Raises:
            OptionError: No notebook's extension is loaded, or no row has an output.
        """
        if path is not None:
            return review_of(self, as_path(path, "path"))
        if self.directory is None:
            raise OptionError("nothing is kept of this evaluation", hint='review("reviews.jsonl") names a file')
        return review_of(self, self.directory / REVIEWS_NAME)

    def check(self, *, at_least: Mapping[str, float] | None = None, max_unmeasured: int = 0) -> list[str]:
        """Reasons why the evaluation is not good enough; empty when it is.

        Args:
            at_least: Smallest mean by column.
            max_unmeasured: Most runs without a score.
        """
        problems: list[str] = []
        for name, least in gate_numbers("at_least", at_least or {}).items():
            if name not in self.scores:
                raise no_such_key("the evaluation", "score", name, self.scores)
            value = self.scores[name].estimate.value
            if value is None or value < least:
                problems.append(f"{name} is {number_text(value)}, and at least {number_text(least)} is asked for")
        missing = max((column.unmeasured for column in self.scores.values()), default=0)
        if missing > gate_number("max_unmeasured", max_unmeasured, least=0):
            problems.append(f"{counted(missing, 'run')} unmeasured, and at most {max_unmeasured:,} allowed")
        return problems

    def lines(self) -> list[dict[str, Any]]:
        """A line for each run: id, repeat, inputs, expected answer, output, scores, states and cost."""
        return [line for row in self for line in self._lines_of(row)]

    def _lines_of(self, row: EvaluatedRow) -> Iterator[dict[str, Any]]:
        for repeat, result in enumerate(row.results):
            line: dict[str, Any] = {"id": row.id, "repeat": repeat, "status": result.status}
            line |= {f"input.{name}": value for name, value in row.row.inputs.items()}
            line |= {"expected": row.row.expected, "output": row.outputs[repeat]}
            for name, scores in row.scores.items():
                score = scores[repeat]
                line |= {name: score.value, f"{name}.state": score.state, f"{name}.reason": score.reason}
            yield line | {"duration_seconds": result.duration, "cost_usd": result.usage.cost_usd}

    def to_frame(self) -> Any:
        """A pandas DataFrame of ``lines``."""
        return required_pandas().DataFrame(self.lines())

    def to_markdown(self) -> str:
        """The verdict, the scores and the failures as Markdown, for a pull request."""
        parts = [f"**{self.headline()}**", markdown_table(self.scores_table)]
        parts += [f"{table.headline}\n\n{markdown_table(table)}" for table in self._row_tables()]
        return "\n\n".join(parts) + "\n"

    def save_baseline(self, path: str | PathLike[str] = "baseline.jsonl") -> Path:
        """Write the scores as a baseline, which a later evaluation is compared with.

        Args:
            path: The file; one that is there is replaced.
        """
        return write_baseline(self.scored(), path)

    def scored(self, name: str = "") -> ScoredRows:
        """The scores by row as a comparison takes them, without inputs and outputs.

        Args:
            name: Name of them in a comparison; the pipeline's name by default.
        """
        pipeline = self.map.pipeline
        graph = pipeline.graph
        scorers = {scorer.name: scorer for scorer in self.scorers}
        columns = {
            column: BaselineColumn(scorers[_scorer_of(column, scorers)].version, found.is_lower_better)
            for column, found in self.scores.items()
        }
        rows = [_baseline_row(row) for row in self]
        models = sorted({model for node in graph.nodes.values() if (model := node.get("llm_model", str, ""))})
        head = BaselineHead(
            pipeline.name,
            graph.content_hash[:HASH_CHARS],
            data_hash(rows),
            columns,
            self.repeat,
            tuple(models),
            self.map.mark,
        )
        return ScoredRows(name or pipeline.name, head, rows)

    def headline(self) -> str:
        """The verdict in one line: each score with its 95 % interval."""
        size = counted(len(self.rows), "row") + (f" \N{MULTIPLICATION SIGN} {self.repeat}" if self.repeat > 1 else "")
        size += f" of {self.only} alone" if self.only else ""
        columns = sorted(self.scores.values(), key=lambda column: column.kind != "pass/fail")
        scores = [f"{column.name} {estimate_words(column)}" for column in columns[:_MOST_SCORES]]
        missing = max((column.unmeasured for column in self.scores.values()), default=0)
        parts = [size, *scores, f"{missing:,} unmeasured" if missing else "", one_line(self.map.mark)]
        return "   ".join(filter(None, parts))

    @property
    def scores_table(self) -> Table:
        """The scores as a table: of each its mean with its interval, and the runs without a value."""
        columns = (
            Column("score", "place"),
            Column("result", "text"),
            Column("failed", "number"),
            Column("unmeasured", "number"),
            *((Column("repeats", "text"),) if self.repeat > 1 else ()),
        )
        rows = [
            [
                name,
                estimate_words(column),
                f"{column.failed:,}" if column.failed else "",
                f"{column.unmeasured:,}" if column.unmeasured else "",
                *([repeat_words(column)] if self.repeat > 1 else []),
            ]
            for name, column in self.scores.items()
        ]
        notes = [words for words in (self._price(), self._next_step()) if words]
        return Table("Scores", columns, rows, notes=notes)

    def _price(self) -> str:
        own, judges = price_text(self.usage), self.scorer_cost_usd
        parts = [f"runs {own}" if own else "", f"scorers {cost_text(judges)}" if judges else ""]
        return f"cost: {', '.join(filter(None, parts))}" if own or judges else ""

    def _next_step(self) -> str:
        if (count := len(self.unfinished)) and self.directory is not None:
            reason = f" ({one_line(self.map.reason)})" if self.map.reason else ""
            return f"{counted(count, 'run')} left{reason}: {continue_call(self.directory)}"
        return ""

    def _row_tables(self) -> Iterator[Table]:
        failures, unmeasured = self.failures, self.unmeasured
        if failures:
            yield self._rows_table("Failures", failures, "error", "")
        if unmeasured:
            yield self._rows_table("Unmeasured", unmeasured, "warn", UNMEASURED)

    def _rows_table(self, title: str, rows: Sequence[EvaluatedRow], state: str, which: str) -> Table:
        has_expected = any(row.row.expected is not None for row in rows)
        columns = (
            Column("", "state"),
            Column("row", "place"),
            *((Column("runs", "state"),) if self.repeat > 1 else ()),
            Column("output", "text"),
            *((Column("expected", "text"),) if has_expected else ()),
            Column("reason", "text"),
        )
        cells: list[list[str]] = []
        for row in rows[:SHOWN_ROWS]:
            words = row_words(row, which)
            cells.append([
                _SIGNS[state],
                row.id,
                *([dots(row)] if self.repeat > 1 else []),
                words["output"],
                *([words["expected"]] if has_expected else []),
                words["reason"],
            ])  # fmt: skip
        left = len(rows) - len(cells)
        notes = [f"and {left:,} more"] if left > 0 else []
        headline = f"{title}: {len(rows):,} of {counted(len(self.rows), 'row')}"
        return Table(title, columns, cells, [state] * len(cells), headline=headline, notes=notes)

    def __str__(self) -> str:
        tables = [self.scores_table, *self._row_tables()]
        return "\n\n".join([self.headline(), *map(str, tables)])

    def _html(self) -> str:
        return stacked_html([self.headline()], [self.scores_table, *self._row_tables()])


def _scorer_of(column: str, scorers: Mapping[str, Scorer]) -> str:
    """The scorer of a column, which is its own or one of the dict that it returned."""
    return column if column in scorers else next(name for name in scorers if column.startswith(f"{name}."))


def _baseline_row(row: EvaluatedRow) -> BaselineRow:
    whole = [result.usage + result.saved for result in row.results]
    costs = [usage.cost_usd for usage in whole if usage.cost_usd is not None]
    states = {result.status for result in row.results}
    worst = next((state for state in ("not_started", "interrupted", "fail") if state in states), "success")
    return BaselineRow(
        row.id,
        inputs_hash(row.row.inputs)[:HASH_CHARS],
        {name: [BaselineScore(score.value, score.state) for score in scores] for name, scores in row.scores.items()},
        worst,
        round(sum(costs), 9) if costs else None,
        row.row.group,
    )


def markdown_table(table: Table) -> str:
    """A table in the syntax of GitHub, without its headline and notes."""
    lines = [[column.title for column in table.columns], ["---"] * len(table.columns), *table.rows]
    return "\n".join(f"| {' | '.join(one_line(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)
