"""Texts of a pipeline on their way to a terminal."""

from __future__ import annotations


def shown(text: str) -> str:
    r"""A text without the control characters by which it could take over a terminal.

    >>> shown("red\x1b[31m?")
    'red\ufffd[31m?'
    """
    return "".join(
        char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in text
    )
