"""The stored description of a map: ``map.json``. Importing this imports pydantic, so only readers do."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MapStatus = Literal["running", "resumed", "completed", "failed", "interrupted"]


class MapRow(BaseModel):
    """One row of a map.

    Attributes:
        inputs: SHA-256 of its inputs as JSON.
        directory: Name of its run directory in the map's directory.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    inputs: str = Field(pattern="^[0-9a-f]{64}$")
    directory: str = Field(pattern="^row-[0-9]+$")


class MapManifest(BaseModel):
    """What a map runs, over what, and how it stands. Keys unknown here are kept.

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

    model_config = ConfigDict(frozen=True, extra="allow")

    schema_version: Literal[1] = 1
    map_id: str = ""
    pipeline_name: str = ""
    graph_hash: str = ""
    start_time: str = ""
    end_time: str | None = None
    status: MapStatus = "running"
    backend: str = ""
    backend_facts: dict[str, Any] = Field(default_factory=dict)
    outputs: list[str] = Field(default_factory=list)
    is_source_redacted: bool = False
    rows: list[MapRow]
