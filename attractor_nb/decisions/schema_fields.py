"""The fields of a structured value, as its JSON Schema tells them (ruling 50)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from attractor_nb.decisions.response_schemas import as_object, pieces_of, referred
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.texts import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST_FIELD_LEVELS: Final = 5
"""How deep the fields of a schema are looked up."""
_COMBINING: Final = ("$ref", "allOf", "anyOf", "oneOf")
_SCALARS: Final = frozenset({"string", "integer", "number", "boolean", "null"})
_LISTED: Final = {"boolean": (True, False), "null": (None,)}
"""Values of the types that have few."""
_OBJECT: Final = "object"
_ARRAY: Final = "array"
_OPENING: Final = frozenset(
    ("patternProperties", "if", "then", "else", "dependentSchemas", "dependencies", "$dynamicRef", "$recursiveRef")
)
"""Keywords that may give a value fields which are not looked up here."""


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
        within: The names that lead to the part of the value that the key means.
    """
    try:
        schema: object = read_bounded_json(text)
    except ValueError:
        return
    yield from keys_of_fields(fields_within([schema], schema, within), schema, key)


def keys_of_fields(parts: Sequence[Any], whole: Any, key: str, levels: int = MOST_FIELD_LEVELS) -> Iterator[str]:
    """The keys of the fields of a value that is stored under a key.

    Args:
        parts: The schemas that the value may have.
        whole: The schema that their references are looked up in.
        key: The key.
        levels: How deep fields are looked up.
    """
    fields: dict[str, list[Any]] = {}
    for each in (each for part in parts for each in _with_alternatives(part, whole)) if levels else ():
        for name, inner in as_object(each.get("properties")).items():
            fields.setdefault(name, []).append(inner)
    for name, inner in fields.items():
        yield f"{key}.{name}"
        yield from keys_of_fields(inner, whole, f"{key}.{name}", levels - 1)


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


class MissingField(NamedTuple):
    """A path that leads nowhere in a structured value."""

    depth: int  #: The number of its names that lead somewhere.
    meant: tuple[str, ...]  #: The path that was probably meant; empty where nothing is near.
    fields: tuple[str, ...]  #: The fields of the value that the path ends in.
    is_list: bool  #: That value is a list, or may be one.
    is_certain: bool  #: The value has no other fields; else its schema lets others stand beside them.


def missing_field(
    parts: Sequence[Any], whole: Any, names: Sequence[str], *, drops_others: bool = False
) -> MissingField | None:
    """The problem of a path into a value; None where it leads somewhere, or where that is unknown.

    A part of a schema that says nothing about an object leads anywhere. One alternative that leads on is enough.

    >>> schema = {"properties": {"level": {"type": "string"}}}
    >>> missing_field([schema], schema, ["level"]), missing_field([schema], schema, ["lvl"]).meant
    (None, ('level',))
    >>> missing_field([schema], schema, ["colour"])
    >>> missing_field([schema], schema, ["colour"], drops_others=True).fields
    ('level',)

    Args:
        parts: The schemas that the value may have.
        whole: The schema that their references are looked up in.
        names: The path.
        drops_others: Of an object only the fields are stored that its schema names.
    """
    for count, name in enumerate(names):
        found = _alternatives(parts, whole)
        parts = [inner for each in found for inner in _below(each, name, whole)]
        if not parts:
            return _missing(found, whole, names, count, drops_others=drops_others)
    return None


def fields_within(parts: Sequence[Any], whole: Any, names: Sequence[str]) -> list[Any]:
    """The schemas of what a path leads to; a schema of any value where they are unknown."""
    for name in names:
        parts = [inner for each in _alternatives(parts, whole) for inner in _below(each, name, whole)]
    return list(parts)


