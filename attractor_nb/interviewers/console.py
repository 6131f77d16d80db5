"""Questions at a terminal, or over a pipe (spec 6.4).

A terminal shows menus with keys; over a pipe each line is an answer. After a wrong answer the question is
asked again. The end of the input skips the question and never approves it. Questions go to stderr, so that
stdout stays free for the program.
"""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, TextIO

from msgspec.structs import replace

from attractor_nb.decisions.gate_choices import check_answer
from attractor_nb.errors import AnswerRefused
from attractor_nb.interviewers.terminal_input import AskField, LineInput, field_prompt, fill_in
from attractor_nb.interviewers.unattended import SequentialInterviewer, answer_within
from attractor_nb.lazy_imports import later
from attractor_nb.model.question import Answer, AnswerValue, FormField, Question, QuestionType
from attractor_nb.model.texts import shown
from attractor_nb.model.vocabulary.value_forms import label_text

if TYPE_CHECKING:
    from attractor_nb import account
else:
    account = later("attractor_nb.account")

MAX_LINES = 10
"""Wrong lines after which a question is skipped: a pipe that repeats itself must end."""
_NAME = "console"
_PROMPTS = {
    QuestionType.MULTIPLE_CHOICE: "Select: ",
    QuestionType.MULTI_SELECT: "Select (several with commas): ",
    QuestionType.YES_NO: "[Y/N]: ",
    QuestionType.CONFIRMATION: "Confirm [Y/N]: ",
    QuestionType.FREEFORM: "> ",
}


class ConsoleInterviewer(SequentialInterviewer):
    """Asks at the console.

    Args:
        stdin: Where answers come from; the program's stdin by default.
        stderr: Where questions go; the program's stderr by default.
    """

    def __init__(self, stdin: TextIO | None = None, stderr: TextIO | None = None) -> None:
        self._stdin = sys.stdin if stdin is None else stdin
        self._stderr = sys.stderr if stderr is None else stderr
        self._lines = LineInput(self._stdin)
        self._turn = asyncio.Lock()

    @property
    def is_terminal(self) -> bool:
        """True if a person can be asked here."""
        return _is_terminal(self._stdin) and _is_terminal(self._stderr)

    async def ask(self, question: Question) -> Answer:
        """A checked answer; SKIPPED at the end of the input; the default or TIMEOUT when time is over."""
        async with self._turn:
            answer = await answer_within(question, self._asked(question))
            if answer.is_timeout:
                self._print("\nno answer in time")
            return answer

    async def inform(self, message: str, stage: str) -> None:
        """Print a message."""
        self._print(f"[i] {stage}: {message}" if stage else f"[i] {message}")

    async def _asked(self, question: Question) -> Answer:
        if not self.is_terminal:
            return await self._asked_by_line(question)
        from attractor_nb.interviewers.menus import ask_by_menu  # noqa: PLC0415 - slow to import, for users only

        if detail := shown(str(question.metadata.get("detail", ""))):
            self._print(detail)
        choice = replace(question, form=None)
        while True:
            answer = await ask_by_menu(choice, self._stdin, self._stderr)
            try:
                answer = check_answer(choice, answer)
            except AnswerRefused as refused:
                self._print(refused.message)
            else:
                return await self._with_form(question, answer)

    async def _asked_by_line(self, question: Question) -> Answer:
        self._print(f"[?] {shown(question.text)}")
        if detail := shown(str(question.metadata.get("detail", ""))):
            self._print(detail)
        for option in question.options:
            self._print(f"  [{option.key}] {shown(label_text(option.label))}")
        for _ in range(MAX_LINES):
            self._print(_PROMPTS[question.type], end="")
            line = await self._lines.read_line()
            if line is None:
                self._print("\nno more input: the question is skipped")
                break
            try:
                chosen = check_answer(
                    replace(question, form=None), Answer(text=line, answered_by=account.signed_here(_NAME))
                )
            except AnswerRefused as refused:
                self._print(refused.message)
            else:
                return await self._with_form(question, chosen)
        return Answer(AnswerValue.SKIPPED, answered_by=account.signed_here(_NAME))

    async def _with_form(self, question: Question, answer: Answer) -> Answer:
        """The answer with the form filled in, field by field; SKIPPED when the input ends meanwhile."""
        if question.form is None or answer.is_skipped:
            return answer
        values = await fill_in(question.form, self._field_asker(), self._print)
        if values is None:
            return Answer(AnswerValue.SKIPPED, answered_by=account.signed_here(_NAME))
        return check_answer(question, replace(answer, form=values))

    def _field_asker(self) -> AskField:
        if self.is_terminal:
            from attractor_nb.interviewers.menus import field_menu  # noqa: PLC0415 - slow to import, for users only

            return field_menu(self._stdin, self._stderr)
        return self._field_line

    async def _field_line(self, entry: FormField) -> str | None:
        """One line for a field; None when there are no more."""
        self._print(f"  {shown(field_prompt(entry))}: ", end="")
        return await self._lines.read_line()

    def _print(self, text: str, end: str = "\n") -> None:
        self._stderr.write(text + end)
        self._stderr.flush()


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # replaced or closed by the host
        return False
