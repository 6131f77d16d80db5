r"""Values as written: how a string is escaped, what a bare value is, where its characters stand.

Spec 2.2 and 2.4, ruling 2. An unknown escape such as ``\l`` is kept as written; a line end inside a
string is ``\n`` however the file ends its lines. Knows nothing of attributes and their types.
"""

from __future__ import annotations

import re
from decimal import Decimal
from math import isinf
from typing import TYPE_CHECKING, Final

from attractor_nb.model.vocabulary.duration import parse_duration

if TYPE_CHECKING:
    from attractor_nb.model.vocabulary.attribute_kinds import AttrValue
    from attractor_nb.source import SourceText, Span

KEYWORDS: Final = frozenset({"strict", "digraph", "graph", "node", "edge", "subgraph"})
"""Graphviz reads these in any letter case, so no id or bare value may be one of them."""

MAX_INTEGER_DIGITS: Final = 18
MAX_NUMBER_LENGTH: Final = 400

BARE_VALUE: Final = (
    # "//" inside a bare value is text only after ":" (a URL), "->" never is.
    r"(?>(?:[A-Za-z0-9_.:]|-(?!>)|/(?![/*])|(?<=:)//)+)(?=[ \t\r\n,;\]}/\#]|->|\Z)"
)
"""The expression of a value without quotes (ruling 2)."""

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_QUALIFIED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
_INTEGER = re.compile(r"-?[0-9]+\Z")
_FLOAT = re.compile(r"-?[0-9]*\.[0-9]+\Z")
_DURATION = re.compile(r"-?[0-9]+(?:ms|s|m|h|d)\Z")
_ESCAPE = re.compile(r'\\["nt\\]|\r\n')
_MEANING = {'\\"': '"', "\\n": "\n", "\\t": "\t", "\\\\": "\\", "\r\n": "\n"}
_BOOLEANS: Final[dict[str, AttrValue]] = {"true": True, "false": False}
_NEEDS_ESCAPE = re.compile(r'["\n\t]|\\(?=["nt\\\n\t]|\Z)')
_SPELLING = {'"': '\\"', "\n": "\\n", "\t": "\\t", "\\": "\\\\"}


def is_identifier(text: str) -> bool:
    """Whether a text can be a bare id (spec 2.2) and is no keyword."""
    return _IDENTIFIER.match(text) is not None and text.lower() not in KEYWORDS


def is_attribute_name(text: str) -> bool:
    """Whether a text can name an attribute: identifiers joined by dots, no keyword."""
    return _QUALIFIED.match(text) is not None and text.lower() not in KEYWORDS


def is_too_large(literal: str) -> bool:
    """Whether a bare number is beyond what every program can hold."""
    if len(literal) <= MAX_INTEGER_DIGITS:
        return False
    if _INTEGER.match(literal):
        return len(literal.lstrip("-")) > MAX_INTEGER_DIGITS
    if _DURATION.match(literal):
        return len(literal) > MAX_INTEGER_DIGITS
    return bool(_FLOAT.match(literal)) and (len(literal) > MAX_NUMBER_LENGTH or isinf(float(literal)))


def is_quoted(literal: str) -> bool:
    """Whether a value is written as a string."""
    return literal.startswith('"')


def text_of(literal: str) -> str:
    r"""The characters that a literal stands for; a bare one stands for itself.

    >>> text_of(r'"say \"hi\" \l"'), text_of("gpt-5.2")
    ('say "hi" \\l', 'gpt-5.2')
    """
    if not is_quoted(literal):
        return literal
    inner = literal[1:-1]
    if "\\" in inner or "\r" in inner:
        return _ESCAPE.sub(lambda found: _MEANING[found[0]], inner)
    return inner


def value_of(literal: str) -> AttrValue:
    """The value of a literal as its own spelling types it (spec 2.4).

    >>> value_of("3"), value_of("0.5"), value_of("true"), value_of("15m"), value_of('"3"')
    (3, 0.5, True, Duration(milliseconds=900000), '3')
    """
    first = literal[:1]
    if first == '"':
        return text_of(literal)
    if first.isdigit() or first in "-.":
        if _INTEGER.match(literal):
            return int(literal)
        if _FLOAT.match(literal):
            return float(literal)
        duration = parse_duration(literal)
        return literal if duration is None else duration
    return _BOOLEANS.get(literal, literal)


def quote(text: str) -> str:
    r"""A text as a string literal that reads back as itself.

    >>> print(quote('a "b"\n\\l'))
    "a \"b\"\n\l"
    """
    return f'"{_NEEDS_ESCAPE.sub(lambda found: _SPELLING[found[0]], text)}"'


def spell(value: AttrValue) -> str:
    """A value as DOT writes it, so that it reads back as itself; plain Graphviz reads it too."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        digits = format(Decimal(repr(value)), "f")
        return digits if "." in digits else f"{digits}.0"
    text = str(value)
    if is_identifier(text) and text not in {"true", "false"}:
        return text
    return quote(text)


def embed_value(span: Span) -> SourceText:
    """The value under a literal's span, as a text of its own whose spans point into the outer one.

    A condition or stylesheet error then has its caret in the DOT file, through the escapes.

    Args:
        span: A whole literal, quotes included, as ``AttrSpan.value`` has it.
    """
    literal = span.text
    return span.source.embedded(span, text_of(literal), lambda: string_offsets(literal, span.start))


def string_offsets(literal: str, start: int = 0) -> list[int]:
    """For each character of a literal's value, and one past its end, where it stands in the outer text."""
    if not is_quoted(literal):
        return list(range(start, start + len(literal) + 1))
    offsets: list[int] = []
    position, last = 1, len(literal) - 1
    for found in _ESCAPE.finditer(literal, 1, last):
        offsets.extend(range(start + position, start + found.start() + 1))
        position = found.end()
    offsets.extend(range(start + position, start + last + 1))
    return offsets
