"""The choices of a human gate, and which of them an answer means (spec 4.6, 6.2, 6.3; rulings 23, 24).

Used by the gate that asks and by everyone who takes an answer, so that all of them agree. An answer
that matches nothing is refused; no choice is ever guessed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec.structs import replace

from attractor_nb.errors import AnswerRefused, OptionError
from attractor_nb.languages.condition.parser import Operator, parse_condition
from attractor_nb.model.outcome import StageStatus
from attractor_nb.model.question import (
    UNANSWERED,
    Answer,
    AnswerValue,
    FieldKind,
    Form,
    FormField,
    Option,
    Question,
    QuestionType,
)
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.value_forms import accelerator_key, comma_list, label_text, normalize_label

if TYPE_CHECKING:
    from attractor_nb.model.graph import Edge


WORDS: Final = {
    "yes": AnswerValue.YES,
    "y": AnswerValue.YES,
    "true": AnswerValue.YES,
    "no": AnswerValue.NO,
    "n": AnswerValue.NO,
    "false": AnswerValue.NO,
}
"""Accepted words for yes and no."""
YES_OR_NO: Final = (QuestionType.YES_NO, QuestionType.CONFIRMATION)
"""Types of question whose answer is one of two words."""
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class GateChoice(msgspec.Struct, frozen=True):
    """One way out of a gate."""

    key: str  #: Its accelerator, distinct within the gate, in upper case.
    label: str  #: The edge's label; the target's id when there is none.
    target: str  #: Id of the node it leads to.


def choices_of(edges: Sequence[Edge]) -> tuple[GateChoice, ...]:
    """The choices that a gate's outgoing edges offer, in their order.

    Keys are distinct: a written accelerator goes first, and a taken one gives way to the
    next free letter of the label, then to a digit, then to any free letter. No key is the label of
    another choice. Labels are distinct too: edges of one label get their targets added. An edge that only
    a failed gate can take is no choice.
    """
    offered = [edge for edge in edges if not _needs_failure(edge)]
    labels = [edge.label.strip() or edge.target for edge in offered]
    unique: dict[tuple[str, str], str] = {}
    for edge, label in zip(offered, labels, strict=True):
        unique.setdefault((normalize_label(label), edge.target), label)
    shared = Counter(name for name, _ in unique)
    pairs = [
        (label if shared[name] == 1 else f"{label} ({target})", target) for (name, target), label in unique.items()
    ]
    keys = _distinct_keys([label for label, _ in pairs])
    return tuple(GateChoice(key, label, target) for key, (label, target) in zip(keys, pairs, strict=True))


def find_choice(choices: Sequence[GateChoice], text: str) -> GateChoice | None:
    """The choice that a text means: by key, label, label without accelerator, or target; None for none.

    What is written exactly so goes before what differs in case, a label before a key, and both before a target.
    A text that several choices match in this way means none of them.

    >>> find_choice([GateChoice("Y", "[Y] Yes, deploy", "ship")], "yes, deploy").target
    'ship'
    """
    found = _find(text, [(choice.key, choice.label) for choice in choices])
    if found is None:
        found = _only([choice.target for choice in choices], text.strip())
    return None if found is None else choices[found]


def _find(text: str, named: Sequence[tuple[str, str]]) -> int | None:
    """The position of the choice that a text means among keys and labels, or None."""
    wanted = text.strip()
    if not wanted:
        return None
    keys = [key for key, _ in named]
    labels = [label.strip() for _, label in named]
    written = [key if key.upper() == _written_key(label) else "" for key, label in named]
    for names in (labels, written, [label_text(label) for label in labels], keys):
        if wanted in names:
            return names.index(wanted)
    by_written_key = _only(written, wanted)
    if by_written_key is not None:
        return by_written_key
    folded = wanted.lower()
    alike = [at for at, label in enumerate(labels) if folded in {label.lower(), normalize_label(label)}]
    if alike:
        return alike[0] if len(alike) == 1 else None
    return _only(keys, wanted)


def _only(names: Sequence[str], wanted: str) -> int | None:
    """The position of a name: as written, else the only one that differs in case alone."""
    if not wanted:
        return None
    if wanted in names:
        return names.index(wanted)
    alike = [at for at, name in enumerate(names) if name.lower() == wanted.lower()]
    return alike[0] if len(alike) == 1 else None


def side_of(choices: Sequence[GateChoice], value: str) -> GateChoice | None:
    """The choice that yes or no means; None for none. Never guessed by its place or by a made-up key.

    A label that is the word goes first, then one that begins with it, then a written ``[Y]`` or ``[N]``.
    """
    initial = value[0]
    names = [normalize_label(choice.label) for choice in choices]
    words = [name.split(" ")[0].strip(",.:;!") for name in names]
    keys = [
        initial if name in {initial, f"[{initial}]"} else _written_key(choice.label).lower()
        for name, choice in zip(names, choices, strict=True)
    ]
    for wanted, said in ((value, names), (value, words), (initial, keys)):
        if wanted in said:
            return choices[said.index(wanted)]
    return None


def default_answer(kind: QuestionType, wanted: str, choices: Sequence[GateChoice]) -> Answer | None:
    """The answer that a gate takes when its time is over; None when ``wanted`` means none of its choices."""
    found = find_choice(choices, wanted) if wanted else None
    if kind is QuestionType.FREEFORM:
        return Answer(wanted, text=wanted, answered_by="default") if wanted else None
    if kind in YES_OR_NO:
        word = WORDS.get(normalize_label(wanted))
        if word is None and found is not None:
            sides = (AnswerValue.YES, AnswerValue.NO)
            word = next((value for value in sides if side_of(choices, value) == found), None)
        return None if word is None else Answer(word, answered_by="default")
    if found is None:
        return None
    option = Option(found.key, found.label)
    selected = (option,) if kind is QuestionType.MULTI_SELECT else ()
    return Answer(found.key, selected_option=option, selected_options=selected, answered_by="default")


def answer_problem(answer: Answer) -> str:
    """The problem in the fields of an answer, which may come from untyped code; empty for none.

    >>> answer_problem(Answer("Y")), answer_problem(Answer(3))
    ('', 'whose value is of type int, not text')
    """
    options = cast("object", answer.selected_options)
    if not isinstance(options, tuple | list):
        return f"whose selected_options are of type {type(options).__name__}, not a tuple of Options"
    parts: list[tuple[str, object, type]] = [
        ("value", answer.value, str),
        ("text", answer.text, str),
        ("answered_by", answer.answered_by, str),
        ("form", answer.form, Mapping),
    ]
    for option in (answer.selected_option, *cast("Sequence[object]", options)):
        if isinstance(option, Option):
            parts += [("option's key", option.key, str), ("option's label", option.label, str)]
        elif option is not None:
            parts.append(("option", option, Option))
    wrong = next(((name, value, kind) for name, value, kind in parts if not isinstance(value, kind)), None)
    if wrong is None:
        return ""
    name, value, kind = wrong
    return f"whose {name} is of type {type(value).__name__}, not {'text' if kind is str else kind.__name__}"


def check_answer(question: Question, answer: Answer) -> Answer:
    """The answer in its one form: options filled in, yes and no as values, texts trimmed.

    Timeouts and skips pass unchanged. Checking a checked answer changes nothing.
    """
    if answer.is_timeout or answer.is_skipped:
        return answer
    checked = _checked(question, answer)
    if question.form is None:
        if checked.form:
            raise AnswerRefused("the question has no form to fill in", hint="answer without form=")
        return checked
    if checked.is_form_checked:
        return checked
    return replace(checked, form=check_form(question.form, checked.form), is_form_checked=True)


def _checked(question: Question, answer: Answer) -> Answer:
    match question.type:
        case QuestionType.YES_NO | QuestionType.CONFIRMATION:
            return _checked_word(answer)
        case QuestionType.FREEFORM:
            return _checked_text(answer)
        case QuestionType.MULTI_SELECT:
            return _checked_selection(question, answer)
        case QuestionType.MULTIPLE_CHOICE:
            return _checked_choice(question, answer)


def _needs_failure(edge: Edge) -> bool:
    """True if an edge's condition can never hold at an answered gate, whose outcome is SUCCESS."""
    if not edge.condition.strip():
        return False
    success = StageStatus.SUCCESS.value
    return any(
        clause.key == "outcome"
        and (
            (clause.operator is Operator.EQUALS and clause.literal != success)
            or (clause.operator is Operator.DIFFERS and clause.literal == success)
        )
        for clause in parse_condition(edge.condition).clauses
    )


