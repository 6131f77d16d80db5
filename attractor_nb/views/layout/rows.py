"""A flow to the right that is longer than a cell is wide: it goes on in the next row, as a text does (pure).

The rule: all rows are read in the direction of the flow. A flow is broken between two layers, never within a
panel, so that no row is longer than it may be, there are few rows, few lines lead from one to the next, and
all are about equally long. Each line that does comes out at the end of its row, runs back between the two
rows and comes in at the beginning of the next one. Of the lines of one break the first across the flow turns
furthest outside at the end, runs furthest from the row that it leaves, and turns furthest inside at the
beginning: so they stay side by side and never cross.

To lay out a broken flow, each break gets a layer of *turns*, one vertex for each line. What stands before
and behind is placed as if the flow were one strip, and then moved row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from attractor_nb.views.layout.geometry import Cubic, Point, straight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.views.layout.layers import Layered
    from attractor_nb.views.scene import Scene

LANE: Final = 9.0
"""Between two lines that run back side by side."""
PADDING: Final = 18.0
"""Between a row and the lines behind it: room for a bend that is not sharp."""
RADIUS: Final = 12.0
APPROACH: Final = 26.0
"""From a layer to its turns."""
_ROW_COST: Final = 4.0
"""So many more lines may lead from row to row, if that saves a row."""
_ROUND: Final = 0.448
"""How far from its corner a handle of a quarter of a circle ends, for a radius of 1."""


def turning_room(lines: int) -> float:
    """How much of a row's length the turns of so many lines take, at one end of it."""
    return APPROACH + RADIUS + (lines - 1) * LANE


def row_breaks(
    starts: Sequence[float], ends: Sequence[float], lines: Sequence[int | None], longest: float
) -> list[int]:
    """The layers behind which a flow is best broken; none where it is short enough, or cannot be broken.

    Args:
        starts: Where each layer begins along the flow.
        ends: Where each ends.
        lines: How many lines lead from each layer to the next; None where it must not be broken.
        longest: How long a row may be, its turns included. What cannot be broken may be longer; then the
            other rows may, too.
    """
    if not ends or ends[-1] - starts[0] <= longest:
        return []
    rooms = [0.0 if count is None else turning_room(count) for count in lines]
    after = [rank for rank, count in enumerate(lines) if count is not None]
    stops = [*after, len(ends) - 1]

    def length(before: int, last: int) -> float:
        """Of the row that begins behind one layer and ends with another."""
        room = rooms[before] if before >= 0 else 0.0
        return ends[last] - starts[before + 1] + room + (rooms[last] if last < len(lines) else 0.0)

    longest = max(
        longest, *(length(before, last) for before, last in zip([-1, *after], stops, strict=True))
    )
    best: dict[int, tuple[float, list[int]]] = {-1: (0.0, [])}
    for last in stops:
        found: list[tuple[float, list[int]]] = []
        for before, (cost, breaks) in best.items():
            used = length(before, last) / longest
            if used <= 1:
                crossed = (lines[before] or 0) - 1 if before >= 0 else 0
                here = [*breaks, before] if before >= 0 else breaks
                found.append((cost + _ROW_COST + crossed + (1 - used) ** 2, here))
        best[last] = min(found)
    return best[len(ends) - 1][1]


def lines_between_layers(scene: Scene, layered: Layered) -> list[int | None]:
    """How many lines lead from each layer to the next one; None between layers of one panel."""
    found: list[int | None] = [0] * (len(layered.layers) - 1)
    for upper, _ in layered.edges:
        found[layered.ranks[upper]] = (found[layered.ranks[upper]] or 0) + 1
    for panel in range(len(scene.panels)):
        rungs = layered.borders[panel] if layered.borders else []
        for pair in rungs[:-1]:
            found[layered.ranks[pair[0]]] = None
    return found


