"""Questions and answers of users as plain values, for recordings (spec 6.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from attractor_nb.model.calls.call_content import QUESTION, CallInputs
from attractor_nb.model.question import Answer, Form, Option, Question, QuestionType, recorded_value

if TYPE_CHECKING:
    from collections.abc import Mapping


def question_inputs(question: Question) -> CallInputs:
    """The inputs of a question: the text that a person reads, and the possible answers.

    >>> question_inputs(Question("Ship?", options=(Option("A", "Approve"),), stage="gate")).values
    {'text': 'Ship?', 'type': 'multiple_choice', 'options': [['A', 'Approve']]}
    """
    values: dict[str, Any] = {"text": question.text, "type": question.type.value}
    if question.options:
        values["options"] = [[option.key, option.label] for option in question.options]
    if detail := question.metadata.get("detail"):
        values["detail"] = str(detail)
    if question.form is not None:
        values["form"] = question.form.to_plain()
    return CallInputs(QUESTION, question.stage, values)


def question_of(inputs: CallInputs) -> Question:
    """The inverse of ``question_inputs``."""
    values = inputs.values
    options = tuple(Option(str(key), str(label)) for key, label in values.get("options", ()))
    metadata = {"detail": values["detail"]} if "detail" in values else {}
    return Question(
        str(values["text"]),
        QuestionType(values["type"]),
        options=options,
        stage=inputs.node_id,
        metadata=metadata,
        form=Form.from_plain(values.get("form", {})),
    )


def plain_answer(answer: Answer) -> dict[str, Any]:
    """An answer as JSON values; empty ones are left out."""
    return replace(answer, is_form_checked=False).to_plain()


def answer_of(plain: Mapping[str, Any], answered_by: str) -> Answer:
    """The inverse of ``plain_answer``, with who answers now."""
    if "value" not in plain:
        raise ValueError("has no value")
    answer = Answer.from_plain(plain)
    return replace(answer, value=recorded_value(answer.value), answered_by=answered_by)
