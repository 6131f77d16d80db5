"""Passes questions to a function: a chat, a web page, a custom rule (spec 6.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.calling import call
from attractor_nb.interviewers.sequential import SequentialInterviewer, answer_within
from attractor_nb.interviewers.typed_answers import answer_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.interviewers.typed_answers import AnswerLike
    from attractor_nb.model.question import Answer, Question
    from attractor_nb.protocols import MaybeAwaitable


class CallbackInterviewer(SequentialInterviewer):
    """Passes each question to a function. A plain function runs in its own thread, so it may block.

    Args:
        callback: Plain or async. It receives the question and returns an Answer, an Option, a word, True or
            False, several of them, or None to skip.
        on_inform: Receives the message and the stage of each ``inform``; optional.
    """

    def __init__(
        self,
        callback: Callable[[Question], MaybeAwaitable[AnswerLike]] | Callable[..., Any],
        *,
        on_inform: Callable[[str, str], MaybeAwaitable[None]] | None = None,
    ) -> None:
        self._callback = callback
        self._on_inform = on_inform

    async def ask(self, question: Question) -> Answer:
        """The function's answer; within the question's time."""
        return await answer_within(question, self._called(question))

    async def inform(self, message: str, stage: str) -> None:
        """Pass news on."""
        if self._on_inform is not None:
            await call(self._on_inform, message, stage)

    async def _called(self, question: Question) -> Answer:
        return answer_of(await call(self._callback, question), question, "callback")
