"""``Pipeline.map`` and ``map_async``."""

from __future__ import annotations

import typing  # ``typing.overload`` by its long name: see ``start_run``
from typing import TYPE_CHECKING, Any, Literal, Unpack

from attractor_nb.interrupts import held_interrupts
from attractor_nb.lazy_imports import later
from attractor_nb.pipeline.methods.map_request import request_of
from attractor_nb.runtime.definition import Definition
from attractor_nb.runtime.prepare.run_options import MapKeywords, MapOptions, RunOptions, takes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from attractor_nb.maps import map_launch
    from attractor_nb.maps.map_result import MapResult, MapRun
    from attractor_nb.runtime import launch
else:
    launch = later("attractor_nb.runtime.launch")
    map_launch = later("attractor_nb.maps.map_launch")


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
        """Run this pipeline over many inputs, several at a time; each row is a run of its own.

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
