"""A JSON Schema as OpenAI's strict mode takes it, which is what Codex passes on. Pure.

Strict mode wants every object closed and every property required. That narrows what a model may answer and
allows nothing more, and our own reader still judges the answer by the schema as it was written.
"""

from __future__ import annotations

import json
from typing import Any, Final, cast

_KEPT: Final = frozenset({"type", "enum", "const", "description", "$ref", "pattern"})
_SAYING: Final = frozenset({"type", "enum", "const", "$ref", "anyOf"})
_RENAMED: Final = {"oneOf": "anyOf"}
_LEFT_OUT: Final = frozenset(
    {
        "required",
        "additionalProperties",
        "title",
        "default",
        "examples",
        "format",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
    }
    | {"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems"}
    | {"$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"}
)
"""What only says more of a value: left out, for not all of it is taken, and our reader checks it."""


class _NotStrict(Exception):
    """The schema says something that strict mode cannot."""


def strict_schema(text: str) -> str:
    """The schema in strict form, as JSON; empty for one that has none.

    >>> strict_schema('{"type": "object", "properties": {"a": {"type": "string", "default": ""}}}')[:65]
    '{"type": "object", "properties": {"a": {"type": "string"}}, "requ'
    >>> strict_schema('{"type": "object", "additionalProperties": {"type": "string"}}')
    ''
    """
    try:
        return json.dumps(_strict(json.loads(text)), ensure_ascii=False) if text else ""
    except (_NotStrict, ValueError, RecursionError):
        return ""


def _strict(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict):
        raise _NotStrict  # true: anything
    given = cast("dict[str, Any]", schema)
    strict = {
        _RENAMED.get(name, name): _strict_part(name, value)
        for name, value in given.items()
        if name not in _LEFT_OUT
    }
    kinds = _items(given.get("type"))
    if "object" in kinds:
        if not strict.get("properties") or given.get("additionalProperties") not in (None, False):
            raise _NotStrict  # a mapping of anything
        strict |= {"required": list(strict["properties"]), "additionalProperties": False}
    if ("array" in kinds and "items" not in strict) or not strict.keys() & _SAYING:
        raise _NotStrict  # anything
    return strict


def _strict_part(name: str, value: Any) -> Any:
    if name in _KEPT:
        return value
    if name in ("anyOf", "oneOf"):
        return [_strict(entry) for entry in _items(value)]
    if name == "items":
        return _strict(value)
    if name in ("$defs", "definitions", "properties") and isinstance(value, dict):
        return {key: _strict(entry) for key, entry in cast("dict[str, Any]", value).items()}
    raise _NotStrict


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else [value]
