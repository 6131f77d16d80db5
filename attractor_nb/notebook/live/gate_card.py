"""Questions to people as cards: of one run under its graph, or of all runs in the inbox.

The cards are drawn by ``gates_view.js``, which also an exported or a served page can use; here is what they
hold, and the way of an answer to its run. The widget is made in the cell that shows it; a question only sets
its traits, for it comes from another thread.
"""

from __future__ import annotations

# ipywidgets and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

import anywidget
import traitlets

from attractor_nb.errors import AlreadyAnswered, AnswerRefused, AttractorError, NoSuchGate
from attractor_nb.model.events import InterviewTimeout
from attractor_nb.model.question import BY_CLICK, BY_INBOX, name_and_way
from attractor_nb.views.frontend import script, widget_styles
from attractor_nb.views.shown_questions import settled_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.model.events import InterviewCompleted

PEOPLE: Final = frozenset({BY_CLICK, BY_INBOX, "call"})
"""Whose answers another card announces as given elsewhere: those of interviewers speak for themselves."""
NONE_WAITS: Final = "No question is open; the next one appears here."
MAX_LINES: Final = 50
"""Past answers that are kept on the screen."""


@dataclass(frozen=True, slots=True)
class HandedIn:
    """What a card hands in."""

    gate: str  #: The question's key.
    choice: str = ""  #: Keys of what was chosen, with commas; empty for none.
    text: str = ""  #: Free text.
    form: Mapping[str, Any] = field(default_factory=dict[str, Any])  #: What was filled in.


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
    none = traitlets.Unicode().tag(sync=True)  #: What is said when none waits.
    place = traitlets.Unicode().tag(sync=True)  #: The key that marks the place in a static output where it stands in.

    def __init__(self, answer: Callable[[HandedIn], object], **traits: Any) -> None:
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
                line = {
                    "is_answered": not isinstance(event, InterviewTimeout),
                    "words": about + self._place(key, event) + settled_words(event),
                }
                self.answers = [*self.answers, line][-MAX_LINES:]
            self._handed_in.discard(key)
            self._forget_refusal(key)
            self.gates = [each for each in self.gates if each["key"] != key]

    def dismiss(self) -> None:
        """No question waits any more, and none will come."""
        with self._changes:
            self.refusals, self.gates, self.none = {}, [], ""

    def hand_in(self, handed: HandedIn) -> None:
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

    def _place(self, key: str, event: InterviewCompleted | InterviewTimeout) -> str:
        is_elsewhere = (
            not isinstance(event, InterviewTimeout)
            and name_and_way(event.answered_by)[1] in PEOPLE
            and key not in self._handed_in
        )
        return "answered elsewhere: " if is_elsewhere else ""

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
        self.hand_in(HandedIn(*words, form=form))
