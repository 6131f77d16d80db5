"""Gives answers that were prepared before (spec 6.4). For tests and replays."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from attractor_nb.interviewers.sequential import SequentialInterviewer
from attractor_nb.interviewers.typed_answers import answer_of
from attractor_nb.model.question import Answer, AnswerValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attractor_nb.interviewers.typed_answers import AnswerLike
    from attractor_nb.model.question import Question


class QueueInterviewer(SequentialInterviewer):
    """Takes answers from a queue, in order. An empty queue skips the question and never approves it."""

    def __init__(self, answers: Iterable[AnswerLike] = ()) -> None:
        self.answers: deque[AnswerLike] = deque(answers)

    async def ask(self, question: Question) -> Answer:
        """The next answer."""
        if not self.answers:
            return Answer(AnswerValue.SKIPPED, answered_by="queue")
        return answer_of(self.answers.popleft(), question, "queue")
