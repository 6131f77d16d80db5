"""What a run lends to its child runs: its people, and what starts its commands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor_nb.errors import OptionError
from attractor_nb.pipeline.asking import is_somebody_asked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.engine.gates import Gates
    from attractor_nb.model.question import Answer, Question
    from attractor_nb.pipeline.options import RunOptions
    from attractor_nb.protocols import CommandResult, Processes


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


class InDirectory:
    """Starts commands in a directory unless they name one (``stack.child_workdir``)."""

    def __init__(self, processes: Processes, directory: Path) -> None:
        self._processes = processes
        self._directory = directory
        self.starts_nothing = getattr(processes, "starts_nothing", False)

    async def run(
        self, command: str | Sequence[str], *, cwd: Path | None = None, **options: Any
    ) -> CommandResult:
        """Run a command; see ``protocols.Processes``."""
        return await self._processes.run(command, cwd=cwd or self._directory, **options)


def inside(processes: Processes, workdir: str) -> Processes:
    """What starts a child's commands, in the directory that the graph names for them.

    Raises:
        OptionError: There is no such directory.
    """
    if not workdir.strip():
        return processes
    directory = Path.cwd() / workdir
    if not directory.is_dir():
        raise OptionError(
            f'stack.child_workdir "{workdir}" is no directory in {Path.cwd()}',
            hint="make it before this stage, or mend it",
        )
    return InDirectory(processes, directory.resolve())
