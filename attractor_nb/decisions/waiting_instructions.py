"""The instructions of a run that no committed prompt has carried, and the check of new ones (pure).

An instruction waits from the moment it is given until a model stage commits that received it: in its prompt, or
between two of its requests. So an attempt that is tried again, or run again after a crash, receives it again. No
stage after that does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from attractor_nb.errors import OptionError
from attractor_nb.model.events import (
    Event,
    InstructionCarried,
    InstructionGiven,
    PipelineStarted,
    StageEnd,
    StageStarted,
)
from attractor_nb.model.events.logged_events import LoggedEvents
from attractor_nb.model.instruction import MAX_INSTRUCTION, Instruction
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.shapes import DEFAULT_TYPE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attractor_nb.model.graph import Graph

_MAX_NAMED = 20


class WaitingInstructions(msgspec.Struct):
    """A fold over the run's events, like the state: a resumed run knows what a live one knew."""

    #: The instructions that wait, by number, in the order in which they were given.
    waiting: dict[int, Instruction] = {}
    steered_at: float | None = None  #: When a supervisor gave the latest, in seconds since 1970; None for never.
    count: int = 0  #: Number of instructions so far; the number of the latest.
    _had: dict[tuple[str, str], set[int]] = {}
    """Instructions that the running attempt of each stage received, by branch and node."""

    def apply(self, event: Event) -> None:
        """Take in an event of the log, or one that was just announced."""
        match event:
            case InstructionGiven():
                self.count += 1
                self.waiting[self.count] = event.instruction
                if not event.is_from_person:
                    self.steered_at = event.time
            case InstructionCarried(branch=branch, name=name, numbers=numbers):
                self._had.setdefault((branch, name), set()).update(numbers)
            case StageStarted(branch=branch, name=name, handler_type=kind):
                had = {number for number, given in self.waiting.items() if given.is_for(name)}
                self._had[branch, name] = had if kind == DEFAULT_TYPE else set()
            case StageEnd(branch=branch, name=name) if event.is_commit:
                for number in self._had.pop((branch, name), ()):
                    self.waiting.pop(number, None)
            case PipelineStarted(carried=carried) if carried is not None:  # a restart, which has its own log
                self.waiting = dict(enumerate(carried.instructions, 1))
                self.count = len(self.waiting)
                self._had = {}
            case _:
                pass

    def of(self, node: str) -> tuple[Instruction, ...]:
        """The instructions that the next prompt of a node carries."""
        return tuple(given for given in self.waiting.values() if given.is_for(node))

    def had(self, branch: str, node: str) -> Sequence[int]:
        """The numbers of those that the attempt of a stage under way has had, in order."""
        return sorted(self._had.get((branch, node), ()))

    def not_had(self, branch: str, node: str) -> dict[int, Instruction]:
        """The instructions that the attempt of a stage under way has not received yet, by number."""
        had = self._had.get((branch, node), ())
        return {number: given for number, given in self.waiting.items() if number not in had and given.is_for(node)}


class HeardInstruction(msgspec.Struct, frozen=True):
    """An instruction as an attempt saw it."""

    text: str  #: Its text.
    given_by: str = ""  #: Source of the instruction: a person or a channel.
    time: float = 0.0  #: When, in seconds since 1970; 0 where only a restart carried it on.
    reach: str = ""  #: ``prompt``, ``request`` or ``turn``: how the attempt received it; empty when it did not.


Heard = dict[tuple[str, str, int, int], dict[int, HeardInstruction]]
"""By branch, node, visit and attempt: instructions by number."""


def heard_by_attempts(counted: Iterable[Event]) -> Heard:
    """The instructions given for each attempt, received or not; of the events of one run directory."""
    events = LoggedEvents.of(counted)
    found: Heard = {}
    starts = events.select(PipelineStarted)
    if not events.select(InstructionGiven) and not any(one.carried and one.carried.instructions for one in starts):
        return found
    fold, given = WaitingInstructions(), dict[int, HeardInstruction]()
    latest: dict[str, tuple[str, str, int, int]] = {}
    for event in events:
        fold.apply(event)
        match event:
            case PipelineStarted():
                given = {number: HeardInstruction(one.text) for number, one in fold.waiting.items()}
            case InstructionGiven(text=text, given_by=given_by, time=time):
                given[fold.count] = HeardInstruction(text, given_by, time)
                if key := latest.get(event.stage):
                    found.setdefault(key, {})[fold.count] = given[fold.count]
            case StageStarted(branch=branch, name=name) if event.handler_type == DEFAULT_TYPE:
                key = latest[name] = (branch, name, event.visit, event.attempt)
                if numbers := fold.had(branch, name):
                    found[key] = {number: structs.replace(given[number], reach="prompt") for number in numbers}
            case InstructionCarried(branch=branch, name=name, numbers=numbers):
                heard = found.setdefault((branch, name, event.visit, event.attempt), {})
                heard.update({number: structs.replace(given[number], reach=event.reach) for number in numbers})
            case _:
                pass
    return found


def check_instruction(graph: Graph, node: str | None, text: object) -> str:
    """The text of an instruction that may be given.

    Args:
        graph: The graph that runs.
        node: The node that it is for; None or empty for any.
        text: What it says.
    """
    if not isinstance(text, str):
        raise OptionError(
            f"an instruction must be text, not {type(text).__name__}", hint='run.tell("plan", "Use two nails")'
        )
    if not text.strip():
        raise OptionError("the instruction is empty", hint='run.tell("plan", "Use two nails")')
    if len(text) > MAX_INSTRUCTION:
        raise OptionError(
            f"the instruction has {len(text):,} characters, and at most {MAX_INSTRUCTION:,} are allowed",
            hint="put the rest into a file where the stage works, and name that file",
        )
    stages = model_stages(graph)
    if not stages:
        raise OptionError("no stage of this pipeline asks a model, so none accepts a message")
    if not node or node in stages:
        return text
    listed = ", ".join(stages[:_MAX_NAMED]) + (" …" if len(stages) > _MAX_NAMED else "")
    if node not in graph.nodes:
        raise OptionError(
            f"the pipeline has no node {node[:80]!r}{did_you_mean(node, graph.nodes)}", hint=f"model stages: {listed}"
        )
    raise OptionError(
        f"{node} asks no model: it is a stage of type {graph.handler_types[node]}", hint=f"model stages: {listed}"
    )


def model_stages(graph: Graph) -> Sequence[str]:
    """The nodes whose prompts carry instructions."""
    return [node for node, kind in graph.handler_types.items() if kind == DEFAULT_TYPE]
