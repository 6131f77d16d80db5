"""Asks users questions so that nothing is lost: the first durable answer wins (ruling 23).

``Gates`` is itself an ``Interviewer``: handlers ask it, and it asks the interviewer behind it. In
between it logs the question with its deadline, takes answers from anywhere else (``Run.answer``: a
widget, another cell, a server), checks them against the question, and logs the winner before anyone
acts on it. After a resume the same question waits for its remaining time, and an answer that was
logged before the crash is not asked for again.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec.structs import replace

from attractor_nb.decisions.gate_choices import WORDS, YES_OR_NO, answer_problem, check_answer, find_option
from attractor_nb.errors import AlreadyAnswered, AnswerRefused, NoSuchGate, TerminalError
from attractor_nb.interrupts import held_interrupts
from attractor_nb.maybe_async import call
from attractor_nb.model.events import Event, InterviewCompleted, InterviewInformed, InterviewStarted, InterviewTimeout
from attractor_nb.model.question import (
    Answer,
    AnswerValue,
    Form,
    Option,
    Question,
    QuestionType,
    recorded_value,
    who_answered,
    worded_answer,
)
from attractor_nb.model.redacted import redacted_answer, redacted_question
from attractor_nb.model.texts import shown
from attractor_nb.model.vocabulary.value_forms import label_text
from attractor_nb.redaction import redacted

if TYPE_CHECKING:
    from attractor_nb.protocols import Clock, Interviewer


MAX_REFUSALS = 10
"""Most answers of one interviewer that match no choice."""
CANCEL_GRACE_SECONDS = 1.0
"""Time limit for an interviewer to clean up after another answer came first."""
_NO_ANSWER = "no answer in time"

AnnounceSynced = Callable[[Event], None]


class _Pending(msgspec.Struct):
    """A gate that waits."""

    gate: Gate  #: The gate.
    future: Future[Answer]  #: Its answer.
    opened: float  #: Monotonic time at which it was put here.
    waited: float  #: Seconds that it had waited before.
    left: float | None  #: Seconds that it may wait from there on; None forever.


class Gates:
    """All gates of a run: the interviewer that handlers see, and the place where answers are handed in.

    Attributes:
        inner: Who is asked.
        on_change: Told when a gate opens (its ``InterviewStarted``), is over (``InterviewCompleted``,
            ``InterviewTimeout``), or goes without either (None): its run was stopped.
        pauses_run: The run is to be paused once everything under way in it waits here.
    """

    def __init__(
        self, inner: Interviewer, announce: AnnounceSynced, clock: Clock, *, recorded: Sequence[Event] = ()
    ) -> None:
        """Make the gates of a run.

        Args:
            inner: Who is asked.
            announce: Logs an event durably and tells observers.
            clock: Time.
            recorded: Interview events of the stage that was cut off, for a resume.
        """
        self.inner = inner
        self.pauses_run: bool = getattr(inner, "pauses_run", False)
        self._announce = announce
        self._clock = clock
        self._lock = threading.Lock()
        self._opened = threading.Condition(self._lock)
        self.on_change: Callable[[Gate, Event | None], None] | None = None
        self._pending: dict[str, _Pending] = {}
        self._answered: dict[str, str] = {}
        """By id: the answer in words."""
        self._settled: dict[str, Gate] = {}
        """By id: the gates with their answers, the latest last."""
        self._closed = ""
        self._deadlines: dict[str, InterviewStarted] = {}
        self._recorded: dict[str, InterviewCompleted] = {}
        for event in recorded:
            if isinstance(event, InterviewStarted):
                self._deadlines[event.question_id] = event
            elif isinstance(event, InterviewCompleted):
                self._recorded[event.question_id] = event

    @property
    def pending(self) -> tuple[Gate, ...]:
        """The gates that wait now, oldest first."""
        with self._lock:
            return tuple(entry.gate for entry in self._pending.values())

    @property
    def settled(self) -> tuple[Gate, ...]:
        """The gates that were answered in this process, the latest last."""
        with self._lock:
            return tuple(self._settled.values())

    def wait(self, seconds: float) -> None:
        """Block until another gate opens or is answered, or the time is over."""
        with self._opened:
            self._opened.wait(seconds)

    async def ask(self, question: Question) -> Answer:
        """Put a question and wait for the first durable answer, or for its time to run out."""
        question = redacted_question(replace(question, id=question.id or question.stage))
        if recorded := self._recorded.pop(question.id, None):
            return recorded_answer(recorded, question)
        entry = self._open(question)
        try:
            return await self._wait(entry)
        finally:
            with self._lock:
                left = self._pending.pop(question.id, None)
            if left is not None:
                self._tell(left.gate, None)

    def close(self, reason: str) -> None:
        """No gate opens any more; who answers from now on is told the reason."""
        self._closed = reason

    def _tell(self, gate: Gate, event: Event | None) -> None:
        if self.on_change is not None:
            self.on_change(gate, event)

    def _open(self, question: Question) -> _Pending:
        now = self._clock.time()
        before = self._deadlines.pop(question.id, None)
        since = before.time if before else now
        left = question.timeout_seconds
        if before is not None and before.deadline is not None:
            # A wall clock that was set back since then must not give more time than there ever was.
            left = min(max(0.0, before.deadline - now), max(0.0, before.deadline - since))
        is_own = not getattr(self.inner, "waits_for_others", False)
        deadline = None if left is None else now + left
        gate = Gate(question.id, question.stage, question, deadline, since, is_with_interviewer=is_own)
        entry = _Pending(gate, Future(), self._clock.monotonic(), max(0.0, now - since), left)
        event = gate.as_event()
        with self._lock:  # no answer is taken before the question is in the log
            self._announce(event)
            self._answered.pop(question.id, None)
            self._pending[question.id] = entry
            self._opened.notify_all()
        self._tell(gate, event)
        return entry

    async def _wait(self, entry: _Pending) -> Answer:
        answered = asyncio.wrap_future(entry.future)
        inner = asyncio.ensure_future(self._ask_inner(entry))
        waiting: set[asyncio.Future[Any]] = {answered, inner}
        timer: asyncio.Future[Any] | None = None
        if entry.left is not None:
            timer = asyncio.ensure_future(self._clock.wait_out(entry.left))
            waiting.add(timer)
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if inner.done() and not entry.future.done():
                inner.result()
            if not entry.future.done():
                self._time_out(entry)
            return await answered
        finally:
            if timer is not None:
                timer.cancel()
            inner.cancel()
            inner.add_done_callback(_forget)
            await asyncio.wait({inner}, timeout=CANCEL_GRACE_SECONDS)

    async def _ask_inner(self, entry: _Pending) -> None:
        """Ask the interviewer until it gives an answer that the question allows."""
        question = entry.gate.question
        for _ in range(MAX_REFUSALS):
            answer = await call(self.inner.ask, question)
            if not isinstance(answer, Answer):  # pyright: ignore[reportUnnecessaryIsInstance] - interviewers may be untyped
                raise TerminalError(
                    f"the interviewer answered gate `{entry.gate.stage}` with {type(answer).__name__}",
                    hint="return an Answer",
                )
            if problem := answer_problem(answer):
                raise TerminalError(
                    f"the interviewer answered gate `{entry.gate.stage}` with an Answer {problem}",
                    hint='return Answer("Y"), with the key or label of a choice',
                )
            if answer.is_timeout:
                return self._time_out(entry)
            try:
                self._settle(entry, answer if answer.is_skipped else check_answer(question, answer))
            except AnswerRefused as refused:
                await call(self.inner.inform, str(refused), question.stage)
            except AlreadyAnswered:
                return None
            else:
                return None
        raise TerminalError(
            f"gate `{entry.gate.stage}` was given {MAX_REFUSALS} answers that match no choice",
            hint="to skip a question, return Answer(AnswerValue.SKIPPED), not the text",
        )

    def _settle(self, entry: _Pending, answer: Answer) -> Gate:
        """Make an answer the answer: durable first, then known. Returns the gate with it."""
        gate = entry.gate
        answer = redacted_answer(answer)
        with self._lock:
            if gate.id in self._answered:
                raise already_answered(gate.stage, self._answered[gate.id])
            event = answered_event(gate.question, answer, self._waited(entry))
            self._announce(event)
            self._answered[gate.id] = event.description.removeprefix(f"{gate.stage}: ")
            self._pending.pop(gate.id, None)
            self._settled.pop(gate.id, None)
            self._settled[gate.id] = replace(gate, answer=answer)
            self._opened.notify_all()
        self._tell(gate, event)
        with contextlib.suppress(InvalidStateError):  # the run was just stopped: it resumes with this answer
            entry.future.set_result(answer)
        return replace(gate, answer=answer)

    def _waited(self, entry: _Pending) -> float:
        """Seconds since the question was first put; a wall clock that jumps meanwhile changes nothing."""
        return entry.waited + self._clock.monotonic() - entry.opened

    def _time_out(self, entry: _Pending) -> None:
        """The answer when there was none in time: the default, or TIMEOUT (spec 6.5)."""
        gate = entry.gate
        seconds = self._waited(entry)
        with self._lock:
            if gate.id in self._answered:
                return
            event = InterviewTimeout(
                question=gate.question.text,
                stage=gate.stage,
                duration=seconds,
                question_id=gate.id,
                branch=gate.question.branch,
            )
            self._announce(event)
            default = gate.question.default
            if default is None:
                self._answered[gate.id] = _NO_ANSWER
                self._pending.pop(gate.id, None)
        if default is None:
            self._tell(gate, event)
            entry.future.set_result(Answer(value=AnswerValue.TIMEOUT))
            return
        with contextlib.suppress(AlreadyAnswered):
            self._settle(entry, replace(check_answer(gate.question, default), answered_by="default"))

    def answer(
        self,
        gate_id: str,
        choice: str = "",
        *,
        text: str = "",
        form: Mapping[str, Any] | None = None,
        answered_by: str = "call",
    ) -> Gate:
        """Hand in an answer from anywhere; returns the gate once the answer is durable.

        Args:
            gate_id: Id of the gate, or of the node that asks.
            choice: Key, label or target of a choice, ``yes``/``no``; several with commas for a
                multi-select.
            text: Free text.
            form: What is filled in, by field, where the gate has a form.
            answered_by: Who answers, for the record.
        """
        check_texts(gate_id=gate_id, choice=choice, text=text, answered_by=answered_by)
        entry = self._entry(gate_id)
        given = replace(given_answer(entry.gate.question, choice, text), form=checked_form(form))
        answer = check_answer(entry.gate.question, given)
        with held_interrupts():  # between the log and the run an answer would be lost to both
            return self._settle(entry, replace(answer, answered_by=answered_by))

    def _entry(self, gate_id: str) -> _Pending:
        """The gate that waits under an id, or a node's."""
        with self._lock:
            entry = self._pending.get(gate_id) or next(
                (entry for entry in self._pending.values() if entry.gate.stage == gate_id), None
            )
            latest_first = reversed(self._answered.items())
            known = next((words for done, words in latest_first if gate_id in {done, node_of(done)}), None)
            waiting = [entry.gate.stage for entry in self._pending.values()]
        if entry is not None:
            return entry
        if known is not None:
            raise already_answered(gate_id, known)
        hint = f"waiting now: {', '.join(waiting)}" if waiting else self._closed or "no gate is waiting now"
        raise NoSuchGate(f"no gate `{gate_id}` is waiting", hint=hint)

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """Put several questions at once; answers in the same order."""
        return list(await asyncio.gather(*(self.ask(question) for question in questions)))

    async def inform(self, message: str, stage: str) -> None:
        """Tell users something, through the log and the interviewer behind."""
        message = redacted(message)
        self._announce(InterviewInformed(message=message, stage=stage))
        await call(self.inner.inform, message, stage)


