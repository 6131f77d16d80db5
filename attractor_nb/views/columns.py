"""Text in columns, for terminals and for ``text/plain``. It knows characters only."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

from attractor_nb.model.texts import shown
from attractor_nb.views.markup import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

_GAP: Final = "  "


def one_line(text: str) -> str:
    """The text on one line, with the escapes of characters that would move the cursor (ruling 38)."""
    return clean(shown(" ".join(text.split())))


def cells(text: str) -> int:
    """The width of a text in columns of a terminal.

    >>> cells("plan"), cells("計画")
    (4, 4)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(char) in {"Mn", "Me", "Cf"} else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Rows as columns of equal width, without trailing blanks."""
    widths = [max(cells(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        _GAP.join(cell + " " * (width - cells(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
