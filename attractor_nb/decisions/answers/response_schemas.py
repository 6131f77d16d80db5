"""What ``response_schema`` holds, and whether a value satisfies it: JSON Schema alone, nothing is fetched."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.model.graph import Node

MAX_COMPLAINT_CHARACTERS: Final = 300
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")


def is_schema_name(text: str) -> bool:
    """Whether the attribute names a registered schema; else it is one.

    >>> is_schema_name("Review"), is_schema_name('{"type": "object"}'), is_schema_name("true")
    (True, False, False)
    """
    return _NAME.match(text.strip()) is not None and text.strip() not in {"true", "false", "null"}


def native_schema(node: Node) -> dict[str, Any] | None:
    """The node's ``response_schema`` where a model can be bound to it: a JSON Schema of an object.

    Beside ``verdict=json`` a schema that names no ``outcome`` would forbid what the verdict needs, and binds
    nothing.
    """
    try:
        found: Any = json.loads(node.get("response_schema", str, "") or "null")
    except (ValueError, RecursionError):
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
    """Why a text is not a JSON Schema; empty when it is one.

    >>> schema_problem('{"type": "object"}')
    ''
    >>> schema_problem('{"type": "objekt"}')
    "'objekt' is not valid under any of the given schemas (at $.type)"
    """
    from jsonschema import Draft202012Validator  # noqa: PLC0415 - slow to import, and rarely needed
    from jsonschema.exceptions import SchemaError  # noqa: PLC0415 - as above

    try:
        Draft202012Validator.check_schema(json.loads(text))
    except SchemaError as error:
        return f"{error.message[:MAX_COMPLAINT_CHARACTERS]} (at {error.json_path})"
    except (ValueError, RecursionError) as error:
        return (str(error).splitlines() or [type(error).__name__])[0][:MAX_COMPLAINT_CHARACTERS]
    return ""


class SchemaElsewhere(ValueError):
    """A schema refers to another document, which is never fetched."""


class ResponseSchema:
    """A JSON Schema, read once, that the values of an answer are held against.

    An object satisfies it only with one of the properties that it names, if it names some and does not say
    itself that others may stand beside them: a schema in which nothing is required would be satisfied by
    any object.
    """

    def __init__(self, text: str) -> None:
        """Read a schema, which has no ``schema_problem``."""
        from jsonschema import Draft202012Validator  # noqa: PLC0415 - as above
        from referencing import Registry  # noqa: PLC0415 - as above

        schema = json.loads(text)
        registry = cast("Callable[[], Any]", Registry)
        self._validator: Any = cast("Any", Draft202012Validator)(schema, registry=registry())
        self._names, is_open = _named(schema, schema, frozenset())
        if is_open:
            self._names = frozenset[str]()

    def complaint_about(self, value: Any) -> str:
        """What is wrong with a value; empty when it satisfies the schema.

        Raises:
            SchemaElsewhere: The schema refers to another document.
        """
        from jsonschema.exceptions import ValidationError  # noqa: PLC0415 - as above
        from referencing.exceptions import Unresolvable  # noqa: PLC0415 - as above

        try:
            self._validator.validate(value)
        except ValidationError as found:
            return f"{found.message[:MAX_COMPLAINT_CHARACTERS]} (at {found.json_path})"
        except Unresolvable as error:
            raise SchemaElsewhere(str(error).splitlines()[0]) from None
        if isinstance(value, dict) and value and self._names and not self._names & value.keys():
            names = ", ".join(sorted(self._names))
            return f"it has none of the properties {names}"[:MAX_COMPLAINT_CHARACTERS]
        return ""

    def has_shape(self, value: Any) -> bool:
        """Whether a value can be meant as one of the schema, valid or not.

        An object has the shape with a property that the schema names; where it names none, and for other
        values, only what satisfies it has it.

        Raises:
            SchemaElsewhere: The schema refers to another document.
        """
        if isinstance(value, dict) and self._names:
            return bool(self._names & value.keys())
        return not self.complaint_about(value)


def _named(part: Any, whole: Any, seen: frozenset[str]) -> tuple[frozenset[str], bool]:
    """The properties that a schema names for an object, and whether it says that others may be there."""
    if not isinstance(part, dict):
        return frozenset(), False
    schema = cast("dict[str, Any]", part)
    names = frozenset[str](schema.get("properties", ()))
    is_open = bool(schema.get("additionalProperties")) or bool(schema.get("patternProperties"))
    parts = [each for key in ("allOf", "anyOf", "oneOf") for each in schema.get(key, ())]
    reference = schema.get("$ref", "")
    if reference not in seen:
        parts.append(_referred(reference, whole))
    for each in parts:
        found, opened = _named(each, whole, seen | {reference})
        names, is_open = names | found, is_open or opened
    return names, is_open


def _referred(reference: str, whole: Any) -> Any:
    """The part of a schema that a reference of its own leads to; None for any other."""
    if not reference.startswith("#"):
        return None
    found = whole
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = cast("dict[str, Any]", found).get(name) if isinstance(found, dict) else None
    return found
