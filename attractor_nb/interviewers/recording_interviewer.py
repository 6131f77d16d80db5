"""Records questions and answers, and answers from such a recording (spec 6.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from attractor_nb.calling import call
from attractor_nb.decisions.replays.recorded_answers import answer_of, plain_answer, question_inputs, question_of
from attractor_nb.errors import OptionError, TerminalError
from attractor_nb.interviewers.unattended import SequentialInterviewer
from attractor_nb.model.calls.call_content import QUESTION
from attractor_nb.model.calls.recorded_call import CallPlace, RecordedCall
from attractor_nb.model.question import Answer, Question
from attractor_nb.model.redacted import redacted_answer
from attractor_nb.storage.cassette_file import Cassette, read_cassette, write_cassette
from attractor_nb.storage.files.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attractor_nb.protocols import Interviewer

Recording = tuple[Question, Answer]


class RecordingInterviewer:
    """Wraps an interviewer and records every pair of question and answer.

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

    @property
    def waits_for_others(self) -> bool:
        """Whether the inner interviewer never answers by itself."""
        return getattr(self._inner, "waits_for_others", False)

    @property
    def pauses_run(self) -> bool:
        """Whether the inner interviewer pauses the run at its gates."""
        return getattr(self._inner, "pauses_run", False)

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
        """Write the recordings as a cassette, for ``ReplayInterviewer.load`` and for ``run(cassette=…)``.

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
            return cls([(question_of(call.inputs), answer_of(call.answer, "")) for call in questions])
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


def _place(question: Question, number: int) -> CallPlace:
    """Where a question was put, as far as it says: its id ends in the visit; without one they are counted."""
    visit = question.id.rpartition(":")[2]
    turn = int(visit) if visit.isascii() and visit.isdigit() else number
    return CallPlace(question.stage, turn, branch=question.branch)
