"""A question to a person, as those who show and answer it have it.

It knows neither who is asked nor how an answer comes to count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from attractor_nb.model.events import InterviewStarted

if TYPE_CHECKING:
    from attractor_nb.model.question import Answer, Question


class Gate(msgspec.Struct, frozen=True):
    """A question to a person."""

    id: str  #: What to answer by; unique in the run.
    stage: str  #: The asking node.
    question: Question  #: The question.
    deadline: float | None  #: When it times out, in seconds since 1970; None for never.
    since: float  #: When it was asked, in seconds since 1970.
    #: The run's own interviewer is asked, and answers by itself: nobody has to click.
    is_with_interviewer: bool = False
    answer: Answer | None = None  #: The recorded answer; None while the question waits.

    def as_event(self) -> InterviewStarted:
        """The question as its event has it, which is all that a card needs of it."""
        question = self.question
        return InterviewStarted(
            question=question.text,
            stage=question.stage,
            question_id=question.id,
            kind=question.type.value,
            options=tuple((option.key, option.label) for option in question.options),
            deadline=self.deadline,
            metadata=question.metadata,
            branch=question.branch,
            form=question.form.to_plain() if question.form else {},
        )