def _distinct_keys(labels: Sequence[str]) -> list[str]:
    keys: dict[int, str] = {}
    taken: set[str] = set()
    exact = {label.strip() for label in labels}
    names = [{label.strip().casefold(), label_text(label).casefold()} for label in labels]
    named = Counter(chain.from_iterable(names))

    def is_free(key: str, position: int) -> bool:
        folded = key.casefold()
        if folded in taken:
            return False
        if key == _written_key(labels[position]):
            return key not in exact
        return named[folded] == (folded in names[position])

    numbers = (str(number) for number in count(10))  # one for all labels: what it gave is taken
    written_first = sorted(range(len(labels)), key=lambda position: not _written_key(labels[position]))
    for position in written_first:
        keys[position] = next(key for key in _candidates(labels[position], numbers) if is_free(key, position))
        taken.add(keys[position].casefold())
    return [keys[position] for position in range(len(labels))]


def _written_key(label: str) -> str:
    """The accelerator in front of a label, in upper case; empty for none."""
    return accelerator_key(label) if normalize_label(label) != label.strip().lower() else ""


def _candidates(label: str, numbers: Iterator[str]) -> Iterator[str]:
    letters = (char.upper() for char in normalize_label(label) if char.isalnum())
    return chain([accelerator_key(label)], letters, "123456789", _LETTERS, numbers)


