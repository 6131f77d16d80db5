"""``Pipeline.evaluate``, ``resume_evaluation``, ``compare`` and ``compare_async``."""

from __future__ import annotations

import typing  # ``typing.overload`` by its long name: see ``start_run``
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Unpack

from attractor_nb.errors import OptionError
from attractor_nb.interrupts import held_interrupts
from attractor_nb.lazy_imports import later
from attractor_nb.pipeline.methods.map import request_of
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import (
    EvaluationKeywords,
    EvaluationOptions,
    MapKeywords,
    MapOptions,
    ResumeMapKeywords,
    RunOptions,
    as_path,
    check_names,
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
    from attractor_nb.maps import map_work
    from attractor_nb.maps.map_launch import MapRequest
    from attractor_nb.runtime import launch
else:
    launch = later("attractor_nb.runtime.launch")
    of_variants = later("attractor_nb.evaluation.variants")
    rows_of_runs = later("attractor_nb.evaluation.rows_of_runs")
    evaluation_run = later("attractor_nb.evaluation.evaluation_run")
    stored_stages = later("attractor_nb.evaluation.stored_stages")
    map_work = later("attractor_nb.maps.map_work")


class Evaluating(Definition):
    """Scores a pipeline on data."""

    @typing.overload
    def evaluate(
        self, rows: object, scorers: object, *, wait: Literal[False] = False, **options: Unpack[EvaluationKeywords]
    ) -> EvaluationRun: ...
    @typing.overload
    def evaluate(
        self, rows: object, scorers: object, *, wait: Literal[True], **options: Unpack[EvaluationKeywords]
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
    @takes(EvaluationKeywords, EvaluationOptions, MapOptions, RunOptions)
    def evaluate(
        self,
        rows: object = None,
        scorers: object = None,
        *,
        runs: object = None,
        wait: bool = False,
        **options: Unpack[EvaluationKeywords],
    ) -> EvaluationRun | Evaluation:
        """Run this pipeline over rows and score what comes out; each row is a separate run, as of ``map``.

        Only inputs reach the pipeline: ``id``, ``expected``, ``group``, ``metadata`` and all other columns are for
        scorers. A scorer takes by name any of ``output``, ``expected``, ``row``, ``result`` and ``run``.

        Args:
            rows: Dicts, a DataFrame, a JSONL, CSV, JSON, TOML or Parquet file, or a pydantic-evals dataset.
            scorers: A function, a list of them, or a dict of them by name.
            runs: In place of rows, runs of this pipeline that exist: ``evaluate(scorers=…, runs=runs().where(…))``
                scores them and runs nothing. Handles, results, evaluations, rows of ``runs()`` or run directories. With
                ``only`` the runs whose stage is executed anew; rows, if given, choose runs by id and add columns.
            wait: Block until the end.

        Raises:
            ValidationError: Lint found errors; nothing was run.
            OptionError, ContextValueError, StorageError: An option, a row, a scorer or the directory is unusable.
            UntrustedSource: Its commands come from elsewhere and are not trusted; see ``trust``.
        """
        if runs is not None and options.get("only") is None:
            given = [*(["rows"] if rows is not None else []), *options]
            if ignored := [name for name in given if name not in {"output", "only"}]:
                raise OptionError(
                    f"runs that exist are scored as they are, so {', '.join(ignored)} would do nothing",
                    hint="evaluate(scorers=…, runs=…)",
                )
            return rows_of_runs.evaluate_runs(self, runs, scorers, options.get("output"))
        with held_interrupts() as interrupt:
            own, request = _parted(self, interrupt, is_waited_for=wait, **options)
            if wait:
                launch.refuse_own_loop(request.of_rows.host)
            if own.only is None:
                handle = evaluation_run.start_evaluation(self, rows, scorers, request, own)
            else:
                found, stored = stored_stages.stage_rows(self, runs, own, rows)
                handle = evaluation_run.begin_evaluation(self, found, scorers, request, own, stored)
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
            output: The output to judge, if not the same; a function has to be given again.
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

    @takes(EvaluationKeywords, EvaluationOptions, MapOptions, RunOptions)
    def compare(
        self,
        variants: Mapping[str, Any],
        rows: object = None,
        scorers: object = None,
        *,
        runs: object = None,
        directory: str | Path | None = None,
        **options: Unpack[EvaluationKeywords],
    ) -> EvaluationComparison:
        """Evaluate variants of this pipeline on the same rows, and say of each: better, worse, or not decided.

        Rows are paired. The test is exact McNemar for pass/fail scores, sign flips below 30 rows and Student's t from
        there for numbers; p values are adjusted over the variants (Holm). With ``repeat=1``, stages that are equal are
        run once for all variants. It blocks; ``compare_async`` does not.

        Args:
            variants: By name: changes such as ``{"write.prompt": "…", "*.llm_model": "…"}``, or another pipeline.
            rows: As of ``evaluate``.
            scorers: As of ``evaluate``.
            runs: With ``only``: stored runs, as of ``evaluate``.
            directory: The comparison's directory; one that was stopped continues there.

        Raises:
            ValidationError, OptionError: A variant, a row, a scorer or an option is unusable; nothing was run.
            RunInterrupted: Ctrl-C or Stop; the same call with ``directory`` continues.
        """
        with held_interrupts() as interrupt:
            request = _compare_request(self, interrupt, (rows, runs), scorers, directory, {}, **options)
            launch.refuse_own_loop(request.of_map.of_rows.host)
        return of_variants.compare(self, variants, request)

    @takes(EvaluationKeywords, EvaluationOptions, MapOptions, RunOptions, host="kernel")
    async def compare_async(
        self,
        variants: Mapping[str, Any],
        rows: object = None,
        scorers: object = None,
        *,
        runs: object = None,
        directory: str | Path | None = None,
        **options: Unpack[EvaluationKeywords],
    ) -> EvaluationComparison:
        """Compare in the current event loop; takes and raises what ``compare`` does.

        Args:
            variants: As of ``compare``.
            rows: As of ``evaluate``.
            scorers: As of ``evaluate``.
            runs: As of ``compare``.
            directory: The comparison's directory; one that was stopped continues there.
        """
        with held_interrupts() as interrupt:
            request = _compare_request(self, interrupt, (rows, runs), scorers, directory, {"host": "kernel"}, **options)
        return await of_variants.compare_async(self, variants, request)


def _parted(
    pipeline: Definition,
    interrupt: HeldInterrupt,
    defaults: Mapping[str, Any] = MappingProxyType({}),
    /,
    *,
    is_waited_for: bool,
    repeat: int = 1,
    output: str | Callable[..., Any] | None = None,
    inputs: Sequence[str] | None = None,
    only: str | None = None,
    **of_map: Any,
) -> tuple[EvaluationOptions, MapRequest]:
    """The options of an evaluation, and the request of its map with all others."""
    check_names(of_map.keys() - map_work.NOT_OF_A_ROW.keys(), EvaluationKeywords.__annotations__)
    own = EvaluationOptions(repeat=repeat, output=output, inputs=inputs, only=only)
    return own, request_of(pipeline, interrupt, defaults, is_waited_for=is_waited_for, **of_map)


def _compare_request(
    pipeline: Definition,
    interrupt: HeldInterrupt,
    given: tuple[object, object],
    scorers: object,
    directory: str | Path | None,
    defaults: Mapping[str, Any],
    /,
    **options: Any,
) -> CompareRequest:
    own, of_map = _parted(pipeline, interrupt, defaults, is_waited_for=True, **options)
    place = None if directory is None else as_path(directory, "directory")
    rows, runs = given
    return of_variants.CompareRequest(rows, scorers, own, place, of_map, runs)
