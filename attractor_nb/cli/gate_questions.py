"""Who answers gates on a command line, and when a question may take the screen."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, NoReturn, Protocol

from attractor_nb.cli.option_choices import GateMode
from attractor_nb.decisions.answers.form_answers import form_words
from attractor_nb.errors import TerminalError
from attractor_nb.interviewers import AutoApproveInterviewer, ConsoleInterviewer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.cli.progress import ProgressDisplay
    from attractor_nb.model.question import Answer, Question


class _Asks(Protocol):
    """What all interviewers used here can do."""

    async def ask(self, question: Question) -> Answer: ...
    async def inform(self, message: str, stage: str) -> None: ...


def gate_interviewer(mode: GateMode | None, progress: ProgressDisplay) -> InTurn:
    """Who answers gates. Without a terminal and without a word from the user: nobody.

    Args:
        mode: What the user said, or None.
        progress: What is on the screen before a question.
    """
    if mode is GateMode.AUTO:
        return InTurn(AutoApproveInterviewer(), progress)
    console = ConsoleInterviewer()
    if mode is GateMode.CONSOLE or (mode is None and console.is_terminal):
        return InTurn(console, progress, is_piped=not console.is_terminal)
    return InTurn(_Nobody(), progress)


class InTurn:
    """Asks when all that happened before the question is on the screen, so that a menu stands alone.

    Args:
        inner: Who is asked.
        progress: What is on the screen.
        is_piped: Answers come over a pipe: they are repeated, for nobody has typed them here.
    """

    def __init__(self, inner: _Asks, progress: ProgressDisplay, *, is_piped: bool = False) -> None:
        self._inner = inner
        self._progress = progress
        self._is_piped = is_piped
        self.refuses_all = getattr(inner, "refuses_all", False)

    async def ask(self, question: Question) -> Answer:
        """The answer of whoever is asked."""
        await asyncio.to_thread(self._progress.wait_until_asked, question.id)
        answer = await self._inner.ask(question)
        if self._is_piped and not answer.is_skipped and not answer.is_timeout:
            filled = f" ({form_words(answer.form)})" if answer.form else ""
            print(f"{answer.text or answer.value}{filled}", file=sys.stderr)
        return answer

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """The questions one after another."""
        return [await self.ask(question) for question in questions]

    async def inform(self, message: str, stage: str) -> None:
        """Pass a message on."""
        await self._inner.inform(message, stage)


class _Nobody:
    """There is no terminal, and nobody said who else answers: the gate fails, and approves nothing."""

    refuses_all = True

    async def ask(self, question: Question) -> NoReturn:
        raise TerminalError(
            f"gate `{question.stage}` needs an answer, and there is no terminal",
            hint="--auto-approve takes the first choice, --gates console reads answers from stdin",
        )

    async def inform(self, message: str, stage: str) -> None:
        del message, stage
