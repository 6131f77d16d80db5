"""Who stands left of whom in each layer: few crossings, and otherwise the order of the text.

The rule: of two orders the one with fewer crossings counts, then the one that cuts fewer panels, then the
one that has more branches in the order in which the text names them. So the first order tried is that of
the text, walked depth first, ways back at the left of what they go back past; others replace it only by
having fewer crossings. Each is improved by sweeps (a vertex moves to the median of its neighbours in the
layer before) and by swaps of neighbours, until neither helps. Pure; knows layers and edges, nothing of
pixels.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Rows = list[list[int]]

_PATIENCE: Final = 1
_MOST_SWEEPS: Final = 24
_MANY_VERTICES: Final = 700
"""From here on a start has few sweeps: each takes many milliseconds, and the first ones gain most."""
_TOO_WIDE: Final = 150_000
"""Of the squares of all layers' widths: beyond, orders stay as they are; all is black with lines."""


class Neighbours:
    """The vertices above and below each vertex."""

    def __init__(self, edges: Iterable[tuple[int, int]]) -> None:
        self.above: dict[int, list[int]] = defaultdict(list)
        self.below: dict[int, list[int]] = defaultdict(list)
        for upper, lower in edges:
            self.below[upper].append(lower)
            self.above[lower].append(upper)

    def crossings(self, rows: Rows) -> int:
        """How many pairs of edges cross."""
        total = 0
        for above, below in pairwise(rows):
            place = {vertex: number for number, vertex in enumerate(below)}
            seen: list[int] = []
            for upper in above:
                for end in sorted(place[lower] for lower in self.below.get(upper, ())):
                    total += len(seen) - bisect_right(seen, end)
                    insort(seen, end)
        return total


def improved(rows: Rows, neighbours: Neighbours, chains: Sequence[Sequence[int]]) -> Rows:
    """The best of the orders that sweeps from an order lead to; itself if none has fewer crossings.

    ``chains`` are the inner vertices of long edges.
    """
    best, fewest = rows, neighbours.crossings(rows)
    if not fewest or sum(len(row) ** 2 for row in rows) > _TOO_WIDE:
        return best
    most = _MOST_SWEEPS if sum(map(len, rows)) < _MANY_VERTICES else _PATIENCE
    rows = [list(row) for row in rows]
    patience = _PATIENCE
    for sweep in range(most + 1):
        if sweep:
            _sweep(rows, neighbours, is_down=sweep % 2 == 1)
        swap_neighbours(rows, neighbours)
        if sweep < 2:
            move_chains(rows, neighbours, chains)
        found = neighbours.crossings(rows)
        patience = _PATIENCE if found < fewest else patience - 1
        if found < fewest:
            best, fewest = [list(row) for row in rows], found
        if not fewest or not patience:
            break
    if fewest:
        rows = [list(row) for row in best]
        move_chains(rows, neighbours, chains)
        swap_neighbours(rows, neighbours)
        best = min(best, rows, key=neighbours.crossings)
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
    if left + right == 0:
        return (ends[middle - 1] + ends[middle]) / 2
    return (ends[middle - 1] * right + ends[middle] * left) / (left + right)


def swap_neighbours(
    rows: Rows, neighbours: Neighbours, homes: Mapping[int, int | None] | None = None
) -> None:
    """Swap two that stand side by side where that saves crossings, until it saves none.

    Args:
        rows: Changed in place.
        neighbours: Their edges.
        homes: The panel of each vertex, -1 for a border: only two of one panel are swapped.
    """
    changed = set(range(len(rows)))
    for _ in range(12):
        todo, changed = changed, set[int]()
        for rank in sorted(todo):
            if _swap_in(rows, rank, neighbours, homes):
                changed |= {rank - 1, rank, rank + 1} & set(range(len(rows)))
        if not changed:
            break


