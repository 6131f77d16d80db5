"""How much work it is to hold a value against a JSON Schema, before anybody begins (ruling 52).

A schema may refer to itself, and so ask for one part of a value again and again: thirty lines take years, and
nothing can interrupt the library that checks them. What is counted here is the most that it may have to do. The
count takes each part of a schema and each part of a value together once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_WORK: Final = 10_000_000
"""Parts of a value that may be looked at, each as often as the schema asks for it: about a second."""
MAX_PAIRS: Final = 1_000_000
"""Parts of a schema and of a value that may meet: the count itself is bounded."""
MAX_LEVELS: Final = 100
"""Levels of a schema; those of a value are bounded where it is read."""
_HERE: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_OF_OBJECTS: Final = ("patternProperties", "unevaluatedProperties", "propertyNames")
_OF_LISTS: Final = ("items", "additionalItems", "unevaluatedItems", "contains")
_CHARACTERS_OF_A_PART: Final = 64


def work_of(schema: Any, value: Any) -> tuple[int, int]:
    """How often parts of a value may have to be looked at, more than ``MAX_WORK`` at the most; how many it has.

    >>> twice = {"anyOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}
    >>> schema = {**twice, "$defs": {"n": {"properties": {"child": twice}}}}
    >>> work_of(schema, {}), work_of(schema, {"child": {}}), work_of(schema, {"child": {"child": {}}})
    ((5, 1), (20, 2), (55, 3))
    """
    sizes: dict[int, int] = {}
    _measure(value, sizes)
    return _counted(schema, value, schema, sizes), sizes[id(value)]


def parts_written_out(schema: Any) -> int:
    """How many parts a schema would have with all that it refers to in place; more than ``MAX_WORK`` at the most.

    >>> twice = {"anyOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}
    >>> parts_written_out({**twice, "$defs": {"n": {"type": "string"}}})
    16
    """
    return _counted({"allOf": list(parts_of(schema))}, None, schema, {id(None): 1})


def _counted(schema: Any, value: Any, whole: Any, sizes: dict[int, int]) -> int:
    below: dict[tuple[int, int], list[tuple[Any, Any]]] = {}
    work: dict[tuple[int, int], int] = {}
    pending, pairs = [(schema, value)], 0
    while pending:
        part, piece = pending[-1]
        key = id(part), id(piece)
        if key not in below:
            below[key] = list(_asked_next(part, piece, whole))
            pairs += 1 + len(below[key])
            if pairs > MAX_PAIRS:
                return MAX_WORK + 1
            pending.extend(pair for pair in below[key] if (id(pair[0]), id(pair[1])) not in below)
            continue
        pending.pop()
        if key not in work:
            work[key] = sizes[key[1]] + sum(work.get((id(one), id(other)), 0) for one, other in below[key])
            if work[key] > MAX_WORK:
                return MAX_WORK + 1
    return work[id(schema), id(value)]


def levels(value: Any) -> int:
    """How deep objects and lists are nested in a value.

    >>> levels(5), levels({}), levels([[], {"a": [1]}])
    (0, 1, 3)
    """
    found, row = 0, [value]
    while any(isinstance(each, dict | list) for each in row):
        found += 1
        row = [inner for each in row for inner in pieces_of(each)]
    return found


def referred(reference: str, whole: Any) -> list[Any]:
    """The parts of a schema that a reference of its own can lead to; none for any other.

    >>> referred("#/$defs/a~1b", {"$defs": {"a/b": True}}), referred("#/$defs/c", {}), referred("http://x/y", {})
    ([True], [], [])
    """
    own = str(as_object(whole).get("$id", "")).partition("#")[0]
    reference = reference.removeprefix(own) if reference.startswith(f"{own}#") else reference
    fragment = unquote(reference[1:])
    if not reference.startswith("#"):
        return []
    if fragment and not fragment.startswith("/"):
        parts = map(as_object, parts_of(whole))
        return [part for part in parts if fragment in (part.get("$anchor"), part.get("$dynamicAnchor"))]
    found = whole
    for step in fragment.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        named, row = as_object(found), pieces_of(found)
        if name in named:
            found = named[name]
        elif not named and name.isdecimal() and int(name) < len(row):
            found = row[int(name)]
        else:
            return []
    return [found]


def as_object(value: Any) -> dict[str, Any]:
    """A value that is an object; an empty one for any other."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def parts_of(schema: Any) -> Iterator[Any]:
    """A schema and all that stands in it."""
    pending = [schema]
    while pending:
        part = pending.pop()
        yield part
        pending.extend(pieces_of(part))


def pieces_of(value: Any) -> list[Any]:
    """What stands directly in an object or a list."""
    return cast("list[Any]", value) if isinstance(value, list) else list(as_object(value).values())


def _measure(value: Any, sizes: dict[int, int]) -> None:
    """Note of how many parts each object, list and text of a value consists."""
    order = list(parts_of(value))
    for part in reversed(order):
        own = 1 + len(part) // _CHARACTERS_OF_A_PART if isinstance(part, str) else 1
        sizes[id(part)] = own + sum(sizes[id(piece)] for piece in pieces_of(part))


def _asked_next(part: Any, piece: Any, whole: Any) -> Iterator[tuple[Any, Any]]:
    """The parts of a schema that a validator goes on with from here, each with the part of the value."""
    schema = as_object(part)
    here = [each for key in _HERE for each in _listed(schema.get(key))]
    for key in ("dependentSchemas", "dependencies"):
        here += pieces_of(schema.get(key))
    for key in ("$ref", "$dynamicRef", "$recursiveRef"):
        here += referred(reference, whole) if isinstance(reference := schema.get(key), str) else []
    # What is "unevaluated" is found by doing everything here a second time.
    again = 2 if "unevaluatedProperties" in schema or "unevaluatedItems" in schema else 1
    yield from ((each, piece) for each in here * again)
    if isinstance(piece, dict):
        yield from _asked_of_object(schema, cast("dict[str, Any]", piece))
    elif isinstance(piece, list):
        yield from _asked_of_list(schema, cast("list[Any]", piece))


def _asked_of_object(schema: dict[str, Any], piece: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    names = as_object(schema.get("properties"))
    yield from ((names[name], inner) for name, inner in piece.items() if name in names)
    if other := schema.get("additionalProperties"):
        yield from ((other, inner) for name, inner in piece.items() if name not in names)
    for key in _OF_OBJECTS:
        found = schema.get(key)
        asked = pieces_of(found) if key == "patternProperties" else _listed(found)
        yield from ((each, inner) for each in asked for inner in piece.values())


def _asked_of_list(schema: dict[str, Any], piece: list[Any]) -> Iterator[tuple[Any, Any]]:
    yield from zip(_listed(schema.get("prefixItems")), piece, strict=False)
    for key in _OF_LISTS:
        yield from ((each, inner) for each in _listed(schema.get(key)) for inner in piece)


def _listed(found: Any) -> list[Any]:
    """The schemas under a keyword that has one or a list of them."""
    if found is None:
        return []
    return cast("list[Any]", found) if isinstance(found, list) else [found]
