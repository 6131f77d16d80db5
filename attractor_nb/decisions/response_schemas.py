"""The schema of ``response_schema``, and the validation of values by it: JSON Schema alone, nothing is fetched."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote

from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.calls.call_content import fenced
from attractor_nb.model.texts import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from jsonschema_rs import Draft202012Validator, ValidationError

    from attractor_nb.model.graph import Node


NOT_CHECKED: Final = "no schema can be checked here: jsonschema-rs is not installed, and has no wheel for every system"
MAX_COMPLAINT_CHARACTERS: Final = 300
MAX_PARTS: Final = 100_000
"""Parts of a schema with all that it refers to in place: the library writes some of that out."""
ALL_IS_TOLD: Final = 20_000
"""Up to this much work all that is wrong is found, and told is what the schema says first."""
ONE_IS_TOLD: Final = 32
"""Up to this much work for each part of a value one thing that is wrong is found: its text costs much more."""
_OF_SCHEMAS: Final = {"type": ["object", "boolean"]}
"""Schemas of the schemas themselves."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")


def is_schema_name(text: str) -> bool:
    """True if the attribute names a registered schema; else it is one.

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
    """The reason why a text is not a JSON Schema that can validate values; empty when it is one.

    >>> schema_problem('{"type": "object"}')
    ''
    >>> schema_problem('{"type": "objekt"}')
    "'objekt' is not valid under any of the given schemas (at $.type)"
    """
    try:
        from jsonschema_rs import ValidationError  # noqa: PLC0415 - rarely needed
    except ImportError:
        return NOT_CHECKED

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
    itself that others may be beside them: a schema in which nothing is required would be satisfied by
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
        """The problem of a value that was read from JSON; empty when it satisfies the schema."""
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
        """True if a value can be meant as one of the schema, valid or not.

        An object has the shape with a property that the schema names; where it names none, and for other
        values, only what satisfies it has it.
        """
        if isinstance(value, dict) and self._names:
            return bool(self._names & value.keys())
        return not self.complaint_about(value)


def _validator(schema: Any) -> Draft202012Validator:
    """The validator of a schema: it matches patterns in linear time and fetches nothing."""
    from jsonschema_rs import Draft202012Validator, RegexOptions  # noqa: PLC0415 - as above

    return Draft202012Validator(schema, pattern_options=RegexOptions(), offline=True)


def _readable(value: Any) -> Any:
    """A value that the library can read: each half of a character (a lone surrogate) is a question mark."""
    text = json.dumps(value, ensure_ascii=False)
    return value if text.isascii() else json.loads(text.encode(errors="replace"))


def _order(error: ValidationError, schema: Any) -> list[int]:
    """The position in a schema of the keyword that a value does not satisfy; references count where they occur."""
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
    """True if Python has a pattern of this form."""
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _reference_problem(schema: Any) -> str:
    """The problem with a reference of a schema, or empty."""
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


# The complaint that the next attempt of a stage sends to its model about an invalid answer (ruling 26).

MAX_ANSWER_CHARACTERS: Final = 2_000
"""Of an answer that a model is shown again: its beginning and its end."""
_REMEDY: Final = "Answer the task again, and put this right."
SHORTER: Final = "Answer the task again, so briefly that the whole answer fits."


def complaint_about(answer: str, problem: str, remedy: str = _REMEDY) -> str:
    r"""The complaint about an answer: its problem, the answer itself, and the task for the next attempt.

    The same answer makes the same complaint in any run, so that recordings and the cache know the prompt.

    >>> print(complaint_about('{"score": 11}', "11 is more than 10"))
    It could not be used: 11 is more than 10.
    <BLANKLINE>
    You answered:
    <BLANKLINE>
    ```
    {"score": 11}
    ```
    <BLANKLINE>
    Answer the task again, and put this right.
    """
    parts = [f"It could not be used: {' '.join(problem.split())}."]
    if given := answer.strip():
        parts += ["You answered:", fenced(excerpt(given, MAX_ANSWER_CHARACTERS))]
    return "\n\n".join([*parts, remedy])


# The problem of a value that does not satisfy a JSON Schema, in one sentence.
#
# A model reads it and corrects its answer, and users compare it with what they know from elsewhere: the
# sentences are those of Python's jsonschema.

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
    """The problem of a value by its schema, without the place."""
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


# The work of validating a value by a JSON Schema, estimated before the validation begins (ruling 52).
#
# A schema may refer to itself, and so ask for one part of a value again and again: thirty lines take years, and
# nothing can interrupt the library that checks them. What is counted here is the most that it may have to do. The
# count takes each part of a schema and each part of a value together once.

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
    """The most inspections of parts of a value, counted just beyond ``MAX_WORK``; and the number of its parts.

    >>> twice = {"anyOf": [{"$ref": "#/$defs/n"}, {"$ref": "#/$defs/n"}]}
    >>> schema = {**twice, "$defs": {"n": {"properties": {"child": twice}}}}
    >>> work_of(schema, {}), work_of(schema, {"child": {}}), work_of(schema, {"child": {"child": {}}})
    ((5, 1), (20, 2), (55, 3))
    """
    sizes: dict[int, int] = {}
    _measure(value, sizes)
    return _counted(schema, value, schema, sizes), sizes[id(value)]


def parts_written_out(schema: Any) -> int:
    """The number of parts of a schema with all references expanded, counted just beyond ``MAX_WORK``.

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
    """The depth to which objects and lists are nested in a value.

    >>> levels(5), levels({}), levels([[], {"a": [1]}])
    (0, 1, 3)
    """
    found, row = 0, [value]
    while any(isinstance(each, dict | list) for each in row):
        found += 1
        row = [inner for each in row for inner in pieces_of(each)]
    return found


def referred(reference: str, whole: Any) -> list[Any]:
    """The parts of a schema that its own reference can lead to; none for any other.

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
    """A schema and all that is in it."""
    pending = [schema]
    while pending:
        part = pending.pop()
        yield part
        pending.extend(pieces_of(part))


def pieces_of(value: Any) -> list[Any]:
    """The direct members of an object or a list."""
    return cast("list[Any]", value) if isinstance(value, list) else list(as_object(value).values())


def _measure(value: Any, sizes: dict[int, int]) -> None:
    """Note of how many parts each object, list and text of a value consists."""
    order = list(parts_of(value))
    for part in reversed(order):
        own = 1 + len(part) // _CHARACTERS_OF_A_PART if isinstance(part, str) else 1
        sizes[id(part)] = own + sum(sizes[id(piece)] for piece in pieces_of(part))


def _asked_next(part: Any, piece: Any, whole: Any) -> Iterator[tuple[Any, Any]]:
    """The parts of a schema that a validator continues from here, each with the part of the value."""
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
