"""Looks attributes up in their table, and gives a value the type that its attribute asks for.

An attribute that is not in the table is kept as written (ruling 5).
"""

from __future__ import annotations

import re
from collections.abc import Mapping  # noqa: TC003 - nodes are structs, whose types are looked up
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar, overload

import msgspec

from attractor_nb.model.vocabulary.attribute_table import TABLE, AttributeSpec, AttrType, AttrValue, Scope
from attractor_nb.model.vocabulary.value_forms import Duration, parse_duration
from attractor_nb.source import Span  # noqa: TC001 - as above

if TYPE_CHECKING:
    from collections.abc import Iterable


_INDEX: Final = {(row.scope, row.name): row for row in TABLE}
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_FLOAT = re.compile(r"[+-]?([0-9]++(?:\.[0-9]*)?|\.[0-9]+)\Z")


def attribute(scope: Scope, name: str) -> AttributeSpec | None:
    """The table's row for a name in a scope, or None for a foreign attribute."""
    return _INDEX.get((scope, name))


def attributes_of(scope: Scope) -> Iterable[AttributeSpec]:
    """All rows of a scope, in the table's order."""
    return (row for row in TABLE if row.scope is scope)


def coerce(spec: AttributeSpec, value: AttrValue) -> AttrValue | None:
    """Read a literal as the type its attribute asks for (ruling 2); None when it cannot be.

    Choices and node ids are not checked here: a wrong one is kept, and lint says so.

    >>> timeout = _INDEX[Scope.NODE, "timeout"]
    >>> coerce(timeout, "900s"), coerce(timeout, 5), coerce(timeout, "soon")
    (Duration(milliseconds=900000), Duration(milliseconds=5000), None)
    """
    match spec.type:
        case AttrType.BOOLEAN:
            if isinstance(value, bool):
                return value
            return {"true": True, "false": False}.get(str(value).lower())
        case AttrType.INTEGER:
            return _whole_number(value)
        case AttrType.FLOAT:
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
            return float(value) if isinstance(value, str) and _FLOAT.match(value) else None
        case AttrType.DURATION:
            if isinstance(value, Duration):
                return value
            return None if isinstance(value, bool) else parse_duration(str(value))
        case _:
            return literal_text(value)


def _whole_number(value: AttrValue) -> int | None:
    """An integer, also written as the number ``2.0``; None for anything else."""
    if isinstance(value, str):
        if _INTEGER.match(value):
            return int(value)
        value = float(value) if _FLOAT.match(value) else value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def literal_text(value: AttrValue) -> str:
    """A value as DOT writes it bare: ``true``, ``3``, ``900s``, or the string itself."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


# The base of graph, node and edge: attributes, read by their types in the attribute table.

T = TypeVar("T", str, int, float, bool, Duration)
NO_ATTRS: Mapping[str, AttrValue] = MappingProxyType({})


class AttrSpan(msgspec.Struct, frozen=True):
    """The position of an attribute: its name, and its value as written (quotes included)."""

    name: Span
    value: Span


NO_SPANS: Mapping[str, AttrSpan] = MappingProxyType({})


class Attributed:
    """Typed reading of ``attrs`` through the attribute table, shared by graph, node and edge."""

    __slots__ = ()
    attrs: Mapping[str, AttrValue]
    _scope: ClassVar[Scope]

    @overload
    def get(self, name: str, kind: type[T]) -> T | None: ...
    @overload
    def get(self, name: str, kind: type[T], default: T) -> T: ...
    def get(self, name: str, kind: type[T], default: T | None = None) -> T | None:
        """The value of an attribute if it is set and of that kind, else ``default``.

        A value of the wrong kind was reported by lint and counts as unset.

        Args:
            name: The attribute.
            kind: The type of the value: str, bool, int, float or Duration.
            default: The value if it is not set; by default that of the table of attributes.
        """
        value = self.attrs.get(name)
        if kind is str and value is not None and not isinstance(value, str):
            value = literal_text(value)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
            return value
        if default is None and (row := attribute(self._scope, name)) and isinstance(row.default, kind):
            return row.default
        return default