def listed_values(parts: Iterable[Any], whole: Any) -> list[Any] | None:
    """The only values that schemas allow, as far as they list them; None where a value may be another.

    >>> schema = {"anyOf": [{"enum": ["low", "high"]}, {"type": "null"}]}
    >>> listed_values([schema], schema), listed_values([{"type": "string"}], True)
    (['low', 'high', None], None)
    """
    found = list[Any]()
    for part in _alternatives(parts, whole):
        if "const" in part:
            found.append(part["const"])
        elif "enum" in part:
            found += pieces_of(part["enum"])
        elif not _is_combined(part, whole):
            types = _types(part)
            if not types or not types <= _LISTED.keys():
                return None
            found += [value for each in sorted(types) for value in _LISTED[each]]
    return None if any(isinstance(each, dict | list) for each in found) else found


def _is_combined(part: dict[str, Any], whole: Any) -> bool:
    """Whether the alternatives of a part of a schema, which are looked at beside it, say what its values are."""
    refers = "$ref" in part and bool(referred(str(part["$ref"]), whole))
    return refers or any(pieces_of(part.get(keyword)) for keyword in ("allOf", "anyOf", "oneOf"))


def _alternatives(parts: Iterable[Any], whole: Any) -> list[dict[str, Any]]:
    found = {id(each): each for part in parts for each in _with_alternatives(part, whole)}
    return list(found.values())


def _below(part: dict[str, Any], name: str, whole: Any) -> list[Any]:
    """The schemas of what stands under a name in a value of this part of a schema, its alternatives left out."""
    fields, types = as_object(part.get("properties")), _types(part)
    if name in fields:
        return [fields[name]]
    if _says_nothing(part, types, whole):
        return [True]
    found = list[Any]()
    if name.isdigit() and (_ARRAY in types or "items" in part or "prefixItems" in part):
        first, place = pieces_of(part.get("prefixItems")), int(name[:9])
        found.append(first[place] if place < len(first) else part.get("items", True))
    if part.get("additionalProperties", False) is not False:
        found.append(part["additionalProperties"])
    return [each for each in found if each is not False]


def _says_nothing(part: dict[str, Any], types: frozenset[str], whole: Any) -> bool:
    """Whether a part of a schema leaves open which fields a value has."""
    if not _OPENING.isdisjoint(part) or ("$ref" in part and not referred(str(part["$ref"]), whole)):
        return True
    if any(keyword in part for keyword in (*_COMBINING, "properties", "items", "prefixItems")):
        return False
    if any(isinstance(each, dict | list) for each in (*pieces_of(part.get("enum")), part.get("const"))):
        return True
    if "enum" in part or "const" in part:
        return False
    return "additionalProperties" not in part and (not types or _OBJECT in types)


def _types(part: dict[str, Any]) -> frozenset[str]:
    found = part.get("type")
    return frozenset({found} if isinstance(found, str) else map(str, pieces_of(found)))


def _missing(
    found: Sequence[dict[str, Any]], whole: Any, names: Sequence[str], count: int, *, drops_others: bool
) -> MissingField | None:
    name, before, rest = names[count], names[:count], names[count + 1 :]
    fields = list(dict.fromkeys(each for part in found for each in as_object(part.get("properties"))))
    lists = [part for part in found if "items" in part or _ARRAY in _types(part)]
    is_certain = all(_is_closed(part, drops_others=drops_others) for part in found)
    meant: tuple[str, ...] = ()
    if near := nearest(name, fields):
        meant = (*before, near, *rest)
    elif any(_below(each, name, whole) for each in _alternatives(fields_within(lists, whole, ["0"]), whole)):
        meant = (*before, "0", name, *rest)
    if not meant and not is_certain:
        return None
    return MissingField(count, meant, tuple(fields), bool(lists), is_certain)


def _is_closed(part: dict[str, Any], *, drops_others: bool) -> bool:
    """Whether a value of this part of a schema has no fields but those that it names."""
    types = _types(part)
    if "properties" in part or _OBJECT in types:
        return drops_others or part.get("additionalProperties") is False
    return bool(types) or any(keyword in part for keyword in (*_COMBINING, "enum", "const"))