def _forget(asked: asyncio.Future[Any]) -> None:
    """Retrieve a late exception, so that asyncio does not log it."""
    if not asked.cancelled():
        asked.exception()


# A question to a person, as front-ends show and answer it.


class Gate(msgspec.Struct, frozen=True):
    """A question to a person."""

    id: str  #: Id for answers; unique in the run.
    stage: str  #: The asking node.
    question: Question  #: The question.
    deadline: float | None  #: When it times out, in seconds since 1970; None for never.
    since: float  #: When it was asked, in seconds since 1970.
    #: The run's own interviewer is asked, and answers by itself: no click is needed.
    is_with_interviewer: bool = False
    answer: Answer | None = None  #: The recorded answer; None while the question waits.

    def __repr__(self) -> str:
        """The question with its choices, or with the recorded answer, in one line."""
        words = f"gate {self.stage}: {self.question.text}"
        if self.answer is not None:
            chosen = self.answer.selected_options or tuple(filter(None, [self.answer.selected_option]))
            answer = ", ".join(label_text(each.label) for each in chosen) or self.answer.text or self.answer.value
            words += f" answered: {answer} ({who_answered(self.answer.answered_by)})"
        elif choices := ", ".join(f"{option.key} = {label_text(option.label)}" for option in self.question.options):
            words += f" ({choices})"
        return f"<{' '.join(shown(words).split())}>"

    def as_event(self) -> InterviewStarted:
        """The question in its event, which is all that a card needs of it."""
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


# Answers as given, before they count, and answers as the log records them.


def answered_event(question: Question, answer: Answer, seconds: float) -> InterviewCompleted:
    """The event of a checked answer, given after so many seconds."""
    option = answer.selected_option
    return InterviewCompleted(
        question=question.text,
        answer=answer.value or answer.text,
        duration=seconds,
        question_id=question.id,
        stage=question.stage,
        label=option.label if option else "",
        keys=tuple(chosen.key for chosen in answer.selected_options),
        text=answer.text,
        answered_by=answer.answered_by,
        branch=question.branch,
        form=answer.form,
    )


def already_answered(gate: str, answer: str) -> AlreadyAnswered:
    """The error for a second answer."""
    words = f": {answer}" if answer else ""
    return AlreadyAnswered(f"gate `{gate}` has been answered already{words}")


def node_of(question_id: str) -> str:
    """The node that asked a question of that id: ``branch/node:visit``."""
    return question_id.rpartition(":")[0].rpartition("/")[2]


def checked_form(form: object) -> dict[str, Any]:
    """The values of a form, not yet judged."""
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
    """The answer as given, before it is checked; a target means the choice that leads to it."""
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
