"""Questions and answers on record, and answers from a record (spec 6.4)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from attractor_nb.calling import call
from attractor_nb.errors import OptionError, StorageError, TerminalError
from attractor_nb.interviewers.sequential import SequentialInterviewer
from attractor_nb.model.question import Answer, Option, Question, QuestionType
from attractor_nb.model.redacted import redacted_answer
from attractor_nb.storage.strict_json import JsonProblem, read_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attractor_nb.protocols import Interviewer

FORMAT = "attractor-interview"
Recording = tuple[Question, Answer]


class RecordingInterviewer:
    """Wraps an interviewer and keeps every pair of question and answer.

    Attributes:
        recordings: The pairs so far, in order of the answers.
    """

    def __init__(self, inner: Interviewer) -> None:
        self._inner = inner
        self.recordings: list[Recording] = []

    @property
    def refuses_all(self) -> bool:
        """Whether the inner interviewer has nobody to ask."""
        return getattr(self._inner, "refuses_all", False)

    async def ask(self, question: Question) -> Answer:
        """The inner interviewer's answer, recorded."""
        answer = await call(self._inner.ask, question)
        self.recordings.append((question, redacted_answer(answer)))
        return answer

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """The inner interviewer's answers, recorded."""
        answers = await call(self._inner.ask_multiple, questions)
        self.recordings.extend(zip(questions, map(redacted_answer, answers), strict=True))
        return answers

    async def inform(self, message: str, stage: str) -> None:
        """Pass news on."""
        await call(self._inner.inform, message, stage)

    def save(self, path: Path) -> None:
        """Write the recordings as JSON, for ``ReplayInterviewer.load``.

        Raises:
            StorageError: The file cannot be written.
        """
        pairs = [
            {"question": _question_plain(asked), "answer": _answer_plain(given)}
            for asked, given in self.recordings
        ]
        try:
            path.write_text(json.dumps({FORMAT: pairs}, indent=2) + "\n", "utf-8")
        except OSError as error:
            raise StorageError(f"cannot write {path}: {error.strerror}", path=str(path)) from error


class ReplayInterviewer(SequentialInterviewer):
    """Answers as recorded: each stage's answers in their order.

    A question that was never recorded, or that reads differently now, is an error and not a guess.
    """

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self._left = list(recordings)

    @classmethod
    def load(cls, path: Path) -> ReplayInterviewer:
        """Read what ``RecordingInterviewer.save`` wrote.

        Raises:
            OptionError: The file cannot be read or holds no recordings.
        """
        try:
            plain = read_json(path.read_bytes())
            pairs = [(_question(pair["question"]), _answer(pair["answer"])) for pair in plain[FORMAT]]
        except OSError as error:
            raise OptionError(f"cannot read {path}: {error.strerror}") from None
        except (JsonProblem, KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"it {error}" if isinstance(error, JsonProblem) else "a recording is incomplete"
            raise OptionError(
                f"{path} holds no recorded interview: {reason}",
                hint="write one with RecordingInterviewer.save",
            ) from None
        return cls(pairs)

    async def ask(self, question: Question) -> Answer:
        """The next recorded answer to this stage's question."""
        for position, (asked, answer) in enumerate(self._left):
            if asked.stage == question.stage:
                if (asked.text, asked.type, asked.options) != (
                    question.text,
                    question.type,
                    question.options,
                ):
                    raise TerminalError(
                        f"the question of {question.stage!r} is not the recorded one: {asked.text!r}",
                        hint="record the interview again",
                    )
                del self._left[position]
                return replace(answer, answered_by="replay")
        raise TerminalError(
            f"no recorded answer is left for {question.stage!r}", hint="record the interview again"
        )


def _question_plain(question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "stage": question.stage,
        "text": question.text,
        "type": question.type.value,
        "options": [[option.key, option.label] for option in question.options],
    }


def _answer_plain(answer: Answer) -> dict[str, Any]:
    return {
        "value": str(answer.value),
        "selected": [[option.key, option.label] for option in answer.selected_options],
        "option": [answer.selected_option.key, answer.selected_option.label]
        if answer.selected_option
        else None,
        "text": answer.text,
        "answered_by": answer.answered_by,
    }


def _question(plain: dict[str, Any]) -> Question:
    return Question(
        text=str(plain["text"]),
        type=QuestionType(plain["type"]),
        options=tuple(_option(pair) for pair in plain["options"]),
        stage=str(plain["stage"]),
        id=str(plain["id"]),
    )


def _answer(plain: dict[str, Any]) -> Answer:
    option = plain["option"]
    return Answer(
        value=str(plain["value"]),
        selected_option=None if option is None else _option(option),
        selected_options=tuple(_option(pair) for pair in plain["selected"]),
        text=str(plain["text"]),
        answered_by=str(plain["answered_by"]),
    )


def _option(pair: Any) -> Option:
    key, label = cast("list[Any]", pair)
    return Option(str(key), str(label))
