"""The stored description of a run: ``manifest.json`` (spec 5.6; run-directory.md; ruling 30).

"Finished" is what ``status`` says here, never inferred from what lies about.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from attractor_nb.model.outcome import Usage
from attractor_nb.model.record import Count, Record, no_values

RunStatus = Literal["running", "resumed", "completed", "failed", "interrupted", "paused", "restarted"]


class Manifest(Record, frozen=True):
    """What a run is and how it stands. Keys unknown here are no fault.

    Attributes:
        schema_version: Version of this form.
        run_id: The run.
        pipeline_name: Name of the pipeline.
        goal: The pipeline's goal.
        graph_hash: Content hash of the graph that runs.
        start_time: When execution began, ISO 8601 UTC.
        end_time: When it ended; None while it goes on.
        status: How it stands.
        start_node: The start node.
        node_count: Number of nodes.
        model: Default model, or None.
        stage_directories: Directory names of the stages whose name is not the node's id.
        restart_of: Run directory of the run that this one continues after a ``loop_restart``, relative.
        restarted_as: Run directory that continues this one, relative.
        fork_of: Of a fork: ``run_id`` and ``directory`` of its parent, and the ``node``, the ``visit`` and
            the ``sequence`` of the parent's log before which it begins.
        continued_from: Run directory of the older layout whose checkpoint this run went on from.
        backend: What answered prompts: ``simulated``, ``local``, or a description of a backend of the
            caller's own.
        backend_facts: What models of providers were asked with, so that a resume asks the same ones at the
            same addresses; no keys. Empty for other backends.
        is_simulated: Prompts of it were answered by nobody: what models said in it is made up.
        bounds: Bounds that the caller gave in place of the graph's; a resume keeps them, unless given others.
        log_sequence: Number of a record that the log had for good when this was written: a log that ends
            before it has lost records.
        source_path: File that the pipeline was read from, absolute; empty when it came from elsewhere.
        is_source_redacted: ``pipeline.dot`` lacks a secret that the source had: it is not the graph that ran.
        duration: Seconds of running time at its latest end; None when it has had none, or did not say.
        stages: Stages committed by then, likewise.
        usage: What model calls had consumed by then, likewise.
    """

    schema_version: Literal[1] = 1
    run_id: str = ""
    pipeline_name: str = ""
    goal: str = ""
    graph_hash: str = ""
    start_time: str = ""
    end_time: str | None = None
    status: RunStatus = "running"
    start_node: str = ""
    node_count: Count = 0
    model: str | None = None
    stage_directories: dict[str, str] = msgspec.field(default_factory=no_values)
    restart_of: str = ""
    restarted_as: str = ""
    fork_of: dict[str, str | int] = msgspec.field(default_factory=no_values)
    continued_from: str = ""
    backend: str = ""
    backend_facts: dict[str, Any] = msgspec.field(default_factory=no_values)
    is_simulated: bool = False
    bounds: dict[str, int | float | str] = msgspec.field(default_factory=no_values)
    log_sequence: Count = 0
    source_path: str = ""
    is_source_redacted: bool = False
    duration: Annotated[float, msgspec.Meta(ge=0)] | None = None
    stages: Count | None = None
    usage: Usage | None = None
