"""Which known name a slip most likely meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_SLIPS = 2
"""Edit distance up to which a name counts as a slip of another (rulings 4, 5)."""


def edit_distance(left: str, right: str, limit: int = MAX_SLIPS) -> int:
    """Insertions, deletions and replacements between two words; ``limit + 1`` when there are more.

    >>> edit_distance("prompt", "promt"), edit_distance("label", "shape")
    (1, 3)
    """
    if abs(len(left) - len(right)) > limit:
        return limit + 1
    row = list(range(len(right) + 1))
    for count, char in enumerate(left, 1):
        previous, row[0] = row[0], count
        for index, other in enumerate(right, 1):
            cost = min(row[index] + 1, row[index - 1] + 1, previous + (char != other))
            previous, row[index] = row[index], cost
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)


def nearest(word: str, known: Iterable[str], limit: int = MAX_SLIPS) -> str:
    """The known name closest to a word, or empty when none is within ``limit`` slips.

    Case counts less than any other slip. Words are expected to be short; of equally near names the
    first wins. A name that shares nothing with the word is never offered.

    >>> nearest("implment", ["plan", "implement"]), nearest("xyz", ["plan"])
    ('implement', '')
    """
    folded = word.casefold()
    best, best_distance = "", min(limit, max(len(word) - 1, 0)) + 1
    for name in known:
        if abs(len(name) - len(word)) >= best_distance:
            continue
        distance = edit_distance(folded, name.casefold(), best_distance)
        if distance < best_distance and distance < len(name):
            best, best_distance = name, distance
    return best


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``; did you mean "x"?`` for the nearest known name, or empty: the end of a message."""
    found = nearest(word, known)
    return f'; did you mean "{found}"?' if found else ""
