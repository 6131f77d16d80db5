"""What is handed in at a gate's desk, before it counts; and what the log has of an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from attractor_nb.decisions.answers.gate_choices import WORDS, YES_OR_NO, check_answer, find_option
from attractor_nb.errors import AlreadyAnswered, AnswerRefused
from attractor_nb.model.form import Form
from attractor_nb.model.question import Answer, Option, Question, QuestionType, recorded_value, worded_answer

if TYPE_CHECKING:
    from attractor_nb.model.events import InterviewCompleted, InterviewStarted


def already_answered(gate: str, answer: str) -> AlreadyAnswered:
    """The error for whoever comes second."""
    words = f": {answer}" if answer else ""
    return AlreadyAnswered(f"gate {gate} has been answered already{words}")


def node_of(question_id: str) -> str:
    """The node that asked a question of that id: ``branch/node:visit``."""
    return question_id.rpartition(":")[0].rpartition("/")[2]


def checked_form(form: object) -> dict[str, Any]:
    """What was filled in, not yet judged."""
    if form is None:
        return {}
    if isinstance(form, Mapping):
        return dict(cast("Mapping[str, Any]", form))
    raise AnswerRefused(
        f"form must be a dict of values by field, not a {type(form).__name__}",
        hint='run.answer("review", "Y", form={"score": 7})',
    )


def check_texts(**given: object) -> None:
    """Check that what is to be text is."""
    for name, value in given.items():
        if not isinstance(value, str):
            raise AnswerRefused(
                f"{name} must be text, not a {type(value).__name__}",
                hint='run.answer("review", "Y"), or run.answer("review", text="…")',
            )


def given_answer(question: Question, choice: str, text: str) -> Answer:
    """What was handed in, before it is checked; a target stands for the choice that leads to it."""
    if question.type is QuestionType.FREEFORM:
        return Answer(text=text or choice)
    option = find_option(question, choice)
    is_word = question.type in YES_OR_NO and choice.strip().lower() in WORDS
    if option is None and not is_word:
        targets: Mapping[str, str] = question.metadata.get("targets", {})
        choice = next((key for key, target in targets.items() if target == choice), choice)
        option = next((each for each in question.options if each.key == choice), None)
    if option is None:
        return replace(worded_answer(choice), text=text) if text else worded_answer(choice)
    chosen = (option,) if question.type is QuestionType.MULTI_SELECT else ()
    return Answer(value=option.key, selected_option=option, selected_options=chosen, text=text)


def question_of(asked: InterviewStarted) -> Question:
    """The question that a log holds, without the time that it may still wait."""
    return Question(
        asked.question,
        QuestionType(asked.kind or QuestionType.MULTIPLE_CHOICE),
        options=tuple(Option(key, label) for key, label in asked.options),
        stage=asked.stage,
        metadata=asked.metadata,
        id=asked.question_id,
        branch=asked.branch,
        form=Form.from_plain(asked.form),
    )


def recorded_answer(recorded: InterviewCompleted, question: Question) -> Answer:
    """The answer that a log holds."""
    filled = Answer(answered_by=recorded.answered_by, form=recorded.form, is_form_checked=True)
    if question.type is QuestionType.FREEFORM and recorded.text:
        return check_answer(question, replace(filled, text=recorded.text))
    by_key: Mapping[str, Option] = {option.key: option for option in question.options}
    by_label = (option for option in question.options if recorded.label and option.label == recorded.label)
    option = next(by_label, by_key.get(recorded.answer))  # keys of an older version may differ
    return replace(
        filled,
        value=option.key if option else recorded_value(recorded.answer),
        selected_option=option,
        selected_options=tuple(by_key[key] for key in recorded.keys if key in by_key),
        text=recorded.text,
    )
