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

Separation = Callable[[int, int], float]

_MANY_SEGMENTS: Final = 400
"""Between layers with more edges only panel borders are kept straight: all pairs would take seconds."""


def assign_positions(
    layers: Sequence[Sequence[int]],
    edges: Sequence[tuple[int, int]],
    priorities: Mapping[int, int],
    borders: Mapping[int, int],
    separation: Separation,
) -> dict[int, float]:
    """The centre of each vertex across the flow.

    Args:
        layers: Vertices of each layer in order.
        edges: Pairs (upper, lower) between neighbouring layers.
        priorities: 2 for a panel border, 1 for a bead or dummy, 0 (or absent) for a box. An edge
            between two vertices of priority p stays straight at the cost of those with less.
        borders: 0 for a left border of a panel, 1 for a right one.
        separation: Least distance between the centres of two neighbours, left one first. It must be
            symmetric.
    """
    upper: dict[int, list[int]] = defaultdict(list)
    lower: dict[int, list[int]] = defaultdict(list)
    for a, b in edges:
        upper[b].append(a)
        lower[a].append(b)
    blocked = _conflicts(layers, upper, priorities)
    candidates: list[dict[int, float]] = []
    for is_upward in (False, True):
        stacked = list(reversed(layers)) if is_upward else list(layers)
        neighbours = lower if is_upward else upper
        for is_mirrored in (False, True):
            rows = [list(reversed(row)) for row in stacked] if is_mirrored else [list(row) for row in stacked]
            roots = _aligned(rows, neighbours, blocked)
            closing = {roots[vertex] for vertex, side in borders.items() if side != is_mirrored}
            places = _compacted(rows, roots, closing, separation)
            candidates.append({v: -x for v, x in places.items()} if is_mirrored else places)
    return _balanced(candidates)


def _conflicts(
    layers: Sequence[Sequence[int]], upper: Mapping[int, list[int]], priorities: Mapping[int, int]
) -> set[tuple[int, int]]:
    """Edges that cross one of higher priority; they are not made straight."""
    blocked: set[tuple[int, int]] = set()
    for above, below in pairwise(layers):
        place_above = {vertex: place for place, vertex in enumerate(above)}
        segments = [
            (place_above[a], place, a, b, min(priorities.get(a, 0), priorities.get(b, 0)))
            for place, b in enumerate(below)
            for a in upper.get(b, ())
        ]
        least = 1 if len(segments) <= _MANY_SEGMENTS else 2
        for high in (segment for segment in segments if segment[4] >= least):
            for a_place, b_place, a, b, priority in segments:
                if priority < high[4] and (a_place - high[0]) * (b_place - high[1]) < 0:
                    blocked.add((a, b))
                    blocked.add((b, a))
    return blocked


def _aligned(
    rows: list[list[int]], neighbours: Mapping[int, list[int]], blocked: set[tuple[int, int]]
) -> dict[int, int]:
    """The block of each vertex, named by its first one: chains of medians that do not cross."""
    root = {vertex: vertex for row in rows for vertex in row}
    is_taken: set[int] = set()
    for above, row in pairwise(rows):
        place = {vertex: number for number, vertex in enumerate(above)}
        reach = -1
        for vertex in row:
            near = sorted(neighbours.get(vertex, ()), key=place.__getitem__)
            if not near:
                continue
            for middle in {(len(near) - 1) // 2: 0, len(near) // 2: 0}:
                chosen = near[middle]
                if place[chosen] > reach and chosen not in is_taken and (chosen, vertex) not in blocked:
                    root[vertex] = root[chosen]
                    is_taken.add(chosen)
                    reach = place[chosen]
                    break
    return root


def _compacted(
    rows: list[list[int]], root: dict[int, int], closing: set[int], separation: Separation
) -> dict[int, float]:
    """Blocks pushed together from the left, then each pulled right as far as its neighbours allow.

    Borders that close a panel stay where they are: next to its last member.
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
    order = [block for block in after if not waiting[block]]
    place: dict[int, float] = dict.fromkeys(after, 0.0)
    for block in order:
        for other, distance in after[block].items():
            place[other] = max(place[other], place[block] + distance)
            waiting[other] -= 1
            if not waiting[other]:
                order.append(other)
    for block in reversed(order):
        if after[block] and block not in closing:
            place[block] = max(
                place[block], min(place[other] - distance for other, distance in after[block].items())
            )
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
