"""Waits for an answer from elsewhere: a button, ``run.answer(…)``, an HTTP request.

The interviewer never answers by itself. The code that receives the answer cancels the waiting.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from attractor_nb.interviewers.sequential import SequentialInterviewer, answer_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.model.question import Answer, Question


class DeferredInterviewer(SequentialInterviewer):
    """Waits, for the question's time or for ever.

    Attributes:
        waits_for_others: True: it never answers by itself, and the caller must get the answer elsewhere.
    """

    waits_for_others = True

    async def ask(self, question: Question) -> Answer:
        """Wait until cancelled; when the question's time is over, return its default or TIMEOUT."""
        return await answer_within(question, _forever())

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """Wait for all of them at the same time."""
        return list(await asyncio.gather(*(self.ask(question) for question in questions)))


async def _forever() -> Answer:
    waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    return await waiting
