"""Keys that continue into structured values whose fields are known: answers, forms, typed inputs (ruling 50).

An unknown field is a finding only where the schema of the value can tell; where a value may have any fields, nothing
is said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from attractor_nb.decisions.response_schemas import as_object, is_schema_name, parts_of
from attractor_nb.decisions.schema_fields import (
    MissingField,
    fields_within,
    keys_of_fields,
    listed_values,
    missing_field,
)
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.inputs import INPUTS_SCHEMA
from attractor_nb.model.texts import suggestion
from attractor_nb.model.vocabulary.shapes import DEFAULT_TYPE, HUMAN_TYPE
from attractor_nb.model.vocabulary.value_forms import FOR_EACH, ITEM, list_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.lint.survey import Survey
    from attractor_nb.model.graph import Node

_MOST_LOOKS: Final = 500_000
"""Parts of schemas that are looked at for one graph; keys beyond that are not judged (ruling 52)."""
_MOST_LISTED: Final = 10
FORM: Final = "human.form"
_FILLED_IN: Final = "human.gate.form"


class Structure(NamedTuple):
    """The schema of a stored value."""

    parts: list[Any]  #: The schemas that the value may have.
    whole: Any  #: The schema that their references are looked up in.
    size: int  #: The number of its parts.
    drops_others: bool = False  #: Only the fields are stored that the schema names.


class KeySlip(NamedTuple):
    """A key that names no field of the structured value that it continues into."""

    near: str  #: The key that was probably meant, or empty.
    reason: str  #: Why it names nothing.
    remedy: str  #: What to write where nothing is near.
    is_certain: bool  #: The value never has that field; else its schema does not forbid it.

    @property
    def words(self) -> str:
        """The end of a message that says that the key names nothing."""
        return suggestion(self.near) or f": {self.reason}"


class StructuredKeys:
    """The structured values of a graph, by the keys that they are stored under."""

    def __init__(self, survey: Survey) -> None:
        self._structures: dict[str, list[Structure]] = {}
        self._looks = 0
        for key, found in _structures(survey):
            self._structures.setdefault(key, []).append(found)

    def fields(self) -> Iterator[str]:
        """The keys of the structured values, and those of their fields."""
        for key, found in self._structures.items():
            yield key
            for each in found:
                yield from keys_of_fields(each.parts, each.whole, key)

    def values(self, key: str) -> list[Any] | None:
        """The only values of a field, as schemas list them; None where it may have others.

        Args:
            key: The key, without ``context.``.
        """
        names, found = key.split("."), list[Any]()
        for count in range(1, len(names)):
            for each in self._structures.get(".".join(names[:count]), ()):
                self._looks += each.size * (len(names) - count)
                if self._looks > _MOST_LOOKS:
                    return None
                listed = listed_values(fields_within(each.parts, each.whole, names[count:]), each.whole)
                if listed is None:
                    return None
                found += listed
        return found or None

    def slip(self, key: str, node: Node | None = None) -> KeySlip | None:
        """The slip in a key; None for a key that names something, or for an unknown key.

        Args:
            key: The key, without ``context.``.
            node: Whose text has the key: its ``item`` is one of the list that it names.
        """
        names = key.split(".")
        if names[0] == ITEM and node is not None and FOR_EACH in node.attrs:
            of_list = [*list_key(node.get(FOR_EACH, str, "")).split("."), "0"]
            if self._slip_below(of_list):  # for_each tells it
                return None
            return self._slip_below([*of_list, *names[1:]], shown=(".".join([*of_list, ""]), f"{ITEM}."))
        return self._slip_below(names)

    def _slip_below(self, names: list[str], shown: tuple[str, str] = ("", "")) -> KeySlip | None:
        slips = list[KeySlip]()
        for count in range(1, len(names)):
            key = ".".join(names[:count])
            for each in self._structures.get(key, ()):
                self._looks += each.size * (len(names) - count)
                if self._looks > _MOST_LOOKS:
                    return None
                found = missing_field(each.parts, each.whole, names[count:], drops_others=each.drops_others)
                if found is None:
                    return None
                slips.append(_slip(key, names[count:], found, shown))
        return next((each for each in slips if each.near), slips[0] if slips else None)


def _slip(key: str, names: list[str], found: MissingField, shown: tuple[str, str]) -> KeySlip:
    holder = ".".join((key, *names[: found.depth]))
    near = ".".join((key, *found.meant)) if found.meant else ""
    if found.fields:
        listed = ", ".join(found.fields[:_MOST_LISTED]) + (", …" if len(found.fields) > _MOST_LISTED else "")
        reason, remedy = f'"{holder}" has no field "{names[found.depth]}"', f"its fields: {listed}"
    elif found.is_list:
        reason, remedy = f'"{holder}" is a list', f'name an item by its index, such as "{holder}.0"'
    else:
        reason, remedy = f'"{holder}" has no fields', f'write "{holder}"'
    stored, written = shown
    near = near.replace(stored, written, 1) if near.startswith(stored) else near
    return KeySlip(near, reason, remedy, found.is_certain)


def _structures(survey: Survey) -> Iterator[tuple[str, Structure]]:
    options = survey.options
    for node in survey.having("response_schema"):
        if survey.types[node.id] != DEFAULT_TYPE or DEFAULT_TYPE in options.taken_over:
            continue
        if FOR_EACH in node.attrs or node.get("verdict", str, "") == "json":  # its answers are elsewhere
            continue
        text = node.get("response_schema", str, "").strip()
        is_registered = is_schema_name(text)
        schema = options.stored_schema(text) if is_registered else _read(text)
        if schema is not None:
            yield f"{node.id}.verdict", _structure(schema, drops_others=is_registered)
    if (typed := options.stored_schema(survey.graph.get(INPUTS_SCHEMA, str, "").strip())) is not None:
        whole = _structure(typed)
        for name in as_object(as_object(typed).get("properties")):
            yield name, whole._replace(parts=fields_within(whole.parts, typed, [name]))
    if HUMAN_TYPE in options.taken_over:
        return
    for node in survey.having(FORM):
        if survey.types[node.id] == HUMAN_TYPE:
            form = options.stored_schema(node.get(FORM, str, "").strip())
            yield _FILLED_IN, _structure(True if form is None else form)


def _structure(schema: Any, *, drops_others: bool = False) -> Structure:
    return Structure([schema], schema, sum(1 for _ in parts_of(schema)), drops_others)


def _read(text: str) -> Any:
    try:
        return read_bounded_json(text)
    except ValueError:
        return None