def _checked_choice(question: Question, answer: Answer) -> Answer:
    if answer.form and not answer.value and not answer.selected_option and len(question.options) == 1:
        answer = replace(answer, value=question.options[0].key)  # there is but one way on from this form
    given = answer.selected_option.key if answer.selected_option else answer.value or answer.text
    option = answer.selected_option if answer.selected_option in question.options else find_option(question, given)
    if option is None:
        raise _refused(question, given)
    text = answer.text if answer.selected_option or answer.value else ""
    return replace(answer, value=option.key, selected_option=option, text=text)


def _checked_selection(question: Question, answer: Answer) -> Answer:
    given: Sequence[Option | str] = answer.selected_options
    text = answer.text
    if not given:
        written = answer.value or answer.text
        text = answer.text if answer.value else ""
        given = [written] if find_option(question, written) else written.split(",")
    chosen: set[Option] = set()
    for each in given:
        part = each.key if isinstance(each, Option) else each
        option = each if isinstance(each, Option) and each in question.options else find_option(question, part)
        if option is None:
            raise _refused(question, part)
        chosen.add(option)
    options = tuple(option for option in question.options if option in chosen)
    value = ",".join(option.key for option in options)
    return replace(answer, value=value, selected_options=options, text=text)


def _checked_word(answer: Answer) -> Answer:
    given = answer.value or (answer.selected_option.key if answer.selected_option else answer.text)
    word = WORDS.get(given.strip().lower())
    if word is None:
        raise AnswerRefused(f'"{given}" is neither yes nor no', hint="answer yes or no")
    return replace(answer, value=word, text=answer.text if answer.value else "")


def _checked_text(answer: Answer) -> Answer:
    """The text in both places, but for a text that would read as a timeout or a skip."""
    text = (answer.text or answer.value).strip()
    if not text:
        raise AnswerRefused("the answer is empty", hint="write a text, or skip the question")
    value = "" if text in UNANSWERED else text
    return replace(answer, value=value, text=text)


def find_option(question: Question, text: str) -> Option | None:
    """The option of a question that a text means by its key or label; None for none."""
    found = _find(text, [(option.key, option.label) for option in question.options])
    return None if found is None else question.options[found]