def _swap_in(rows: Rows, rank: int, neighbours: Neighbours, homes: Mapping[int, int | None] | None) -> bool:
    row = rows[rank]
    ends: dict[int, tuple[list[int], list[int]]] = {}
    places = [
        {vertex: number for number, vertex in enumerate(rows[other])} if 0 <= other < len(rows) else {}
        for other in (rank - 1, rank + 1)
    ]
    for vertex in row:
        ends[vertex] = (
            [places[0][other] for other in neighbours.above.get(vertex, ())],
            [places[1][other] for other in neighbours.below.get(vertex, ())],
        )
    is_changed = False
    for number in range(len(row) - 1):
        a, b = row[number], row[number + 1]
        if homes is not None and (homes.get(a) != homes.get(b) or homes.get(a) == -1):
            continue
        saved = _saved(ends[a][0], ends[b][0]) + _saved(ends[a][1], ends[b][1])
        if saved > 0:
            row[number], row[number + 1] = b, a
            is_changed = True
    return is_changed


def _saved(left: list[int], right: list[int]) -> int:
    """How many crossings a swap saves, by where the edges of the left and of the right one end."""
    if len(left) == 1 == len(right):
        return (left[0] > right[0]) - (left[0] < right[0])
    return sum((a > b) - (a < b) for a in left for b in right)


def move_chains(rows: Rows, neighbours: Neighbours, chains: Sequence[Sequence[int]]) -> None:
    """Take each long edge that crosses others out and lead it again where it crosses least.

    Where it can stand in each layer are the steps of a shortest path: what it costs to go from a gap of one
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
) -> list[int]:
    """The gap in each layer, of those that cross least the ones nearest to where the edge was."""
    upper, lower = neighbours.above[chain[0]][0], neighbours.below[chain[-1]][0]
    chained = set(chain)
    costs = {2 * rows[touched[0] - 1].index(upper) + 1: 0.0}
    ways: list[dict[int, int]] = []
    for rank, before in zip(touched, old, strict=True):
        segments = _segments(rows, rank, neighbours, chained)
        width = len(rows[rank])
        best = [float("inf")] * (width + 1)
        way: dict[int, int] = {}
        for start, cost in costs.items():
            for gap, crossed in enumerate(_crossed(segments, start, width)):
                total = cost + crossed + 0.001 * abs(gap - before)
                if total < best[gap]:
                    best[gap], way[2 * gap] = total, start
        costs = {2 * gap: cost for gap, cost in enumerate(best)}
        ways.append(way)
    segments = _segments(rows, touched[-1] + 1, neighbours, chained)
    end = 2 * rows[touched[-1] + 1].index(lower) + 1
    here = min(
        costs, key=lambda at: (costs[at] + sum((a - at) * (2 * b + 1 - end) < 0 for a, b in segments), at)
    )
    gaps = [here // 2]
    for way in ways[:0:-1]:
        here = way[here]
        gaps.append(here // 2)
    return gaps[::-1]


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
    """How many edges one crosses that goes from a place to each gap of the next layer."""
    change = [0] * (width + 1)
    for a, b in segments:
        if a < start:
            change[0] += 1
            change[b + 1] -= 1
        elif a > start:
            change[b + 1] += 1
    return list(accumulate(change))


def text_keys(
    roots: Iterable[int], children: Mapping[int, Sequence[int]], vertices: Iterable[int]
) -> dict[int, float]:
    """A number for each vertex: when a walk in depth meets it that takes children in their order."""
    keys: dict[int, float] = {}
    for root in (*roots, *vertices):
        stack = [root]
        while stack:
            vertex = stack.pop()
            if vertex not in keys:
                keys[vertex] = float(len(keys))
                stack += reversed(children.get(vertex, ()))
    return keys


def turned_branches(rows: Rows, branches: Iterable[Sequence[int]]) -> int:
    """How many pairs of first steps from one box, given in the text's order, stand the other way round."""
    place = {vertex: (rank, number) for rank, row in enumerate(rows) for number, vertex in enumerate(row)}
    return sum(
        place[a][0] == place[b][0] and place[a][1] > place[b][1]
        for steps in branches
        for number, b in enumerate(steps)
        for a in steps[:number]
    )
