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
    """Delegates to a function, plain or async; a plain one may block, it has a thread of its own.

    Args:
        callback: Given the question, returns an Answer, an Option, a word, a truth value, several of
            them, or None to skip.
        on_inform: Given ``(message, stage)`` of news, if somebody wants it.
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
