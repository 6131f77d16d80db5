"""The stored form of a run's state: ``checkpoint.json`` (spec 5.3; ruling 29).

A projection of the run's log: what is here can always be rebuilt from there. This model is the only
one that says which keys a checkpoint has; importing it imports pydantic, so only readers do.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1


class CheckpointUsage(BaseModel):
    """What the run's model calls consumed so far."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cost_usd: float | None = Field(default=None, ge=0)
    calls: int = Field(default=0, ge=0)
    unpriced_calls: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0)
    estimated_calls: int = Field(default=0, ge=0)


class Checkpoint(BaseModel):
    """A snapshot of a run between two stages.

    Attributes:
        schema_version: Version of this form.
        run_id: The run.
        pipeline_name: Name of the pipeline.
        graph_hash: Content hash of the graph that ran.
        timestamp: When it was made, in seconds since 1970 (UTC).
        current_node: The last completed node; empty before the first.
        next_node: Where the run goes on; empty when it ended or when a foreign writer did not say.
        completed_nodes: All completed nodes in order, a node once per visit.
        node_retries: Retries used, by node.
        node_outcomes: Latest status, by node.
        visits: Number of visits, by node.
        context_values: The context, large values as references; ``context`` in the file.
        logs: The run log.
        usage: What model calls consumed.
        log_sequence: Number of the last record of the event log that is in here.
        log_offset: Byte offset after that record.
        state: What the traversal keeps, in its own form.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    schema_version: Literal[1] = SCHEMA_VERSION
    run_id: str = ""
    pipeline_name: str = ""
    graph_hash: str = ""
    timestamp: float
    current_node: str
    next_node: str = ""
    completed_nodes: list[str]
    node_retries: dict[str, int] = Field(default_factory=dict)
    node_outcomes: dict[str, str] = Field(default_factory=dict)
    visits: dict[str, int] = Field(default_factory=dict)
    context_values: dict[str, Any] = Field(alias="context")
    logs: list[str] = Field(default_factory=list)
    usage: CheckpointUsage = CheckpointUsage()
    log_sequence: int = Field(default=0, ge=0)
    log_offset: int = Field(default=0, ge=0)
    state: dict[str, Any] = Field(default_factory=dict)
