"""Text widths from a table, so that a drawing is the same on every machine.

The table holds the advance widths of a Helvetica-like face in thousandths of the font size. Real
system fonts differ from it by a few percent, which the padding of the boxes absorbs. The module
knows characters only: nothing of nodes or SVG.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

_ASCII: Final = (
    *(277, 277, 354, 556, 556, 889, 666, 190, 333, 333, 389, 583, 277, 333, 277, 277, 556, 556, 556, 556),
    *(556, 556, 556, 556, 556, 556, 277, 277, 583, 583, 583, 556, 1015, 666, 666, 722, 722, 666, 610, 777),
    *(722, 277, 500, 666, 556, 833, 722, 777, 666, 777, 722, 666, 610, 722, 666, 943, 666, 666, 610, 277),
    *(277, 277, 469, 556, 333, 556, 556, 500, 556, 556, 277, 556, 556, 222, 222, 500, 222, 833, 556, 556),
    *(556, 556, 333, 500, 277, 556, 500, 722, 500, 500, 500, 333, 259, 333, 583),
)
"""Widths of U+0020 to U+007E."""

_SYSTEM_FACTOR: Final = 1.08
"""System faces (San Francisco, Segoe UI, DejaVu) run wider than Helvetica by up to this and more."""
_BOLD_FACTOR: Final = 1.07
_MONO_WIDTH: Final = 0.602
_OTHER_WIDTH: Final = 0.63
_WIDE_WIDTH: Final = 1.0
_SYMBOL_WIDTH: Final = 0.84
ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"
_JOINER: Final = "\N{ZERO WIDTH JOINER}"


@lru_cache(maxsize=4096)
def _other_width(char: str) -> float:
    """Width in em of a character outside ASCII."""
    category = unicodedata.category(char)
    if category in {"Mn", "Me", "Cf", "Cc"}:
        return 0.0
    if unicodedata.east_asian_width(char) in {"W", "F"}:
        return _WIDE_WIDTH
    return _SYMBOL_WIDTH if category[0] == "S" else _OTHER_WIDTH


def text_width(text: str, size: float, *, is_mono: bool = False, is_bold: bool = False) -> float:
    """Width of one line in pixels at a font size in pixels.

    >>> round(text_width("Plan", 12), 1), round(text_width("Plan", 12, is_mono=True), 1)
    (25.9, 28.9)
    """
    thousandths = 0
    others = 0.0
    ascii_count = 0
    for char in text:
        if " " <= char <= "~":
            thousandths += _ASCII[ord(char) - 32]
            ascii_count += 1
        else:
            others += _other_width(char)
    if is_mono:
        return (ascii_count * _MONO_WIDTH + others) * size
    width = (thousandths / 1000 * _SYSTEM_FACTOR + others) * size
    return width * _BOLD_FACTOR if is_bold else width


def shorten(text: str, width: float, size: float, *, is_mono: bool = False, is_bold: bool = False) -> str:
    """The text, cut with an ellipsis when it is wider than ``width`` pixels.

    >>> shorten("a rather long label", 60, 12)
    'a rather l…'
    """
    if text_width(text, size, is_mono=is_mono, is_bold=is_bold) <= width:
        return text
    room = width - text_width(ELLIPSIS, size, is_mono=is_mono, is_bold=is_bold)
    used = 0.0
    kept: list[str] = []
    for char in text:
        used += text_width(char, size, is_mono=is_mono, is_bold=is_bold)
        if used > room:
            break
        kept.append(char)
    return "".join(kept).removesuffix(_JOINER).rstrip() + ELLIPSIS


def wrap(
    text: str, width: float, size: float, *, max_lines: int, is_mono: bool = False, is_bold: bool = False
) -> tuple[str, ...]:
    """The text in lines of at most ``width`` pixels; the last one ends in an ellipsis when more follows.

    Line breaks in the text are kept. Words are broken only when one alone is too wide, behind a sign such as ``.`` or
    ``=`` if it has one there; text without spaces, as in Chinese or Japanese, breaks between characters.

    >>> wrap("Review the plan with care", 80, 12, max_lines=2)
    ('Review the', 'plan with care')
    """
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        line = ""
        for word in paragraph.split():
            candidate = f"{line} {word}" if line else word
            if text_width(candidate, size, is_mono=is_mono, is_bold=is_bold) <= width:
                line = candidate
                continue
            if line:
                lines.append(line)
            *full, line = _broken(word, width, size, is_mono=is_mono, is_bold=is_bold)
            lines.extend(full)
            if len(lines) > max_lines:
                break
        lines.append(line)
        if len(lines) > max_lines:
            break
    if len(lines) <= max_lines:
        return tuple(lines)
    last = shorten(" ".join((lines[max_lines - 1], ELLIPSIS * 2)), width, size, is_mono=is_mono, is_bold=is_bold)
    return (*lines[: max_lines - 1], last.rstrip(ELLIPSIS).rstrip() + ELLIPSIS)


_JOINTS: Final = (".&|/", "=_-,:")
"""Signs behind which a word is broken; the second ones where it has none of the first."""


def _broken(word: str, width: float, size: float, *, is_mono: bool, is_bold: bool) -> list[str]:
    """A word in pieces that fit."""
    # The widths of single letters, added up, differ from the width of the word by a rounding error.
    if text_width(word, size, is_mono=is_mono, is_bold=is_bold) <= width:
        return [word]
    pieces: list[str] = []
    piece, used = "", 0.0
    for char in word:
        advance = text_width(char, size, is_mono=is_mono, is_bold=is_bold)
        if piece and used + advance > width and advance and not piece.endswith(_JOINER):
            ends = (1 + max(map(piece.rfind, signs)) for signs in _JOINTS)
            end = next((end for end in ends if 3 * end > len(piece)), len(piece))
            pieces.append(piece[:end])
            piece = piece[end:]
            used = text_width(piece, size, is_mono=is_mono, is_bold=is_bold)
        piece += char
        used += advance
    return [*pieces, piece]
