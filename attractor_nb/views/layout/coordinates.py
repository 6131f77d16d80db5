"""Positions across the flow: Brandes and Köpf's alignment, for vertices of different widths.

Four assignments, one for each corner that vertices are pushed to, are computed and their median is
taken: edges become straight where they can, and no two neighbours come closer than they may. The
borders of panels are always straight. Pure; knows vertices, layers and widths only.

"Fast and Simple Horizontal Coordinate Assignment", 2001; block compaction as in dagre.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from attractor_nb.views.layout.ordering import Segments

Separation = Callable[[int, int], float]

_MANY_SEGMENTS: Final = 400
"""Between layers with more edges only panel borders are kept straight: all pairs would take seconds."""


BORDER: Final = 3
MAIN: Final = 2
LONG: Final = 1
"""Weight of straightness of an edge: of a panel's border, the main path, a long edge; else 0."""


def assign_positions(
    layers: Sequence[Sequence[int]],
    edges: Sequence[tuple[int, int]],
    priorities: Mapping[tuple[int, int], int],
    borders: Mapping[int, int],
    separation: Separation,
    fans: Sequence[tuple[int, int | None]] = (),
) -> dict[int, float]:
    """The place of each vertex across the flow.

    Args:
        layers: Vertices of each layer in order.
        edges: Pairs (upper, lower) between neighbouring layers.
        priorities: ``BORDER``, ``MAIN`` or ``LONG`` of edges; the others have none. An edge stays straight
            at the cost of those with less.
        borders: 0 for a left border of a panel, 1 for a right one.
        separation: Least distance between the places of two neighbours, left one first.
        fans: Pairs of vertices, upper and lower, that are over one another where that can be: both over the
            middle of what is between them. Without the lower one, the upper one is over its own neighbours.
    """
    upper: dict[int, list[int]] = defaultdict(list)
    lower: dict[int, list[int]] = defaultdict(list)
    for a, b in edges:
        upper[b].append(a)
        lower[a].append(b)
    blocked = _conflicts(layers, upper, priorities)
    place = {vertex: number for row in layers for number, vertex in enumerate(row)}
    for above, below in fans:
        has_branches_only = below is None or len(lower[above]) == len(upper[below])
        blocked |= _outer_edges(above, lower, place, has_middle=has_branches_only)
        if below is not None:
            blocked |= _outer_edges(below, upper, place, has_middle=True)
    pairs = [(above, below) for above, below in fans if below is not None]
    # Four times the same: from above or from below, pushed to the left or to the right. Mirrored and reversed layers
    # make one rule of all four. Each assignment leans to its corner; the middle of the four leans to none.
    kept = [pair for pair, priority in priorities.items() if priority >= MAIN]
    next_ones, last_ones = dict(kept), {b: a for a, b in kept}
    candidates: list[dict[int, float]] = []
    for is_upward in (False, True):
        stacked = list(reversed(layers)) if is_upward else list(layers)
        neighbours = lower if is_upward else upper
        promises = (last_ones, next_ones) if is_upward else (next_ones, last_ones)
        for is_mirrored in (False, True):
            rows = [list(reversed(row)) for row in stacked] if is_mirrored else [list(row) for row in stacked]
            roots = _aligned(rows, neighbours, blocked, promises)
            closing = {roots[vertex] for vertex, side in borders.items() if side != is_mirrored}
            distance = _mirrored(separation) if is_mirrored else separation
            joined = _joined(rows, roots, pairs)
            # With the two blocks of a fan as one it may be impossible to keep all orders; then without.
            places = _compacted(rows, joined, closing, distance) or _compacted(rows, roots, closing, distance)
            candidates.append({v: -x for v, x in places.items()} if is_mirrored else places)
    return _balanced(candidates)


def settled(
    places: dict[int, float],
    layers: Sequence[Sequence[int]],
    wanted: Mapping[int, tuple[int, int, float]],
    separation: Separation,
) -> None:
    """Move vertices to where they are wanted, as far as neighbours allow.

    Args:
        places: Changed in place.
        layers: Vertices of each layer in order.
        wanted: Of each vertex to move two others, and its distance from the middle between them.
        separation: Least distance between the places of two neighbours, left one first.
    """
    for _ in range(2):
        for row in (*layers, *reversed(layers)):
            for number, vertex in enumerate(row):
                if vertex not in wanted:
                    continue
                before, after, aside = wanted[vertex]
                place = (places[before] + places[after]) / 2 + aside
                if number:
                    place = max(place, places[row[number - 1]] + separation(row[number - 1], vertex))
                if number + 1 < len(row):
                    place = min(place, places[row[number + 1]] - separation(vertex, row[number + 1]))
                places[vertex] = place


