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
    """One field.

    Attributes:
        name: By which it is answered and kept.
        kind: What it takes.
        title: What a person reads.
        words: What it is for, or empty.
        limits: What a value must keep to, in words, or empty.
        choices: The values of a ``CHOICE``.
        default: Its value when it is left out; None when there is none.
        is_required: It cannot be left out.
        is_nullable: It may be without a value.
    """

    name: str
    kind: FieldKind
    title: str = ""
    words: str = ""
    limits: str = ""
    choices: tuple[Any, ...] = ()
    default: Any = None
    is_required: bool = True
    is_nullable: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """A form.

    Attributes:
        name: Name of the schema that it was made of.
        fields: Its fields, in order.
        judge: Given entered values, the values as they are kept, or None; and what is wrong with them, by
            field, under the empty name what is wrong with them together. None where only the fields are
            known, as in a recording.
    """

    name: str
    fields: tuple[FormField, ...]
    judge: Callable[[Mapping[str, Any]], tuple[dict[str, Any] | None, dict[str, str]]] | None = field(
        default=None, compare=False, repr=False
    )

    def to_plain(self) -> dict[str, Any]:
        """As JSON values: for events, recordings and front-ends."""
        return {"name": self.name, "fields": [entry.to_plain() for entry in self.fields]}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Form | None:
        """The inverse of ``to_plain``; None for an empty one.

        Raises:
            KeyError, TypeError, ValueError: It is none.
        """
        if not plain:
            return None
        return cls(str(plain["name"]), tuple(FormField.from_plain(entry) for entry in plain["fields"]))
