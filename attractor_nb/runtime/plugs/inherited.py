"""What a run inherits from whoever starts it: a parent's people, a map's workers, a cassette."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from attractor_nb.runtime.plugs.chosen_plugs import has_interviewer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attractor_nb.cassettes import Tape
    from attractor_nb.engine.debug_control import Debugging
    from attractor_nb.engine.funds import Funds
    from attractor_nb.engine.gates import Gates
    from attractor_nb.model.question import Answer, Question
    from attractor_nb.protocols import CodergenBackend, RunStore
    from attractor_nb.runtime.prepare.run_options import RunOptions
    from attractor_nb.runtime.workspace.workspace import Workspace
    from attractor_nb.workers.shipping import Shipping


CHILD_OF: Final = "child_of"
"""The entry of a question's metadata that names the stage whose child run asks."""


class Above(Struct, frozen=True):
    """What a child run knows of its parent."""

    debugging: Debugging  #: The parent's debugger.
    node_id: str  #: The stage whose child it is.
    #: Gives the stores of the parent and of those above it, the nearest first.
    stores: Callable[[], tuple[RunStore, ...]]


class Inherited(Struct, frozen=True):
    """What a run does not make for itself, because its caller has it for several runs."""

    backend: CodergenBackend | None = None  #: One that is open already, for a run without an executor.
    shipping: Shipping | None = None  #: The way to workers, open already.
    workspace: Workspace | None = None  #: Of a child: its parent's place, when it works there; else its own.
    tape: Tape | None = None  #: What its calls are recorded on or replayed from. Who made it for several runs ends it.
    #: Of a child, which a stage of another run has started and may steer: what it knows of that.
    above: Above | None = None
    funds: Funds | None = None  #: Of a child or a row of a map: what it may spend, with others.


class InheritedInterviewer:
    """Puts a child's questions through its parent's gates, to the same people.

    The parent's log has question and answer, too; there the stage is the child's node by its path, such as
    ``boss/approve``.

    Attributes:
        refuses_all: Nobody is there to be asked.
    """

    def __init__(self, gates: Gates, options: RunOptions, within: str, path: str) -> None:
        self.refuses_all = not has_interviewer(options)
        self._gates = gates
        self._within = within
        self._path = path

    async def ask(self, question: Question) -> Answer:
        """Put a question and wait for its answer."""
        return await self._gates.ask(self._marked(question))

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """Put several questions, one after the other."""
        return [await self.ask(question) for question in questions]

    async def inform(self, message: str, stage: str) -> None:
        """Tell people something."""
        await self._gates.inform(message, f"{self._path}/{stage}")

    def _marked(self, question: Question) -> Question:
        return replace(
            question,
            id=f"{self._within}/{question.id or question.stage}",
            stage=f"{self._path}/{question.stage}",
            metadata={**question.metadata, CHILD_OF: self._path},
        )
