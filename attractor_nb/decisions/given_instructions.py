"""Which instructions of a supervisor the next prompt carries (spec 4.11).

An instruction waits from the moment it is given until a model stage whose prompt had it is committed. So
an attempt that is tried again, or run again after a crash, has it again, and no stage after that does.
It is a fold over the run's events, like the state: a resumed run knows what a live one knew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attractor_nb.model.events import InstructionGiven, StageEnd, StageStarted
from attractor_nb.model.shapes import DEFAULT_TYPE

if TYPE_CHECKING:
    from attractor_nb.model.events import Event


@dataclass(slots=True)
class WaitingInstructions:
    """Instructions that no committed prompt has carried, in the order in which they were given.

    Attributes:
        waiting: The instructions.
        last_at: When the latest of all was given, in seconds since 1970; None for never.
        count: How many were given so far.
    """

    waiting: tuple[InstructionGiven, ...] = ()
    last_at: float | None = None
    count: int = 0
    _begun: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def apply(self, event: Event) -> None:
        """Take in an event of the log, or one that was just announced."""
        if isinstance(event, InstructionGiven):
            self.waiting, self.last_at, self.count = (*self.waiting, event), event.time, self.count + 1
        elif isinstance(event, StageStarted):
            if event.handler_type == DEFAULT_TYPE and self.waiting:
                self._begun[event.branch, event.name] = event.sequence
        elif isinstance(event, StageEnd) and event.is_commit and self._begun:
            begun = self._begun.pop((event.branch, event.name), 0)
            self.waiting = tuple(given for given in self.waiting if given.sequence > begun)
