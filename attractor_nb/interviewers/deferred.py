"""The answer comes by another way: a button, ``run.answer(…)``, an HTTP request.

It never answers by itself. Whoever offers the other way ends the waiting by cancelling it.
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
        waits_for_others: It never answers by itself; whoever asks through it has to know.
    """

    waits_for_others = True

    async def ask(self, question: Question) -> Answer:
        """The default or TIMEOUT when the time is over; otherwise nothing, until it is cancelled."""
        return await answer_within(question, _forever())

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """Wait for all of them at the same time."""
        return list(await asyncio.gather(*(self.ask(question) for question in questions)))


async def _forever() -> Answer:
    waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    return await waiting
