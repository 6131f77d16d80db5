"""Questions to persons as standard controls of ipywidgets: buttons, fields, check boxes, and words beside them.

They need nothing in the page but ipywidgets, so they work where the cards of the live view do not: in Voila, VS Code,
Colab, a dashboard, and without any page in a test, where ``button.click()`` is a click. They carry values; whether
those will do is judged where they are handed in.
"""

# ipywidgets and traitlets have no types: whatever is theirs is unknown here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
import threading
from contextlib import suppress
from functools import partial
from time import localtime, strftime, time
from typing import TYPE_CHECKING, Any, Final, cast

from ipywidgets import HTML, Button, Checkbox, Dropdown, HBox, Layout, Text, Textarea, VBox

from attractor_nb.decisions.gate_choices import YES_OR_NO, value_of_text
from attractor_nb.errors import AlreadyAnswered, AnswerRefused, AttractorError, NoSuchGate
from attractor_nb.model.events import InterviewCompleted, InterviewTimeout
from attractor_nb.model.question import FieldKind, FormField, Option, Question, QuestionType
from attractor_nb.model.vocabulary.value_forms import label_text
from attractor_nb.views.drawings.theme import root_class
from attractor_nb.views.markup import element, joined, style_sheet
from attractor_nb.views.output_styles import gate_css
from attractor_nb.views.shown_questions import elsewhere_words, plain_materials, settled_words
from attractor_nb.views.texts.prose import prose_css, prose_html

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from markupsafe import Markup

    HandIn = Callable[[str, str, Mapping[str, Any]], object]
    """Hands in an answer: the choice (keys, with commas), the text, the form. Raises our errors."""

MAX_LINES: Final = 50
"""Past answers that are kept on the screen."""
_WORDS: Final = (Option("Y", "Yes"), Option("N", "No"))
_MISSING: Final = object()
_FIELD: Final = {"width": "auto", "max_width": "640px"}
_CARD: Final = {
    "padding": "8px 12px 10px",
    "margin": "4px 0",
    "border_left": "3px solid #b45309",
    "grid_gap": "6px",
    "max_width": "100%",
}
_KIND_HINTS: Final = {
    FieldKind.WHOLE: "a whole number",
    FieldKind.NUMBER: "a number",
    FieldKind.TEXTS: "one on each line",
}


def words_html(*parts: Markup, css: str = "") -> str:
    """Words in the colours of the page's theme, light or dark, whatever host shows them.

    Args:
        parts: The words.
        css: The style sheet, for the first on a page that needs it: it holds for those beside it, too.
    """
    sheet = (style_sheet(css),) if css else ()
    return str(element("div", {"class": f"attractor-gate {root_class()} auto"}, *sheet, *parts))


class GateList:
    """The questions that wait, each as controls, and lines of those that are over.

    Attributes:
        box: What a page shows.
    """

    def __init__(self) -> None:
        self._lines: list[tuple[bool, str]] = []
        self._past = HTML()
        self._cards: dict[object, GateControls] = {}
        self._handed_in: set[object] = set()
        self._changed = threading.Condition()
        self.box = VBox([], layout=Layout(max_width="100%"))

    @property
    def words(self) -> str:
        """The lines of past answers, and the questions that wait, as text."""
        waiting = [f"gate `{card.question.stage}` waits for an answer" for card in tuple(self._cards.values())]
        return "\n".join([*(f"{'✓ ' * is_answered}{words}" for is_answered, words in self._lines), *waiting])

    @property
    def is_waiting(self) -> bool:
        """True if a question waits."""
        return bool(self._cards)

    def ask(self, key: object, question: Question, hand_in: HandIn, *, deadline: float | None = None) -> None:
        """Show a question.

        Args:
            key: By which ``settle`` names it.
            question: The question.
            hand_in: Hands in its answer.
            deadline: When its time is over, in seconds since 1970; as of now by default.
        """
        if deadline is None and question.timeout_seconds is not None:
            deadline = time() + question.timeout_seconds
        with self._changed:  # an answer that comes while the controls are made settles them behind that
            if key in self._cards:
                return
            self._cards[key] = GateControls(question, partial(self._hand_in, key, hand_in), deadline)
            self._show()
            self._changed.notify_all()

    def _hand_in(self, key: object, hand_in: HandIn, choice: str, text: str, form: Mapping[str, Any]) -> None:
        """Hand in an answer of these controls; it is known as theirs before the event that it causes comes."""
        self._handed_in.add(key)
        try:
            hand_in(choice, text, form)
        except BaseException:  # an interrupt, too: an answer that was not taken is not theirs
            self._handed_in.discard(key)
            raise

    def settle(self, key: object, event: InterviewCompleted | InterviewTimeout | None) -> None:
        """A question is over: its controls are switched off, and a line remains of it; once.

        Args:
            key: Which question.
            event: What ended it; None when its run was stopped.
        """
        with self._changed:
            card = self._cards.pop(key, None)
            if card is None:
                return
            if event is not None:
                about = "" if key in self._handed_in else elsewhere_words(event)
                line = (not isinstance(event, InterviewTimeout), about + settled_words(event))
                self._lines = [*self._lines, line][-MAX_LINES:]
            self._handed_in.discard(key)
            self._show()
        card.close()

    def settle_all(self) -> None:
        """No question waits any more."""
        for key in tuple(self._cards):
            self.settle(key, None)

    def say(self, stage: str, words: str) -> None:
        """Say something beside the open question of a stage; as a line where none is open."""
        with self._changed:
            card = next((each for each in self._cards.values() if each.question.stage == stage), None)
            if card is not None:
                card.refuse(words)
                return
            self._lines = [*self._lines, (False, words)][-MAX_LINES:]
            self._show()

    def wait_for(self, stage: str = "", timeout: float | None = None) -> GateControls:
        """Block until the controls of a stage's question are there, and return them; any question's when empty.

        Raises:
            NoSuchGate: The time ran out before.
        """
        with self._changed:
            card = self._changed.wait_for(lambda: self._card_of(stage), timeout)
        if card is None:
            raise NoSuchGate(f"gate {stage or 'of any name'} shows no controls here")
        return card

    def _card_of(self, stage: str) -> GateControls | None:
        return next((card for card in self._cards.values() if stage in {"", card.question.stage}), None)

    def _show(self) -> None:
        lines = [
            element(
                "div",
                {"class": "line answered" if is_answered else "line"},
                *([element("span", {"class": "sign"}, "✓ ")] if is_answered else []),
                words,
            )
            for is_answered, words in self._lines
        ]
        if lines:
            self._past.value = words_html(*lines, css=gate_css())
        past = [self._past] if lines else []
        self.box.children = [*past, *(card.box for card in self._cards.values())]


