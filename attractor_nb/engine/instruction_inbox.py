"""The inbox where a supervisor, or a person, hands in instructions for a run (spec 4.11).

An instruction is an event of the run's own log, and a file in the directory of the model stage under way. It is
data for a prompt: nothing here executes it.
"""

from __future__ import annotations

from functools import cached_property
from textwrap import shorten
from typing import TYPE_CHECKING, Final

from attractor_nb.lazy_imports import later
from attractor_nb.model.calls.call_content import with_instructions, with_messages
from attractor_nb.model.events import (
    Event,
    InstructionCarried,
    InstructionGiven,
    PipelineStarted,
    StageCompleted,
    StageFailed,
    StageStarted,
)
from attractor_nb.model.instruction import Instruction, InstructionReceipt
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attractor_nb.decisions import waiting_instructions
    from attractor_nb.engine.event_stream import EventStream
    from attractor_nb.model.graph import Graph
    from attractor_nb.stage import StageScope
else:
    waiting_instructions = later("attractor_nb.decisions.waiting_instructions")  # most runs are told nothing

_FOLDED: Final = (InstructionGiven, InstructionCarried, PipelineStarted, StageStarted, StageCompleted, StageFailed)


class Instructions:
    """The instructions to a run, and its stages under way (``stage.InstructionSource``).

    A run without instructions has no cost: its events are folded from the first instruction on.

    Attributes:
        is_used: The run has received an instruction.
        is_over: The run has ended: it accepts no more instructions.
        under_way: The attempts under way by their identities, the latest begun last.
    """

    def __init__(self, stream: EventStream, graph: Graph) -> None:
        """Make the inbox of a run: its events, and the graph that runs."""
        self.is_used = False
        self.is_over = False
        self.under_way: dict[int, StageScope] = {}
        self._stream = stream
        self._graph = graph

    @cached_property
    def _fold(self) -> waiting_instructions.WaitingInstructions:
        return waiting_instructions.WaitingInstructions()

    def recall(self, events: Iterable[Event]) -> None:
        """Take what was recorded before."""
        for event in events:
            self._fold.apply(event)
        if self._fold.count:
            self._use()

    def _use(self) -> None:
        if not self.is_used:
            self.is_used = True
            self._stream.add_sink(self._fold.apply, *_FOLDED)

    @property
    def waiting(self) -> tuple[Instruction, ...]:
        """The instructions that no committed prompt has carried."""
        return tuple(self._fold.waiting.values()) if self.is_used else ()

    @property
    def undelivered(self) -> list[str]:
        """A warning for each message of a person that no model received before the run ended."""
        return [
            f"no model received the message to {told.node or 'the run'} before the run ended: "
            f"{shorten(told.text, 80, placeholder=' …')}"
            for told in self.waiting
            if told.is_from_person
        ]

    @property
    def steered_at(self) -> float | None:
        """When a supervisor gave the latest instruction, in seconds since 1970; None for never."""
        return self._fold.steered_at

    @property
    def active_stage(self) -> str:
        """The stage that is under way, the latest begun where there are several; else empty."""
        return next((scope.node_id for scope in reversed(self.under_way.values())), "")

    def texts_for(self, node: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The instructions that the next prompt of a node carries: of supervisors, and of users."""
        return _by_giver(self._fold.of(node))

    def tell(self, node: str | None, text: object, given_by: str) -> InstructionReceipt:
        """Record what a person tells the run; from its own event loop.

        Args:
            node: The node whose prompts alone carry it; None for any.
            text: What it says.
            given_by: By what way it came, for the record.
        """
        said = waiting_instructions.check_instruction(self._graph, node, text)
        return self._give(said, given_by, node or "", is_from_person=True)

    def steer(self, text: str, given_by: str) -> str:
        """Record an instruction of a supervisor; from the run's own event loop.

        Returns:
            The stage in whose directory it is, or empty when none was under way.
        """
        return self._give(text, given_by).stage

    def _give(self, text: str, given_by: str, node: str = "", *, is_from_person: bool = False) -> InstructionReceipt:
        text = redacted(text)
        scope = self._receiver(node)
        name = f"instruction-{self._fold.count + 1}.md" if scope else ""
        if scope is not None:
            scope.files.write_text(name, text)
        stage = scope.node_id if scope else ""
        event = InstructionGiven(
            text=text, given_by=given_by, stage=stage, file=name, node=node, is_from_person=is_from_person
        )
        event.branch = scope.branch if scope else ""
        self._use()
        self._stream.announce(event, is_synced=True)
        reach = scope.reach if scope is not None and scope.reach else "attempt" if node else "prompt"
        return InstructionReceipt(text, node, stage, reach)

    def _receiver(self, node: str) -> StageScope | None:
        """The attempt under way to which an instruction belongs: one that can receive it still, else the latest."""
        found = [scope for scope in reversed(self.under_way.values()) if node in {"", scope.node_id}]
        return next((scope for scope in found if scope.reach), found[0] if found else None)

    def carry(self, scope: StageScope) -> str:
        """The instructions new to an attempt under way, as sections of a prompt; their delivery is recorded."""
        found = self._fold.not_had(scope.branch, scope.node_id)
        if not found:
            return ""
        scope.announce(InstructionCarried(**scope.place, numbers=tuple(found), reach=scope.reach))
        steered, told = _by_giver(found.values())
        text = with_messages(with_instructions("", steered), told)
        scope.told += text
        return text.strip()


def _by_giver(instructions: Iterable[Instruction]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts of supervisors, and those of users."""
    given = tuple(instructions)
    return (
        tuple(one.text for one in given if not one.is_from_person),
        tuple(one.text for one in given if one.is_from_person),
    )
