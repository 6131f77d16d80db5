"""Fails every gate when nobody can be asked: a gate must neither wait forever nor approve itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from attractor_nb.errors import TerminalError
from attractor_nb.interviewers.sequential import SequentialInterviewer

if TYPE_CHECKING:
    from attractor_nb.model.question import Question


class RefusingInterviewer(SequentialInterviewer):
    """Fails each question at once, with a message that says how to get it answered."""

    refuses_all = True

    async def ask(self, question: Question) -> NoReturn:
        """Refuse.

        Raises:
            TerminalError: Always.
        """
        raise TerminalError(
            f"gate {question.stage!r} needs an answer, and no interviewer can give one",
            hint='run it at a terminal, give interviewer="auto" (--auto-approve on the command line), '
            "or answers beforehand: QueueInterviewer([…])",
        )
