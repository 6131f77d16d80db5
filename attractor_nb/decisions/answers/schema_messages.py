"""What is wrong with a value that does not satisfy a JSON Schema, in one sentence.

A model reads it and corrects its answer, and people compare it with what they know from elsewhere: the
sentences are those of Python's jsonschema.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from jsonschema_rs import ValidationError

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def _above(words: str) -> Callable[[Any, Any], str]:
    """The sentence of a maximum; one of zero asks for nothing at all."""
    return lambda value, kind: f"{value} {words if kind.limit else 'is expected to be empty'}"


def _below(words: str) -> Callable[[Any, Any], str]:
    """The sentence of a minimum; one of one asks for anything at all."""
    return lambda value, kind: f"{value} {'should be non-empty' if kind.limit == 1 else words}"


_SENTENCES: Final[dict[str, Callable[[Any, Any], str]]] = {
    "additionalProperties": lambda _, kind: (
        f"Additional properties are not allowed ({_extras(sorted(kind.unexpected))})"
    ),
    "anyOf": lambda value, _: f"{value} is not valid under any of the given schemas",
    "const": lambda _, kind: f"{kind.expected_value!r} was expected",
    "contains": lambda value, _: f"{value} does not contain items matching the given schema",
    "enum": lambda value, kind: f"{value} is not one of {kind.options!r}",
    "exclusiveMaximum": lambda value, kind: f"{value} is greater than or equal to the maximum of {kind.limit!r}",
    "exclusiveMinimum": lambda value, kind: f"{value} is less than or equal to the minimum of {kind.limit!r}",
    "falseSchema": lambda value, _: f"False schema does not allow {value}",
    "format": lambda value, kind: f"{value} is not a {kind.format!r}",
    "maxItems": _above("is too long"),
    "maxLength": _above("is too long"),
    "maxProperties": _above("has too many properties"),
    "maximum": lambda value, kind: f"{value} is greater than the maximum of {kind.limit!r}",
    "minItems": _below("is too short"),
    "minLength": _below("is too short"),
    "minProperties": _below("does not have enough properties"),
    "minimum": lambda value, kind: f"{value} is less than the minimum of {kind.limit!r}",
    "multipleOf": lambda value, kind: f"{value} is not a multiple of {kind.multiple_of}",
    "not": lambda value, kind: f"{value} should not be valid under {kind.schema!r}",
    "pattern": lambda value, kind: f"{value} does not match {kind.pattern!r}",
    "required": lambda _, kind: f"{kind.property!r} is a required property",
    "uniqueItems": lambda value, _: f"{value} has non-unique elements",
}


def sentence(error: ValidationError, schema: Any) -> str:
    """What is wrong with a value by its schema, without the place."""
    kind: Any = error.kind
    name = "falseSchema" if type(kind).__name__ == "FalseSchema" else kind.name
    if name == "propertyNames":
        return sentence(kind.error, schema)
    if name == "type":
        named = _types(error, schema)
        return f"{error.instance!r} is not of type {', '.join(map(repr, named))}"
    if name == "oneOf" and type(kind).__name__ == "OneOfNotValid":
        name = "anyOf"
    told = _SENTENCES.get(name)
    return told(repr(error.instance), kind) if told else error.message


def json_path(path: Sequence[str | int]) -> str:
    """A place in a value.

    >>> json_path(["a", 0, "b c"])
    "$.a[0]['b c']"
    """
    steps = (
        f"[{step}]" if isinstance(step, int) else f".{step}" if _PLAIN_NAME.match(step) else f"[{step!r}]"
        for step in path
    )
    return "$" + "".join(steps)


def _extras(names: list[str]) -> str:
    return f"{', '.join(map(repr, names))} {'was' if len(names) == 1 else 'were'} unexpected"


def _types(error: ValidationError, schema: Any) -> list[str]:
    """The types that a value may have, in the order of the schema."""
    kind: Any = error.kind
    for step in error.schema_path:
        try:
            schema = schema[step]
        except (KeyError, IndexError, TypeError):
            return kind.types
    return [schema] if isinstance(schema, str) else schema
