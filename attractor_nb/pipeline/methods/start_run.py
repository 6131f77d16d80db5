"""``Pipeline.run`` and ``run_async``."""

from __future__ import annotations

import typing  # ``typing.overload`` by its long name: Jedi then reads the whole signature, not the overloads
from typing import TYPE_CHECKING, Literal, Unpack

from attractor_nb.interrupts import held_interrupts
from attractor_nb.lazy_imports import later
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import RunKeywords, takes

if TYPE_CHECKING:
    from attractor_nb.pipeline import run as pipeline_run
    from attractor_nb.pipeline.run import Run
    from attractor_nb.runtime import execution, launch
    from attractor_nb.runtime.handles.run_result import RunResult
else:
    execution = later("attractor_nb.runtime.execution")
    launch = later("attractor_nb.runtime.launch")
    pipeline_run = later("attractor_nb.pipeline.run")


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
            run = execution.of_kind(launch.start_run(self, chosen, interrupt, is_waited_for=wait), pipeline_run.Run)
            return run.result() if wait else run

    @takes(RunKeywords, host="kernel")
    async def run_async(self, **options: Unpack[RunKeywords]) -> RunResult:
        """Run in the current event loop and return the result; raises as ``run`` does."""
        chosen = launch.options_for(self, {"host": "kernel"}, **options)
        with held_interrupts() as interrupt:
            return await launch.start_run(self, chosen, interrupt, is_waited_for=True)