def _refused(question: Question, given: str) -> AnswerRefused:
    listed = ", ".join(f'{option.key} = "{label_text(option.label)}"' for option in question.options)
    what = f'"{given.strip()}" is not one of the choices' if given.strip() else "the answer names no choice"
    return AnswerRefused(f"{what}: {listed}", hint="answer with a key or a label")


# Forms of gates: made of a JSON Schema, checked, and read from typed text. Knows no model and no front-end.
#
# A form has flat fields: text, numbers, yes or no, one of some values, several texts, each perhaps optional.

MAX_FIELDS: Final = 50
FIELD_KINDS: Final = "str, int, float, bool, Literal or Enum, list[str], and Optional of these"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_KINDS: Final = {
    "string": FieldKind.TEXT,
    "integer": FieldKind.WHOLE,
    "number": FieldKind.NUMBER,
    "boolean": FieldKind.YES_NO,
}
_LIMITS: Final = (
    ("minimum", "at least {}"),
    ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"),
    ("exclusiveMaximum", "less than {}"),
    ("multipleOf", "a multiple of {}"),
    ("minLength", "at least {} characters"),
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} lines"),
    ("maxItems", "at most {} lines"),
    ("pattern", "of the form {}"),
    ("format", "a {}"),
)
EXPECTED: Final = {
    FieldKind.TEXT: "a text",
    FieldKind.WHOLE: "a whole number",
    FieldKind.NUMBER: "a number",
    FieldKind.YES_NO: "yes or no",
    FieldKind.CHOICE: "one of the values",
    FieldKind.TEXTS: "texts",
}
"""Description of the values of each kind of field."""
FORM_YES_OR_NO: Final = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}


def form_of(name: str, schema: Mapping[str, Any]) -> Form:
    """The form of an object's JSON Schema.

    Args:
        name: Name of the form.
        schema: As pydantic writes it: ``properties``, ``required``, ``$defs``.

    >>> form_of("Review", {"type": "object", "properties": {"score": {"type": "integer"}}}).fields[0].kind
    <FieldKind.WHOLE: 'whole'>
    """
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        raise OptionError(f"schema {name!r} has no fields, so it is not a form", hint=f"fields of {FIELD_KINDS}")
    entries = cast("dict[str, Any]", properties)
    if len(entries) > MAX_FIELDS:
        raise OptionError(f"form {name!r} has {len(entries)} fields", hint=f"at most {MAX_FIELDS}")
    required = set(schema.get("required", ()))
    return Form(
        name, tuple(_field(name, key, entry, schema, is_required=key in required) for key, entry in entries.items())
    )


def _field(form: str, name: str, entry: Any, schema: Mapping[str, Any], *, is_required: bool) -> FormField:
    own = _resolved(entry, schema)
    options = [_resolved(option, schema) for option in own.get("anyOf", own.get("oneOf", ()))]
    is_nullable = any(option.get("type") == "null" for option in options)
    options = [option for option in options if option.get("type") != "null"]
    value = {**own, **options[0]} if len(options) == 1 else own
    kind = None if len(options) > 1 else _kind(value, schema)
    if kind is None or not _NAME.match(name):
        what = "has a name that is not an identifier" if kind else "has a type that no form field has"
        raise OptionError(f"field {name!r} of form {form!r} {what}", hint=f"a form has fields of {FIELD_KINDS}")
    limits = ", ".join(words.format(value[key]) for key, words in _LIMITS if key in value)
    return FormField(
        name,
        kind,
        title=str(own.get("title") or name.replace("_", " ").capitalize()),
        words=str(own.get("description") or ""),
        limits=limits,
        choices=tuple(value.get("enum", [value["const"]] if "const" in value else ())),
        default=own.get("default"),
        is_required=is_required,
        is_nullable=is_nullable,
    )


