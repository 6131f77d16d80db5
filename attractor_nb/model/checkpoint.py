"""The stored form of a run's state: ``checkpoint.json`` (spec 5.3; ruling 29).

A projection of the run's log: what is here can always be rebuilt from there. This is the only place that
says which keys a checkpoint has.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from attractor_nb.model.outcome import Usage
from attractor_nb.model.record import Count, Record, no_values


class Checkpoint(Record, frozen=True, kw_only=True):
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
        state: What the traversal keeps, in its own form (``decisions.kept_state``).
    """

    schema_version: Literal[1] = 1
    run_id: str = ""
    pipeline_name: str = ""
    graph_hash: str = ""
    timestamp: float
    current_node: str
    next_node: str = ""
    completed_nodes: list[str]
    node_retries: dict[str, int] = msgspec.field(default_factory=no_values)
    node_outcomes: dict[str, str] = msgspec.field(default_factory=no_values)
    visits: dict[str, int] = msgspec.field(default_factory=no_values)
    context_values: dict[str, Any] = msgspec.field(name="context")
    logs: tuple[str, ...] = ()
    usage: Usage = Usage()
    log_sequence: Count = 0
    log_offset: Count = 0
    state: dict[str, Any] = msgspec.field(default_factory=no_values)
