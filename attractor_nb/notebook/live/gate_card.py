"""Questions to users as cards: of one run under its graph, or of all runs in the inbox.

The cards are drawn by ``gates_view.js``, which also an exported or a served page can use; here is what they
hold, and the way of an answer to its run. The widget is made in the cell that shows it; a question only sets
its traits, for it comes from another thread.
"""

# ipywidgets and traitlets have no types: whatever is theirs is unknown here.
# IPython's display and ipywidgets have no types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from os import urandom
from typing import TYPE_CHECKING, Any, Final, cast

import anywidget
import traitlets
from IPython.display import DisplayHandle, display

from attractor_nb.account import signed_here
from attractor_nb.errors import AlreadyAnswered, AnswerRefused, AttractorError, NoSuchGate
from attractor_nb.model.events import Event, InterviewCompleted, InterviewStarted, InterviewTimeout
from attractor_nb.model.question import BY_INBOX
from attractor_nb.notebook.live.painting import make_painter
from attractor_nb.notebook.saved_output import bundle_of, placed
from attractor_nb.runtime.wired_run import ENDED, listen, runs_under_way
from attractor_nb.storage.run_directory import without_times
from attractor_nb.studio.history.waiting_gates import Inbox, WaitingGate, question_here, resume_call
from attractor_nb.views.frontend import script, widget_styles
from attractor_nb.views.shown_questions import elsewhere_words, plain_question, settled_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.engine.gates import Gate
    from attractor_nb.runtime.execution import Execution


NONE_WAITS: Final = "No question is open; the next one appears here."
MAX_LINES: Final = 50
"""Past answers that are kept on the screen."""


@dataclass(frozen=True, slots=True)
class ClickedAnswer:
    """The answer that a card submits."""

    gate: str  #: The question's key.
    choice: str = ""  #: Keys of what was chosen, with commas; empty for none.
    text: str = ""  #: Free text.
    form: Mapping[str, Any] = field(default_factory=dict[str, Any])  #: Form values.


class GateCards(anywidget.AnyWidget):
    """The questions that wait, and lines of those that are over."""

    _esm = script("gates_view")
    _css = widget_styles()
    #: The questions, oldest first, as ``views.shown_questions.plain_question`` has them.
    gates = traitlets.List().tag(sync=True)
    answers = traitlets.List().tag(sync=True)  #: Lines of past ones, oldest first: ``is_answered`` and ``words``.
    #: By key, what was refusal against an answer: ``message``, ``fields``, ``is_final``.
    refusals = traitlets.Dict().tag(sync=True)
    shows_all = traitlets.Bool(default_value=False).tag(sync=True)  #: All at once, or one after the other.
    has_gates = traitlets.Bool(default_value=False).tag(sync=True)  #: Room for a card is kept from the beginning.
    none = traitlets.Unicode().tag(sync=True)  #: Text when no question is open.
    place = traitlets.Unicode().tag(sync=True)  #: The key that marks the place in a static output where it is in.

    def __init__(self, answer: Callable[[ClickedAnswer], object], **traits: Any) -> None:
        """Make the widget, in the cell that shows it.

        Args:
            answer: Hands in an answer. Raises our errors.
            traits: Initial values.
        """
        super().__init__(**traits)
        self._answer = answer
        self._changes = threading.RLock()
        self._handed_in: set[str] = set()
        self.on_msg(self._on_message)

    def ask(self, question: dict[str, Any]) -> None:
        """Show a question, or let it wait in line."""
        with self._changes:
            others = [each for each in self.gates if each["key"] != question["key"]]
            self._forget_refusal(question["key"])
            self.gates = [*others, question]

    def settle(self, key: str, event: InterviewCompleted | InterviewTimeout | None, about: str = "") -> None:
        """A question is over: one line remains of it.

        Args:
            key: Which question.
            event: What ended it; None when its run was stopped.
            about: Whose question it was, where several runs are shown.
        """
        with self._changes:
            if not any(each["key"] == key for each in self.gates):
                return
            if event is not None:
                elsewhere = "" if key in self._handed_in else elsewhere_words(event)
                line = {
                    "is_answered": not isinstance(event, InterviewTimeout),
                    "words": about + elsewhere + settled_words(event),
                }
                self.answers = [*self.answers, line][-MAX_LINES:]
            self._handed_in.discard(key)
            self._forget_refusal(key)
            self.gates = [each for each in self.gates if each["key"] != key]

    def dismiss(self) -> None:
        """No question waits any more, and none will come."""
        with self._changes:
            self.refusals, self.gates, self.none = {}, [], ""

    def hand_in(self, handed: ClickedAnswer) -> None:
        """Give an answer to the run; what the run says against it is shown in place."""
        with self._changes:  # a click may come while the question is still being put
            if not any(each["key"] == handed.gate for each in self.gates):
                return
            self._handed_in.add(handed.gate)
        try:
            self._answer(handed)
        except (AlreadyAnswered, NoSuchGate) as late:
            self._refuse(handed.gate, late.message, is_final=True)
        except AttractorError as refused:
            fields = refused.fields if isinstance(refused, AnswerRefused) else {}
            self._refuse(handed.gate, "" if fields and "" not in fields else str(refused), fields=fields)

    def _refuse(
        self, key: str, message: str, *, fields: Mapping[str, str] | None = None, is_final: bool = False
    ) -> None:
        with self._changes:
            self._handed_in.discard(key)
            refusal = {"message": message, "fields": dict(fields or {}), "is_final": is_final}
            self.refusals = {**self.refusals, key: refusal}
            self.send_state("refusals")  # the same again would not be sent, and the card waits for it

    def _forget_refusal(self, key: str) -> None:
        if key in self.refusals:
            self.refusals = {each: refusal for each, refusal in self.refusals.items() if each != key}

    def _on_message(self, widget: object, content: dict[str, Any], buffers: object) -> None:
        del widget, buffers
        if content.get("kind") != "answer":
            return
        given = content.get("form")
        form = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        words = [str(content.get(name, "")) for name in ("gate", "choice", "text")]
        self.hand_in(ClickedAnswer(*words, form=form))