def _resolved(entry: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """A part of a schema with what it refers to, one step: models of forms are flat."""
    plain = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {}
    wrapped = plain.get("allOf", ())
    reference = plain.get("$ref") or (wrapped[0].get("$ref") if len(wrapped) == 1 else "")
    if not reference:
        return plain
    found: dict[str, Any] = schema.get("$defs", {}).get(str(reference).rpartition("/")[2], {})
    own = {key: value for key, value in plain.items() if key not in {"$ref", "allOf"}}
    title = {"title": own.get("title", "")}  # that of the definition names the type, not the field
    return {**found, **own, **title}


def _kind(value: Mapping[str, Any], schema: Mapping[str, Any]) -> FieldKind | None:
    if "enum" in value or "const" in value:
        choices = value.get("enum", [value.get("const")])
        return FieldKind.CHOICE if all(isinstance(part, str | int | float) for part in choices) else None
    if value.get("type") == "array":
        items = _resolved(value.get("items"), schema)
        return FieldKind.TEXTS if items.get("type") == "string" else None
    return _KINDS.get(str(value.get("type", "")))


def check_form(form: Form, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as they are kept."""
    known = [entry.name for entry in form.fields]
    problems = {name: f"the form has no such field{did_you_mean(name, known)}" for name in values if name not in known}
    judged: dict[str, Any] | None = None
    if not problems:
        judged, problems = form.judge(values) if form.judge else _judge_by_kind(form, values)
    if judged is not None and not problems:
        return judged
    problems_text = "; ".join(f"{name}: {words}" if name else words for name, words in problems.items())
    raise AnswerRefused(
        f"the form is not valid: {problems_text}", hint=f"fields of {form.name}: {', '.join(known)}", fields=problems
    )


def _judge_by_kind(form: Form, values: Mapping[str, Any]) -> tuple[dict[str, Any] | None, dict[str, str]]:
    """Judge a form without its model: each field must be present and of its kind."""
    judged: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for entry in form.fields:
        value = values.get(entry.name, entry.default)
        if entry.name not in values and entry.is_required:
            problems[entry.name] = "needs a value"
        elif value is None or fits(entry, value):
            judged[entry.name] = value
        else:
            problems[entry.name] = f"takes {expected(entry)}"
    return (None if problems else judged), problems


def fits(entry: FormField, value: Any) -> bool:
    """True if a value is of the field's kind."""
    match entry.kind:
        case FieldKind.TEXT:
            return isinstance(value, str)
        case FieldKind.WHOLE:
            return isinstance(value, int) and not isinstance(value, bool)
        case FieldKind.NUMBER:
            return isinstance(value, int | float) and not isinstance(value, bool)
        case FieldKind.YES_NO:
            return isinstance(value, bool)
        case FieldKind.CHOICE:
            return value in entry.choices
        case FieldKind.TEXTS:
            return isinstance(value, list) and all(isinstance(part, str) for part in cast("list[Any]", value))


def expected(entry: FormField) -> str:
    """The values that a field accepts, in words: ``a whole number, at least 0, at most 10``."""
    words = EXPECTED[entry.kind]
    if entry.kind is FieldKind.CHOICE:
        words = f"one of {', '.join(str(choice) for choice in entry.choices)}"
    return f"{words}, {entry.limits}" if entry.limits else words


def value_of_text(entry: FormField, text: str) -> Any:
    """The value that a typed line means; texts are parted by commas. Not yet judged.

    >>> value_of_text(FormField("score", FieldKind.WHOLE), " 7 ")
    7
    """
    word = text.strip()
    match entry.kind:
        case FieldKind.YES_NO if word.casefold() in FORM_YES_OR_NO:
            return FORM_YES_OR_NO[word.casefold()]
        case FieldKind.CHOICE:
            for choice in entry.choices:
                if str(choice).casefold() == word.casefold():
                    return choice
        case FieldKind.TEXTS:
            return list(comma_list(text))
        case FieldKind.TEXT:
            return word
        case FieldKind.WHOLE | FieldKind.NUMBER:
            try:
                return int(word) if entry.kind is FieldKind.WHOLE else float(word)
            except ValueError:
                pass
        case _:
            pass
    problem = f"takes {expected(entry)}"
    raise AnswerRefused(f"{entry.name}: {problem}", fields={entry.name: problem})


def form_words(values: Mapping[str, Any]) -> str:
    """Filled-in values on one line: ``score=7, words=["short"]``.

    >>> form_words({"score": 7, "why": "clear"})
    'score=7, why=clear'
    """
    return ", ".join(
        f"{name}={value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
    )
