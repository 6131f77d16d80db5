"""The stored form of a run's state: ``checkpoint.json`` and the totals that survive restarts (spec 5.3).

A projection of the run's log: what is here can always be rebuilt from there. This is the only place that
says which keys a checkpoint has.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from attractor_nb.model.instruction import Instruction
from attractor_nb.model.outcome import ResultMarks, Usage
from attractor_nb.model.record import Count, Record, always, no_values


class Checkpoint(Record, frozen=True, kw_only=True):
    """A snapshot of a run between two stages."""

    schema_version: Literal[1] = 1  #: Version of this form.
    run_id: str = ""  #: The run.
    pipeline_name: str = ""  #: Name of the pipeline.
    graph_hash: str = ""  #: Content hash of the graph that ran.
    timestamp: float  #: When it was made, in seconds since 1970 (UTC).
    current_node: str  #: The last completed node; empty before the first.
    next_node: str = ""  #: Node where the run continues; empty when it ended or when a foreign writer named none.
    completed_nodes: list[str]  #: All completed nodes in order, a node once per visit.
    node_retries: dict[str, int] = msgspec.field(default_factory=no_values)  #: Retries used, by node.
    node_outcomes: dict[str, str] = msgspec.field(default_factory=no_values)  #: Latest status, by node.
    visits: dict[str, int] = msgspec.field(default_factory=no_values)  #: Number of visits, by node.
    #: The context, large values as references; ``context`` in the file.
    context_values: dict[str, Any] = msgspec.field(name="context")
    logs: tuple[str, ...] = ()  #: The run log.
    usage: Usage = Usage()  #: Usage of model calls.
    log_sequence: Count = 0  #: Number of the last record of the event log that is in here.
    log_offset: Count = 0  #: Byte offset after that record.
    #: State of the traversal, in its own form (``decisions.kept_state``).
    state: dict[str, Any] = msgspec.field(default_factory=no_values)


# The totals of a run that survive restarts and rewinds, as records keep them (rulings 18, 21).


EdgeKey = tuple[str, str, int]
"""An edge that a run took: its source, its target, its position among the graph's edges."""
TakenEdge = tuple[str, str, Count, Count]
"""The same, and the number of times that it was taken."""


class SurvivingTotals(Record, frozen=True):
    """The totals that keep bounds effective for the whole run and visit numbers unique."""

    restarts: Count = always(0)  #: Number of ``loop_restart`` edges that were taken.
    elapsed_seconds: float = always(0.0)  #: Running time.
    usage: Usage = msgspec.field(default_factory=Usage)  #: Usage of all attempts.
    usage_by_node: dict[str, Usage] = always({})  #: The same by node.
    visits: dict[str, Count] = always({})  #: The highest visit number of each node that was used up.
    #: The same in each branch, by its path; records of before know no branches.
    branch_visits: dict[str, dict[str, Count]] = always({})
    branch_steps: Count = always(0)  #: Stages that branches committed.
    #: Of a restart the nodes that had not succeeded before it: a goal gate among them must be executed again (ruling
    #: 45).
    unsatisfied: tuple[str, ...] = ()
    taken: tuple[TakenEdge, ...] = ()  #: Of a restart: the edges that were taken before it, for their `max_taken`.
    marks: ResultMarks = ResultMarks()  #: Of a restart: what must be said of the results before it (ruling 48).
    instructions: tuple[Instruction, ...] = ()  #: Of a restart: those that no committed prompt had carried before it.