class GateControls:
    """The controls of one question.

    Attributes:
        question: What is asked.
        box: All of them.
        buttons: The choices by key; of a text or a selection the one button is under the empty key.
        picks: The check boxes of a selection, by key.
        text: The comment, or the free text.
        fields: The controls of the form's fields, by name.
    """

    def __init__(self, question: Question, hand_in: HandIn, deadline: float | None = None) -> None:
        self.question = question
        self._hand_in = hand_in
        is_text, is_many = question.type is QuestionType.FREEFORM, question.type is QuestionType.MULTI_SELECT
        choices = _WORDS if question.type in YES_OR_NO else question.options
        self._rows = [_FieldRow(entry) for entry in question.form.fields] if question.form else []
        self.fields: dict[str, Any] = {row.entry.name: row.control for row in self._rows}
        self.picks: dict[str, Any] = {
            each.key: Checkbox(description=_title(each), indent=False, layout=Layout(**_FIELD))
            for each in (choices if is_many else ())
        }
        self.text = Textarea(
            placeholder="Your answer" if is_text else "Comment (optional)", rows=2, layout=Layout(**_FIELD)
        )
        self.buttons: dict[str, Any] = {}
        for key, words in [("", "Send")] if is_text or is_many else [(each.key, _title(each)) for each in choices]:
            self.buttons[key] = button = Button(description=words, tooltip=words, layout=Layout(width="auto"))
            button.on_click(partial(self._clicked, key))
        self._problem = HTML()
        row = HBox([*self.buttons.values()], layout=Layout(flex_flow="row wrap", grid_gap="6px"))
        rows = [row.box for row in self._rows]
        ends = (self.text, row) if is_text else (row, self.text)
        parts = [HTML(_head(question, deadline)), *rows, *self.picks.values(), *ends, self._problem]
        if materials := _materials(question):
            parts.append(HTML(materials))
        self.box = VBox(parts, layout=Layout(**_CARD))

    @property
    def problem(self) -> str:
        """Markup of what is said against the answer as a whole; empty for nothing."""
        return self._problem.value

    def problem_of(self, field: str) -> str:
        """Markup of what is said against a field; empty for nothing."""
        return next(row.problem.value for row in self._rows if row.entry.name == field)

    def refuse(self, message: str, fields: Mapping[str, str] | None = None) -> None:
        """Say what is wrong, each mistake beside its field."""
        wrong = dict(fields or {})
        for row in self._rows:
            row.problem.value = _problem_html(wrong.pop(row.entry.name, ""))
        rest = [f"{name}: {words}" if name else words for name, words in wrong.items()]
        self._problem.value = _problem_html("\n".join([*([message] if message else []), *rest]))

    def close(self) -> None:
        """Switch everything off, and let go of it."""
        self._switch_off()
        for each in (*_all_within(self.box), self.box):
            each.close()

    def _clicked(self, key: str, _button: object) -> None:
        picked = ",".join(each for each, box in self.picks.items() if box.value)
        values = {row.entry.name: value for row in self._rows if (value := row.value()) is not _MISSING}
        try:
            self._hand_in(key or picked, self.text.value.strip(), values)
        except (AlreadyAnswered, NoSuchGate) as late:
            self._switch_off()
            self.refuse(late.message)
        except AttractorError as refused:
            fields = refused.fields if isinstance(refused, AnswerRefused) else {}
            self.refuse("" if fields else str(refused), fields)

    def _switch_off(self) -> None:
        for each in (*self.buttons.values(), *self.picks.values(), *self.fields.values(), self.text):
            each.disabled = True


