"""Order of the vertices within each layer: few crossings, and otherwise the order of the text.

The rule: of two orders the one with fewer crossings counts, then the one that cuts fewer panels, then the
one that has more branches in the order in which the text names them. So the first order tried is that of
the text, walked depth first, back edges at the left of what they go back past; the second, the same walked from
the end of the text, replaces it only by a better score. Each is improved by sweeps (a vertex moves to the median of
its neighbours in the layer before) and by swaps of neighbours, until neither helps. Pure; knows layers and edges,
nothing of pixels.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Rows = list[list[int]]

_MOST_SWEEPS: Final = 24
_MANY_VERTICES: Final = 700
"""From here on a start has few sweeps: each takes many milliseconds, and the first ones gain most."""
_TOO_WIDE: Final = 150_000
"""Of the squares of all layers' widths: beyond, orders stay as they are; all is black with lines."""

_FEW_PAIRS: Final = 64
"""So many pairs of edges are compared one by one; more are counted by a search in sorted ends."""


class Neighbours:
    """The vertices above and below each vertex."""

    def __init__(self, edges: Iterable[tuple[int, int]]) -> None:
        self.above: dict[int, list[int]] = defaultdict(list)
        self.below: dict[int, list[int]] = defaultdict(list)
        for upper, lower in edges:
            self.below[upper].append(lower)
            self.above[lower].append(upper)

    def crossings(self, rows: Rows) -> int:
        """The number of pairs of edges that cross."""
        place = {vertex: number for row in rows for number, vertex in enumerate(row)}
        total = 0
        for row in rows:
            ends: list[int] = []
            for upper in row:
                lower = self.below.get(upper, ())
                ends += (place[lower[0]],) if len(lower) == 1 else sorted([place[one] for one in lower])
            total += _turned(ends)
        return total