# The inbox in a notebook: a card for each open question of all runs of this kernel.
#
# A shell has one inbox, shown in each cell that asks for it. The output of such a cell is the static table of open
# questions; the cards replace it while there is a kernel.

Change = tuple["Execution", "Gate | None", "Event | None"]


class LiveInbox:
    """The cards of all questions.

    Attributes:
        cards: The widget.
    """

    def __init__(self) -> None:
        """Make the widget, and begin to follow; call it in the cell that shows it first."""
        self._key = urandom(8).hex()
        self.cards = GateCards(self._answer, shows_all=True, none=NONE_WAITS, place=self._key)
        self._runs: dict[str, Execution] = {}
        self._resting: tuple[WaitingGate, ...] = ()
        self._handles: list[DisplayHandle] = []
        painter: Any = make_painter(self._follow)
        self.stop = listen(lambda run, gate, event: painter.put((run, gate, event)))

    def show(self, inbox: Inbox) -> None:
        """Show it in the current cell's output, with what an inbox has found on the disk."""
        self.place(inbox)
        handle = display(self._kept(), raw=True, display_id=True)
        assert handle is not None, "a display id was asked for"
        self._handles.append(handle)

    def place(self, inbox: Inbox) -> None:
        """Have a card for each question that waits here, and for each that an inbox has found on the disk."""
        for asked in self._resting:
            self.cards.settle(_key(str(asked.logs_root), asked.event.question_id), None)
        self._resting = tuple(asked for asked in inbox if asked.run is None)
        for run in runs_under_way():
            for gate in run.gates:
                self._ask(run, question_here(run, gate.as_event(), gate.since).event)
        waiting = {_key(run.id, gate.id) for run in runs_under_way() for gate in run.gates}
        for key in [key for key in tuple(self._runs) if key not in waiting]:  # answered while it was being put here
            self.cards.settle(key, None)
        for asked in self._resting:
            key = _key(str(asked.logs_root), asked.event.question_id)
            about = f"{asked.pipeline} · {asked.gate} · run {without_times(asked.logs_root.name)}"
            plain = plain_question(asked.event, key=key, about=about)
            if not asked.is_answerable:
                plain["how"] = f"No process works on this run here:  {asked.how}"
            self.cards.ask(plain)

    def _follow(self, changes: Any) -> None:
        """Take up what became of gates."""
        for run, gate, event in changes:
            match event:
                case InterviewStarted():
                    self._ask(run, event)
                case InterviewCompleted() | InterviewTimeout() | None if gate is not None:
                    names_gate = isinstance(event, InterviewTimeout)  # its own words name the gate
                    place = run.pipeline.name if names_gate else f"{run.pipeline.name} · {gate.stage}"
                    self.cards.settle(_key(run.id, gate.id), event, f"{place}: ")
                    self._runs.pop(_key(run.id, gate.id), None)
                case _:
                    pass
        self._keep()

    def _ask(self, run: Execution, event: InterviewStarted) -> None:
        key = _key(run.id, event.question_id)
        self._runs[key] = run
        about = f"{run.pipeline.name} · {event.stage} · run {run.id}"
        self.cards.ask(plain_question(event, key=key, about=about, resume=resume_call(run.logs_root)))

    def _keep(self) -> None:
        """Renew what is kept in the outputs."""
        kept = self._kept()
        for handle in self._handles:
            handle.update(kept, raw=True)

    def _kept(self) -> dict[str, str]:
        """The table of what waits here and on the disk, and a line for each past answer."""
        here = [
            WaitingGate(asked.event, asked.pipeline, asked.logs_root, None, resume_call(asked.logs_root))
            for run in runs_under_way()
            for asked in (question_here(run, gate.as_event(), gate.since) for gate in run.gates)
        ]
        past: list[dict[str, Any]] = self.cards.answers
        lines = [f"{'✓ ' if line['is_answered'] else ''}{line['words']}" for line in past]
        bundle = bundle_of(Inbox((*here, *self._resting), tuple(lines)))
        return {**bundle, "text/html": placed(self._key, bundle["text/html"])}

    def _answer(self, handed: ClickedAnswer) -> None:
        if run := self._runs.get(handed.gate):
            question_id = handed.gate.partition(" ")[2]
            run.answer(
                question_id, handed.choice, text=handed.text, form=handed.form, answered_by=signed_here(BY_INBOX)
            )
            return
        resting = {_key(str(asked.logs_root), asked.event.question_id): asked for asked in self._resting}
        asked = resting.pop(handed.gate, None)
        if asked is None or not asked.is_answerable:
            raise NoSuchGate("this question is over", hint=ENDED)
        recorded = asked.hand_in(handed.choice, text=handed.text, form=handed.form, answered_by=signed_here(BY_INBOX))
        self._resting = tuple(resting.values())
        self.cards.settle(handed.gate, recorded, f"{asked.pipeline} · {asked.gate}: ")
        self._keep()


def _key(run_id: str, question_id: str) -> str:
    return f"{run_id} {question_id}"
