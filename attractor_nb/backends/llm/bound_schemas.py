"""How a model is bound to a node's schema, where its provider can do that. Loads pydantic-ai."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai.output import OutputObjectDefinition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAMED: Final = ("properties", "$defs")


def bound_object(schema: Mapping[str, Any] | None, profile: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a request that bind its answer to an object; none where nothing is asked or can be done.

    Providers hold strictly to a schema whose objects are closed: then every property is there, and no other.
    One with open objects is sent as it is, for closing them would forbid what they are for.

    Args:
        schema: JSON Schema of an object.
        profile: What the model can do.
    """
    if schema is None or not profile.get("supports_json_schema_output", False):
        return {}
    plain = deepcopy(dict(schema))
    name = str(plain.get("title") or "verdict")
    strict = True if is_closed(plain) else None
    return {
        "output_mode": "native",
        "output_object": OutputObjectDefinition(json_schema=plain, name=name, strict=strict),
        "allow_text_output": False,
    }


def is_closed(schema: object) -> bool:
    """Whether each object of a schema has named properties alone, and each list says what is in it.

    >>> is_closed({"type": "object", "properties": {"n": {"type": "integer"}}}), is_closed({"type": "object"})
    (True, False)
    """
    if not isinstance(schema, dict):
        return True
    found = cast("dict[str, Any]", schema)
    if found.get("type") == "object" and (not found.get("properties") or found.get("additionalProperties")):
        return False
    if found.get("type") == "array" and not found.get("items"):
        return False
    if not {"type", "$ref", "anyOf", "enum", "const"} & found.keys():
        return False
    groups: list[Iterable[object]] = [
        found.get("anyOf", ()),
        *(found.get(key, {}).values() for key in _NAMED),
    ]
    return is_closed(found.get("items")) and all(is_closed(entry) for group in groups for entry in group)
