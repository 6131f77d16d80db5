"""What differs between two texts, as lines that people read: wrapped, with little around, and not endless."""

from __future__ import annotations

import textwrap
from difflib import unified_diff
from typing import TYPE_CHECKING, Final

from attractor_nb.views.markup import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

WRAP_AT: Final = 96
"""A model writes paragraphs as one line: a difference in it would be the whole paragraph."""
MAX_COMPARED: Final = 2_000
"""Lines of each text that are looked at; beyond, only whether they are equal is told."""
_AROUND: Final = 1


def text_diff(a: str, b: str, *, max_lines: int = 40) -> list[str]:
    r"""The lines that differ, each behind ``-`` (only in the first), ``+`` (only in the second) or a blank.

    Args:
        a: The first text.
        b: The second.
        max_lines: How many are given; then a line says how many more there are.

    >>> text_diff("one\ntwo", "one\nthree")
    [' one', '-two', '+three']
    """
    if a == b:
        return []
    lines_a, lines_b = list(_lines(a)), list(_lines(b))
    found = [
        line if not line.startswith("@@") else " …"
        for line in unified_diff(lines_a[:MAX_COMPARED], lines_b[:MAX_COMPARED], lineterm="", n=_AROUND)
    ][3:]  # two names and the first place
    if not found:
        beyond = len(lines_a) > MAX_COMPARED or len(lines_b) > MAX_COMPARED
        where = f"beyond line {MAX_COMPARED:,}" if beyond else "in blanks or characters that are not shown"
        return [f" they differ {where}"]
    if len(found) > max_lines:
        found[max_lines:] = [f" … {len(found) - max_lines} more lines"]
    return found


def _lines(text: str) -> Iterator[str]:
    for line in clean(text).splitlines():
        yield from textwrap.wrap(line, WRAP_AT, drop_whitespace=False) if len(line) > WRAP_AT else (line,)
