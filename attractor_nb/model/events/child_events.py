"""Child runs, and what supervisors and people tell a run (spec 4.11)."""

from __future__ import annotations

from attractor_nb.model.events.event import RunEvent
from attractor_nb.model.events.stages import StageSignal
from attractor_nb.model.instruction import Instruction
from attractor_nb.model.outcome import Usage
from attractor_nb.model.record import Count
from attractor_nb.model.result_marks import ResultMarks


def child_path(branch: str, node_id: str, item: int | None) -> str:
    """The path of the stage whose child run it is, or of the item.

    >>> child_path("", "review", None), child_path("fan/a", "review", 3)
    ('review', 'fan/a/review/3')
    """
    parts = (branch, node_id) if item is None else (branch, node_id, str(item))
    return "/".join(filter(None, parts))


class ChildStarted(StageSignal, kw_only=True):
    """A stage has started a child run, or has taken up the one that it had (spec 4.11, 9.4)."""

    child_id: str = ""  #: Run id of the child.
    child_root: str = ""  #: Its run directory: relative to this run's own one where it is inside.
    pipeline: str = ""  #: Name of its pipeline.
    is_taken_up: bool = False  #: The child run existed already.
    item: Count | None = None  #: The index of the item whose run it is; None for the child run of a whole stage.
    item_count: Count = 0  #: How many items the stage has.

    @property
    def stage_path(self) -> str:
        """The node, in a branch ``branch/node``, of an item ``node/index``."""
        return child_path(self.branch, self.name, self.item)

    @property
    def description(self) -> str:
        """One line for people."""
        verb = "took up" if self.is_taken_up else "started"
        what = f"of {self.pipeline or 'a pipeline'}"
        if self.item is not None:
            what = f"of item {self.item} ({self.item + 1} of {self.item_count})"
        return f"{self.name} {verb} the child run {self.child_id} {what}"


class ChildEnded(StageSignal, kw_only=True):
    """A stage is done with its child run, which has ended or was stopped for good."""

    child_id: str = ""  #: Run id of the child.
    child_root: str = ""  #: Its run directory, as in ``ChildStarted``.
    status: str = ""  #: ``completed``, ``failed`` or ``interrupted``.
    reason: str = ""  #: Why it failed or was stopped, or empty.
    marks: ResultMarks = ResultMarks()  #: What must be said of its result, and so of this run's (ruling 48).
    item: Count | None = None  #: As in ``ChildStarted``.
    usage: Usage | None = None  #: What it had consumed by then; None for nothing.

    @property
    def description(self) -> str:
        """One line for people."""
        what = f"child run {self.child_id}" if self.item is None else f"item {self.item}"
        return f"{self.name}: {what} {self.status}{': ' * bool(self.reason)}{self.reason}"


class ChildSteered(StageSignal, kw_only=True):
    """A supervisor gave its child run an instruction (spec 4.11)."""

    child_id: str = ""  #: Run id of the child.
    child_stage: str = ""  #: The node that was under way there, or empty.
    text: str = ""  #: The instruction.

    @property
    def description(self) -> str:
        """One line for people."""
        where = f" at {self.child_stage}" if self.child_stage else ""
        return f"{self.name} steers its child{where}: {self.text}"


class InstructionGiven(RunEvent, kw_only=True):
    """The run's supervisor, or a person, gave it an instruction, which the next prompt carries."""

    text: str = ""  #: The instruction.
    given_by: str = ""  #: The supervising node, by its path; or by what way a person gave it.
    stage: str = ""  #: The model stage that was under way, or empty.
    file: str = ""  #: Name of the file of that stage which holds it, or empty.
    node: str = ""  #: The node whose prompts alone carry it; empty for any.
    is_from_person: bool = False  #: A person gave it.

    @property
    def instruction(self) -> Instruction:
        """The instruction that waits for a prompt."""
        return Instruction(self.text, self.node, self.is_from_person)

    @property
    def node_id(self) -> str:
        """The node that it is for, else the one that was under way; or empty."""
        return self.node or self.stage

    @property
    def description(self) -> str:
        """One line for people."""
        whom = f" for {self.node}" if self.node else ""
        return f"instruction from {self.given_by or 'outside'}{whom}: {self.text}"


class InstructionCarried(StageSignal, kw_only=True):
    """An attempt under way received instructions that its prompt did not have."""

    numbers: tuple[Count, ...] = ()  #: Which: the first that was given in this run directory is 1.
    #: ``request``: with the next request of its loop of tools; ``turn``: as the next turn of its agent.
    reach: str = ""

    @property
    def description(self) -> str:
        """One line for people."""
        what = "an instruction" if len(self.numbers) == 1 else f"{len(self.numbers)} instructions"
        how = "as the next turn of its agent" if self.reach == "turn" else "with its next request"
        return f"{self.name} received {what} {how}"
