"""A form that a gate asks to be filled in: its fields, and who judges what was entered."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from attractor_nb.model.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class FieldKind(StrEnum):
    """What a field takes."""

    TEXT = "text"
    WHOLE = "whole"
    NUMBER = "number"
    YES_NO = "yes_no"
    CHOICE = "choice"
    TEXTS = "texts"


class FormField(Record, frozen=True, omit_defaults=False):
    """One field."""

    name: str  #: By which it is answered and kept.
    kind: FieldKind  #: What it takes.
    title: str = ""  #: What a person reads.
    words: str = ""  #: What it is for, or empty.
    limits: str = ""  #: What a value must keep to, in words, or empty.
    choices: tuple[Any, ...] = ()  #: The values of a ``CHOICE``.
    default: Any = None  #: Its value when it is left out; None when there is none.
    is_required: bool = True  #: It cannot be left out.
    is_nullable: bool = False  #: It may be without a value.


@dataclass(frozen=True, slots=True)
class Form:
    """A form."""

    name: str  #: Name of the schema that it was made of.
    fields: tuple[FormField, ...]  #: Its fields, in order.
    #: Given entered values, the values as they are kept, or None; and what is wrong with them, by field, under the
    #: empty name what is wrong with them together. None where only the fields are known, as in a recording.
    judge: Callable[[Mapping[str, Any]], tuple[dict[str, Any] | None, dict[str, str]]] | None = field(
        default=None, compare=False, repr=False
    )

    def to_plain(self) -> dict[str, Any]:
        """As JSON values: for events, recordings and front-ends."""
        return {"name": self.name, "fields": [entry.to_plain() for entry in self.fields]}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Form | None:
        """The inverse of ``to_plain``; None for an empty one."""
        if not plain:
            return None
        return cls(str(plain["name"]), tuple(FormField.from_plain(entry) for entry in plain["fields"]))
