"""Rows of a flow to the right that is longer than a cell is wide: it wraps like a text (pure).

The rule: all rows are read in the direction of the flow. A flow is broken between two layers, never within a
panel, so that no row is longer than it may be, there are few rows, few lines lead from one to the next, and
all are about equally long. Each line that does comes out at the end of its row, runs back between the two
rows and comes in at the beginning of the next one. Of the lines of one break the first across the flow turns
furthest outside at the end, runs furthest from the row that it leaves, and turns furthest inside at the
beginning: so they stay side by side and never cross.

To lay out a broken flow, each break gets a layer of *turns*, one vertex for each line. What is before
and behind is placed as if the flow were one strip, and then moved row by row.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from graphlib import TopologicalSorter
from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.views.layout.skeleton import Cubic, Point, skeleton_of, straight
from attractor_nb.views.outlines import Direction, Scene

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.views.layout.layers import Layered


LANE: Final = 9.0
"""Between two lines that run back side by side."""
PADDING: Final = 18.0
"""Between a row and the lines behind it: room for a bend that is not sharp."""
RADIUS: Final = 12.0
_APPROACH: Final = 30.0
_WIDEST_APPROACH: Final = 90.0
_STEEPNESS: Final = 1.3
"""From a layer to its turns: least, most, and for each pixel that lines move across on the way."""
_ROW_COST: Final = 4.0
"""So many more lines may lead from row to row, if that saves a row."""
_UNEVEN_COST: Final = 4.0
"""So many more lines may lead from row to row, for a row that would be empty otherwise and is full then."""
RUN: Final = 12.0
"""Length of the straight line before and after a turn."""
_MOST_STOPS: Final = 64
"""In one row, where the longest stretch without any lets rows be so long; a row of a cell's width has some twenty."""
_TRIES: Final = 8
_LESS: Final = 16.0
"""So often, and by so much, rows are made shorter until the back edges fit, too."""
_ROUND: Final = 0.448
"""Distance of the handle from the corner of a quarter of a circle, for a radius of 1."""


class Gap(NamedTuple):
    """Between two layers, where a row may end."""

    lines: int  #: Number of outgoing lines.
    step: float = 0.0  #: Longest movement across the flow.

    @property
    def room(self) -> float:
        """The part of a row's length that the turns take, at one end of it."""
        return approach(self.step) + RADIUS + (self.lines - 1) * LANE


def approach(step: float) -> float:
    """The distance of turns from the layer before or behind, for lines that move that far across on the way."""
    return min(_WIDEST_APPROACH, max(_APPROACH, step * _STEEPNESS))


def row_breaks(starts: Sequence[float], ends: Sequence[float], gaps: Sequence[Gap | None], longest: float) -> list[int]:
    """The layers behind which a flow is best broken; none where it is short enough, or cannot be broken.

    Args:
        starts: Where each layer begins along the flow.
        gaps: Between each layer and the next; None where the flow must not be broken.
        longest: How long a row may be, its turns included. What cannot be broken may be longer; then the
            other rows may, too.
    """
    if not ends or ends[-1] - starts[0] <= longest:
        return []
    flow = _Flow(starts, ends, gaps, [gap.room if gap else 0.0 for gap in gaps])
    shortest = max(flow.length(before, last) for before, last in pairwise((-1, *flow.stops)))
    breaks: list[int] = []
    for _ in range(_TRIES):
        breaks = flow.breaks(max(longest, shortest))
        beyond = flow.width(breaks) - longest
        if beyond <= 0 or longest <= shortest:
            break
        longest -= min(beyond, _LESS)
    return breaks


@dataclass(frozen=True, slots=True)
class _Flow:
    """A flow that may be broken: where its layers begin and end, what is between them, and its room."""

    starts: Sequence[float]
    ends: Sequence[float]
    gaps: Sequence[Gap | None]
    rooms: Sequence[float]

    @property
    def stops(self) -> list[int]:
        """The layers that can be the last of a row."""
        return [*(rank for rank, gap in enumerate(self.gaps) if gap), len(self.ends) - 1]

    def _room(self, rank: int) -> float:
        return self.rooms[rank] if 0 <= rank < len(self.rooms) else 0.0

    def _inner(self, before: int, last: int) -> float:
        return self.ends[last] - self.starts[before + 1] + self._room(last)

    def length(self, before: int, last: int) -> float:
        """Of the row that begins behind one layer and ends with another."""
        return self._room(before) + self._inner(before, last)

    def width(self, breaks: Sequence[int]) -> float:
        """Of all rows; their first layers are below one another."""
        rows = pairwise((-1, *breaks, len(self.ends) - 1))
        return max(map(self._room, (-1, *breaks))) + max(self._inner(*row) for row in rows)

    def breaks(self, longest: float) -> list[int]:
        """The best places, if rows may be so long."""
        best: dict[int, tuple[float, list[int]]] = {-1: (0.0, [])}
        for last in self.stops:
            found: list[tuple[float, list[int]]] = []
            for before, (cost, breaks) in islice(reversed(best.items()), _MOST_STOPS):
                inner = self._inner(before, last)
                if inner > longest:  # and so are all rows that begin further back
                    break
                used = (self._room(before) + inner) / longest
                if used <= 1:
                    gap = self.gaps[before] if before >= 0 else None
                    crossed = gap.lines - 1 if gap else 0
                    uneven = _UNEVEN_COST * (1 - used) ** 2
                    found.append((cost + _ROW_COST + crossed + uneven, [*breaks, last]))
            best[last] = min(found)
        return best[len(self.ends) - 1][1][:-1]


