"""``Pipeline.resume_map``."""

from __future__ import annotations

import typing  # ``typing.overload`` by its long name: see ``start_run``
from typing import TYPE_CHECKING, Any, Literal, Unpack

from attractor_nb.errors import OptionError
from attractor_nb.interrupts import held_interrupts
from attractor_nb.lazy_imports import later
from attractor_nb.pipeline.methods.map_request import request_of
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import MapOptions, ResumeMapKeywords, RunOptions, as_path, takes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from attractor_nb.maps import map_launch
    from attractor_nb.maps.map_result import MapResult, MapRun
    from attractor_nb.runtime import launch
else:
    launch = later("attractor_nb.runtime.launch")
    map_launch = later("attractor_nb.maps.map_launch")


class ResumingMap(Definition):
    """Going on with maps of a pipeline."""

    @typing.overload
    def resume_map(
        self,
        directory: str | Path | MapRun | MapResult,
        *,
        params: Iterable[Mapping[str, Any]] | None = None,
        failed: str = "keep",
        on_graph_change: str = "error",
        wait: Literal[False] = False,
        **options: Unpack[ResumeMapKeywords],
    ) -> MapRun: ...
    @typing.overload
    def resume_map(
        self,
        directory: str | Path | MapRun | MapResult,
        *,
        params: Iterable[Mapping[str, Any]] | None = None,
        failed: str = "keep",
        on_graph_change: str = "error",
        wait: Literal[True],
        **options: Unpack[ResumeMapKeywords],
    ) -> MapResult: ...
    @takes(ResumeMapKeywords, MapOptions, RunOptions)
    def resume_map(
        self,
        directory: str | Path | MapRun | MapResult,
        *,
        params: Iterable[Mapping[str, Any]] | None = None,
        failed: str = "keep",
        on_graph_change: str = "error",
        wait: bool = False,
        **options: Unpack[ResumeMapKeywords],
    ) -> MapRun | MapResult:
        """Go on with a map: finished rows are read, not run; interrupted ones resumed, missing ones started.

        Args:
            directory: The map, or its directory.
            params: The same inputs again; they are in the directory, too.
            failed: ``keep`` the rows that failed, or ``retry`` each from the stage that it failed in.
            on_graph_change: ``error``, ``warn`` or ``accept`` when the graph is not the one that ran.
            wait: Block until the end.

        Raises:
            RunNotFound, RunLocked, GraphChanged, InputsChanged, CheckpointCorrupt: It cannot go on, and why.
            OptionError: An option is unusable, or nothing of the map was kept.
            UntrustedSource: The pipeline's commands come from elsewhere and are not trusted.
        """
        place = getattr(directory, "directory", directory)
        if place is None:
            raise OptionError('nothing of the map is kept, for its durability was "none"', hint="start it anew")
        with held_interrupts() as interrupt:
            request = request_of(self, interrupt, is_waited_for=wait, **options)
            if wait:
                launch.refuse_own_loop(request.of_rows.host)
            handle = map_launch.continue_map(
                self, as_path(place), params, request, on_graph_change=on_graph_change, failed=failed
            )
            return handle.result() if wait else handle
