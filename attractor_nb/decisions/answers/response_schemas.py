"""What ``response_schema`` holds, and whether a value satisfies it: JSON Schema alone, nothing is fetched."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.decisions.answers.schema_messages import json_path, sentence
from attractor_nb.decisions.answers.schema_work import (
    MAX_LEVELS,
    MAX_WORK,
    as_object,
    levels,
    parts_of,
    parts_written_out,
    pieces_of,
    referred,
    work_of,
)
from attractor_nb.model.bounded_json import read_bounded_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jsonschema_rs import Draft202012Validator, ValidationError

    from attractor_nb.model.graph import Node

MAX_COMPLAINT_CHARACTERS: Final = 300
MAX_PARTS: Final = 100_000
"""Parts of a schema with all that it refers to in place: the library writes some of that out."""
ALL_IS_TOLD: Final = 20_000
"""Up to this much work all that is wrong is found, and told is what the schema says first."""
ONE_IS_TOLD: Final = 32
"""Up to this much work for each part of a value one thing that is wrong is found: its text costs much more."""
MOST_FIELD_LEVELS: Final = 5
"""How deep the fields of a schema are looked up."""
_OF_SCHEMAS: Final = {"type": ["object", "boolean"]}
"""What a schema itself has to be."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")


def is_schema_name(text: str) -> bool:
    """Whether the attribute names a registered schema; else it is one.

    >>> is_schema_name("Review"), is_schema_name('{"type": "object"}'), is_schema_name("true")
    (True, False, False)
    """
    return _NAME.match(text.strip()) is not None and text.strip() not in {"true", "false", "null"}


def field_keys(text: str, key: str, within: Sequence[str] = ()) -> Iterator[str]:
    """The keys of the fields that a JSON Schema names, of the value that is stored under a key (ruling 50).

    >>> text = '{"properties": {"files": {"items": {"properties": {"name": {}}}}}}'
    >>> list(field_keys(text, "plan.verdict")), list(field_keys(text, "item", ["files", "0"]))
    (['plan.verdict.files'], ['item.name'])
    >>> text = '{"$defs": {"B": {"properties": {"c": {}}}}, "properties": {"b": {"anyOf": [{"$ref": "#/$defs/B"}]}}}'
    >>> list(field_keys(text, "a"))
    ['a.b', 'a.b.c']

    Args:
        text: A JSON Schema; any other text has no fields.
        key: The key.
        within: The names that lead to the part of the value that the key stands for.
    """
    try:
        schema: object = read_bounded_json(text)
    except ValueError:
        return
    parts: list[Any] = [schema]
    for name in within:
        wholes = [each for part in parts for each in _with_alternatives(part, schema)]
        inner = [
            as_object(each.get("properties"))[name] for each in wholes if name in as_object(each.get("properties"))
        ]
        parts = inner or [each["items"] for each in wholes if name.isdigit() and "items" in each]
    yield from _field_keys(parts, schema, key, MOST_FIELD_LEVELS)


def _field_keys(parts: Sequence[Any], whole: Any, key: str, levels: int) -> Iterator[str]:
    fields: dict[str, list[Any]] = {}
    for each in (each for part in parts for each in _with_alternatives(part, whole)) if levels else ():
        for name, inner in as_object(each.get("properties")).items():
            fields.setdefault(name, []).append(inner)
    for name, inner in fields.items():
        yield f"{key}.{name}"
        yield from _field_keys(inner, whole, f"{key}.{name}", levels - 1)


def _with_alternatives(part: Any, whole: Any) -> list[dict[str, Any]]:
    """A part of a schema, and what of the whole it refers to or lets stand in its place, each once."""
    found: dict[int, dict[str, Any]] = {}
    pending = [part]
    while pending:
        each = as_object(pending.pop(0))
        if id(each) not in found:
            found[id(each)] = each
            pending += [one for keyword in ("allOf", "anyOf", "oneOf") for one in pieces_of(each.get(keyword))]
            pending += referred(str(each.get("$ref", "-")), whole)
    return list(found.values())


def native_schema(node: Node) -> dict[str, Any] | None:
    """The node's ``response_schema`` where a model can be bound to it: a JSON Schema of an object.

    Beside ``verdict=json`` a schema that names no ``outcome`` would forbid what the verdict needs, and binds
    nothing.
    """
    try:
        found: Any = read_bounded_json(node.get("response_schema", str, "") or "null")
    except ValueError:
        return None  # reported when the response is read
    if not isinstance(found, dict):
        return None
    schema = cast("dict[str, Any]", found)
    if schema.get("type") != "object":
        return None
    if node.get("verdict", str, "") == "json" and "outcome" not in (schema.get("properties") or {}):
        return None
    return schema


def schema_problem(text: str) -> str:
    """Why a text is not a JSON Schema that values can be held against; empty when it is one.

    >>> schema_problem('{"type": "object"}')
    ''
    >>> schema_problem('{"type": "objekt"}')
    "'objekt' is not valid under any of the given schemas (at $.type)"
    """
    from jsonschema_rs import ValidationError  # noqa: PLC0415 - rarely needed

    try:
        schema = json.loads(text)
        if levels(schema) > MAX_LEVELS:
            return f"it is nested deeper than {MAX_LEVELS} levels"
        if problem := _reference_problem(schema):
            return problem
        if parts_written_out(schema) > MAX_PARTS:
            return (
                f"it refers to the same parts of itself again and again: written out, they are more than {MAX_PARTS:,}"
            )
        _validator(schema)
    except ValidationError as error:
        return _told(error, _OF_SCHEMAS)
    except (ValueError, RecursionError) as error:
        return (str(error).splitlines() or [type(error).__name__])[0][:MAX_COMPLAINT_CHARACTERS]
    return ""


