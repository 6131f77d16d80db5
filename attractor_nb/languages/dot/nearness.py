"""Whether two ids are so alike that one may be a slip of the other (ruling 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_SLIPS: Final = 2
MAX_COMPARISONS: Final = 200_000
"""Beyond this many pairs nothing is compared and everything counts as a slip, which is the safe side."""


def slips(unknown: Collection[str], known: Collection[str]) -> set[str]:
    """Those unknown ids that lie within edit distance 2 of a known one.

    >>> slips(["implment", "ship_it"], ["implement", "review"])
    {'implment'}
    """
    if not known:
        return set()
    if len(unknown) * len(known) > MAX_COMPARISONS:
        return set(unknown)
    by_length: dict[int, list[str]] = {}
    for name in known:
        by_length.setdefault(len(name), []).append(name)
    found: set[str] = set()
    for name in unknown:
        lengths = range(len(name) - MAX_SLIPS, len(name) + MAX_SLIPS + 1)
        if any(is_near(name, other) for length in lengths for other in by_length.get(length, ())):
            found.add(name)
    return found


def is_near(one: str, other: str) -> bool:
    """Whether the edit distance (insert, delete, replace) is at most 2; linear in the lengths.

    >>> is_near("plan", "plans"), is_near("plan", "review")
    (True, False)
    """
    reached = {(0, 0)}
    for slip in range(MAX_SLIPS + 1):
        ends = {_slide(one, other, *place) for place in reached}
        if (len(one), len(other)) in ends:
            return True
        if slip < MAX_SLIPS:
            steps = {(i + di, j + dj) for i, j in ends for di, dj in ((1, 0), (0, 1), (1, 1))}
            reached = {(i, j) for i, j in steps if i <= len(one) and j <= len(other)}
    return False


def _slide(one: str, other: str, i: int, j: int) -> tuple[int, int]:
    """Go on from two offsets as long as the characters agree."""
    while i < len(one) and j < len(other) and one[i] == other[j]:
        i += 1
        j += 1
    return i, j
