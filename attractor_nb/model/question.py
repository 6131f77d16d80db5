"""Questions to users and their answers (spec 6.2, 6.3; rulings 23, 24)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclasses_field
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct, field

from attractor_nb.model.record import Record, always, no_values

BY_CLICK: Final = "widget"
BY_INBOX: Final = "inbox"
BY_PAGE: Final = "page"
BY_API: Final = "api"
_PLACES: Final = {
    BY_CLICK: "",
    BY_INBOX: ", in the inbox",
    BY_PAGE: ", on the page",
    BY_API: ", over HTTP",
    "console": ", at the console",
    "command line": ", at the command line",
}
"""Place of a person's answer, by the way in ``answered_by``."""
_OTHERS: Final = {"call": "a call", BY_API: "a call"}
"""Words for an answer without the name of a person."""


class QuestionType(StrEnum):
    """The type of a question: its valid answers. Except MULTI_SELECT, each has an alias (ruling 24)."""

    YES_NO = "yes_no"
    MULTIPLE_CHOICE = "multiple_choice"
    FREEFORM = "freeform"
    CONFIRMATION = "confirmation"
    MULTI_SELECT = "multi_select"
    SINGLE_SELECT = MULTIPLE_CHOICE
    FREE_TEXT = FREEFORM
    CONFIRM = CONFIRMATION


class AnswerValue(StrEnum):
    """Answers that are not the choice of an option."""

    YES = "yes"
    NO = "no"
    SKIPPED = "skipped"
    TIMEOUT = "timeout"


UNANSWERED: Final = frozenset({AnswerValue.SKIPPED.value, AnswerValue.TIMEOUT.value})
"""Values that stand for no answer. As a text they are none: only the ``AnswerValue`` itself counts."""


class Option(Record, frozen=True, array_like=True):
    """One choice: its accelerator key and its text; a pair in JSON.

    Attributes:
        key: The accelerator key.
        label: The text of the button.
    """

    key: str
    label: str


class Answer(Record, frozen=True):
    """The answer to a question (spec 6.3).

    Attributes:
        value: An option's key, or an AnswerValue; for free text the text. The text "timeout" is a text.
        selected_option: The whole option, for a choice.
        selected_options: All of them, for a MULTI_SELECT.
        text: Free text, alone or beside a choice.
        answered_by: Who or what answered, for the record: ``console``, ``ada (widget)``, ``default`` …
        form: Values of the question's form, by field.
        is_form_checked: They are as the form's schema has them, and are not judged again.
    """

    value: str = always("")
    selected_option: Option | None = field(default=None, name="option")
    selected_options: tuple[Option, ...] = field(default=(), name="options")
    text: str = ""
    answered_by: str = ""
    form: Mapping[str, Any] = field(default_factory=no_values)
    is_form_checked: bool = False

    @property
    def is_timeout(self) -> bool:
        """True if there was no answer in time. An answer with a text or an option is never a timeout."""
        return self.value is AnswerValue.TIMEOUT and not self._has_content

    @property
    def is_skipped(self) -> bool:
        """The question was passed over. An answer with a text or an option is never a skip."""
        return self.value is AnswerValue.SKIPPED and not self._has_content

    @property
    def _has_content(self) -> bool:
        return bool(self.text or self.selected_option or self.selected_options)


def signed(way: str, name: str) -> str:
    """``answered_by`` of a person: the name, where it is known, and the way by which the answer came.

    >>> signed("console", "ada"), signed("console", "")
    ('ada (console)', 'console')
    """
    return f"{name} ({way})" if name else way


def name_and_way(answered_by: str) -> tuple[str, str]:
    """The parts of what ``signed`` made; everything else is a way without a name.

    >>> name_and_way("ada (console)"), name_and_way("console"), name_and_way("Ada Lovelace")
    (('ada', 'console'), ('', 'console'), ('', 'Ada Lovelace'))
    """
    name, separator, way = answered_by.partition(" (")
    return (name, way[:-1]) if name and separator and way.endswith(")") else ("", answered_by)


def is_known_way(way: str) -> bool:
    """True for a way of answering that displays have words for."""
    return way in _PLACES


