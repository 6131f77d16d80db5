"""Parts of texts that are too long for their room, and how a room is shared out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


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


def last_lines(text: str, limit: int) -> str:
    r"""The last whole lines of a text that fit; the end of the last one where none does.

    >>> last_lines("one\ntwo\nthree", 9), last_lines("a long line", 4)
    ('two\nthree', 'line')
    """
    if len(text) <= limit:
        return text
    end = text[-limit:] if limit else ""
    if text[-limit - 1] == "\n":
        return end
    _, mark, lines = end.partition("\n")
    return lines if mark and lines else end


def first_lines(text: str, limit: int) -> str:
    r"""The first whole lines of a text that fit; the beginning of the first one where none does.

    >>> first_lines("one\ntwo\nthree", 8), first_lines("a long line", 4)
    ('one\ntwo', 'a lo')
    """
    if len(text) <= limit:
        return text
    beginning = text[:limit]
    if text[limit] == "\n":
        return beginning
    lines, mark, _ = beginning.rpartition("\n")
    return lines if mark and lines else beginning
