"""The content of a question's card, as plain values; and the line that remains of it. Knows no widget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.decisions.gate_choices import form_words
from attractor_nb.model.events import InterviewCompleted, InterviewStarted, InterviewTimeout
from attractor_nb.model.question import BY_CLICK, BY_INBOX, QuestionType, name_and_way, who_answered
from attractor_nb.model.vocabulary.value_forms import label_text
from attractor_nb.views.texts.prose import prose_of

if TYPE_CHECKING:
    from collections.abc import Mapping

PEOPLE: Final = frozenset({BY_CLICK, BY_INBOX, "call"})
"""Sources of answers that another card announces as given elsewhere; those of interviewers need no announcement."""


def plain_question(event: InterviewStarted, *, key: str = "", about: str = "", resume: str = "") -> dict[str, Any]:
    """A question for ``gate_card.js``.

    Args:
        key: By which the card's answer names it; its id if not given.
        about: Whose question it is, where several runs are shown.
        resume: The call that continues its run, should the kernel be lost.
    """
    detail = event.metadata.get("detail", "")
    return {
        "key": key or event.question_id,
        "stage": event.stage,
        "title": event.question or event.stage,
        "about": about,
        "detail": detail if isinstance(detail, str) else "",
        "kind": event.kind or QuestionType.MULTIPLE_CHOICE.value,
        "choices": [{"key": choice, "label": label_text(label)} for choice, label in event.options],
        "form": dict(event.form),
        "materials": plain_materials(event.metadata.get("review")),
        "since": event.time,
        "deadline": event.deadline,
        "how": "",
        "resume": resume,
    }


def plain_materials(given: Any) -> list[dict[str, Any]]:
    """The texts under review, each with its tree (``prose.py``); what is in metadata may be anybody's."""
    parts = cast("list[Any]", given) if isinstance(given, list) else []
    mappings = [cast("Mapping[str, Any]", part) for part in parts if isinstance(part, dict)]
    texts = [{name: str(part.get(name, "")) for name in ("name", "text", "note")} for part in mappings]
    return [{**each, "shown": prose_of(each["text"], each["name"].rpartition("/")[2])} for each in texts]


def settled_words(event: InterviewCompleted | InterviewTimeout) -> str:
    """The line that remains of a question: ``Approve, by ada, after 41 s``.

    >>> settled_words(InterviewTimeout(question="Ship it?", stage="review", duration=60))
    'no answer at review after 1 min 0 s'
    """
    after = f"after {_spell(event.duration)}"
    if isinstance(event, InterviewTimeout):
        return f"no answer at {event.stage} {after}"
    label = label_text(event.label) if event.label else event.text or ", ".join(event.keys) or event.answer
    filled = f" ({_shortened(form_words(event.form))})" if event.form else ""
    by = who_answered(event.answered_by)
    return ", ".join(part for part in (f"{_shortened(label)}{filled}", f"by {by}" if by else "", after) if part)


def elsewhere_words(event: InterviewCompleted | InterviewTimeout) -> str:
    """The words before ``settled_words`` on a card that took no answer: empty, or ``answered elsewhere: ``."""
    is_person = isinstance(event, InterviewCompleted) and name_and_way(event.answered_by)[1] in PEOPLE
    return "answered elsewhere: " if is_person else ""


def _spell(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def _shortened(text: str, limit: int = 80) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
