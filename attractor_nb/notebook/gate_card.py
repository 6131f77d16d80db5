"""A question to a person as a card of buttons under the graph.

The buttons, checkboxes and text field are ipywidgets: they work wherever widgets do, and a notebook's
test can press them. The head above them is an anywidget: title, material under review, time left,
refusals, the lines of past answers, and the accelerator keys.

All widgets are made in the cell that shows the run, as many as its gates can need; a question only
sets their traits, for it comes from another thread. One question is shown at a time, the others wait
in line.
"""

from __future__ import annotations

# ipywidgets and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUntypedBaseClass=false, reportIncompatibleVariableOverride=false
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anywidget
import ipywidgets
import traitlets

from attractor_nb.errors import AlreadyAnswered, AttractorError, NoSuchGate
from attractor_nb.model.events import InterviewTimeout
from attractor_nb.model.labels import normalize_label
from attractor_nb.model.question import QuestionType
from attractor_nb.views.frontend import script, styles

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.model.events import InterviewCompleted, InterviewStarted

MIN_BUTTONS: Final = 2
YES_NO: Final = (("Y", "Yes"), ("N", "No"))
BY_CLICK: Final = "widget"
WHO: Final = {BY_CLICK: "you", "call": "a call"}
"""How ``answered_by`` reads in a sentence, where it does not as it is."""


class GateHead(anywidget.AnyWidget):
    """What stands above the buttons.

    Attributes:
        gate: The question shown: ``id``, ``title``, ``detail``, ``keys``, ``since``, ``deadline``,
            ``refusal``, ``more`` (questions in line); empty when there is none.
        answers: Lines of past questions, oldest first.
    """

    _esm = script("gate_head")
    _css = styles("gate_head")
    gate = traitlets.Dict().tag(sync=True)
    answers = traitlets.List().tag(sync=True)


