"""Looks attributes up in their table, and gives a value the type that its attribute asks for.

An attribute that is not in the table is kept as written (ruling 5).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from attractor_nb.model.vocabulary.attribute_kinds import AttributeSpec, AttrType, AttrValue, Scope
from attractor_nb.model.vocabulary.attribute_table import TABLE
from attractor_nb.model.vocabulary.duration import Duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Iterable

_INDEX: Final = {(row.scope, row.name): row for row in TABLE}
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_FLOAT = re.compile(r"[+-]?([0-9]++(?:\.[0-9]*)?|\.[0-9]+)\Z")


def attribute(scope: Scope, name: str) -> AttributeSpec | None:
    """The table's row for a name in a scope, or None for an attribute of somebody else's."""
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
