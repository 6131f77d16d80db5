"""Instructions to a live run from a supervising stage or a person: bounds and receipts."""

from __future__ import annotations

from typing import Final, Literal

from attractor_nb.model.record import Record

MAX_INSTRUCTION: Final = 20_000
"""Characters of one instruction: it is whole in prompts and in the log."""
Reach = Literal["request", "turn", "attempt", "prompt"]
"""Way in which an instruction reaches a model: see ``InstructionReceipt``."""


class Instruction(Record, frozen=True):
    """An instruction that waits for a prompt."""

    text: str  #: Its text, without secrets.
    node: str = ""  #: The node whose prompts alone carry it; empty for any.
    is_from_person: bool = False  #: A person gave it, and no supervising stage.

    def is_for(self, node: str) -> bool:
        """True if prompts of a node carry it."""
        return self.node in {"", node}


class InstructionReceipt(Record, frozen=True):
    """The delivery of an instruction to a model; its text describes it in words."""

    text: str  #: The instruction as it was recorded: without secrets.
    node: str = ""  #: The node that it is for; empty for any.
    stage: str = ""  #: The model stage under way to which it belongs, or empty.
    #: ``request``: the stage under way receives it before its next request to the model; ``turn``: as the next turn of
    #: its agent; ``attempt``: the next attempt of ``node`` carries it; ``prompt``: the next prompt of the run does.
    reach: Reach = "prompt"

    @property
    def words(self) -> str:
        """``queued for the next attempt of plan``, and the like."""
        match self.reach:
            case "request":
                return f"{self.stage} receives it with its next request"
            case "turn":
                return f"{self.stage} receives it as the next turn of its agent"
            case "attempt":
                return f"queued for the next attempt of {self.node}"
            case "prompt":
                return "queued for the next prompt"

    def facts(self) -> dict[str, str | None]:
        """All of it as JSON values, its words too."""
        return {
            "text": self.text,
            "node": self.node or None,
            "stage": self.stage or None,
            "reach": self.reach,
            "words": self.words,
        }

    def __str__(self) -> str:
        return self.words
