"""Forms of gates: made of a JSON Schema, checked, and read from typed text. Knows no model and no front-end.

A form has flat fields: text, numbers, yes or no, one of some values, several texts, each perhaps optional.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.errors import AnswerRefused, OptionError
from attractor_nb.model.form import FieldKind, Form, FormField
from attractor_nb.model.nearest_name import did_you_mean
from attractor_nb.model.vocabulary.comma_lists import comma_list

if TYPE_CHECKING:
    from collections.abc import Mapping

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
"""What a field of each kind takes, in words."""
YES_OR_NO: Final = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}


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
    """What can be said without the model: whether each field is there, and of its kind."""
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
    """Whether a value is of the field's kind."""
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
    """What a field takes, in words: ``a whole number, at least 0, at most 10``."""
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
        case FieldKind.YES_NO if word.casefold() in YES_OR_NO:
            return YES_OR_NO[word.casefold()]
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
