"""``Pipeline.evaluate``, ``resume_evaluation``, ``compare`` and ``compare_async``."""

from __future__ import annotations

import typing  # ``typing.overload`` by its long name: see ``start_run``
from typing import TYPE_CHECKING, Any, Literal, Unpack

from attractor_nb.errors import OptionError
from attractor_nb.interrupts import held_interrupts
from attractor_nb.lazy_imports import later
from attractor_nb.pipeline.methods.map import request_of
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import (
    MapKeywords,
    MapOptions,
    ResumeMapKeywords,
    RunOptions,
    as_path,
    takes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from attractor_nb.evaluation import evaluation_run, rows_of_runs, stored_stages
    from attractor_nb.evaluation import variants as of_variants
    from attractor_nb.evaluation.comparison import EvaluationComparison
    from attractor_nb.evaluation.evaluation import Evaluation
    from attractor_nb.evaluation.evaluation_run import EvaluationRun
    from attractor_nb.evaluation.variants import CompareRequest
    from attractor_nb.interrupts import HeldInterrupt
    from attractor_nb.runtime import launch
else:
    launch = later("attractor_nb.runtime.launch")
    of_variants = later("attractor_nb.evaluation.variants")
    rows_of_runs = later("attractor_nb.evaluation.rows_of_runs")
    evaluation_run = later("attractor_nb.evaluation.evaluation_run")
    stored_stages = later("attractor_nb.evaluation.stored_stages")


class Evaluating(Definition):
    """Scores a pipeline on data."""

    @typing.overload
    def evaluate(
        self,
        rows: object,
        scorers: object,
        *,
        repeat: int = 1,
        output: str | Callable[..., Any] | None = None,
        inputs: Sequence[str] | None = None,
        wait: Literal[False] = False,
        **options: Unpack[MapKeywords],
    ) -> EvaluationRun: ...
    @typing.overload
    def evaluate(
        self,
        rows: object,
        scorers: object,
        *,
        repeat: int = 1,
        output: str | Callable[..., Any] | None = None,
        inputs: Sequence[str] | None = None,
        wait: Literal[True],
        **options: Unpack[MapKeywords],
    ) -> Evaluation: ...
    @typing.overload
    def evaluate(
        self, *, scorers: object, runs: object, output: str | Callable[..., Any] | None = None
    ) -> Evaluation: ...
    @typing.overload
    def evaluate(
        self,
        rows: object = None,
        *,
        scorers: object,
        runs: object,
        only: str,
        repeat: int = 1,
        output: str | Callable[..., Any] | None = None,
        wait: Literal[False] = False,
        **options: Unpack[MapKeywords],
    ) -> EvaluationRun: ...
    @typing.overload
    def evaluate(
        self,
        rows: object = None,
        *,
        scorers: object,
        runs: object,
        only: str,
        repeat: int = 1,
        output: str | Callable[..., Any] | None = None,
        wait: Literal[True],
        **options: Unpack[MapKeywords],
    ) -> Evaluation: ...
    @takes(MapKeywords, MapOptions, RunOptions)
    def evaluate(
        self,
        rows: object = None,
        scorers: object = None,
        *,
        runs: object = None,
        only: str | None = None,
        repeat: int = 1,
        output: str | Callable[..., Any] | None = None,
        inputs: Sequence[str] | None = None,
        wait: bool = False,
        **options: Unpack[MapKeywords],
    ) -> EvaluationRun | Evaluation:
        """Run this pipeline over rows and score what comes out; each row is a separate run, as of ``map``.

        Only inputs reach the pipeline: ``id``, ``expected``, ``group``, ``metadata`` and all other columns are for
        scorers. A scorer takes by name any of ``output``, ``expected``, ``row``, ``result`` and ``run``.

        Args:
            rows: Dicts, a DataFrame, a JSONL, CSV, JSON, TOML or Parquet file, or a pydantic-evals dataset.
            scorers: A function, a list of them, or a dict of them by name.
            runs: In place of rows, runs of this pipeline that exist: ``evaluate(scorers=…, runs=runs().where(…))``
                scores them and runs nothing. Handles, results, evaluations, rows of ``runs()`` or run directories.
            only: With ``runs``: the one stage that each row executes anew, as this pipeline has it now, with the
                context that it had in the stored run. Rows, if given, choose runs by id and add columns.
            repeat: Runs of each row.
            output: What is judged: a context key such as ``write.response``, or a function of a run; by default the
                whole response of the last stage.
            inputs: The columns that are inputs, where the pipeline declares none.
            wait: Block until the end.

        Raises:
            ValidationError: Lint found errors; nothing was run.
            OptionError, ContextValueError, StorageError: An option, a row, a scorer or the directory is unusable.
            UntrustedSource: Its commands come from elsewhere and are not trusted; see ``trust``.
        """
        if only is not None:
            return self._evaluate_stage(
                only, runs, rows, scorers, repeat=repeat, inputs=inputs, output=output, wait=wait, options=options
            )
        if runs is not None:
            given = {"rows": rows is not None, "repeat": repeat != 1, "inputs": inputs is not None}
            if ignored := [*(name for name, is_given in given.items() if is_given), *options]:
                raise OptionError(
                    f"runs that exist are scored as they are, so {', '.join(ignored)} would do nothing",
                    hint="evaluate(scorers=…, runs=…)",
                )
            return rows_of_runs.evaluate_runs(self, runs, scorers, output)
        with held_interrupts() as interrupt:
            request = request_of(self, interrupt, is_waited_for=wait, **options)
            if wait:
                launch.refuse_own_loop(request.of_rows.host)
            handle = evaluation_run.start_evaluation(
                self, rows, scorers, request, repeat=repeat, inputs=inputs, output=output
            )
            return handle.result() if wait else handle

    def _evaluate_stage(
        self,
        only: str,
        runs: object,
        rows: object,
        scorers: object,
        *,
        repeat: int,
        inputs: Sequence[str] | None,
        output: Any,
        wait: bool,
        options: Mapping[str, Any],
    ) -> EvaluationRun | Evaluation:
        """Evaluate one stage of stored runs."""
        stored_stages.check_asked(only, runs, inputs)
        with held_interrupts() as interrupt:
            request = request_of(self, interrupt, is_waited_for=wait, **options)
            if wait:
                launch.refuse_own_loop(request.of_rows.host)
            found, stored = stored_stages.stage_rows(self, runs, only, rows)
            handle = evaluation_run.start_on_rows(
                self, found, scorers, request, repeat=repeat, output=output, stored=stored
            )
            return handle.result() if wait else handle

    @takes(ResumeMapKeywords, MapOptions, RunOptions)
    def resume_evaluation(
        self,
        directory: str | Path | EvaluationRun | Evaluation,
        scorers: object,
        *,
        output: str | Callable[..., Any] | None = None,
        failed: str = "keep",
        on_graph_change: str = "error",
        wait: bool = False,
        **options: Unpack[ResumeMapKeywords],
    ) -> EvaluationRun | Evaluation:
        """Continue an evaluation: rows that ended are not run again, scores that are stored are not made again.

        Args:
            directory: The evaluation, or its directory.
            scorers: Its scorers again; a new or changed one scores the rows that ended, too.
            output: What is judged, if not what was; a function has to be given again.
            failed: ``keep`` the rows that failed, or ``retry`` each from the stage that it failed in.
            on_graph_change: ``error``, ``warn`` or ``accept`` when the graph is not the one that ran.
            wait: Block until the end.

        Raises:
            RunNotFound, RunLocked, GraphChanged, CheckpointCorrupt: It cannot continue, and why.
            OptionError: An option is unusable.
        """
        path = as_path(typing.cast("Any", getattr(directory, "directory", directory)))
        with held_interrupts() as interrupt:
            request = request_of(self, interrupt, is_waited_for=wait, **options)
            if wait:
                launch.refuse_own_loop(request.of_rows.host)
            handle = evaluation_run.continue_evaluation(
                self, path, scorers, request, failed=failed, on_graph_change=on_graph_change, output=output
            )
            return handle.result() if wait else handle

    @takes(MapKeywords, MapOptions, RunOptions)
    def compare(
        self,
        variants: Mapping[str, Any],
        rows: object = None,
        scorers: object = None,
        *,
        runs: object = None,
        only: str | None = None,
        repeat: int = 1,
        output: str | Callable[..., Any] | None = None,
        inputs: Sequence[str] | None = None,
        directory: str | Path | None = None,
        **options: Unpack[MapKeywords],
    ) -> EvaluationComparison:
        """Evaluate variants of this pipeline on the same rows, and say of each: better, worse, or not decided.

        Rows are paired. The test is exact McNemar for pass/fail scores, sign flips below 30 rows and Student's t from
        there for numbers; p values are adjusted over the variants (Holm). It blocks; ``compare_async`` does not.

        Args:
            variants: By name: changes such as ``{"write.prompt": "…", "*.llm_model": "…"}``, or another pipeline.
            rows: As of ``evaluate``.
            scorers: As of ``evaluate``.
            runs: With ``only``: stored runs, as of ``evaluate``.
            only: The one stage that is executed, with the context that it had in these runs.
            repeat: Runs of each row; with 1, stages that are equal are run once for all variants.
            output: What is judged, as of ``evaluate``.
            inputs: The columns that are inputs, where the pipeline declares none.
            directory: The comparison's directory; one that was stopped continues there.

        Raises:
            ValidationError, OptionError: A variant, a row, a scorer or an option is unusable; nothing was run.
            RunInterrupted: Ctrl-C or Stop; the same call with ``directory`` continues.
        """
        with held_interrupts() as interrupt:
            request = self._compare_request(
                interrupt, (rows, runs, only), scorers, repeat, output, inputs, directory, options
            )
            launch.refuse_own_loop(request.of_map.of_rows.host)
        return of_variants.compare(self, variants, request)

    @takes(MapKeywords, MapOptions, RunOptions, host="kernel")
    async def compare_async(
        self,
        variants: Mapping[str, Any],
        rows: object = None,
        scorers: object = None,
        *,
        runs: object = None,
        only: str | None = None,
        repeat: int = 1,
        output: str | Callable[..., Any] | None = None,
        inputs: Sequence[str] | None = None,
        directory: str | Path | None = None,
        **options: Unpack[MapKeywords],
    ) -> EvaluationComparison:
        """Compare in the current event loop; takes and raises what ``compare`` does.

        Args:
            variants: As of ``compare``.
            rows: As of ``evaluate``.
            scorers: As of ``evaluate``.
            runs: With ``only``: stored runs, as of ``evaluate``.
            only: The one stage that is executed, with the context that it had in these runs.
            repeat: Runs of each row.
            output: What is judged, as of ``evaluate``.
            inputs: The columns that are inputs, where the pipeline declares none.
            directory: The comparison's directory; one that was stopped continues there.
        """
        with held_interrupts() as interrupt:
            given: dict[str, Any] = {"host": "kernel", **options}
            request = self._compare_request(
                interrupt, (rows, runs, only), scorers, repeat, output, inputs, directory, given
            )
        return await of_variants.compare_async(self, variants, request)

    def _compare_request(
        self,
        interrupt: HeldInterrupt,
        of: tuple[object, object, str | None],
        scorers: object,
        repeat: int,
        output: Any,
        inputs: Sequence[str] | None,
        directory: str | Path | None,
        options: Mapping[str, Any],
    ) -> CompareRequest:
        of_map = request_of(self, interrupt, is_waited_for=True, **options)
        place = None if directory is None else as_path(directory, "directory")
        rows, runs, only = of
        return of_variants.CompareRequest(rows, scorers, repeat, inputs, output, place, of_map, only, runs)
