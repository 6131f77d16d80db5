"""An interviewer that asks by standard controls of ipywidgets (``interviewer="widgets"``).

It works wherever ipywidgets do, and without a page in a test. An answer is checked as each other one is; a refused one
leaves the question open, with what is wrong beside it. The run hears of an answer from elsewhere by its gate, and so
do these controls.
"""

# ipywidgets and IPython's display have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, InvalidStateError
from time import monotonic
from typing import TYPE_CHECKING, Any

from IPython.display import display
from msgspec.structs import replace

from attractor_nb.account import signed_here
from attractor_nb.decisions.gate_choices import check_answer, find_option
from attractor_nb.engine.gates import already_answered, answered_event, checked_form, given_answer
from attractor_nb.interviewers.unattended import answer_within
from attractor_nb.model.events import SESSION_ENDS, InterviewCompleted, InterviewTimeout
from attractor_nb.model.question import BY_CLICK, Answer, Question
from attractor_nb.notebook.gate_controls import GateControls, GateList
from attractor_nb.notebook.live.painting import make_painter
from attractor_nb.runtime.wired_run import listen, runs_under_way

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.engine.gates import Gate
    from attractor_nb.model.events import Event
    from attractor_nb.notebook.view_actions import Output, ShownRun
    from attractor_nb.runtime.execution import Execution


class WidgetInterviewer:
    """Asks by ipywidgets.

    The box belongs into the output of a cell: ``display(interviewer.box)``. A run with ``interviewer="widgets"`` shows
    it by itself.
    """

    waits_for_others = True  #: True: it never answers on its own; a cell that waits could keep clicks from arriving.
    shows_controls = True  #: True: a view of the run needs no card of its own.

    def __init__(self) -> None:
        self._list: GateList | None = None
        self._making = threading.Lock()  # the engine asks in its own thread

    @property
    def gates(self) -> GateList:
        """The questions; made when first asked for: an option names an interviewer more often than it asks."""
        with self._making:
            if self._list is None:
                self._list = GateList()
            return self._list

    @property
    def box(self) -> Any:
        """The widget that shows all questions."""
        return self.gates.box

    def wait_for(self, stage: str = "", timeout: float | None = None) -> GateControls:
        """Block until the controls of a stage's question are there, and return them: for tests, to click.

        Args:
            stage: The asking node; any when empty.
            timeout: Seconds to wait at most.

        Raises:
            NoSuchGate: The time ran out before.
        """
        return self.gates.wait_for(stage, timeout)

    async def ask(self, question: Question) -> Answer:
        """What a person clicks, checked; when the question's time is over, its default or TIMEOUT."""
        given: Future[Answer] = Future()
        key, begun = id(question), monotonic()

        def hand_in(choice: str, text: str, form: Mapping[str, Any]) -> None:
            if asking := _run_that_asks(question):
                run, gate = asking
                run.answer(gate.id, choice, text=text, form=form, answered_by=signed_here(BY_CLICK))
            else:
                _give(given, question, replace(given_answer(question, choice, text), form=checked_form(form)))

        def follow(_run: Execution, gate: Gate | None, event: Event | None) -> None:
            if gate is not None and gate.question is question:
                if isinstance(event, InterviewCompleted | InterviewTimeout):
                    self.gates.settle(key, event)
                elif event is None:
                    self.gates.settle(key, None)

        stop = listen(follow)
        self.gates.ask(key, question, hand_in)
        try:
            answer = await answer_within(question, _result_of(given))
            self.gates.settle(key, _end_of(question, answer, monotonic() - begun))
            return answer
        finally:
            stop()
            self.gates.settle(key, None)

    async def ask_multiple(self, questions: Sequence[Question]) -> list[Answer]:
        """Put all of them at once; answers in the same order."""
        return list(await asyncio.gather(*(self.ask(question) for question in questions)))

    async def inform(self, message: str, stage: str) -> None:
        """Say it beside the question of the stage."""
        self.gates.say(stage, message)

    def show(self, run: ShownRun) -> None:
        """Show the controls in the current cell's output; at the end of a run what remains are words."""
        handle = display(self.box, display_id=True)
        if handle is None:  # no shell shows anything
            return

        def keep(batch: list[Event]) -> None:
            if any(isinstance(event, SESSION_ENDS) for event in batch):
                self._leave(handle)

        run.on_event(make_painter(keep, last=SESSION_ENDS).put)

    def _leave(self, output: Output) -> None:
        """Leave words in an output: a notebook that was saved shows no widget."""
        output.update({"text/plain": self.gates.words or "no gate was reached"}, raw=True)


def _run_that_asks(question: Question) -> tuple[Execution, Gate] | None:
    """The run of this process whose gate asks, so that an answer counts as soon as it is handed in; or None."""
    return next(((run, gate) for run in runs_under_way() for gate in run.gates if gate.question is question), None)


def _give(given: Future[Answer], question: Question, answer: Answer) -> None:
    """Answer a question that no run asks."""
    try:
        given.set_result(replace(check_answer(question, answer), answered_by=signed_here(BY_CLICK)))
    except InvalidStateError:
        raise already_answered(question.stage, "") from None


async def _result_of(given: Future[Answer]) -> Answer:
    return await asyncio.wrap_future(given)


def _end_of(question: Question, answer: Answer, seconds: float) -> InterviewCompleted | InterviewTimeout:
    """The event of an answer that was given here, or by the question's default, or in no time."""
    if answer.is_timeout:
        return InterviewTimeout(
            question=question.text,
            stage=question.stage,
            duration=seconds,
            question_id=question.id,
            branch=question.branch,
        )
    option = answer.selected_option or find_option(question, answer.value)
    return answered_event(question, replace(answer, selected_option=option), seconds)
