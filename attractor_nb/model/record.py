"""The base of all records: typed values that are written as JSON and type-checked when read.

A record says once what its fields are, which values they may have and how they are called in JSON; nobody
writes or reads one field by field. A field that has its default is left out of the JSON, one made by
``always`` never. A record holds JSON values, which form no cycle, so the collector passes it over: a log of
10,000 steps has 100,000 objects.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final, Self, TypeVar, cast

import msgspec

_T = TypeVar("_T")

Count = Annotated[int, msgspec.Meta(ge=0)]
"""A count, or a number of something."""

no_values: Final[Callable[[], dict[str, Any]]] = dict
"""An empty dict, as a default: written as ``dict`` itself, whose empty values msgspec leaves out."""


def always(value: _T, *, name: str | None = None) -> _T:
    """The default of a field that is written even when it has its default; its name in JSON, if it has another."""
    made = partial(type(value), value)  # type: ignore[call-overload]
    return cast("_T", msgspec.field(default_factory=made, name=name))


class _Plain:
    """The form in JSON, and the way back."""

    __slots__ = ()

    def to_plain(self) -> dict[str, Any]:
        """JSON values by the names of the JSON form; fields that have their default are left out."""
        return msgspec.to_builtins(self, enc_hook=plain_value)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The inverse of ``to_plain``; what a record of that type does not have is left out.

        Raises:
            ValueError: A value is missing, of another type or out of bounds; the message says where.
        """
        try:
            return converted(plain, cls)
        except msgspec.ValidationError as error:
            raise in_words(error) from None


class Record(_Plain, msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """An immutable value."""


class OpenRecord(_Plain, msgspec.Struct, omit_defaults=True, gc=False):
    """A value that is completed after it was made."""


_known: Final = set[object]()
_first: Final = threading.RLock()


def converted(plain: object, kind: Any) -> Any:
    """JSON values as a record, checked.

    msgspec finds out what a class consists of when one is read for the first time, and another thread that reads one
    meanwhile finds half of it and ends the process. So the first record of a kind is read alone.
    """
    if kind in _known:
        return msgspec.convert(plain, kind)
    with _first:
        record = msgspec.convert(plain, kind)
        _known.add(kind)
        return record


def decoder_of(kind: Any) -> msgspec.json.Decoder[Any]:
    """The decoder for records of a kind from JSON texts; see ``converted`` for why it is made here."""
    with _first:
        return msgspec.json.Decoder(kind)


def plain_value(value: object) -> object:
    """The JSON form of a value whose class msgspec does not know."""
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    raise TypeError(f"a value of type {type(value).__name__} has no form in JSON")


_encoder: Final = msgspec.json.Encoder(enc_hook=plain_value)
encode: Final = _encoder.encode
"""A record as compact JSON. A lone surrogate raises ``UnicodeEncodeError``: only escapes can spell it."""


class RecordProblem(ValueError):
    """A problem in a record, in words that complete "the record …"."""


_PLACE: Final = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<where>[^`]*)`)?", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(\w+)`")
_WORDS: Final = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
}


def in_words(error: msgspec.ValidationError) -> RecordProblem:
    """The problem with a value, and its position.

    >>> try:
    ...     msgspec.convert("1", Count)
    ... except msgspec.ValidationError as error:
    ...     print(in_words(error))
    has a wrong shape: expected a whole number, got a text
    """
    found = _PLACE.fullmatch(str(error))
    what, where = (found["what"], found["where"]) if found else (str(error), None)
    if missing := _MISSING.fullmatch(what):
        what, where = "field required", ".".join(filter(None, (where, missing[1])))
    what = re.sub(r"`(\w+)`", lambda word: _WORDS.get(word[1], word[1]), what)
    place = f"{where}: " if where else ""
    return RecordProblem(f"has a wrong shape: {place}{what[:1].lower()}{what[1:]}")
