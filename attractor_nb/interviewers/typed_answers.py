"""Converts values from programs into answers: an Answer, an option, a word, a boolean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from attractor_nb.errors import TerminalError
from attractor_nb.model.question import Answer, AnswerValue, Option, QuestionType

if TYPE_CHECKING:
    from attractor_nb.model.question import Question

AnswerLike = Answer | Option | str | bool | Sequence[Any] | None
"""What ``answer_of`` reads."""


def answer_of(value: Any, question: Question, answered_by: str) -> Answer:
    """The answer that a value means; the caller checks whether it fits the question.

    Args:
        value: An Answer as it is; an Option; a word (an option's key or label, yes or no, or the
            free text); True or False; several options or words; None for "skipped".
        question: What was asked.
        answered_by: Who answers, unless the Answer says so itself.

    Raises:
        TerminalError: The value is none of these.
    """
    match value:
        case Answer():
            return value if value.answered_by else replace(value, answered_by=answered_by)
        case None:
            return Answer(AnswerValue.SKIPPED, answered_by=answered_by)
        case bool():
            return Answer(AnswerValue.YES if value else AnswerValue.NO, answered_by=answered_by)
        case Option():
            return Answer(value.key, selected_option=value, answered_by=answered_by)
        case str():
            text = value if question.type is QuestionType.FREEFORM else ""
            return Answer(value, text=text, answered_by=answered_by)
        case list() | tuple():
            parts = cast("Sequence[Any]", value)
            words = [part.key if isinstance(part, Option) else str(part) for part in parts]
            return Answer(",".join(words), answered_by=answered_by)
        case _:
            raise TerminalError(
                f"a {type(value).__name__} is not an answer to {question.stage or 'the question'!r}",
                hint="give an Answer, an Option, a word, True, False, or None to skip; "
                'what a form asks for is Answer("Y", form={…})',
            )