class Segments:
    """Edges between two layers by the places of their ends; finds who crosses them without a look at each pair."""

    def __init__(self, ends: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(ends)
        lower = [end for _, end in ordered]
        self._upper = [end for end, _ in ordered]
        self._furthest: list[float] = list(accumulate(lower, max, initial=float("-inf")))
        self._nearest: list[float] = list(accumulate(reversed(lower), min, initial=float("inf")))[::-1]

    def split(self, place: int) -> tuple[float, float]:
        """The furthest lower end of the edges that begin before a place, and the nearest one of the others."""
        count = bisect_left(self._upper, place)
        return self._furthest[count], self._nearest[count]

    def is_crossed(self, upper: int, lower: int) -> bool:
        """True if an edge between two places crosses one of these."""
        return self.split(upper)[0] > lower or self.split(upper + 1)[1] < lower


def _turned(numbers: Sequence[int]) -> int:
    """The number of pairs of numbers in the wrong order."""
    if numbers == sorted(numbers):
        return 0
    # Each number is compared with all before it by one look into those, sorted: the pairs that are in the wrong
    # order are those in which the earlier number is the larger.
    total = 0
    seen: list[int] = []
    for number in numbers:
        total += len(seen) - bisect_right(seen, number)
        insort(seen, number)
    return total


def improved(rows: Rows, neighbours: Neighbours, chains: Sequence[Sequence[int]], patience: int) -> Rows:
    """The best of the orders that sweeps from an order lead to; itself if none has fewer crossings.

    Args:
        rows: The order.
        neighbours: The edges.
        chains: The inner vertices of long edges.
        patience: The search ends after so many sweeps that find no better order.
    """
    best, fewest = rows, neighbours.crossings(rows)
    if not fewest or sum(len(row) ** 2 for row in rows) > _TOO_WIDE:
        return best
    # Down, up, down, …: a sweep sorts by medians, which moves vertices far and may make some crossings worse; swaps
    # of neighbours then take away what they can. The best order of all that were met is kept.
    most = _MOST_SWEEPS if sum(map(len, rows)) < _MANY_VERTICES else patience
    rows = [list(row) for row in rows]
    left = patience
    # Long edges are led anew in the first two rounds only, and once more at the end: it costs as much as a sweep, and
    # later rounds rarely gain by it.
    for sweep in range(most + 1):
        if sweep:
            _sweep(rows, neighbours, is_down=sweep % 2 == 1)
        swap_neighbours(rows, neighbours)
        if sweep < 2:
            move_chains(rows, neighbours, chains)
        found = neighbours.crossings(rows)
        left = patience if found < fewest else left - 1
        if found < fewest:
            best, fewest = [list(row) for row in rows], found
        if not fewest or not left:
            break
    if fewest:
        rows = [list(row) for row in best]
        move_chains(rows, neighbours, chains)
        swap_neighbours(rows, neighbours)
        if neighbours.crossings(rows) < fewest:
            best = rows
    return best


def _sweep(rows: Rows, neighbours: Neighbours, *, is_down: bool) -> None:
    """Sort each layer by the medians of its neighbours in the layer before; who has none stays."""
    stacked = rows if is_down else rows[::-1]
    near = neighbours.above if is_down else neighbours.below
    for before, row in pairwise(stacked):
        place = {vertex: number for number, vertex in enumerate(before)}
        scale = len(before) / max(1, len(row))
        keys: dict[int, float] = {}
        for number, vertex in enumerate(row):
            ends = sorted(place[other] for other in near.get(vertex, ()))
            keys[vertex] = _median(ends) if ends else number * scale
        row.sort(key=keys.__getitem__)


def _median(ends: Sequence[int]) -> float:
    """The middle; of an even number a point between the middle two, nearer to where more are close."""
    middle = len(ends) // 2
    if len(ends) % 2:
        return ends[middle]
    if len(ends) == 2:
        return (ends[0] + ends[1]) / 2
    left, right = ends[middle - 1] - ends[0], ends[-1] - ends[middle]
    # As Gansner and others do for dot: the closer the ends at one side are to each other, the more of them pull the
    # vertex to that side.
    if left + right == 0:
        return (ends[middle - 1] + ends[middle]) / 2
    return (ends[middle - 1] * right + ends[middle] * left) / (left + right)


def swap_neighbours(rows: Rows, neighbours: Neighbours, homes: Mapping[int, int | None] | None = None) -> None:
    """Swap two side by side where that saves crossings, until it saves none.

    Args:
        rows: Changed in place.
        neighbours: Their edges.
        homes: The panel of each vertex, -1 for a border: only two of one panel are swapped.
    """
    place = {vertex: number for row in rows for number, vertex in enumerate(row)}
    changed = {rank for rank, row in enumerate(rows) if len(row) > 1}
    for _ in range(12):
        # A swap in a layer changes what swaps in it and in the layers beside it would save, and nothing else: only
        # those are looked at again.
        todo, changed = changed, set[int]()
        for rank in sorted(todo):
            if _swap_in(rows[rank], place, neighbours, homes):
                changed |= {rank - 1, rank, rank + 1} & set(range(len(rows)))
        if not changed:
            break


def _swap_in(
    row: list[int], place: dict[int, int], neighbours: Neighbours, homes: Mapping[int, int | None] | None
) -> bool:
    above, below = neighbours.above, neighbours.below
    ends = [
        ([place[other] for other in above.get(vertex, ())], [place[other] for other in below.get(vertex, ())])
        for vertex in row
    ]
    is_changed = False
    for number in range(len(row) - 1):
        (up, down), (next_up, next_down) = ends[number], ends[number + 1]
        if _saved(up, next_up) + _saved(down, next_down) <= 0:
            continue
        a, b = row[number], row[number + 1]
        if homes is not None and (homes.get(a) != homes.get(b) or homes.get(a) == -1):
            continue
        row[number], row[number + 1] = b, a
        place[a], place[b] = number + 1, number
        ends[number], ends[number + 1] = ends[number + 1], ends[number]
        is_changed = True
    return is_changed


def _saved(left: list[int], right: list[int]) -> int:
    """The number of crossings that a swap saves, by the ends of the left one's and the right one's edges."""
    if len(left) == 1 == len(right):
        return (left[0] > right[0]) - (left[0] < right[0])
    if not left or not right:
        return 0
    if len(left) * len(right) <= _FEW_PAIRS:
        return sum((a > b) - (a < b) for a in left for b in right)
    right = sorted(right)
    return sum(bisect_left(right, a) + bisect_right(right, a) - len(right) for a in left)


def move_chains(rows: Rows, neighbours: Neighbours, chains: Sequence[Sequence[int]]) -> None:
    """Take each long edge that crosses others out and lead it again where it crosses least.

    Where it can be in each layer are the steps of a shortest path: what it costs to go from a gap of one
    layer to a gap of the next is how many edges it crosses on the way.
    """
    rank_of = {vertex: rank for rank, row in enumerate(rows) for vertex in row}
    crossing = _crossing_vertices(rows, neighbours)
    for chain in chains:
        if crossing.isdisjoint(chain):
            continue
        first = rank_of[chain[0]]
        touched = range(first, first + len(chain))
        old = [rows[rank].index(vertex) for rank, vertex in zip(touched, chain, strict=True)]
        for rank, place in zip(touched, old, strict=True):
            del rows[rank][place]
        new = _cheapest_gaps(rows, neighbours, chain, touched, old)
        for rank, place, vertex in zip(touched, new, chain, strict=True):
            rows[rank].insert(place, vertex)


def _crossing_vertices(rows: Rows, neighbours: Neighbours) -> set[int]:
    """The ends of all edges that cross another."""
    found = set[int]()
    for above, below in pairwise(rows):
        place = {vertex: number for number, vertex in enumerate(below)}
        edges = [
            (place[lower], number, upper, lower)
            for number, upper in enumerate(above)
            for lower in neighbours.below.get(upper, ())
        ]
        # Sorted by their upper ends, an edge crosses an earlier one just when its lower end lies before the furthest
        # lower end so far. That finds the later edge of each pair; the same from the other side finds the earlier
        # one.
        edges.sort(key=lambda edge: (edge[1], edge[0]))
        furthest = -1
        for end, _, upper, lower in edges:
            if end < furthest:
                found |= {upper, lower}
            furthest = max(furthest, end)
        nearest = len(below)
        for end, _, upper, lower in reversed(edges):
            if end > nearest:
                found |= {upper, lower}
            nearest = min(nearest, end)
    return found


def _cheapest_gaps(
    rows: Rows, neighbours: Neighbours, chain: Sequence[int], touched: range, old: Sequence[int]
) -> Sequence[int]:
    """The gap in each layer, of those that cross least the ones nearest to where the edge was.

    No way is followed further than to where it crosses as many edges as the old one does.
    """
    # A place is a number in halves: vertex n of a layer is at 2n + 1, the gap before it at 2n. Layer by layer it
    # is found for each gap how few edges a way crosses that comes there, and from which place of the layer before: a
    # shortest path by dynamic programming, for all paths together.
    upper, lower = neighbours.above[chain[0]][0], neighbours.below[chain[-1]][0]
    chained = set(chain)
    segments = [_segments(rows, rank, neighbours, chained) for rank in range(touched[0], touched[-1] + 2)]
    begin, end = 2 * rows[touched[0] - 1].index(upper) + 1, 2 * rows[touched[-1] + 1].index(lower) + 1
    places = [begin, *(2 * gap for gap in old), end]
    most = sum(map(_crossed_between, segments, places, places[1:]))
    if not most:
        return old
    costs = {begin: 0.0}
    origins: list[dict[int, int]] = []
    for rank, before, between in zip(touched, old, segments, strict=False):
        width = len(rows[rank])
        best: dict[int, float] = {}
        origin: dict[int, int] = {}
        for start, cost in costs.items():
            for gap, crossed in enumerate(_crossed(between, start, width)):
                if cost + crossed < most:
                    # A thousandth for each place: of equal paths the one nearest to the old one, and never one
                    # crossing more.
                    total = cost + crossed + 0.001 * abs(gap - before)
                    if total < best.get(2 * gap, most):
                        best[2 * gap], origin[2 * gap] = total, start
        costs = best
        origins.append(origin)
        if not best:
            return old
    total, here = min((costs[at] + _crossed_between(segments[-1], at, end), at) for at in costs)
    if total >= most:
        return old
    gaps = [here // 2]
    for origin in origins[:0:-1]:
        here = origin[here]
        gaps.append(here // 2)
    return gaps[::-1]


def _crossed_between(segments: Sequence[tuple[int, int]], start: int, end: int) -> int:
    """The number of edges crossed by one from a place to a place of the next layer."""
    return sum((a - start) * (2 * b + 1 - end) < 0 for a, b in segments)


def _segments(rows: Rows, rank: int, neighbours: Neighbours, left_out: set[int]) -> list[tuple[int, int]]:
    """The edges into a layer by the places of their ends; of the upper ones vertex n is at 2n + 1."""
    place = {vertex: number for number, vertex in enumerate(rows[rank])}
    return [
        (2 * number + 1, place[lower])
        for number, upper in enumerate(rows[rank - 1])
        for lower in neighbours.below.get(upper, ())
        if lower not in left_out
    ]


def _crossed(segments: Sequence[tuple[int, int]], start: int, width: int) -> list[int]:
    """The number of edges crossed by one from a place to each gap of the next layer."""
    # Edge (a, b) is crossed in all gaps up to b when it begins left of the start, and in all after b when it begins
    # right of it. So each edge adds one to a stretch of gaps: noted where the stretch begins and ends, and added up
    # once at the end.
    change = [0] * (width + 1)
    for a, b in segments:
        if a < start:
            change[0] += 1
            change[b + 1] -= 1
        elif a > start:
            change[b + 1] += 1
    return list(accumulate(change))


def text_keys(roots: Iterable[int], children: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """A number for each vertex: when a walk in depth meets it that takes children in their order."""
    keys: dict[int, int] = {}
    for root in roots:
        stack = [root]
        while stack:
            vertex = stack.pop()
            if vertex not in keys:
                keys[vertex] = len(keys)
                stack += reversed(children.get(vertex, ()))
    return keys


def turned_branches(rows: Rows, branches: Iterable[Sequence[int]]) -> int:
    """The number of pairs of first steps from one box, given in the text's order, that are the other way round."""
    place = {vertex: (rank, number) for rank, row in enumerate(rows) for number, vertex in enumerate(row)}
    total = 0
    for steps in branches:
        numbers: dict[int, list[int]] = defaultdict(list)
        for step in steps:
            rank, number = place[step]
            numbers[rank].append(number)
        total += sum(map(_turned, numbers.values()))
    return total
