"""``Run.fork``."""

from __future__ import annotations

import typing  # ``typing.overload`` by its long name: see ``start_run``
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from attractor_nb.interrupts import held_interrupts
from attractor_nb.runtime.execution import Execution, of_kind
from attractor_nb.runtime.prepare.run_options import ResumeKeywords, takes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.runtime.definition import Definition
    from attractor_nb.runtime.handles.run_result import RunResult


class Forking(Execution):
    """Going another way from a visit of a run, as a run of its own."""

    @typing.overload
    def fork(
        self,
        node: str,
        visit: int | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        pipeline: Definition | None = None,
        on_graph_change: str | None = None,
        wait: Literal[False] = False,
        **options: Unpack[ResumeKeywords],
    ) -> Self: ...
    @typing.overload
    def fork(
        self,
        node: str,
        visit: int | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        pipeline: Definition | None = None,
        on_graph_change: str | None = None,
        wait: Literal[True],
        **options: Unpack[ResumeKeywords],
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
        """Begin a run of its own that goes another way from just before a visit of a node, and start it.

        It is made beside this run, and bounds and backend are this run's, unless others are given.

        Args:
            node: The node that is visited first.
            visit: Before which of its visits, by number; the latest by default.
            context: Values of the context that are others in the fork.
            prompt: The prompt of that node in the fork.
            pipeline: What goes on in place of what this run ran.
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
            return fork.result() if wait else of_kind(fork, type(self))
