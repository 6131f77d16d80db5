"""The base of most interviewers: it asks several questions one after another, and ignores messages."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

from attractor_nb.model.question import Answer, AnswerValue

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from typing import Any

    from attractor_nb.model.question import Question


class SequentialInterviewer(ABC):
    """An interviewer that asks one question at a time; subclasses implement ``ask``."""

    @abstractmethod
    async def ask(self, question: Question) -> Answer:
        """Put a question and wait for its answer."""

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """Put the questions one after another; answers in the same order."""
        return [await self.ask(question) for question in questions]

    async def inform(self, message: str, stage: str) -> None:
        """Ignore a message; subclasses that can show messages override this."""
        del message, stage


async def answer_within(question: Question, waiting: Coroutine[Any, Any, Answer]) -> Answer:
    """The awaited answer; when the question's time is over, its default or else TIMEOUT (spec 6.5)."""
    limit = asyncio.timeout(question.timeout_seconds)
    try:
        async with limit:
            return await waiting
    except TimeoutError:
        if not limit.expired():
            raise  # somebody else's: the callback's own network call, for one
    if question.default is None:
        return Answer(AnswerValue.TIMEOUT, answered_by="timeout")
    return replace(question.default, answered_by=question.default.answered_by or "default")
