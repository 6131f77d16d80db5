"""Texts of strangers on their way to a terminal: what could steer it is shown as its escape (ruling 38)."""

from __future__ import annotations

import re
from typing import Final

STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""C0 without newline and tab, DEL, C1, rare line ends, and what orders text in two directions."""


def shown(text: str) -> str:
    r"""A text in which each character that steers a terminal, or reorders the line, is its escape.

    >>> shown("red\x1b[31m?")
    'red\\x1b[31m?'
    """
    if text.isascii() and text.isprintable():
        return text
    return STEERING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
