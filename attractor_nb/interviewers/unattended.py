"""Interviewers that need no terminal, and the base of all (spec 6.4).

The interviewer never answers on its own. The code that receives the answer cancels the waiting.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, cast

from msgspec.structs import replace

from attractor_nb.decisions.replays.recorded_answers import answer_of as recorded_answer
from attractor_nb.decisions.replays.recorded_answers import plain_answer, question_inputs, question_of
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.maybe_async import call
from attractor_nb.model.calls.call_content import QUESTION, CallSite, RecordedCall
from attractor_nb.model.question import Answer, AnswerValue, Form, Option, Question, QuestionType, worded_answer
from attractor_nb.model.redacted import redacted_answer
from attractor_nb.storage.cassette_file import Cassette, read_cassette, write_cassette
from attractor_nb.storage.files.disk import Disk

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.protocols import Interviewer, MaybeAwaitable


AnswerLike = Answer | Option | str | bool | Sequence[Any] | None
"""Values that ``answer_of`` accepts."""

_NAME = "auto-approve"
_TEXT = "auto-approved"


class SequentialInterviewer(ABC):
    """An interviewer that asks one question at a time; subclasses implement ``ask``."""

    @abstractmethod
    async def ask(self, question: Question) -> Answer:
        """Put a question and wait for its answer."""

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """Put the questions one after another; answers in the same order."""
        return [await self.ask(question) for question in questions]

    async def inform(self, message: str, stage: str) -> None:
        """Ignore a message; subclasses that can show messages override this."""
        del message, stage


async def answer_within(question: Question, waiting: Coroutine[Any, Any, Answer]) -> Answer:
    """The awaited answer; when the question's time is over, its default or else TIMEOUT (spec 6.5)."""
    limit = asyncio.timeout(question.timeout_seconds)
    try:
        async with limit:
            return await waiting
    except TimeoutError:
        if not limit.expired():
            raise  # a foreign error: the callback's own network call, for one
    if question.default is None:
        return Answer(AnswerValue.TIMEOUT, answered_by="timeout")
    return replace(question.default, answered_by=question.default.answered_by or "default")


def answer_of(value: Any, question: Question, answered_by: str) -> Answer:
    """The answer that a value means; the caller checks whether it fits the question.

    Args:
        value: An Answer as it is; an Option; a word (an option's key or label, yes or no, or the
            free text); True or False; several options or words; None for "skipped".
        question: What was asked.
        answered_by: Who answers, unless the Answer says so itself.
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
        case AnswerValue():
            return Answer(value, answered_by=answered_by)
        case str() if question.type is QuestionType.FREEFORM:
            return Answer(value, text=value, answered_by=answered_by)
        case str():
            return worded_answer(value, answered_by)
        case list() | tuple():
            parts = cast("Sequence[Any]", value)
            words = [part.key if isinstance(part, Option) else str(part) for part in parts]
            return worded_answer(",".join(words), answered_by)
        case _:
            raise TerminalError(
                f"a {type(value).__name__} is not an answer to {question.stage or 'the question'!r}",
                hint="give an Answer, an Option, a word, True, False, or None to skip; "
                'what a form asks for is Answer("Y", form={…})',
            )


class AutoApproveInterviewer(SequentialInterviewer):
    """Approves everything at once. The record of the answer says that no person approved."""

    async def ask(self, question: Question) -> Answer:
        """YES, the first option, or the text ``auto-approved``; a form is left to its defaults.

        Raises:
            TerminalError: The form has fields without a default, which cannot be filled in.
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
            f"the form of gate `{stage}` needs {', '.join(needed)}, but auto-approval fills in no fields",
            hint='give the fields defaults, or provide answers:  QueueInterviewer([Answer("Y", form={…})])',
        )


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


class DeferredInterviewer(SequentialInterviewer):
    """Waits, for the question's time or forever."""

    waits_for_others = True  #: True: it never answers on its own, and the caller must get the answer elsewhere.

    async def ask(self, question: Question) -> Answer:
        """Wait until cancelled; when the question's time is over, return its default or TIMEOUT."""
        return await answer_within(question, _forever())

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """Wait for all of them at the same time."""
        return list(await asyncio.gather(*(self.ask(question) for question in questions)))


async def _forever() -> Answer:
    waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    return await waiting


class PausingInterviewer(SequentialInterviewer):
    """Pauses the run at its gates, once nothing else in it is under way; the questions wait in its directory."""

    pauses_run = True  #: True: the driver of the run pauses it.

    async def ask(self, question: Question) -> Answer:
        """Wait until the run is paused; when the question's time is over, return its default or TIMEOUT."""
        return await answer_within(question, _forever())


