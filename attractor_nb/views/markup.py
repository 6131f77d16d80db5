"""The one place that makes markup: an element builder that escapes everything.

Text and attribute values are escaped, and characters that XML 1.0 forbids, or that reorder the text
around them, are removed, so that no label can leave the element that it is in. It knows neither
SVG nor graphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Final

from markupsafe import Markup, escape

Attrs = Mapping[str, str | float | None]

_SAFE: Final = "\t\n\r\x20-\x7e\x85\xa0-\u2029\u202f-\u2065\u206a-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff"
"""Every other character is forbidden in XML, discouraged by it (C1 controls, non-characters), or a bidirectional
override."""


_PLAIN: Final = re.compile(r"[\w .,:;!?#()+*/=\[\]{}@%|~^$-]*", re.ASCII)
"""Characters that need neither cleaning nor escaping."""


def clean(text: str) -> str:
    """The text without characters that XML forbids and without bidirectional overrides.

    Embeddings and isolates (U+202A to U+202E, U+2066 to U+2069) could make a label read as another
    one; the script of each character still sets its direction.
    """
    return text if text.isascii() and text.isprintable() else _unsafe().sub("", text)


@cache
def _unsafe() -> re.Pattern[str]:
    return re.compile(f"[^{_SAFE}]")  # few texts need it, and it takes four milliseconds


def element(tag: str, attrs: Attrs | None = None, *children: str) -> Markup:
    """One element. Children that are ``Markup`` are inserted, any other text is escaped.

    Attributes whose value is None are left out; numbers are written with at most one decimal.

    >>> element("text", {"x": 3.0, "class": 'a"b'}, "<b>")
    Markup('<text x="3" class="a&#34;b">&lt;b&gt;</text>')
    """
    parts = ["<", tag]
    if attrs:
        for name, value in attrs.items():
            if value is not None:
                written = _escaped(value) if isinstance(value, str) else number(value)
                parts += (" ", name, '="', written, '"')
    if children:
        parts.append(">")
        parts += [child if isinstance(child, Markup) else _escaped(child) for child in children]
        parts += ("</", tag, ">")
    else:
        parts.append("/>")
    return Markup("".join(parts))  # noqa: S704 - every part was escaped above


def _escaped(text: str) -> str:
    """Text for an element or an attribute; most of it is plain and is looked at only once."""
    return text if _PLAIN.fullmatch(text) else str(escape(clean(text)))


def joined(parts: Iterable[Markup], separator: str = "") -> Markup:
    """Several pieces of markup as one."""
    return Markup(separator).join(parts)  # noqa: S704 - the separator is a literal of the caller


def style_sheet(css: str) -> Markup:
    """A ``style`` element. ``css`` is ours, never input; it must not contain ``<`` or ``&``."""
    assert not set("<&") & set(css)
    return Markup("<style>") + Markup(css) + Markup("</style>")  # noqa: S704 - our own constant


def number(value: float) -> str:
    """A number as SVG wants it: at most one decimal, no trailing zero, never ``-0``.

    >>> number(3.0), number(2.25), number(-0.01)
    ('3', '2.2', '0')
    """
    return _in_tenths(round(value * 10))


@lru_cache(maxsize=32_768)
def _in_tenths(tenths: int) -> str:
    """A number of tenths; a drawing has the same ones again and again."""
    whole, rest = divmod(abs(tenths), 10)
    sign = "-" if tenths < 0 else ""
    return f"{sign}{whole}.{rest}" if rest else f"{sign}{whole}"


def path_data(*parts: str | float) -> str:
    """An SVG path from its letters and numbers.

    >>> path_data("M", 1.0, 2.5, "L", 3, 4)
    'M1 2.5L3 4'
    """
    pieces: list[str] = []
    was_number = False
    for part in parts:
        if isinstance(part, str):
            pieces.append(part)
            was_number = False
        else:
            written = _in_tenths(round(part * 10))
            pieces.append(" " + written if was_number else written)
            was_number = True
    return "".join(pieces)
