"""Halves of characters (surrogates) in a text: joined where both are there, replaced where one is alone.

A stream that escapes its text may cut a character beyond the basic plane in two, a half in each piece. Half a
character can be written nowhere, so an answer with one would be lost after it was paid.
"""

from __future__ import annotations


def whole(text: str) -> str:
    r"""A text that can be written anywhere.

    >>> whole("a\ud83d\ude00b") == "a\U0001f600b", whole("a\ud83db") == "a\ufffdb"
    (True, True)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def ends_in_half(text: str) -> bool:
    """Whether the other half of a text's last character may be still to come."""
    return "\ud800" <= text[-1:] <= "\udbff"
