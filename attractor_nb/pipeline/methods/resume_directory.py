"""``Pipeline.resume``."""

from __future__ import annotations

import typing  # ``typing.overload`` by its long name: see ``start_run``
from typing import TYPE_CHECKING, Any, Literal, Unpack

from attractor_nb.interrupts import held_interrupts
from attractor_nb.lazy_imports import later
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import ResumeKeywords, as_path, takes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.pipeline import run as pipeline_run
    from attractor_nb.pipeline.run import Run
    from attractor_nb.runtime import execution, launch, rewind
    from attractor_nb.runtime.handles.run_result import RunResult
else:
    execution = later("attractor_nb.runtime.execution")
    launch = later("attractor_nb.runtime.launch")
    pipeline_run = later("attractor_nb.pipeline.run")
    rewind = later("attractor_nb.runtime.rewind")


class ResumingDirectory(Definition):
    """Going on with runs of a pipeline."""

    @typing.overload
    def resume(
        self,
        run: str | Path | Run,
        *,
        on_graph_change: str = "error",
        rewind_to: str | None = None,
        visit: int | None = None,
        context: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        wait: Literal[False] = False,
        **options: Unpack[ResumeKeywords],
    ) -> Run: ...
    @typing.overload
    def resume(
        self,
        run: str | Path | Run,
        *,
        on_graph_change: str = "error",
        rewind_to: str | None = None,
        visit: int | None = None,
        context: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        wait: Literal[True],
        **options: Unpack[ResumeKeywords],
    ) -> RunResult: ...
    @takes(ResumeKeywords)
    def resume(
        self,
        run: str | Path | Run,
        *,
        on_graph_change: str = "error",
        rewind_to: str | None = None,
        visit: int | None = None,
        context: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        wait: bool = False,
        **options: Unpack[ResumeKeywords],
    ) -> Run | RunResult:
        """Go on with a run that was stopped, or that a bound ended; nothing committed is run again.

        With ``rewind_to`` any run goes on from just before a visit of that node: context, routing and
        answers are as they were there, and what came after is set aside, not erased. Bounds, backend and
        workdir are those that the run had, unless others are given; its directory and inputs stay, but a run
        of the older layout gets a new directory.

        Args:
            run: The run or its directory.
            on_graph_change: ``error``, ``warn`` or ``accept`` when the graph is not the one that ran.
            rewind_to: The node to go back to.
            visit: Before which of its visits, by number; the latest by default.
            context: With ``rewind_to``: values of the context that are others from there on.
            prompt: With ``rewind_to``: the prompt of that node from there on, in this run.
            wait: Block until the end, and return the result in place of the handle.

        Raises:
            RunNotFound, RunLocked, GraphChanged, CheckpointCorrupt: It cannot go on, and why.
            UntrustedSource: The pipeline's commands come from elsewhere and are not trusted.
            RunError: The run has ended and there is nothing to resume; or it has no such visit.
        """
        logs_root = run.logs_root if isinstance(run, pipeline_run.Run) else as_path(run)
        target = rewind.read_rewind(rewind_to, visit, context, prompt)
        with held_interrupts() as interrupt:
            resumed = launch.resume_run(
                self,
                logs_root,
                on_graph_change=on_graph_change,
                rewind=target,
                is_waited_for=wait,
                interrupt=interrupt,
                **options,
            )
            return resumed.result() if wait else execution.of_kind(resumed, pipeline_run.Run)
