"""``Run.resume``, ``Run.rewind``, ``Run.fork`` and ``Pipeline.resume``."""

from __future__ import annotations

import typing  # ``typing.overload`` by its long name: see ``start_run``
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from attractor_nb.errors import RunError
from attractor_nb.interrupts import held_interrupts
from attractor_nb.model.states import run_word
from attractor_nb.runtime.execution import Execution, cast_run, note_continuation
from attractor_nb.runtime.prepare.run_options import ChangeKeywords, ContinueKeywords, ResumeKeywords, takes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.handles.run_result import RunResult

    class ForkKeywords(ResumeKeywords, total=False):
        """Keywords of ``Run.fork`` beside ``wait``."""

        context: Mapping[str, Any] | None
        prompt: str | None
        pipeline: Definition | None
        on_graph_change: str | None


# ``Run.resume`` and ``rewind``.


class ResumingRun(Execution):
    """Resumes a run from where it stopped, or from an earlier visit."""

    @typing.overload
    def resume(self, *, wait: Literal[False] = False, **options: Unpack[ContinueKeywords]) -> Self: ...
    @typing.overload
    def resume(self, *, wait: Literal[True], **options: Unpack[ContinueKeywords]) -> RunResult: ...
    @takes(ResumeKeywords)
    def resume(
        self,
        *,
        on_graph_change: str = "error",
        rewind_to: str | None = None,
        visit: int | None = None,
        context: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        wait: bool = False,
        **options: Unpack[ResumeKeywords],
    ) -> Self | RunResult:
        """Resume this run where it stopped, or from before a visit; see ``Pipeline.resume``.

        Args:
            on_graph_change: ``error``, ``warn`` or ``accept`` when the graph is not the one that ran.
            rewind_to: The node to go back to.
            visit: Before which of its visits, by number; the latest by default.
            context: With ``rewind_to``: values of the context that are others from there on.
            prompt: With ``rewind_to``: the prompt of that node from there on, in this run.
            wait: Block until the end, and return the result in place of the handle.

        Raises:
            RunError: The run is active; or as of ``Pipeline.resume``.
        """
        from attractor_nb.runtime.launch import resume_run  # noqa: PLC0415 - loads an engine
        from attractor_nb.runtime.rewind import read_rewind  # noqa: PLC0415 - as above

        self._check_resumable(is_taken_over=options.get("take_over", False))
        with held_interrupts() as interrupt:
            resumed = resume_run(
                self.pipeline,
                self.logs_root,
                kept=self._kept,
                on_graph_change=on_graph_change,
                rewind=read_rewind(rewind_to, visit, context, prompt),
                is_waited_for=wait,
                interrupt=interrupt,
                **options,
            )
            note_continuation(self, "resumed" if rewind_to is None else f"rewound to before {rewind_to}", resumed)
            return resumed.result() if wait else cast_run(resumed, type(self))

    @typing.overload
    def rewind(
        self, node: str, visit: int | None = None, *, wait: Literal[False] = False, **options: Unpack[ChangeKeywords]
    ) -> Self: ...
    @typing.overload
    def rewind(
        self, node: str, visit: int | None = None, *, wait: Literal[True], **options: Unpack[ChangeKeywords]
    ) -> RunResult: ...
    @takes(ResumeKeywords)
    def rewind(
        self,
        node: str,
        visit: int | None = None,
        *,
        on_graph_change: str = "error",
        context: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        wait: bool = False,
        **options: Unpack[ResumeKeywords],
    ) -> Self | RunResult:
        """Continue from just before a visit of a node; later stages are set aside and stay in the log.

        Args:
            node: The node.
            visit: Which of its visits, by number; the latest by default.
            on_graph_change: ``error``, ``warn`` or ``accept`` when the graph is not the one that ran.
            context: Values of the context that are others from there on.
            prompt: The prompt of that node from there on, in this run.
            wait: Block until the end, and return the result in place of the handle.

        Raises:
            RunError: The run is active, or has no such visit; or as of ``Pipeline.resume``.
        """
        target: dict[str, Any] = {"rewind_to": node, "visit": visit, "context": context, "prompt": prompt}
        return self.resume(on_graph_change=on_graph_change, wait=wait, **target, **options)

    def _check_resumable(self, *, is_taken_over: bool) -> None:
        """Refuse to resume a live run, unless it is taken from an owner elsewhere."""
        is_elsewhere = self._work.job is None
        if not self.is_done and not (is_elsewhere and is_taken_over):
            hint = "wait for it, or cancel it first"
            if is_elsewhere:
                hint = "wait for it; from an owner that is frozen or gone: resume(take_over=True)"
            raise RunError(f"run {self.id} is {run_word(self.status)}", hint=hint)


# ``Run.fork``.


class Forking(Execution):
    """Going another way from a visit of a run, as a separate run."""

    @typing.overload
    def fork(
        self, node: str, visit: int | None = None, *, wait: Literal[False] = False, **options: Unpack[ForkKeywords]
    ) -> Self: ...
    @typing.overload
    def fork(
        self, node: str, visit: int | None = None, *, wait: Literal[True], **options: Unpack[ForkKeywords]
    ) -> RunResult: ...
    @takes(ResumeKeywords)
    def fork(
        self,
        node: str,
        visit: int | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        pipeline: Definition | None = None,
        on_graph_change: str | None = None,
        wait: bool = False,
        **options: Unpack[ResumeKeywords],
    ) -> Self | RunResult:
        """Begin a separate run that goes another way from just before a visit of a node, and start it.

        It is made beside this run, and bounds and backend are this run's, unless others are given.

        Args:
            node: The node that is visited first.
            visit: Before which of its visits, by number; the latest by default.
            context: Values of the context that are others in the fork.
            prompt: The prompt of that node in the fork.
            pipeline: What continues in place of what this run ran.
            on_graph_change: As of ``Pipeline.resume``; with a pipeline given the change is accepted.
            wait: Block until the end, and return the result in place of the handle.

        Raises:
            RunNotFound, GraphChanged, CheckpointCorrupt, RunError: It cannot begin there, and why.
            OptionError, ContextValueError: An option, a value or the prompt is unusable.
            UntrustedSource: The pipeline's commands come from elsewhere and are not trusted.
            StorageError: The disk refused; there is no fork then.
        """
        from attractor_nb.runtime.fork import fork_run  # noqa: PLC0415 - loads an engine

        with held_interrupts() as interrupt:
            fork = fork_run(
                self,
                node,
                visit,
                context=context,
                prompt=prompt,
                pipeline=pipeline,
                on_graph_change=on_graph_change,
                is_waited_for=wait,
                interrupt=interrupt,
                **options,
            )
            return fork.result() if wait else cast_run(fork, type(self))
