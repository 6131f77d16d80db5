"""The totals of a run that survive restarts and rewinds, as records keep them (rulings 18, 21)."""

from __future__ import annotations

import msgspec

from attractor_nb.model.instruction import Instruction
from attractor_nb.model.outcome import Usage
from attractor_nb.model.record import Count, Record, always
from attractor_nb.model.result_marks import ResultMarks


class SurvivingTotals(Record, frozen=True):
    """The totals that keep bounds effective for the whole run and visit numbers unique."""

    restarts: Count = always(0)  #: How many ``loop_restart`` edges were taken.
    elapsed_seconds: float = always(0.0)  #: Running time.
    usage: Usage = msgspec.field(default_factory=Usage)  #: What all attempts consumed.
    usage_by_node: dict[str, Usage] = always({})  #: The same by node.
    visits: dict[str, Count] = always({})  #: The highest visit number of each node that was used up.
    #: The same in each branch, by its path; records of before know no branches.
    branch_visits: dict[str, dict[str, Count]] = always({})
    branch_steps: Count = always(0)  #: Stages that branches committed.
    #: Of a restart the nodes that had not succeeded before it: a goal gate among them must be executed again (ruling
    #: 45).
    unsatisfied: tuple[str, ...] = ()
    marks: ResultMarks = ResultMarks()  #: Of a restart: what must be said of the results before it (ruling 48).
    instructions: tuple[Instruction, ...] = ()  #: Of a restart: those that no committed prompt had carried before it.
