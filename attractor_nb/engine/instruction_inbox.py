"""The desk where a supervisor hands in instructions for a run (spec 4.11).

An instruction is an event of the run's own log, and a file in the directory of the stage under way. It is
data for a prompt: nothing here executes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from attractor_nb.model.events import InstructionGiven, StageEnd, StageStarted
from attractor_nb.model.vocabulary.shapes import DEFAULT_TYPE
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from attractor_nb.model.events import Event
    from attractor_nb.stage import StageScope


class Instructions:
    """What a run was told, and which of its stages are under way."""

    def __init__(self, announce: Callable[[Event], None]) -> None:
        """Make the desk; ``announce`` logs an event durably and tells observers."""
        self._announce = announce
        self._fold = WaitingInstructions()
        self._under_way: list[StageScope] = []

    def recall(self, events: Iterable[Event]) -> None:
        """Take what was recorded before."""
        for event in events:
            self._fold.apply(event)

    def take(self, event: Event) -> None:
        """Take in an event; a sink of the run's stream."""
        self._fold.apply(event)

    @property
    def waiting(self) -> tuple[str, ...]:
        """What the next prompt carries."""
        return tuple(given.text for given in self._fold.waiting)

    @property
    def last_at(self) -> float | None:
        """When the latest instruction was given, in seconds since 1970; None for never."""
        return self._fold.last_at

    @property
    def active_stage(self) -> str:
        """The stage that is under way, the latest begun where there are several; else empty."""
        return self._under_way[-1].node_id if self._under_way else ""

    def enter(self, scope: StageScope) -> None:
        """An attempt begins."""
        self._under_way.append(scope)

    def leave(self, scope: StageScope) -> None:
        """An attempt is over."""
        self._under_way = [other for other in self._under_way if other is not scope]

    def give(self, text: str, given_by: str) -> str:
        """Record an instruction; from the run's own event loop.

        Returns:
            The stage in whose directory it is, or empty when none was under way.

        Raises:
            StorageError: It could not be recorded.
        """
        text = redacted(text)
        scope = self._under_way[-1] if self._under_way else None
        name = f"instruction-{self._fold.count + 1}.md" if scope else ""
        if scope is not None:
            scope.files.write_text(name, text)
        stage = scope.node_id if scope else ""
        event = InstructionGiven(text=text, given_by=given_by, stage=stage, file=name)
        event.branch = scope.branch if scope else ""
        self._announce(event)
        return stage


class WaitingInstructions(msgspec.Struct):
    """Instructions that no committed prompt has carried, in the order in which they were given.

    An instruction waits from the moment it is given until a model stage whose prompt had it is committed. So
    an attempt that is tried again, or run again after a crash, has it again, and no stage after that does.
    It is a fold over the run's events, like the state: a resumed run knows what a live one knew.

    Attributes:
        waiting: The instructions.
        last_at: When the latest of all was given, in seconds since 1970; None for never.
        count: How many were given so far.
    """

    waiting: tuple[InstructionGiven, ...] = ()
    last_at: float | None = None
    count: int = 0
    _begun: dict[tuple[str, str], int] = {}

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