def _outer_edges(
    box: int, neighbours: Mapping[int, list[int]], place: Mapping[int, int], *, has_middle: bool
) -> set[tuple[int, int]]:
    """The edges between a box and its neighbours, except the middle one or two."""
    near = neighbours.get(box, [])
    if len(near) < 3:
        return set()
    near = sorted(near, key=place.__getitem__)
    middle = {near[(len(near) - 1) // 2], near[len(near) // 2]} if has_middle else set[int]()
    return {pair for other in near if other not in middle for pair in ((box, other), (other, box))}


def _joined(rows: list[list[int]], root: dict[int, int], fans: Sequence[tuple[int, int]]) -> dict[int, int]:
    """The blocks, those of each pair of a fan as one unless they are side by side."""
    if not fans:
        return root
    ranks: dict[int, set[int]] = defaultdict(set)
    for rank, row in enumerate(rows):
        for vertex in row:
            ranks[root[vertex]].add(rank)
    into: dict[int, int] = {}

    def joined(block: int) -> int:
        while block in into:
            into[block] = block = into.get(into[block], into[block])
        return block

    for pair in fans:
        a, b = (joined(root[vertex]) for vertex in pair)
        if a != b and ranks[a].isdisjoint(ranks[b]):
            into[b] = a
            less, more = sorted((ranks.pop(a), ranks.pop(b)), key=len)
            more |= less
            ranks[a] = more
    return {vertex: joined(block) for vertex, block in root.items()}


def _mirrored(separation: Separation) -> Separation:
    return lambda left, right: separation(right, left)


def _conflicts(
    layers: Sequence[Sequence[int]], upper: Mapping[int, list[int]], priorities: Mapping[tuple[int, int], int]
) -> set[tuple[int, int]]:
    """Edges that cross one of higher priority; they are not made straight."""
    blocked: set[tuple[int, int]] = set()
    for above, below in pairwise(layers):
        place_above = {vertex: place for place, vertex in enumerate(above)}
        segments = [
            (place_above[a], place, a, b, priorities.get((a, b), 0))
            for place, b in enumerate(below)
            for a in upper.get(b, ())
        ]
        least = LONG if len(segments) <= _MANY_SEGMENTS else MAIN
        # Two edges cross when their upper and their lower ends are in opposite orders. The one that counts less gives
        # way: each is compared with all that count more.
        for level in {segment[4] for segment in segments} - {BORDER}:
            above_level = max(least, level + 1)
            higher = Segments((a_place, b_place) for a_place, b_place, *_, other in segments if other >= above_level)
            for a_place, b_place, a, b, priority in segments:
                if priority == level and higher.is_crossed(a_place, b_place):
                    blocked |= {(a, b), (b, a)}
    return blocked


def _aligned(
    rows: list[list[int]],
    neighbours: Mapping[int, list[int]],
    blocked: set[tuple[int, int]],
    promises: tuple[Mapping[int, int], Mapping[int, int]],
) -> dict[int, int]:
    """The block of each vertex, named by its first one: chains of medians that do not cross.

    ``promises`` are the neighbours, next and last, of those whose edges are of the main path or of borders.
    """
    root = {vertex: vertex for row in rows for vertex in row}
    is_taken: set[int] = set()
    following, leading = promises
    for above, row in pairwise(rows):
        place = {vertex: number for number, vertex in enumerate(above)}
        reach = -1
        for vertex in row:
            near = sorted(neighbours.get(vertex, ()), key=place.__getitem__)
            if not near:
                continue
            choices = {near[(len(near) - 1) // 2]: 0, near[len(near) // 2]: 0}
            if vertex in leading:
                choices = {leading[vertex]: 0}
            for chosen in choices:
                is_free = chosen not in is_taken and following.get(chosen, vertex) == vertex
                if place[chosen] > reach and is_free and (chosen, vertex) not in blocked:
                    root[vertex] = root[chosen]
                    is_taken.add(chosen)
                    reach = place[chosen]
                    break
    return root


def _compacted(
    rows: list[list[int]], root: dict[int, int], closing: set[int], separation: Separation
) -> dict[int, float]:
    """Blocks pushed together from the left, then each pulled right as far as its neighbours allow.

    Borders that close a panel stay where they are: next to its last member. Empty where two blocks
    would have to be on both sides of one another.
    """
    after: dict[int, dict[int, float]] = {block: {} for block in root.values()}
    waiting: dict[int, int] = dict.fromkeys(after, 0)
    for row in rows:
        for left, right in pairwise(row):
            a, b = root[left], root[right]
            distance = separation(left, right)
            if b not in after[a]:
                waiting[b] += 1
            after[a][b] = max(distance, after[a].get(b, 0.0))
    # Blocks are the vertices of a graph, with an edge from each to its right neighbours in all its layers, as long as
    # their distance. In topological order each is behind the longest path to it: the leftmost that it can.
    order = [block for block in after if not waiting[block]]
    place: dict[int, float] = dict.fromkeys(after, 0.0)
    for block in order:
        for other, distance in after[block].items():
            place[other] = max(place[other], place[block] + distance)
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)
    if len(order) < len(after):
        return {}
    # Pushed to the left alone, a block that could be under its right neighbours would hang at the margin.
    for block in reversed(order):
        if after[block] and block not in closing:
            place[block] = max(place[block], min(place[other] - distance for other, distance in after[block].items()))
    return {vertex: place[block] for vertex, block in root.items()}


def _balanced(candidates: list[dict[int, float]]) -> dict[int, float]:
    """Shift all four onto the narrowest one, then take the mean of the two middle values of each vertex."""
    extents = [(min(places.values()), max(places.values())) for places in candidates]
    left, right = min(extents, key=lambda extent: extent[1] - extent[0])
    shifts = [right - extent[1] if number % 2 else left - extent[0] for number, extent in enumerate(extents)]
    result: dict[int, float] = {}
    for vertex in candidates[0]:
        values = sorted(places[vertex] + shift for places, shift in zip(candidates, shifts, strict=True))
        result[vertex] = (values[1] + values[2]) / 2
    return result
