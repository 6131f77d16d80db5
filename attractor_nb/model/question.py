"""Questions to people and their answers (spec 6.2, 6.3; rulings 23, 24)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from attractor_nb.model.record import Record, always, no_values

if TYPE_CHECKING:
    from attractor_nb.model.form import Form


class QuestionType(StrEnum):
    """Which answers are valid. The names of 11.8 are aliases, but for MULTI_SELECT (ruling 24)."""

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


class Option(Record, frozen=True, array_like=True):
    """One choice: its accelerator key and its text; a pair in JSON."""

    key: str
    label: str


class Answer(Record, frozen=True):
    """What came back (spec 6.3).

    Attributes:
        value: An option's key, or an AnswerValue; for free text the text.
        selected_option: The whole option, for a choice.
        selected_options: All of them, for a MULTI_SELECT.
        text: Free text, alone or beside a choice.
        answered_by: Who or what answered, for the record: ``console``, ``widget``, ``default`` …
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
        """Nobody answered in time. An answer with a text or an option is never a timeout."""
        return self.value == AnswerValue.TIMEOUT and not self.text and self.selected_option is None

    @property
    def is_skipped(self) -> bool:
        """The question was passed over. An answer with a text or an option is never a skip."""
        return self.value == AnswerValue.SKIPPED and not self.text and self.selected_option is None


def worded_answer(words: str, answered_by: str = "") -> Answer:
    """The answer that somebody typed: never a timeout or a skip, whatever the words are.

    >>> worded_answer("Y").value, worded_answer("timeout").is_timeout
    ('Y', False)
    """
    if words.strip() in {AnswerValue.TIMEOUT.value, AnswerValue.SKIPPED.value}:
        return Answer(text=words, answered_by=answered_by)
    return Answer(words, answered_by=answered_by)


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
