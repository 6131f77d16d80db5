"""Records and replays answers of people (spec 6.4). A replay logs and shows questions, but asks nobody."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from attractor_nb.calling import call
from attractor_nb.cassettes.recorded_forms import Marks, place_of
from attractor_nb.decisions.replays.recorded_answers import answer_of, plain_answer, question_inputs
from attractor_nb.errors import TerminalError
from attractor_nb.model.calls.call_content import CallInputs
from attractor_nb.model.redacted import redacted_answer
from attractor_nb.stage import current_stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.cassettes.tape import Tape
    from attractor_nb.model.question import Answer, Question
    from attractor_nb.protocols import Interviewer

ANSWERED_BY: Final = "cassette"
_PRESET: ContextVar[Answer | None] = ContextVar("attractor_recorded_answer", default=None)


class PresetInterviewer:
    """Answers a gate from the recording, or asks the inner interviewer (``Interviewer``)."""

    def __init__(self, inner: Interviewer) -> None:
        self._inner = inner

    @property
    def refuses_all(self) -> bool:
        """Whether the inner interviewer has nobody to ask."""
        return getattr(self._inner, "refuses_all", False)

    @property
    def waits_for_others(self) -> bool:
        """Whether the inner interviewer never answers by itself."""
        return getattr(self._inner, "waits_for_others", False)

    async def ask(self, question: Question) -> Answer:
        """The recorded answer, or the inner interviewer's."""
        preset = _PRESET.get()
        return preset if preset is not None else await call(self._inner.ask, question)

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """Several answers."""
        return [await self.ask(question) for question in questions]

    async def inform(self, message: str, stage: str) -> None:
        """Pass news on."""
        await call(self._inner.inform, message, stage)


class RecordedPeople:
    """Looks up recorded answers before a gate asks, and records new answers from any source."""

    def __init__(self, tape: Tape, gates: Interviewer) -> None:
        self._tape = tape
        self._gates = gates

    async def ask(self, question: Question) -> Answer:
        """The answer, by whatever way it came."""
        scope = current_stage()
        place, marks = self._tape.place_of(scope), Marks.of(scope)
        asked = question_inputs(question)
        inputs = CallInputs(asked.kind, scope.node_id, place_of(scope).without_in(asked.values))
        recorded = self._tape.find(place, inputs)
        if recorded is None:
            answer = await call(self._gates.ask, question)
            self._tape.add(place, inputs, marks.marked(plain_answer(redacted_answer(answer))))
            return answer
        try:
            preset = answer_of(marks.unmarked(recorded), ANSWERED_BY)
        except (KeyError, TypeError, ValueError):
            raise TerminalError(
                f"the recorded answer of {scope.node_id} is incomplete", hint="record it again"
            ) from None
        token = _PRESET.set(preset)
        try:
            return await call(self._gates.ask, question)
        finally:
            _PRESET.reset(token)

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """Several answers, one question after the other."""
        return [await self.ask(question) for question in questions]

    async def inform(self, message: str, stage: str) -> None:
        """Pass news on."""
        await call(self._gates.inform, message, stage)
