"""Which value a literal has, once its attribute is known (ruling 2).

A string attribute keeps the text as written (``label=007``), a typed one reads quoted and bare values
alike, an attribute of somebody else's keeps what its own spelling says. Nothing fails here: a literal
that does not fit stays what it is, for lint to report.
"""

from __future__ import annotations

from functools import cache
from math import isinf
from typing import TYPE_CHECKING, Final

from attractor_nb.languages.dot.literals import MAX_INTEGER_DIGITS, MAX_NUMBER_LENGTH, text_of, value_of
from attractor_nb.model.vocabulary.attribute_kinds import AttributeSpec, AttrType, AttrValue, Scope
from attractor_nb.model.vocabulary.attributes import attributes_of, coerce
from attractor_nb.model.vocabulary.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Reading = tuple[str, "Callable[[str], AttrValue]"]
"""The canonical name of an attribute, and what makes a value of its literal."""

_TEXTUAL: Final = frozenset({AttrType.STRING, AttrType.CHOICE, AttrType.NODE_ID, AttrType.COMMAND})


@cache
def readings(scope: Scope) -> Mapping[str, Reading]:
    """How to read the attributes that the table knows in a scope, by each of their names."""
    return {
        row.name: (row.alias_of or row.name, text_of if row.type in _TEXTUAL else _typed_reader(row))
        for row in attributes_of(scope)
    }


def read_unknown(literal: str) -> AttrValue:
    """The value of an attribute that is not in the table; a duration is text there (ruling 5)."""
    value = value_of(literal)
    return literal if isinstance(value, Duration) else value


def _typed_reader(row: AttributeSpec) -> Callable[[str], AttrValue]:
    """What reads literals as the row's type where they can be."""
    longest = MAX_NUMBER_LENGTH if row.type is AttrType.FLOAT else MAX_INTEGER_DIGITS

    def read(literal: str) -> AttrValue:
        if len(literal) <= longest:
            typed = coerce(row, value_of(literal))
            if typed is not None and not (isinstance(typed, float) and isinf(typed)):
                return typed
        return read_unknown(literal)

    return read
