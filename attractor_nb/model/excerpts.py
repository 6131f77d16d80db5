"""Parts of texts that are too long for their room, and how a room is shared out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def excerpt(text: str, limit: int) -> str:
    r"""A text, or its beginning and its end with a word on what lies between.

    >>> excerpt("abcdefghij", 4)
    'ab\n[… 6 characters left out …]\nij'
    """
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def first_lines(text: str, limit: int) -> str:
    r"""The beginning of a text: whole lines, where that leaves at least half of the room.

    >>> first_lines("one\ntwo\nthree", 8), first_lines("a long line", 4)
    ('one\ntwo', 'a lo')
    """
    if len(text) <= limit:
        return text
    beginning = text[:limit]
    end = limit if text[limit] == "\n" else beginning.rfind("\n")
    return beginning[:end] if 2 * end >= limit else beginning


def last_lines(text: str, limit: int) -> str:
    r"""The end of a text: whole lines, where that leaves at least half of the room.

    >>> last_lines("one\ntwo\nthree", 9), last_lines("a long line", 4)
    ('two\nthree', 'line')
    """
    if len(text) <= limit:
        return text
    begin = len(text) - limit
    line = begin if text[begin - 1] == "\n" else text.find("\n", begin) + 1
    return text[line:] if line and 2 * (len(text) - line) >= limit else text[begin:]


def fair_shares(room: int, needs: Sequence[int]) -> list[int]:
    """How much each of several texts gets of a room: what it needs, or as much as the others that need more.

    >>> fair_shares(100, [10, 500, 60]), fair_shares(100, [20, 30]), fair_shares(0, [5])
    ([10, 45, 45], [20, 30], [0])
    """
    shares = [0] * len(needs)
    left, waiting = max(0, room), sorted(range(len(needs)), key=lambda index: needs[index])
    while waiting:
        index = waiting.pop(0)
        shares[index] = min(needs[index], left // (len(waiting) + 1))
        left -= shares[index]
    return shares