def gaps_between_layers(layered: Layered, across: Mapping[int, float]) -> list[Gap | None]:
    """The gap between each layer and the next one. None between layers of one panel."""
    lines, steps = [0] * len(layered.layers), [0.0] * len(layered.layers)
    for upper, lower in layered.edges:
        rank = layered.ranks[upper]
        lines[rank] += 1
        steps[rank] = max(steps[rank], abs(across[upper] - across[lower]))
    found: list[Gap | None] = [Gap(*pair) for pair in zip(lines, steps, strict=True)]
    for rungs in layered.borders:
        for left, _ in rungs[:-1]:
            found[layered.ranks[left]] = None
    return found[:-1]


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
    leaving: dict[int, list[tuple[int, int]]] = {rank: [] for rank in breaks}
    for pair in layered.edges:
        if (rank := layered.ranks[pair[0]]) in leaving:
            leaving[rank].append(pair)
    for rank, pairs in leaving.items():
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


@dataclass(frozen=True)
class RowStrip:
    """The measures of a broken flow while it is still one strip."""

    begins: Sequence[float]  #: Position of the first layer of each row along the flow.
    lows: Sequence[float]  #: Lower end of each row across the flow.
    highs: Sequence[float]  #: Upper end of each row across the flow.
    lines: Sequence[int]  #: Number of lines from each row to the next.

    @cached_property
    def shifts(self) -> list[Point]:
        """The shift of each row, across and along the flow, so that they lie below one another."""
        steps = [
            high - low + 2 * PADDING + (count - 1) * LANE
            for high, low, count in zip(self.highs, self.lows[1:], self.lines, strict=False)
        ]
        return list(zip(accumulate(steps, initial=0.0), (-begin for begin in self.begins), strict=True))

    def return_route(self, row: int, number: int, end: Point, start: Point) -> list[Cubic]:
        """The way from the end of one row to the beginning of the next one, both moved already.

        Args:
            row: The row that is left.
            number: The how many-th of the break's lines it is, across the flow.
            end: Where the line comes out.
            start: Where it comes in.
        """
        outside = self.lines[row] - 1 - number
        lane = self.highs[row] + self.shifts[row][0] + PADDING + outside * LANE
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
            (first, _towards(corner, before, radius * _ROUND), _towards(corner, after, radius * _ROUND), last),
        )
        here = last
    whole = [*path, straight(here, points[-1])]
    return [cubic for cubic in whole if abs(cubic[3][0] - cubic[0][0]) + abs(cubic[3][1] - cubic[0][1]) > 0.01]


