"""``RunRow.resume``."""

from __future__ import annotations

import typing  # ``typing.overload`` by its long name: see ``start_run``
from typing import TYPE_CHECKING, Any, Literal, Unpack

from attractor_nb.errors import RunError
from attractor_nb.runtime.prepare.run_options import ResumeKeywords, takes
from attractor_nb.storage.map_directory import continue_call
from attractor_nb.storage.run_listing import RunSummary

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.pipeline.run import Run
    from attractor_nb.runtime.handles.run_result import RunResult


class Resumable(RunSummary):
    """A line of ``runs()`` whose run can continue."""

    __slots__ = ()

    @typing.overload
    def resume(
        self,
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
        *,
        on_graph_change: str = "error",
        rewind_to: str | None = None,
        visit: int | None = None,
        context: Mapping[str, Any] | None = None,
        prompt: str | None = None,
        wait: bool = False,
        **options: Unpack[ResumeKeywords],
    ) -> Run | RunResult:
        """Resume it; see ``Pipeline.resume``.

        Args:
            on_graph_change: ``error``, ``warn`` or ``accept`` when the graph is not the one that ran.
            rewind_to: The node to go back to.
            visit: Before which of its visits, by number; the latest by default.
            context: With ``rewind_to``: values of the context that are others from there on.
            prompt: With ``rewind_to``: the prompt of that node from there on, in this run.
            wait: Block until the end, and return the result in place of the handle.

        Raises:
            RunError: It is a map, it runs, or it has ended.
        """
        from attractor_nb.pipeline.run import Run  # noqa: PLC0415 - a list needs no engine

        if self.is_map:
            article = "an" if self.kind == "evaluation" else "a"
            hint = f"{continue_call(self.logs_root, 'directory')} resumes it"
            raise RunError(f"{self.logs_root} is {article} {self.kind}", hint=hint)
        target: dict[str, Any] = {"rewind_to": rewind_to, "visit": visit, "context": context, "prompt": prompt}
        return Run.load(self.logs_root).resume(on_graph_change=on_graph_change, wait=wait, **target, **options)