def with_turns(layered: Layered, breaks: Sequence[int]) -> list[int]:
    """Put a layer of turns behind each of some layers.

    Args:
        layered: Changed in place.
        breaks: The layers, in order.

    Returns:
        The rank of each layer of turns.
    """
    place = {vertex: number for layer in layered.layers for number, vertex in enumerate(layer)}
    fresh = 1 + max(layered.ranks)
    turn_of: dict[tuple[int, int], int] = {}
    turns: dict[int, list[int]] = {}
    for rank in breaks:
        pairs = [(a, b) for a, b in layered.edges if layered.ranks[a] == rank]
        pairs.sort(key=lambda pair: (place[pair[0]] + place[pair[1]], place[pair[0]]))
        turns[rank] = list(range(fresh, fresh + len(pairs)))
        turn_of.update(zip(pairs, turns[rank], strict=True))
        fresh += len(pairs)
    layered.chains[:] = [_with_turns_between(chain, turn_of) for chain in layered.chains]
    layered.edges[:] = [
        step
        for pair in layered.edges
        for step in (((pair[0], turn_of[pair]), (turn_of[pair], pair[1])) if pair in turn_of else (pair,))
    ]
    layered.layers[:] = [
        row
        for rank, layer in enumerate(layered.layers)
        for row in ((layer, turns[rank]) if rank in turns else (layer,))
    ]
    layered.ranks = {vertex: rank for rank, layer in enumerate(layered.layers) for vertex in layer}
    return [rank + 1 + number for number, rank in enumerate(breaks)]


def _with_turns_between(chain: list[int], turn_of: dict[tuple[int, int], int]) -> list[int]:
    longer = chain[:1]
    for vertex in chain[1:]:
        if (turn := turn_of.get((longer[-1], vertex))) is not None:
            longer.append(turn)
        longer.append(vertex)
    return longer


@dataclass(frozen=True, slots=True)
class Strip:
    """What is known of a broken flow while it is still one strip.

    Attributes:
        begins: Where the first layer of each row begins along the flow.
        lows: Where each row begins across it.
        highs: Where each ends across it.
        lines: How many lines lead from each row to the next.
    """

    begins: Sequence[float]
    lows: Sequence[float]
    highs: Sequence[float]
    lines: Sequence[int]

    def shifts(self) -> list[Point]:
        """How each row is moved, across and along the flow, so that they lie below one another."""
        steps = [
            high - low + 2 * PADDING + (count - 1) * LANE
            for high, low, count in zip(self.highs, self.lows[1:], self.lines, strict=False)
        ]
        return list(zip(accumulate(steps, initial=0.0), (-begin for begin in self.begins), strict=True))

    def way_back(self, row: int, number: int, end: Point, start: Point) -> list[Cubic]:
        """The way from the end of one row to the beginning of the next one, both moved already.

        Args:
            row: The row that is left.
            number: The how many-th of the break's lines it is, across the flow.
            end: Where the line comes out.
            start: Where it comes in.
        """
        outside = self.lines[row] - 1 - number
        lane = self.highs[row] + self.shifts()[row][0] + PADDING + outside * LANE
        far, near = end[1] + RADIUS + outside * LANE, start[1] - RADIUS - number * LANE
        corners = [end, (end[0], far), (lane, far), (lane, near), (start[0], near), start]
        bend_out = min(RADIUS + outside * LANE, (lane - end[0]) / 2)
        bend_in = min(RADIUS + number * LANE, (start[0] - lane) / 2)
        return _bent(corners, [bend_out, bend_out, bend_in, bend_in])


def _bent(points: Sequence[Point], radii: Sequence[float]) -> list[Cubic]:
    """Straight lines that meet at right angles, with a quarter of a circle at each corner."""
    path: list[Cubic] = []
    here = points[0]
    for before, corner, after, radius in zip(points, points[1:], points[2:], radii, strict=False):
        first, last = _towards(corner, before, radius), _towards(corner, after, radius)
        path += (
            straight(here, first),
            (
                first,
                _towards(corner, before, radius * _ROUND),
                _towards(corner, after, radius * _ROUND),
                last,
            ),
        )
        here = last
    whole = [*path, straight(here, points[-1])]
    return [cubic for cubic in whole if abs(cubic[3][0] - cubic[0][0]) + abs(cubic[3][1] - cubic[0][1]) > 0.01]


def _towards(start: Point, end: Point, distance: float) -> Point:
    """The point at a distance from another along an axis."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = abs(dx) + abs(dy) or 1.0
    return start[0] + dx / length * distance, start[1] + dy / length * distance
