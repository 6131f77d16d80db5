"""``Pipeline.run`` and ``run_async``."""

from __future__ import annotations

import typing  # ``typing.overload`` by its long name: Jedi then reads the whole signature, not the overloads
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Unpack

from attractor_nb.errors import OptionError
from attractor_nb.interrupts import held_interrupts
from attractor_nb.lazy_imports import later
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import (
    CheckKeywords,
    ContinueKeywords,
    ResumeKeywords,
    RunKeywords,
    StepKeywords,
    as_path,
    check_names,
    given_options,
    takes,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from attractor_nb.pipeline import run as pipeline_run
    from attractor_nb.pipeline.run import Run
    from attractor_nb.runtime import execution, launch, rewind
    from attractor_nb.runtime.execution import Execution
    from attractor_nb.runtime.handles.run_result import RunResult
    from attractor_nb.studio.edit.editor_requests import RunForm
    from attractor_nb.studio.estimate import hindsight
else:
    execution = later("attractor_nb.runtime.execution")
    launch = later("attractor_nb.runtime.launch")
    pipeline_run = later("attractor_nb.pipeline.run")
    rewind = later("attractor_nb.runtime.rewind")
    hindsight = later("attractor_nb.studio.estimate.hindsight")


class Starting(Definition):
    """The ways to start a run of a pipeline."""

    @typing.overload
    def run(self, *, wait: Literal[False] = False, **options: Unpack[RunKeywords]) -> Run: ...
    @typing.overload
    def run(self, *, wait: Literal[True], **options: Unpack[RunKeywords]) -> RunResult: ...
    @takes(RunKeywords)
    def run(self, *, wait: bool = False, **options: Unpack[RunKeywords]) -> Run | RunResult:
        """Start a run and return its handle at once; with ``wait=True`` block and return the result.

        Args:
            wait: Block until the end.

        Raises:
            ValidationError: Lint found errors; nothing was run.
            OptionError, ContextValueError, StorageError: An option or the run directory is unusable.
            UntrustedSource: Its commands come from elsewhere and are not trusted; see ``trust``.
        """
        chosen = launch.options_for(self, **options)
        if wait:
            launch.refuse_own_loop(chosen.host)
        with held_interrupts() as interrupt:
            run = execution.cast_run(launch.start_run(self, chosen, interrupt, is_waited_for=wait), pipeline_run.Run)
            return run.result() if wait else run

    @takes(RunKeywords, host="kernel")
    async def run_async(self, **options: Unpack[RunKeywords]) -> RunResult:
        """Run in the current event loop and return the result; raises as ``run`` does."""
        chosen = launch.options_for(self, {"host": "kernel"}, **options)
        with held_interrupts() as interrupt:
            return await launch.start_run(self, chosen, interrupt, is_waited_for=True)


# ``Pipeline.resume``.


class ResumingDirectory(Definition):
    """Resumes runs of a pipeline."""

    @typing.overload
    def resume(
        self, run: str | Path | Run, *, wait: Literal[False] = False, **options: Unpack[ContinueKeywords]
    ) -> Run: ...
    @typing.overload
    def resume(
        self, run: str | Path | Run, *, wait: Literal[True], **options: Unpack[ContinueKeywords]
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
        """Resume a run that was stopped, or that a bound ended; nothing committed is run again.

        With ``rewind_to`` any run continues from just before a visit of that node: context, routing and
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
            RunNotFound, RunLocked, GraphChanged, CheckpointCorrupt: It cannot continue, and why.
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
            return resumed.result() if wait else execution.cast_run(resumed, pipeline_run.Run)


# ``Pipeline.check`` and ``step``: runs for a test, and by single stages.


class Trying(Definition):
    """Runs of a pipeline for a test, and by single stages."""

    _stepped: Execution | None = None
    _step_options: Mapping[str, Any] = MappingProxyType({})

    @takes(CheckKeywords, durability="none", is_shown=False)
    def check(
        self,
        cassette: str | PathLike[str],
        *,
        path: Sequence[str] | None = None,
        outcome: str | None = None,
        allow_unused: bool = False,
        **options: Unpack[CheckKeywords],
    ) -> RunResult:
        """Run on a recording and compare: a test without a model, a command, a person or a network.

        By default nothing is stored, and ``cassette_mode`` is ``replay``.

        Args:
            cassette: The recording.
            path: The completed stages that are expected, in order.
            outcome: The expected end: ``success`` or ``fail``.
            allow_unused: Let recorded calls be that are not made now.

        Raises:
            CheckFailed: It did something else, or made a call that was not recorded; says what.
            OptionError: An option or the cassette is unusable.
        """
        steps, status = hindsight.read_expectation(path, outcome)
        mode = getattr(cassette, "mode", None) or "replay"
        defaults = {"durability": "none", "is_shown": False, "cassette": cassette, "cassette_mode": mode}
        chosen = launch.options_for(self, defaults, **options)
        launch.refuse_own_loop(chosen.host)
        with held_interrupts() as interrupt:
            result = launch.start_run(self, chosen, interrupt, is_waited_for=True).result()
        hindsight.check_result(result, steps, status, is_unused_allowed=allow_unused)
        return result

    @takes(StepKeywords, **dict.fromkeys(StepKeywords.__annotations__))
    def step(self, **options: Unpack[StepKeywords]) -> RunResult:
        """Run exactly one stage and stop; call it again for the next. Options hold for the steps after.

        The step after the end begins a new run.
        """
        before = self._stepped
        if before is None:
            self._step_options = given_options(options)
        chosen = replace(launch.options_for(self, self._step_options, **options), stop_after=1)
        launch.refuse_own_loop(chosen.host)
        if chosen.durability == "none":
            raise OptionError(
                'steps continue in a run directory, and durability="none" keeps none', hint='use durability="fast"'
            )
        with held_interrupts() as interrupt:
            if before is None:
                run = launch.start_run(self, chosen, interrupt, is_waited_for=True)
            else:
                run = launch.go_on(self, before.logs_root, chosen, interrupt, is_waited_for=True)
            self._stepped = run
            result = run.result()
        self._stepped = run if result.status in {"paused", "interrupted"} else None
        return result


# ``Pipeline.form``.


class FillingIn(Definition):
    """Runs of a pipeline whose inputs a person fills in."""

    @takes(ResumeKeywords)
    def form(self, **options: Unpack[ResumeKeywords]) -> RunForm:
        """A form for the inputs that the graph declares: in a notebook fields and a button that starts a run."""
        from attractor_nb.studio.edit.editor_requests import RunForm  # noqa: PLC0415 - only for forms

        check_names(options)
        return RunForm(self, options)
