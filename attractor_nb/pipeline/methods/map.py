"""``Pipeline.map``, ``map_async`` and ``resume_map``."""

from __future__ import annotations

import typing  # ``typing.overload`` by its long name: see ``start_run``
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Unpack

from attractor_nb.errors import OptionError
from attractor_nb.interrupts import HeldInterrupt, held_interrupts
from attractor_nb.lazy_imports import later
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
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from attractor_nb.maps import map_launch, map_work
    from attractor_nb.maps.map_launch import MapRequest, MapResult, MapRun
    from attractor_nb.runtime import launch
else:
    launch = later("attractor_nb.runtime.launch")
    map_launch = later("attractor_nb.maps.map_launch")
    map_work = later("attractor_nb.maps.map_work")


# ``Pipeline.map`` and ``map_async``.


class OverRows(Definition):
    """Running a pipeline over many inputs."""

    @typing.overload
    def map(
        self, params: Iterable[Mapping[str, Any]], *, wait: Literal[False] = False, **options: Unpack[MapKeywords]
    ) -> MapRun: ...
    @typing.overload
    def map(
        self, params: Iterable[Mapping[str, Any]], *, wait: Literal[True], **options: Unpack[MapKeywords]
    ) -> MapResult: ...
    @takes(MapKeywords, MapOptions, RunOptions)
    def map(
        self, params: Iterable[Mapping[str, Any]], *, wait: bool = False, **options: Unpack[MapKeywords]
    ) -> MapRun | MapResult:
        """Run this pipeline over many inputs, several at a time; each row is a separate run.

        Args:
            params: The inputs of each row: dicts, or a pandas DataFrame.
            wait: Block until the end.

        Raises:
            ValidationError: Lint found errors; nothing was run.
            OptionError, ContextValueError, StorageError: An option, a row or the directory is unusable.
            UntrustedSource: Its commands come from elsewhere and are not trusted; see ``trust``.
        """
        with held_interrupts() as interrupt:
            request = request_of(self, interrupt, is_waited_for=wait, **options)
            if wait:
                launch.refuse_own_loop(request.of_rows.host)
            handle = map_launch.start_map(self, params, request)
            return handle.result() if wait else handle

    @takes(MapKeywords, MapOptions, RunOptions, host="kernel")
    async def map_async(self, params: Iterable[Mapping[str, Any]], **options: Unpack[MapKeywords]) -> MapResult:
        """Map in the current event loop and return the result; raises as ``map`` does.

        Args:
            params: The inputs of each row: dicts, or a pandas DataFrame.
        """
        with held_interrupts() as interrupt:
            request = request_of(self, interrupt, {"host": "kernel"}, is_waited_for=True, **options)
            return await map_launch.start_map(self, params, request)


# ``Pipeline.resume_map``.


class ResumingMap(Definition):
    """Resumes maps of a pipeline."""

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
        """Resume a map: finished rows are read, not run; interrupted ones resumed, missing ones started.

        Args:
            directory: The map, or its directory.
            params: The same inputs again; they are in the directory, too.
            failed: ``keep`` the rows that failed, or ``retry`` each from the stage that it failed in.
            on_graph_change: ``error``, ``warn`` or ``accept`` when the graph is not the one that ran.
            wait: Block until the end.

        Raises:
            RunNotFound, RunLocked, GraphChanged, InputsChanged, CheckpointCorrupt: It cannot continue, and why.
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


# The options of a map: keywords parted into the map's own and those of each row.


def request_of(
    pipeline: Definition,
    interrupt: HeldInterrupt,
    defaults: Mapping[str, Any] = MappingProxyType({}),
    /,
    *,
    is_waited_for: bool,
    **given: Any,
) -> MapRequest:
    """The wish of a caller who gave these options.

    Args:
        pipeline: What is mapped.
        interrupt: Whether an interrupt came meanwhile.
        defaults: Options of the rows where none are given.
        is_waited_for: The caller blocks until the end.
        **given: The options that were given, by name.

    Raises:
        OptionError: A keyword is unknown or belongs to a single run, or a value is out of its range.
    """
    own = map_work.own_options(**given)
    for name in given.keys() & map_work.OWN:
        given.pop(name)
    options = launch.options_for(pipeline, defaults, **given)
    return map_launch.MapRequest(own, options, interrupt, is_waited_for=is_waited_for)
