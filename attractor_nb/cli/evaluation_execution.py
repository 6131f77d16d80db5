"""``evaluate``: a pipeline scored on the rows of a file, compared with a baseline, and judged by gates."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attractor_nb.cli.map_execution import (
    evaluation_text,
    first_options,
    map_code,
    result_facts,
    resume_map_command,
    resumed_options,
    resumed_settings,
    warn_of_change,
    watched,
    write_lines,
)
from attractor_nb.cli.named_scorers import named_scorers
from attractor_nb.cli.reporting import ExitCode, print_json
from attractor_nb.cli.run_summary import shown_path
from attractor_nb.cli.source_inputs import check_output, read_pipeline
from attractor_nb.errors import OptionError
from attractor_nb.evaluation.comparison import EvaluationComparison, compare_scored
from attractor_nb.evaluation.scored_rows import ScoredRows, read_baseline
from attractor_nb.evaluation.scoring import check_evaluation
from attractor_nb.model.texts import did_you_mean, no_such_key
from attractor_nb.pipeline.load_pipeline import load_pipeline
from attractor_nb.storage.files.user_files import write_file

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.cli.map_execution import MapSettings
    from attractor_nb.cli.option_choices import Settings
    from attractor_nb.evaluation.columns import ScoreColumn
    from attractor_nb.evaluation.evaluation import Evaluation
    from attractor_nb.evaluation.evaluation_run import EvaluationRun
    from attractor_nb.evaluation.scorers import Scorer


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings:
    """The values of the options that ``evaluate`` has and ``map`` has not."""

    scorers: Sequence[str] = ()  #: As they are named.
    baseline_file: Path | None = None  #: The baseline to compare with.
    max_worse: Sequence[str] = ()  #: ``0.02``, or ``score=0.02`` for one score.
    at_least: Sequence[str] = ()  #: ``score=0.8``.
    max_unmeasured: int = 0  #: Most runs without a score.
    save_baseline: Path | None = None  #: File for the scores.
    markdown: Path | None = None  #: File for the summary.

    @cached_property
    def baseline(self) -> ScoredRows | None:
        """The baseline, read."""
        return None if self.baseline_file is None else read_baseline(self.baseline_file)

    @cached_property
    def least(self) -> Mapping[str, float]:
        """The smallest mean by score."""
        return dict(_named_number(text, "--at-least") for text in self.at_least)

    @cached_property
    def margin(self) -> float | Mapping[str, float] | None:
        """The margin by which scores may be worse, for all or by score; None when it is not asked for."""
        if not self.max_worse:
            return None
        if len(self.max_worse) == 1 and "=" not in self.max_worse[0]:
            return _number(self.max_worse[0], "--max-worse")
        return dict(_named_number(text, "--max-worse") for text in self.max_worse)

    def check(self, scorers: Sequence[Scorer], *inputs: str | Path | None) -> None:
        """Refuse, before anything runs, unusable files and gates of scores that no scorer gives.

        Args:
            scorers: The scorers.
            *inputs: Files that are read.
        """
        check_output(self.save_baseline, *inputs)
        check_output(self.markdown, *inputs, self.baseline_file, self.save_baseline)
        known: Collection[str] = () if self.baseline is None else self.baseline.head.columns
        names = [each.name for each in scorers]
        margins = self.margin if isinstance(self.margin, dict) else {}
        for name in (*self.least, *margins):
            if not any(name == each or name.startswith(f"{each}.") for each in names):
                raise no_such_key("the evaluation", "score", name, names)
        if self.margin is not None and self.baseline is None:
            raise OptionError("--max-worse needs a baseline", hint="--baseline FILE; --save-baseline FILE writes one")
        if unknown := next((name for name in margins if name not in known), None):
            raise no_such_key(str(self.baseline_file), "score", unknown, known)

    def problems(self, evaluation: Evaluation, comparison: EvaluationComparison | None) -> list[str]:
        """The gates that fail, in words."""
        missing = [name for name in self.least if name not in evaluation.scores]  # the dict of a scorer lacked it
        found = [f'there is no score "{name}"{did_you_mean(name, evaluation.scores)}' for name in missing]
        least = {name: value for name, value in self.least.items() if name not in missing}
        found += evaluation.check(at_least=least, max_unmeasured=self.max_unmeasured)
        if comparison is not None and self.margin is not None:
            found += comparison.check(at_most_worse_by=self.margin, max_unmeasured=self.max_unmeasured)
        return found


def _named_number(text: str, option: str) -> tuple[str, float]:
    name, sign, number = text.rpartition("=")
    if not (sign and name):
        raise OptionError(f"{option} {text} names no score", hint=f"{option} SCORE=NUMBER")
    return name, _number(number, option)


def _number(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or (value < 0 and option == "--max-worse"):
        raise OptionError(f"{option}: {text!r} is not a number that it takes", hint=f"{option} SCORE=0.02")
    return value


def evaluate_file(
    file: str,
    rows: Path,
    settings: Settings,
    of_map: MapSettings,
    own: EvaluationSettings,
    *,
    repeat: int,
    output: str | None,
    inputs: Sequence[str] | None,
) -> ExitCode:
    """Score the pipeline of a file on the rows of another."""
    pipeline = read_pipeline(file, params=of_map.common)
    scorers = named_scorers(own.scorers, pipeline)
    check_output(of_map.results_file, file, rows, own.baseline_file)
    own.check(scorers, file, rows)
    options = first_options(pipeline, settings, of_map)
    run: EvaluationRun = pipeline.evaluate(
        rows, scorers, repeat=repeat, output=output, inputs=inputs, wait=False, **options
    )
    return _watch(run, settings, of_map, own)


def resume_evaluation(
    directory: Path, file: str, settings: Settings, of_map: MapSettings, own: EvaluationSettings
) -> ExitCode:
    """Continue the evaluation of a directory, with its own pipeline or that of a file."""
    if of_map.map_dir is not None:
        raise OptionError(
            "an evaluation is resumed in its own directory", hint="--out FILE.jsonl or FILE.csv writes its results"
        )
    check_evaluation(directory)  # what is no evaluation says so before its pipeline is looked for
    pipeline = read_pipeline(file) if file else load_pipeline(directory)
    scorers = named_scorers(own.scorers, pipeline)
    check_output(of_map.results_file, file or None, own.baseline_file)
    own.check(scorers, file or None)
    settings = resumed_settings(directory, settings)
    options = resumed_options(pipeline, directory, settings, of_map)
    run: Any = pipeline.resume_evaluation(directory, scorers, wait=False, **options)
    warn_of_change(pipeline, directory, settings)
    return _watch(run, settings, of_map, own)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Outcome of an evaluation."""

    evaluation: Evaluation
    comparison: EvaluationComparison | None
    problems: Sequence[str] = field(default_factory=list[str])  #: Gates that failed.

    def to_markdown(self) -> str:
        beside = f"\n{self.comparison.to_markdown()}" if self.comparison is not None else ""
        return self.evaluation.to_markdown() + beside

    def to_plain(self) -> dict[str, Any]:
        found, result = self.evaluation, self.evaluation.map
        return {
            **result_facts(result),
            "headline": found.headline(),
            "scores": {name: _column_plain(column) for name, column in found.scores.items()},
            "duration_seconds": round(result.duration, 3),
            "usage": found.usage.to_plain(),
            "scorer_cost_usd": found.scorer_cost_usd,
            "comparison": None if self.comparison is None else _comparison_plain(self.comparison),
            "failed_gates": list(self.problems),
            "rows": found.lines(),
        }


