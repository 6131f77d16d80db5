"""Whether two ids are so alike that one may be a slip of the other (ruling 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.model.nearest_name import MAX_SLIPS, edit_distance

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_COMPARISONS: Final = 200_000
"""Beyond this many pairs nothing is compared and everything counts as a slip, which is the safe side."""


def slips(unknown: Collection[str], known: Collection[str]) -> set[str]:
    """Those unknown ids that lie within edit distance 2 of a known one; case counts as it does in ids.

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
        if any(edit_distance(name, other) <= MAX_SLIPS for length in lengths for other in by_length.get(length, ())):
            found.add(name)
    return found
