r"""A new value in the spelling of the old one: what did not change keeps its characters.

The old literal says whether to quote, how lines are broken and which escapes are used; of a long prompt
only the part that differs is written anew.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import OptionError
from attractor_nb.languages.dot.mistakes import STRING
from attractor_nb.languages.dot.writer import (
    BARE_VALUE,
    KEYWORDS,
    is_quoted,
    is_too_large,
    quote,
    read_unknown,
    readings,
    spell,
    string_offsets,
    text_of,
)
from attractor_nb.model.vocabulary.attribute_table import AttrType, AttrValue, Scope
from attractor_nb.model.vocabulary.attributes import attribute, coerce, literal_text
from attractor_nb.model.vocabulary.value_forms import Duration

if TYPE_CHECKING:
    from collections.abc import Iterator

_BARE: Final = re.compile(BARE_VALUE)
_PROSE: Final = frozenset({AttrType.STRING, AttrType.COMMAND, AttrType.DURATION})


def spelled(scope: Scope, name: str, value: object, old: str = "") -> str:
    r"""A value as the literal of an attribute, which reads back as that value.

    >>> spelled(Scope.NODE, "prompt", "two\nlines", '"one\nlines"')
    '"two\nlines"'
    >>> spelled(Scope.NODE, "timeout", "20m", "15m"), spelled(Scope.NODE, "max_retries", 2)
    ('20m', '2')

    Args:
        scope: Scope of the attribute.
        name: Its name, or its alias.
        value: A string, number, boolean or duration. A string stands for whatever the attribute's type reads
            in it; one that does not fit is kept as it is, for lint to report.
        old: The literal that it replaces; empty for a new attribute.
    """
    _refuse_foreign(name, value)
    assert isinstance(value, str | int | float | bool | Duration), "others were refused"
    row = attribute(scope, name)
    wanted: AttrValue = value
    if row is not None:
        typed = coerce(row, value)
        wanted = literal_text(value) if typed is None else typed
    reading = readings(scope).get(name)
    read = reading[1] if reading else read_unknown
    is_prose = row is None or (row.type in _PROSE and name != "shape")
    for literal in _candidates(wanted, old, is_prose=is_prose):
        found = read(literal)
        if found == wanted and isinstance(found, bool) == isinstance(wanted, bool):
            return literal
    raise OptionError(f"DOT cannot hold this value of {name}", hint="write it as a string")


def _refuse_foreign(name: str, value: object) -> None:
    if not isinstance(value, str | int | float | bool | Duration):
        kind = type(value).__name__
        raise OptionError(f"{name} cannot be a {kind}", hint="use a string, a number, a boolean, or None to remove it")
    if isinstance(value, float) and not isfinite(value):
        raise OptionError(f"{name} cannot be {value}: DOT has no such number", hint="use a finite number")


def _candidates(value: AttrValue, old: str, *, is_prose: bool) -> Iterator[str]:
    """Spellings of a value, the most fitting first."""
    text = literal_text(value)
    bare = [text] if _is_bare(text) else []
    if is_quoted(old):
        yield _requoted(old, text)
        yield quote(text)
    elif old:
        yield from bare
    elif is_prose and isinstance(value, str | Duration):
        yield quote(text)
    yield spell(value)
    yield from bare
    yield quote(text)


def _is_bare(text: str) -> bool:
    return bool(_BARE.fullmatch(text)) and text.lower() not in KEYWORDS and not is_too_large(text)


def _requoted(old: str, text: str) -> str:
    """A string with the characters of the old literal wherever its text is the same, at both ends."""
    before = text_of(old)
    offsets = string_offsets(old)
    head = _agreeing(before, text)
    rest = min(len(before), len(text)) - head
    tail = min(rest, _agreeing(before[::-1], text[::-1]))
    newline = "\r\n" if "\r\n" in old else "\n" if "\n" in old else "\\n"
    middle = newline.join(quote(line)[1:-1] for line in text[head : len(text) - tail].split("\n"))
    literal = f"{old[: offsets[head]]}{middle}{old[offsets[len(before) - tail] :]}"
    is_right = STRING.fullmatch(literal) and text_of(literal) == text
    return literal if is_right else quote(text)


def _agreeing(left: str, right: str) -> int:
    """The length of the common prefix of two texts."""
    pairs = zip(left, right, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(left), len(right)))