def _column_plain(column: ScoreColumn) -> dict[str, Any]:
    estimate = column.estimate
    return {
        "kind": column.kind,
        "mean": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "rows": estimate.count,
        "failed": column.failed,
        "unmeasured": column.unmeasured,
        "classes": column.classes if column.kind == "class" else None,
    }


def _comparison_plain(comparison: EvaluationComparison) -> dict[str, Any]:
    return {
        "baseline": comparison.baseline.name,
        "words": comparison.words,
        "changed_rows": [name for ids in comparison.changed_rows.values() for name in ids],
        "differences": {
            each.column: {
                "verdict": each.verdict,
                "words": each.words,
                "baseline": each.baseline_mean,
                "mean": each.variant_mean,
                "difference": each.difference.value,
                "low": each.difference.low,
                "high": each.difference.high,
                "p": each.p,
                "test": each.test,
                "won": list(each.wins),
                "lost": list(each.losses),
                "not_compared": each.unpaired,
            }
            for each in comparison.differences
        },
    }


def _watch(run: EvaluationRun, settings: Settings, of_map: MapSettings, own: EvaluationSettings) -> ExitCode:
    """Show an evaluation until it has ended, sum it up, and judge it."""
    result = watched(run.map, settings, f"{run.view.row_count:,} runs to score")
    if isinstance(result, ExitCode):
        return result
    evaluation = run.result(0.0)
    comparison = None if own.baseline is None else compare_scored(own.baseline, [evaluation.scored()])
    code = map_code(result)
    is_stopped = code in (ExitCode.INTERRUPTED, ExitCode.PAUSED)
    problems = [] if is_stopped else own.problems(evaluation, comparison)
    verdict = _Verdict(evaluation, comparison, problems)
    if of_map.results_file is not None:
        write_lines(of_map.results_file, evaluation.lines())
    if own.markdown is not None:
        write_file(own.markdown, verdict.to_markdown())
    _show(verdict, settings, own)
    if is_stopped:
        return code
    if own.save_baseline is not None and not problems:
        evaluation.save_baseline(own.save_baseline)
    return ExitCode.FAILED if problems else ExitCode.SUCCESS


def _show(verdict: _Verdict, settings: Settings, own: EvaluationSettings) -> None:
    """The verdict on stdout; the gates that failed and how to continue on stderr."""
    evaluation, directory = verdict.evaluation, verdict.evaluation.directory
    assert directory is not None, "an evaluation keeps its runs"
    if settings.is_json:
        print_json(verdict.to_plain())
    else:
        print(evaluation_text(evaluation))
        if verdict.comparison is not None:
            print(f"\n{verdict.comparison}")
        print(f"\nevaluation directory  {shown_path(directory)}")
    sys.stdout.flush()
    for problem in verdict.problems:
        print(f"failed: {problem}", file=sys.stderr)
    if verdict.problems and own.save_baseline is not None:
        print(f"{own.save_baseline} is not written: a gate failed", file=sys.stderr)
    if evaluation.unfinished or evaluation.unmeasured:
        command = resume_map_command(directory, *settings.kept_options(), scorers=own.scorers)
        print(f"Resume with `{command}`", file=sys.stderr)
