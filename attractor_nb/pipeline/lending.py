"""What a run lends to its child runs: its people."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from attractor_nb.pipeline.asking import is_somebody_asked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.engine.gates import Gates
    from attractor_nb.model.question import Answer, Question
    from attractor_nb.pipeline.options import RunOptions


class LentInterviewer:
    """Puts a child's questions through its parent's gates, to the same people.

    The parent's log has question and answer, too; there the stage is the child's node by its path, such as
    ``boss/approve``.

    Attributes:
        refuses_all: Nobody is there to be asked.
    """

    def __init__(self, gates: Gates, options: RunOptions, within: str, path: str) -> None:
        self.refuses_all = not is_somebody_asked(options)
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
            metadata={**question.metadata, "child_of": self._path},
        )
