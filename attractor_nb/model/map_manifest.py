"""The stored description of a map: ``map.json``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from attractor_nb.model.record import Record, no_values

MapStatus = Literal["running", "resumed", "completed", "failed", "interrupted"]


class MapRow(Record, frozen=True):
    """One row of a map.

    Attributes:
        inputs: SHA-256 of its inputs as JSON.
        directory: Name of its run directory in the map's directory.
    """

    inputs: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    directory: Annotated[str, msgspec.Meta(pattern="^row-[0-9]+$")]


class MapManifest(Record, frozen=True, kw_only=True):
    """What a map runs, over what, and how it stands. Keys unknown here are no fault.

    How each row stands is said by its own run directory alone.

    Attributes:
        schema_version: Version of this form.
        map_id: The map.
        pipeline_name: Name of the pipeline.
        graph_hash: Content hash of the graph that runs.
        start_time: When it began, ISO 8601 UTC.
        end_time: When it ended; None while it goes on.
        status: How it stands.
        backend: What answers prompts, as in a run's manifest.
        backend_facts: As in a run's manifest.
        outputs: Context values that the results keep.
        is_source_redacted: ``pipeline.dot`` lacks a secret that the source had.
        rows: Its rows, in order.
    """

    schema_version: Literal[1] = 1
    map_id: str = ""
    pipeline_name: str = ""
    graph_hash: str = ""
    start_time: str = ""
    end_time: str | None = None
    status: MapStatus = "running"
    backend: str = ""
    backend_facts: dict[str, Any] = msgspec.field(default_factory=no_values)
    outputs: tuple[str, ...] = ()
    is_source_redacted: bool = False
    rows: list[MapRow]
