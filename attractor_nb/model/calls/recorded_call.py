"""A call on record: who made it, what went into it, what came back (docs/cassettes.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import force_setattr

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.model.calls.call_content import CallInputs

LEFT_OUT: Final = "left_out"
"""The key of an answer that could not be recorded, and why."""


class CallPlace(msgspec.Struct, frozen=True):
    """Where a call is made."""

    node_id: str  #: The stage.
    visit: int = 1  #: Ordinal of the visit.
    attempt: int = 1  #: Ordinal of the try within the visit.
    branch: str = ""  #: Path of the branch that the stage is in, or empty.
    child_of: str = ""  #: Path of the stage whose child run makes the call, or empty.

    @property
    def stage(self) -> tuple[str, str, str]:
        """The stage, whatever the visit."""
        return self.child_of, self.branch, self.node_id

    @property
    def turn(self) -> tuple[int, int]:
        """Visit and attempt."""
        return self.visit, self.attempt

    def __str__(self) -> str:
        path = "/".join(part for part in self.stage if part)
        return f"{path}, visit {self.visit}" + (f", attempt {self.attempt}" if self.attempt > 1 else "")


class RecordedCall(msgspec.Struct, frozen=True):
    """A call and its answer."""

    place: CallPlace  #: Where it was made.
    inputs: CallInputs  #: What went into it.
    answer: Mapping[str, Any]  #: What came back, as JSON values.
    digest: str = ""
    """That of the inputs."""

    def __post_init__(self) -> None:
        force_setattr(self, "digest", self.inputs.digest)

    @property
    def left_out(self) -> str:
        """Why the answer could not be recorded, or empty."""
        return str(self.answer.get(LEFT_OUT, ""))

    def __str__(self) -> str:
        return f"the {self.inputs.kind} call of {self.place}"