class GateCard:
    """The card of a run.

    Attributes:
        widget: The whole card, to be displayed.
        head: Title and the rest above the buttons.
        buttons: One per choice, in edge order; those not needed are hidden.
        boxes: The same for questions with several answers.
        text: Comment or free text.
        send_button: Hands in a text or a selection.
    """

    def __init__(self, answer: Callable[[str, str, str], object], *, choice_count: int) -> None:
        """Make the card, closed.

        Args:
            answer: Hands in an answer: gate id, choice, text. Raises our errors.
            choice_count: How many choices a gate of the graph has at most.
        """
        self._answer = answer
        self._lock = threading.RLock()
        self._line: dict[str, InterviewStarted] = {}
        self._choices: tuple[tuple[str, str], ...] = ()
        self.head = GateHead()
        self.buttons: list[Any] = []
        self.boxes: list[Any] = []
        self._row = ipywidgets.HBox()
        self._grid = ipywidgets.VBox()
        self.text = ipywidgets.Textarea(rows=2)
        self.send_button = ipywidgets.Button(description="Send")
        self.send_button.add_class("attractor-choice")
        self.send_button.on_click(self._send)
        self._send_row = ipywidgets.HBox([self.send_button])
        for row in (self._row, self._grid, self._send_row):
            row.add_class("attractor-row")
        self.widget = ipywidgets.VBox([self.head, self._row, self._grid, self.text, self._send_row])
        self.widget.add_class("attractor-ui")
        self.widget.add_class("attractor-gate")
        self._grow(self.buttons, self._row, max(choice_count, MIN_BUTTONS), self._make_button)
        self._show_next()

    def ask(self, event: InterviewStarted) -> None:
        """Show a question, or let it wait in line."""
        with self._lock:
            self._line[event.question_id] = event
            if len(self._line) == 1:
                self._show_next()
            else:
                self._change_gate(more=len(self._line) - 1)

    def settle(self, event: InterviewCompleted | InterviewTimeout) -> None:
        """A question is over: one line remains of it, and the next one opens."""
        with self._lock:
            asked = self._line.pop(event.question_id, None)
            if asked is not None:
                line = {
                    "is_answered": not isinstance(event, InterviewTimeout),
                    "words": settled_words(event),
                }
                self.head.answers = [*self.head.answers, line]
            self._show_next()

    def dismiss(self) -> None:
        """The run has ended: no question waits any more."""
        with self._lock:
            self._line.clear()
            self._show_next()

    # -- showing -------------------------------------------------------------------------------------

    def _show_next(self) -> None:
        event = next(iter(self._line.values()), None)
        if event is None:
            self.head.gate = {}
            self.widget.remove_class("is-open")
            for part in (self._row, self._grid, self.text, self._send_row):
                _set_shown(part, is_shown=False)
            return
        kind = QuestionType(event.kind) if event.kind else QuestionType.MULTIPLE_CHOICE
        is_word = kind in {QuestionType.YES_NO, QuestionType.CONFIRMATION}
        is_text = kind is QuestionType.FREEFORM
        is_many = kind is QuestionType.MULTI_SELECT
        self._choices = YES_NO if is_word else event.options
        self._show_choices(are_boxes=is_many, count=0 if is_text else len(self._choices))
        self.text.value = ""
        self.text.placeholder = "Your answer" if is_text else "Comment (optional)"
        _set_shown(self.text, is_shown=True)
        _set_shown(self._send_row, is_shown=is_text or is_many)
        self.send_button.disabled = False
        detail = event.metadata.get("detail", "")
        self.head.gate = {
            "id": event.question_id,
            "title": event.question or event.stage,
            "detail": detail if isinstance(detail, str) else "",
            "keys": [] if is_text or is_many else [key.upper() for key, _ in self._choices],
            "since": event.time,
            "deadline": event.deadline,
            "more": len(self._line) - 1,
        }
        self.widget.add_class("is-open")

    def _show_choices(self, *, are_boxes: bool, count: int) -> None:
        shown = self.boxes if are_boxes else self.buttons
        container, make = (self._grid, self._make_box) if are_boxes else (self._row, self._make_button)
        self._grow(shown, container, count, make)
        for index, part in enumerate(shown):
            if index < count:
                part.description = spoken_label(self._choices[index][1])
                part.tooltip = f"Key {self._choices[index][0]}"
                part.disabled = False
            if are_boxes:
                part.value = False
            _set_shown(part, is_shown=index < count)
        _set_shown(self._row, is_shown=count > 0 and not are_boxes)
        _set_shown(self._grid, is_shown=count > 0 and are_boxes)

    def _grow(self, parts: list[Any], container: Any, count: int, make: Callable[[int], Any]) -> None:
        """Have at least ``count`` parts; only a question that the graph does not foresee needs more."""
        if len(parts) < count:
            parts.extend(make(index) for index in range(len(parts), count))
            container.children = tuple(parts)

    def _make_button(self, index: int) -> Any:
        button = ipywidgets.Button()
        button.add_class("attractor-choice")
        button.on_click(partial(self._choose, index))
        return button

    def _make_box(self, _index: int) -> Any:
        return ipywidgets.Checkbox(indent=False)

    def _change_gate(self, **changes: Any) -> None:
        self.head.gate = {**self.head.gate, **changes}

    # -- answering -----------------------------------------------------------------------------------

    def _choose(self, index: int, _button: object) -> None:
        if index < len(self._choices):
            self._hand_in(self._choices[index][0])

    def _send(self, _button: object) -> None:
        picked = [key for (key, _), box in zip(self._choices, self.boxes, strict=False) if box.value]
        self._hand_in(",".join(picked))

    def _hand_in(self, choice: str) -> None:
        """Give the answer to the run; what it says against it is shown in place."""
        with self._lock:  # a click may come while the question is still being put
            gate_id = self.head.gate.get("id", "")
        if not gate_id:
            return
        self._set_enabled(is_enabled=False)
        try:
            self._answer(gate_id, choice, self.text.value.strip())
        except (AlreadyAnswered, NoSuchGate) as late:
            self._change_gate(refusal=late.message)
        except AttractorError as refused:
            self._change_gate(refusal=str(refused))
            self._set_enabled(is_enabled=True)

    def _set_enabled(self, *, is_enabled: bool) -> None:
        for part in (*self.buttons, self.send_button):
            part.disabled = not is_enabled


def _set_shown(part: Any, *, is_shown: bool) -> None:
    part.layout.display = None if is_shown else "none"


def spoken_label(label: str) -> str:
    """A label without its accelerator prefix, which the underlined key replaces.

    >>> spoken_label("[A] Approve"), spoken_label("Fix it")
    ('Approve', 'Fix it')
    """
    bare = normalize_label(label)
    shown = label.strip()[-len(bare) :] if bare else label
    return shown if shown.lower() == bare else label


def settled_words(event: InterviewCompleted | InterviewTimeout) -> str:
    """What remains of a question: ``Approve, by you, after 41 s``.

    >>> settled_words(InterviewTimeout(question="Ship it?", stage="review", duration=60))
    'no answer at review after 1 min 0 s'
    """
    after = f"after {_spell(event.duration)}"
    if isinstance(event, InterviewTimeout):
        return f"no answer at {event.stage} {after}"
    label = spoken_label(event.label) if event.label else event.text or ", ".join(event.keys) or event.answer
    by = WHO.get(event.answered_by, event.answered_by)
    return ", ".join(part for part in (_shortened(label), f"by {by}" if by else "", after) if part)


def _spell(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def _shortened(text: str, limit: int = 80) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