class QueueInterviewer(SequentialInterviewer):
    """Takes answers from a queue, in order. An empty queue skips the question and never approves it.

    Args:
        answers: Answers, or their choices as text, the first one first.
    """

    def __init__(self, answers: Iterable[AnswerLike] = ()) -> None:
        self.answers: deque[AnswerLike] = deque(answers)

    async def ask(self, question: Question) -> Answer:
        """The next answer."""
        if not self.answers:
            return Answer(AnswerValue.SKIPPED, answered_by="queue")
        return answer_of(self.answers.popleft(), question, "queue")


class RefusingInterviewer(SequentialInterviewer):
    """Fails each question at once, with a message that says how to get it answered."""

    refuses_all = True

    async def ask(self, question: Question) -> NoReturn:
        """Refuse."""
        raise TerminalError(
            f"gate `{question.stage}` needs an answer, and no interviewer can give one",
            hint='run it at a terminal, give interviewer="pause" (--gates pause) to answer later, '
            'interviewer="auto" (--auto-approve), or answers beforehand: QueueInterviewer([…])',
        )


# Records questions and answers, and answers from such a recording (spec 6.4).

Recording = tuple[Question, Answer]


class RecordingInterviewer:
    """Wraps an interviewer and records every pair of question and answer.

    Attributes:
        inner: The wrapped interviewer.
        recordings: The pairs so far, in order of the answers.
    """

    def __init__(self, inner: Interviewer) -> None:
        self.inner = inner
        self.recordings: list[Recording] = []

    @property
    def refuses_all(self) -> bool:
        """True if the inner interviewer has no one to ask."""
        return getattr(self.inner, "refuses_all", False)

    @property
    def waits_for_others(self) -> bool:
        """True if the inner interviewer never answers on its own."""
        return getattr(self.inner, "waits_for_others", False)

    @property
    def pauses_run(self) -> bool:
        """True if the inner interviewer pauses the run at its gates."""
        return getattr(self.inner, "pauses_run", False)

    async def ask(self, question: Question) -> Answer:
        """The inner interviewer's answer, recorded."""
        answer = await call(self.inner.ask, question)
        self.recordings.append((question, redacted_answer(answer)))
        return answer

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """The inner interviewer's answers, recorded."""
        answers = await call(self.inner.ask_multiple, questions)
        self.recordings.extend(zip(questions, map(redacted_answer, answers), strict=True))
        return answers

    async def inform(self, message: str, stage: str) -> None:
        """Pass news on."""
        await call(self.inner.inform, message, stage)

    def save(self, path: Path) -> None:
        """Write the recordings as a cassette, for ``ReplayInterviewer.load`` and for ``run(cassette=…)``.

        Args:
            path: The file; a cassette that is there is replaced.

        Raises:
            OptionError: There is a file that is not a cassette; it stays as it is.
            StorageError: The file cannot be written; the old one is intact.
        """
        calls = [
            RecordedCall(_place(asked, number), question_inputs(asked), plain_answer(given))
            for number, (asked, given) in enumerate(self.recordings, 1)
        ]
        write_cassette(Disk(), path, Cassette(calls=tuple(calls)))


class ReplayInterviewer(SequentialInterviewer):
    """Gives the recorded answers of each stage, in order.

    A question that was not recorded, or whose text has changed, is an error.
    """

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self._left = list(recordings)

    @classmethod
    def load(cls, path: Path) -> ReplayInterviewer:
        """Read the questions and answers of a cassette, such as ``RecordingInterviewer.save`` writes."""
        cassette = read_cassette(path)
        if cassette is None:
            raise OptionError(f"cannot read {path}: there is no such file")
        questions = [call for call in cassette.calls if call.inputs.kind == QUESTION]
        try:
            return cls([(question_of(call.inputs), recorded_answer(call.answer, "")) for call in questions])
        except (KeyError, TypeError, ValueError):
            raise OptionError(
                f"{path} holds an incomplete question or answer", hint="record the interview again"
            ) from None

    async def ask(self, question: Question) -> Answer:
        """The next recorded answer to this stage's question."""
        for position, (asked, answer) in enumerate(self._left):
            if asked.stage == question.stage:
                if (asked.text, asked.type, asked.options) != (question.text, question.type, question.options):
                    raise TerminalError(
                        f"the question of {question.stage!r} is not the recorded one: {asked.text!r}",
                        hint="record the interview again",
                    )
                del self._left[position]
                return replace(answer, answered_by="replay")
        raise TerminalError(f"no recorded answer is left for {question.stage!r}", hint="record the interview again")


def _place(question: Question, number: int) -> CallSite:
    """Place of a question, as far as it is known: its id ends in the visit; without one they are counted."""
    visit = question.id.rpartition(":")[2]
    turn = int(visit) if visit.isascii() and visit.isdigit() else number
    return CallSite(question.stage, turn, branch=question.branch)