def _towards(start: Point, end: Point, distance: float) -> Point:
    """The point at a distance from another along an axis."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = abs(dx) + abs(dy) or 1.0
    return start[0] + dx / length * distance, start[1] + dy / length * distance


# The direction of a graph that sets none: down, or to the right where that fits a cell (pure).
#
# The rule: a drawing that would be tall and narrow flows to the right if it is then no wider than a cell
# shows with legible texts. If it is wider it flows to the right in rows (see ``rows``), if that makes it much lower
# and few lines lead from row to row. So a chain reads like a text, and everything else flows down. Judged by sizes
# alone, before the layout: by the sum and the largest of each layer, layers being counted along the longest paths.

_TALL: Final = 330.0
_MUCH_LOWER: Final = 0.6
_FEW_LINES: Final = 2
_MOST_LINES: Final = 5
"""Most lines from row to row in a flow that is broken, and so many from layer to layer anywhere in it."""
_PANEL_ENDS: Final = 30.0
"""More room between two layers where a panel begins or ends."""
_TIMES_AS_HIGH: Final = 1.6
_MARGINS: Final = 28.0
_BOX_GAP: Final = 33.0
_LABEL_GAP: Final = 18.0
_BESIDE: Final = 26.0
_BELOW: Final = 18.0


def flow_of(scene: Scene, widest: float) -> Direction:
    """The direction of a scene that may be at most so wide."""
    return _flow(scene.without_texts(), widest) if scene.boxes else Direction.DOWN


@lru_cache(maxsize=64)
def _flow(scene: Scene, widest: float) -> Direction:
    layers = _layers(scene)
    down = _ends(layers, along=1)[-1][1]
    across = max((sum(width + _BESIDE for width, _ in layer.sizes) for layer in layers), default=0.0)
    if down <= _TALL or down <= _TIMES_AS_HIGH * across:
        return Direction.DOWN
    if _ends(layers, along=0)[-1][1] <= widest or _fits_in_rows(layers, widest, _MUCH_LOWER * down):
        return Direction.RIGHT
    return Direction.DOWN


def _fits_in_rows(layers: list[_Layer], widest: float, highest: float) -> bool:
    """True if a flow to the right has rows that are not too long, nor all together too high."""
    if max(layer.lines for layer in layers) > _MOST_LINES:
        return False
    starts, ends = zip(*_ends(layers, along=0), strict=True)
    gaps = [Gap(layer.lines) if layer.lines <= _FEW_LINES and not layer.is_within else None for layer in layers[:-1]]
    breaks = row_breaks(starts, ends, gaps, widest - _MARGINS)
    firsts = [0, *(rank + 1 for rank in breaks)]
    rows = [layers[first:end] for first, end in zip(firsts, [*firsts[1:], len(layers)], strict=True)]
    lengths = [ends[first + len(row) - 1] - starts[first] for first, row in zip(firsts, rows, strict=True)]
    heights = [max(sum(height + _BELOW for _, height in layer.sizes) for layer in row) for row in rows]
    return max(lengths) <= widest and sum(heights) + 2 * PADDING * len(breaks) <= highest


def _ends(layers: list[_Layer], *, along: int) -> list[tuple[float, float]]:
    """The start and the end of each layer, if the flow runs along one of the two axes."""
    found: list[tuple[float, float]] = []
    for number, layer in enumerate(layers):
        gap = 0.0
        if number:
            gap = _BOX_GAP if layers[number - 1].has_boxes and layer.has_boxes else _LABEL_GAP
            gap += layer.room * (1 - along)
        start = gap + (found[-1][1] if found else _MARGINS)
        found.append((start, start + max(size[along] for size in layer.sizes)))
    return found


@dataclass(slots=True)
class _Layer:
    """The content of a layer."""

    sizes: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])  #: Widths and heights.
    has_boxes: bool = False  #: True if boxes do, and not labels only.
    lines: int = 0  #: Number of lines to the next layer.
    is_within: bool = False  #: True if a panel holds both.
    room: float = 0.0  #: Before it, for a panel that begins or ends there.


def _layers(scene: Scene) -> list[_Layer]:
    """The sizes of what is in each layer: boxes and, in layers of their own, labels."""
    skeleton = skeleton_of(scene)
    above: dict[int, list[int]] = {box: [] for box in range(len(scene.boxes))}
    for position, (upper, lower) in enumerate(skeleton.ends):
        if upper != lower:
            above[lower].append(position)
    order = TopologicalSorter({box: [skeleton.ends[p][0] for p in links] for box, links in above.items()})
    ranks: dict[int, int] = {}
    layers: dict[int, _Layer] = defaultdict(_Layer)
    for box in order.static_order():
        steps = ((ranks[skeleton.ends[p][0]], bool(scene.links[p].lines)) for p in above[box])
        ranks[box] = max((rank + 1 + is_labelled for rank, is_labelled in steps), default=0)
        layers[ranks[box]].has_boxes = True
        layers[ranks[box]].sizes.append((scene.boxes[box].width, scene.boxes[box].height))
    for position, (upper, lower) in enumerate(skeleton.ends):
        link = scene.links[position]
        if upper != lower and link.lines:
            layers[ranks[upper] + 1].sizes.append((link.width, link.height))
    # At each layer: how many lines, and panels, begin less those that end.
    lines, panels = Counter[int](), Counter[int]()
    for upper, lower in skeleton.ends:
        lines[ranks[upper]] += 1
        lines[ranks[lower]] -= 1
    for panel in scene.panels:
        inside = [ranks[member] for member in panel.members]
        panels[min(inside)] += 1
        panels[max(inside)] -= 1
        layers[min(inside)].room = layers[max(inside) + 1].room = _PANEL_ENDS
    line_count = panel_count = 0
    for rank in sorted(layers):
        line_count, panel_count = line_count + lines[rank], panel_count + panels[rank]
        layers[rank].lines, layers[rank].is_within = line_count, panel_count > 0
    return [layers[rank] for rank in sorted(layers) if layers[rank].sizes]