class ResponseSchema:
    """A JSON Schema, read once, that the values of an answer are held against.

    An object satisfies it only with one of the properties that it names, if it names some and does not say
    itself that others may stand beside them: a schema in which nothing is required would be satisfied by
    any object. No schema and no value takes longer than some seconds (ruling 52).
    """

    def __init__(self, text: str) -> None:
        """Read a schema, which has no ``schema_problem``."""
        self._schema = json.loads(text)
        self._validator = _validator(self._schema)
        self._names, is_open = _named(self._schema)
        if is_open:
            self._names = frozenset[str]()

    def complaint_about(self, value: Any) -> str:
        """What is wrong with a value that was read from JSON; empty when it satisfies the schema."""
        work, size = work_of(self._schema, value)
        if work > MAX_WORK:
            return "it takes too long to check: the schema asks for the same parts of it again and again"
        if complaint := self._first_complaint(_readable(value), work, size):
            return complaint
        if isinstance(value, dict) and value and self._names and not self._names & value.keys():
            names = ", ".join(sorted(self._names))
            return f"it has none of the properties {names}"[:MAX_COMPLAINT_CHARACTERS]
        return ""

    def _first_complaint(self, value: Any, work: int, size: int) -> str:
        from jsonschema_rs import ValidationError  # noqa: PLC0415 - as above

        if work > max(ALL_IS_TOLD, ONE_IS_TOLD * size):
            is_valid = self._validator.is_valid(value)
            return "" if is_valid else "it is not valid, and the schema has too many alternatives to say why"
        try:
            self._validator.validate(value)
        except ValidationError as first:
            found = self._validator.iter_errors(value) if work <= ALL_IS_TOLD else (first,)
            return _told(min(found, key=lambda error: _order(error, self._schema)), self._schema)
        return ""

    def has_shape(self, value: Any) -> bool:
        """Whether a value can be meant as one of the schema, valid or not.

        An object has the shape with a property that the schema names; where it names none, and for other
        values, only what satisfies it has it.
        """
        if isinstance(value, dict) and self._names:
            return bool(self._names & value.keys())
        return not self.complaint_about(value)


def _validator(schema: Any) -> Draft202012Validator:
    """What checks values: patterns in linear time, nothing fetched."""
    from jsonschema_rs import Draft202012Validator, RegexOptions  # noqa: PLC0415 - as above

    return Draft202012Validator(schema, pattern_options=RegexOptions(), offline=True)


def _readable(value: Any) -> Any:
    """A value that the library can read: each half of a character (a lone surrogate) is a question mark."""
    text = json.dumps(value, ensure_ascii=False)
    return value if text.isascii() else json.loads(text.encode(errors="replace"))


def _order(error: ValidationError, schema: Any) -> list[int]:
    """Where in the text of a schema stands what a value does not satisfy; references count where they stand."""
    places, part = list[int](), schema
    for step in error.evaluation_path:
        steps: list[Any] = list(as_object(part)) or list(range(len(pieces_of(part))))
        if step not in steps:
            break
        places.append(steps.index(step))
        part = referred(part[step], schema)[0] if step in ("$ref", "$dynamicRef") else part[step]
    return places


def _told(error: ValidationError, schema: Any) -> str:
    told = sentence(error, schema)
    if error.kind.name == "format" and isinstance(error.instance, str) and _is_pattern(error.instance):
        told += " that is matched in linear time: it has lookaround or a backreference, or is too large"
    return f"{told[:MAX_COMPLAINT_CHARACTERS]} (at {json_path(error.instance_path)})"


def _is_pattern(text: str) -> bool:
    """Whether Python has a pattern of this form."""
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _reference_problem(schema: Any) -> str:
    """What is wrong with what a schema refers to, or empty."""
    for part in map(as_object, parts_of(schema)):
        if part is not schema and isinstance(part.get("$id"), str):
            return "it has a schema with an $id of its own within it"
        for key in ("$ref", "$dynamicRef"):
            if isinstance(reference := part.get(key), str) and not referred(reference, schema):
                return f"{reference!r} is not in it, and nothing is fetched"[:MAX_COMPLAINT_CHARACTERS]
    return ""


def _named(schema: Any) -> tuple[frozenset[str], bool]:
    """The properties that a schema names for an object, and whether it says that others may be there."""
    names, is_open = set[str](), False
    seen, pending = set[int](), [schema]
    while pending:
        part = as_object(pending.pop())
        if id(part) in seen:
            continue
        seen.add(id(part))
        names |= set(part.get("properties", ()))
        is_open = is_open or bool(part.get("additionalProperties")) or bool(part.get("patternProperties"))
        pending += [each for key in ("allOf", "anyOf", "oneOf") for each in part.get(key, ())]
        pending += referred(part.get("$ref", "-"), schema)
    return frozenset(names), is_open