class _FieldRow:
    """A field of a form: its name, its control, what it takes, and what is wrong with it."""

    def __init__(self, entry: FormField) -> None:
        self.entry = entry
        self.control: Any = _control_of(entry)
        self.problem = HTML()
        name = f"{entry.title or entry.name}{' *' * entry.is_required}"
        hints = ", ".join(filter(None, (_KIND_HINTS.get(entry.kind, ""), entry.limits)))
        hint = element("span", {"class": "hint"}, " · ".join(filter(None, (entry.words, hints))))
        if isinstance(self.control, Checkbox):
            self.control.description = name
        label = element("span", {"class": "label"}, "" if isinstance(self.control, Checkbox) else f"{name} ")
        self.box = VBox([HTML(words_html(label, hint)), self.control, self.problem])

    def value(self) -> Any:
        """What was entered; ``_MISSING`` leaves the field out, so that its default or "needed" holds."""
        entry, entered = self.entry, self.control.value
        empty = None if entry.is_nullable and entry.default is not None else _MISSING
        if isinstance(self.control, Checkbox):
            return entered
        if isinstance(self.control, Dropdown):
            return empty if entered < 0 else _choices_of(entry)[entered]
        if entry.kind is FieldKind.TEXTS:
            lines = [line.strip() for line in entered.splitlines() if line.strip()]
            return lines if lines or not entry.is_required else _MISSING
        if not entered.strip():
            return empty
        if entry.kind is FieldKind.TEXT:
            return entered
        with suppress(AnswerRefused):  # its model says what is wrong with it
            number = value_of_text(entry, entered)
            return number if math.isfinite(number) else entered
        return entered.strip()


def _control_of(entry: FormField) -> Any:
    layout = Layout(**_FIELD)
    has_blank = entry.is_nullable or entry.is_required
    if entry.kind is FieldKind.YES_NO and not has_blank:
        return Checkbox(value=entry.default is True, indent=False, layout=layout)
    if entry.kind in {FieldKind.YES_NO, FieldKind.CHOICE}:
        choices = _choices_of(entry)
        words = ("yes", "no") if entry.kind is FieldKind.YES_NO else tuple(map(str, choices))
        options = [("choose" if entry.is_required else "none", -1)] * has_blank + [
            (each, at) for at, each in enumerate(words)
        ]
        default = next((at for at, each in enumerate(choices) if each == entry.default), options[0][1])
        return Dropdown(options=options, value=default, layout=layout)
    if entry.kind is FieldKind.TEXTS:
        lines = cast("list[str]", entry.default or [])
        return Textarea(value="\n".join(lines), rows=3, layout=layout)
    if entry.kind is FieldKind.TEXT:
        return Textarea(value=entry.default or "", rows=1, layout=layout)
    return Text(value="" if entry.default is None else str(entry.default), layout=layout)


def _choices_of(entry: FormField) -> tuple[Any, ...]:
    return (True, False) if entry.kind is FieldKind.YES_NO else entry.choices


def _title(option: Option) -> str:
    """The label with its key, as an edge is written: ``[A] Approve``."""
    return f"[{option.key}] {label_text(option.label)}"


def _head(question: Question, deadline: float | None) -> str:
    parts = [element("div", {"class": "title"}, question.text or question.stage)]
    detail = question.metadata.get("detail", "")
    if isinstance(detail, str) and detail:
        parts.append(element("div", {"class": "detail"}, detail))
    if deadline is not None:
        until = strftime("%H:%M:%S", localtime(deadline))
        parts.append(element("div", {"class": "about"}, f"waits until {until}"))
    return words_html(*parts, css=gate_css())


def _materials(question: Question) -> str:
    """What is under review, rendered as the card shows it; empty for nothing."""
    parts: list[Markup] = []
    for each in plain_materials(question.metadata.get("review")):
        note = [element("div", {"class": "hint"}, each["note"])] if each["note"] else []
        text = prose_html(each["text"], each["shown"] or [["pre", each["text"]]])
        material = element("div", {"class": "material"}, text)
        parts.append(element("details", {"open": ""}, element("summary", None, each["name"]), *note, material))
    return words_html(joined(parts), css=prose_css()) if parts else ""


def _problem_html(words: str) -> str:
    return words_html(element("div", {"class": "problem", "role": "alert"}, words)) if words else ""


def _all_within(box: Any) -> Iterator[Any]:
    """All widgets in a box, the innermost first."""
    for child in getattr(box, "children", ()):
        yield from _all_within(child)
        yield child