def who_answered(answered_by: str) -> str:
    """The person or mechanism that answered, for a sentence: all displays of a run show the same words.

    >>> [who_answered(each) for each in ("ada (page)", "widget", "api", "ada (api)", "Grace")]
    ['ada, on the page', 'a person', 'a call', 'ada, over HTTP', 'Grace']
    """
    name, way = name_and_way(answered_by)
    if not name and way in _OTHERS:
        return _OTHERS[way]
    return f"{name or 'a person'}{_PLACES[way]}" if way in _PLACES else answered_by


def worded_answer(words: str, answered_by: str = "") -> Answer:
    """The answer of a typed text: never a timeout or a skip, whatever the words are.

    >>> worded_answer("Y").value, worded_answer("timeout").is_timeout
    ('Y', False)
    """
    if words.strip() in UNANSWERED:
        return Answer(text=words, answered_by=answered_by)
    return Answer(words, answered_by=answered_by)


def recorded_value(word: str) -> str:
    """The value of an answer that a log or a cassette holds: there a text that says so has gone into ``text``.

    >>> recorded_value("timeout") is AnswerValue.TIMEOUT, recorded_value("Y")
    (True, 'Y')
    """
    return AnswerValue(word) if word in UNANSWERED else word


class Question(Struct, frozen=True):
    """A question to a person (spec 6.2).

    Attributes:
        text: What is asked.
        type: Which answers are valid.
        options: The choices, in edge order; keys are distinct.
        default: The answer taken on timeout, or None.
        timeout_seconds: How long to wait, or None for as long as it takes.
        stage: Id of the asking node.
        metadata: Anything else a front-end may show: ``detail`` is longer text under the question,
            ``review`` the texts to be judged, each with ``name``, ``text`` and ``note``.
        id: Unique in the run; the engine sets it when the question is put (``node:visit``).
        branch: Path of the branch that asks, or empty.
        form: What is to be filled in beside the choice; None for nothing.
    """

    text: str
    type: QuestionType = QuestionType.MULTIPLE_CHOICE
    options: tuple[Option, ...] = ()
    default: Answer | None = None
    timeout_seconds: float | None = None
    stage: str = ""
    metadata: Mapping[str, Any] = field(default_factory=no_values)
    id: str = ""
    branch: str = ""
    form: Form | None = None


# A form that a gate asks to be filled in: its fields, and who judges what was entered.


class FieldKind(StrEnum):
    """The type of a form field's value."""

    TEXT = "text"
    WHOLE = "whole"
    NUMBER = "number"
    YES_NO = "yes_no"
    CHOICE = "choice"
    TEXTS = "texts"


class FormField(Record, frozen=True, omit_defaults=False):
    """One field."""

    name: str  #: By which it is answered and kept.
    kind: FieldKind  #: Kind of its values.
    title: str = ""  #: Title that is shown.
    words: str = ""  #: Its description, or empty.
    limits: str = ""  #: Limits of its values, in words, or empty.
    choices: tuple[Any, ...] = ()  #: The values of a ``CHOICE``.
    default: Any = None  #: Its value when it is left out; None when there is none.
    is_required: bool = True  #: It cannot be left out.
    is_nullable: bool = False  #: It may be without a value.


@dataclass(frozen=True, slots=True)
class Form:
    """A form."""

    name: str  #: Name of the schema that it was made of.
    fields: tuple[FormField, ...]  #: Its fields, in order.
    #: Given entered values, the values as they are kept, or None; and what is wrong with them, by field, under the
    #: empty name what is wrong with them together. None where only the fields are known, as in a recording.
    judge: Callable[[Mapping[str, Any]], tuple[dict[str, Any] | None, dict[str, str]]] | None = dataclasses_field(
        default=None, compare=False, repr=False
    )

    def to_plain(self) -> dict[str, Any]:
        """As JSON values: for events, recordings and front-ends."""
        return {"name": self.name, "fields": [entry.to_plain() for entry in self.fields]}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Form | None:
        """The inverse of ``to_plain``; None for an empty one."""
        if not plain:
            return None
        return cls(str(plain["name"]), tuple(FormField.from_plain(entry) for entry in plain["fields"]))
