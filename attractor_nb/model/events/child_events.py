"""Child runs and what supervisors tell them (spec 4.11)."""

from __future__ import annotations

from attractor_nb.model.events.event import RunEvent
from attractor_nb.model.events.stages import StageSignal
from attractor_nb.model.result_marks import ResultMarks


class ChildStarted(StageSignal, kw_only=True):
    """A stage has started a child run, or has taken up the one that it had (spec 4.11, 9.4).

    Attributes:
        child_id: Run id of the child.
        child_root: Its run directory: relative to this run's own one where it is inside.
        pipeline: Name of its pipeline.
        is_taken_up: The child run existed already.
    """

    child_id: str = ""
    child_root: str = ""
    pipeline: str = ""
    is_taken_up: bool = False

    @property
    def stage_path(self) -> str:
        """The node, in a branch ``branch/node``."""
        return f"{self.branch}/{self.name}" if self.branch else self.name

    @property
    def description(self) -> str:
        """One line for people."""
        verb = "took up" if self.is_taken_up else "started"
        return f"{self.name} {verb} the child run {self.child_id} of {self.pipeline or 'a pipeline'}"


class ChildEnded(StageSignal, kw_only=True):
    """A stage is done with its child run, which has ended or was stopped for good.

    Attributes:
        child_id: Run id of the child.
        child_root: Its run directory, as in ``ChildStarted``.
        status: ``completed``, ``failed`` or ``interrupted``.
        reason: Why it failed or was stopped, or empty.
        marks: What must be said of its result, and so of this run's (ruling 48).
    """

    child_id: str = ""
    child_root: str = ""
    status: str = ""
    reason: str = ""
    marks: ResultMarks = ResultMarks()

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.name}: child run {self.child_id} {self.status}{': ' * bool(self.reason)}{self.reason}"


class ChildSteered(StageSignal, kw_only=True):
    """A supervisor gave its child run an instruction (spec 4.11).

    Attributes:
        child_id: Run id of the child.
        child_stage: The node that was under way there, or empty.
        text: The instruction.
    """

    child_id: str = ""
    child_stage: str = ""
    text: str = ""

    @property
    def description(self) -> str:
        """One line for people."""
        where = f" at {self.child_stage}" if self.child_stage else ""
        return f"{self.name} steers its child{where}: {self.text}"


class InstructionGiven(RunEvent, kw_only=True):
    """The run's supervisor gave it an instruction, which the next prompt carries.

    Attributes:
        text: The instruction.
        given_by: The supervising node, by its path.
        stage: The node that was under way, or empty.
        file: Name of the file of that stage which holds it, or empty.
    """

    text: str = ""
    given_by: str = ""
    stage: str = ""
    file: str = ""

    @property
    def node_id(self) -> str:
        """The node that was under way, or empty."""
        return self.stage

    @property
    def description(self) -> str:
        """One line for people."""
        return f"instruction from {self.given_by or 'outside'}: {self.text}"
