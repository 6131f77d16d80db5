"""Answers with yes or the first option, without asking anybody (spec 6.4). For tests, CI and demos."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.errors import TerminalError
from attractor_nb.interviewers.sequential import SequentialInterviewer
from attractor_nb.model.question import Answer, AnswerValue, QuestionType

if TYPE_CHECKING:
    from attractor_nb.model.form import Form
    from attractor_nb.model.question import Question

_NAME = "auto-approve"
_TEXT = "auto-approved"


class AutoApproveInterviewer(SequentialInterviewer):
    """Approves everything at once. The record of the answer says that no person approved."""

    async def ask(self, question: Question) -> Answer:
        """YES, the first option, or the text ``auto-approved``; a form is left to its defaults.

        Raises:
            TerminalError: The form has fields without a default, which nobody fills in.
        """
        if question.form is not None:
            _check_defaults(question.form, question.stage)
        if question.type in (QuestionType.YES_NO, QuestionType.CONFIRMATION):
            return Answer(AnswerValue.YES, answered_by=_NAME)
        if question.options:
            first = question.options[0]
            chosen = (first,) if question.type is QuestionType.MULTI_SELECT else ()
            return Answer(first.key, selected_option=first, selected_options=chosen, answered_by=_NAME)
        return Answer(_TEXT, text=_TEXT, answered_by=_NAME)


def _check_defaults(form: Form, stage: str) -> None:
    needed = [entry.name for entry in form.fields if entry.is_required]
    if needed:
        raise TerminalError(
            f"the form of gate {stage!r} needs {', '.join(needed)}, but auto-approval fills in no fields",
            hint='give the fields defaults, or provide answers:  QueueInterviewer([Answer("Y", form={…})])',
        )
