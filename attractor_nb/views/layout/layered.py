"""The layout of a scene: layers, the order within each, places, and the courses of edges.

It works in two axes of its own, ``across`` and ``along`` the flow, and turns the result at the end.
An edge passes each layer between what is there at its left and at its right, so that it never runs
through a box or a label.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from math import hypot
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.views.layout.layers import Layered, layer_scene, order_layers
from attractor_nb.views.layout.skeleton import (
    Cubic,
    Point,
    RawLayout,
    Rect,
    Skeleton,
    moved_path,
    points_at,
    reversed_path,
    skeleton_of,
    straight,
    straight_links,
    with_straight_links,
    without_links,
)
from attractor_nb.views.layout.vertex_places import BESIDE, PORT_GAP, Places
from attractor_nb.views.outlines import Direction, Scene, outline

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_CLEARANCE: Final = 8.0
"""Between a line and a box that it passes; lines side by side there are ``_SPACING`` apart."""
_SPACING: Final = 7.0
_BORDER_CLEARANCE: Final = 4.0
_FAN: Final = 4.0
_SLACK: Final = 4.0
"""Longest distance of a line from the middle of its label."""
_FAR: Final = 1e9

_Bound = tuple[float, int]


def lay_out_in_layers(scene: Scene) -> RawLayout:
    """Coordinates for a scene."""
    if not scene.boxes:
        return RawLayout([], [], [], [])
    skeleton = skeleton_of(scene)
    if straight := straight_links(skeleton):
        rest = _led_around(skeleton_of(without_links(scene, straight)))
        return with_straight_links(scene, rest, straight)
    return _led_around(skeleton)


def _led_around(skeleton: Skeleton) -> RawLayout:
    """Coordinates with every link led around the boxes."""
    layered = layer_scene(skeleton)
    order_layers(skeleton, layered)
    return _Drawing(skeleton, layered).result()


class _Drawing(Places):
    """The courses of a scene's edges between what has its places, and all of it in the final axes."""

    def __init__(self, skeleton: Skeleton, layered: Layered) -> None:
        super().__init__(skeleton, layered)
        self.free = self._free_rooms()

    def _free_rooms(self) -> dict[int, tuple[_Bound, _Bound]]:
        """Between what an edge through each vertex has to stay across the flow, in its layer."""
        free: dict[int, tuple[_Bound, _Bound]] = {}
        for layer in self.layered.layers:
            lows = self._bounds_from(layer, 1)
            highs = self._bounds_from(layer[::-1], -1)
            free.update((vertex, (lows[vertex], highs[vertex])) for vertex in layer)
        return free

    def _bounds_from(self, row: list[int], sign: int) -> dict[int, _Bound]:
        """For each vertex the bound on its side where the row begins, and how many lines pass between."""
        bound, count = -sign * _FAR, 0
        bounds: dict[int, _Bound] = {}
        for vertex in row:
            bounds[vertex] = bound, count
            if vertex in self.borders:
                bound, count = self.across[vertex] + sign * _BORDER_CLEARANCE, 0
            elif vertex in self.extents:
                room = self.extents[vertex][1 if sign > 0 else 0]
                bound, count = self.across[vertex] + sign * (room + _CLEARANCE), 0
            elif abs(bound) < _FAR:
                bound, count = bound + sign * _SPACING, count + 1
        return bounds

    def result(self) -> RawLayout:
        """Everything in the final axes."""
        turn, courses = self._turn(), self._courses()
        paths: list[list[Cubic]] = []
        labels: list[Point | None] = []
        for position, link in enumerate(self.scene.links):
            if position in courses:
                bead = self.layered.beads.get(position)
                path = moved_path(courses[position].path, turn)
                path = path if self.skeleton.is_forward[position] else reversed_path(path)
                label = None if bead is None else self._label(position, bead)
            else:
                loop, label = self.skeleton.loop_path(position, self._centre(link.source))
                path = moved_path(loop, turn)
            paths.append(path)
            labels.append(None if label is None else turn(label))
        centres = [turn(self._centre(box)) for box in range(len(self.scene.boxes))]
        return RawLayout(centres, paths, labels, self._panel_rects(turn))

    def _centre(self, box: int) -> Point:
        return self.across[box], self._middle(box)

    def _turn(self) -> Callable[[Point], Point]:
        end = self.bottoms[-1]
        match self.scene.direction:
            case Direction.DOWN:
                return lambda p: p
            case Direction.UP:
                return lambda p: (p[0], end - p[1])
            case Direction.RIGHT:
                return lambda p: (p[1], p[0])
            case Direction.LEFT:
                return lambda p: (end - p[1], p[0])

    def _courses(self) -> dict[int, EdgeRoute]:
        """The way of each link between two boxes, from upper to lower."""
        sides = self._sides()
        ports = {
            (position, box): place
            for (box, _), positions in sides.items()
            for position, place in zip(positions, self._ports(box, positions), strict=True)
        }
        courses: dict[int, EdgeRoute] = {}
        for position, chain in enumerate(self.layered.chains):
            if chain:
                start, end = ports[position, chain[0]], ports[position, chain[-1]]
                courses[position] = course(
                    (start, self._rim(chain[0], start, is_below=True)),
                    [door for vertex in chain for door in self._doors(position, vertex)],
                    (end, self._rim(chain[-1], end, is_below=False)),
                )
        for positions in sides.values():
            keep_apart([courses[position] for position in positions])
        return courses

    def _neighbour(self, position: int, box: int) -> int:
        """The vertex of a link that is next to one of its boxes."""
        chain = self.layered.chains[position]
        return chain[1] if chain[0] == box else chain[-2]

    def _sides(self) -> dict[tuple[int, bool], list[int]]:
        """The links at the lower and at the upper side of each box, in the order of where they lead."""
        sides: dict[tuple[int, bool], list[int]] = defaultdict(list)
        for position, chain in enumerate(self.layered.chains):
            if chain:
                sides[chain[0], True].append(position)
                sides[chain[-1], False].append(position)
        for (box, _), positions in sides.items():
            positions.sort(key=lambda position, at=box: self.places_in_row[self._neighbour(position, at)])
        return sides

    def _ports(self, box: int, positions: Sequence[int]) -> list[float]:
        """The ports of the links at one side of a box: apart, one that can be straight in the middle."""
        centre, drawn = self.across[box], self.scene.boxes[box]
        count = len(positions)
        room = self.skeleton.turned(drawn.width, drawn.height)[0] * 0.6
        gap = min(PORT_GAP, room / max(1, count - 1))
        middle = (count - 1) / 2
        aside = [abs(self.across[self._neighbour(position, box)] - centre) for position in positions]
        if min(aside) < 1:
            middle = float(aside.index(min(aside)))
            gap = min(gap, room / 2 / max(1.0, middle, count - 1 - middle))
        return [centre + (place - middle) * gap for place in range(count)]

    def _doors(self, position: int, vertex: int) -> list[RouteGap]:
        """The gaps that a link has to pass in the layer of one of its vertices.

        It leaves the layer of its upper box and comes into that of its lower one beside what is taller than
        these. It passes under its label, or along it where that is beside it.
        """
        rank, rims = self.layered.ranks[vertex], self._rims(vertex)
        ends = self.layered.chains[position]
        middle = self._middle(vertex)
        if vertex in (ends[0], ends[-1]):
            is_tallest = self.extents[vertex][2] > self.bottoms[rank] - self.tops[rank] - 2
            is_behind = vertex == ends[0]
            return [] if is_tallest else [door for door in rims if (door.along > middle) == is_behind]
        if vertex not in self.extents:
            return rims
        place = self.across[vertex]
        if position in self.label_sides:
            half, slack = self.extents[vertex][2] / 2, 0.0
        else:
            half, slack = 0.0, min(_SLACK, self.extents[vertex][0] / 3)
        doors = [RouteGap(along, place - slack, place + slack) for along in {middle - half, middle + half}]
        return sorted([*rims, *doors])

    def _rims(self, vertex: int) -> list[RouteGap]:
        """The gaps at the start and the end of a layer for a line; it keeps further away where others pass."""
        rank = self.layered.ranks[vertex]
        doors: list[RouteGap] = []
        low, lines_before = self.free[vertex][0]
        high, lines_behind = self.free[vertex][1]
        before, behind = (min(number, 3) * _FAN for number in (lines_before, lines_behind))
        if before == behind and (low, high) != (-_FAR, _FAR):
            return [RouteGap(self.tops[rank] - before, low, high), RouteGap(self.bottoms[rank] + before, low, high)]
        if low > -_FAR:
            doors += (RouteGap(self.tops[rank] - before, low, _FAR), RouteGap(self.bottoms[rank] + before, low, _FAR))
        if high < _FAR:
            doors += (
                RouteGap(self.tops[rank] - behind, -_FAR, high),
                RouteGap(self.bottoms[rank] + behind, -_FAR, high),
            )
        return sorted(doors)

    def _rim(self, box: int, place: float, *, is_below: bool) -> float:
        """The position of a box's outline along the flow, at a place across it."""
        offset = place - self.across[box]
        corners = [self._local(corner) for corner in outline(self.scene.boxes[box])]
        found = [
            a[1] + (b[1] - a[1]) * (offset - a[0]) / (b[0] - a[0])
            for a, b in zip(corners, (*corners[1:], corners[0]), strict=True)
            if a[0] != b[0] and min(a[0], b[0]) <= offset <= max(a[0], b[0])
        ]
        return self._middle(box) + (max(found) if is_below else min(found))

    def _local(self, corner: Point) -> Point:
        """A point relative to a box's centre, across and along the flow."""
        x, y = corner
        match self.scene.direction:
            case Direction.DOWN:
                return x, y
            case Direction.UP:
                return x, -y
            case Direction.RIGHT:
                return y, x
            case Direction.LEFT:
                return y, -x

    def _label(self, position: int, bead: int) -> Point:
        link = self.scene.links[position]
        room = self.skeleton.turned(link.width, link.height)[0] / 2 + BESIDE
        return self.across[bead] + self.label_sides.get(position, 0) * room, self._middle(bead)

    def _panel_rects(self, turn: Callable[[Point], Point]) -> list[Rect]:
        rects = [Rect(0, 0, 0, 0)] * len(self.scene.panels)
        for panel, (first, last) in self._panel_ranks().items():
            before, after = self._panel_depths(panel)
            left, right = self.layered.borders[panel][0]
            (x0, y0), (x1, y1) = (
                turn((self.across[left], self.tops[first] - before)),
                turn((self.across[right], self.bottoms[last] + after)),
            )
            rects[panel] = Rect(min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0))
        return rects


# The course of an edge: taut between the doors that it has to pass, and smooth.
#
# The rule: in each layer that an edge passes, two doors leave it the room between its left and its right neighbour.
# A string pulled tight through all doors is the shortest way that meets nothing; it bends only at the posts of
# doors. Each bend is then rounded, as widely as the posts' distance from the boxes allows, so that a line has one
# tangent everywhere. An edge from one layer to the next leaves and enters its boxes along the flow if it is steep
# enough, else on the straight line. Pure; coordinates are (across, along) the flow.

_CUT: Final = 5.0
"""Longest distance of a rounded bend from the inside of its corner."""
_HAIR: Final = 3.0
_HAIRPIN: Final = 14.0
"""Distance before and after its middle at which an edge that turns back runs along the flow."""
_STEEP: Final = 0.8
_FLAT: Final = 2.6
"""Steps across for each step along: up to the one an edge is a wave, from the other on a straight line."""


class RouteGap(NamedTuple):
    """Between ``low`` and ``high`` across the flow, at one place along it."""

    along: float
    low: float
    high: float


@dataclass(slots=True)
class EdgeRoute:
    """The way of an edge from its upper box down to the lower one."""

    points: list[Point]  #: The corners of the taut way.
    path: list[Cubic]  #: The way as it is drawn.
    is_curved: bool = False  #: It bulges beyond the taut way.

    def pull_taut(self) -> None:
        """Draw it with bends at its corners only."""
        if self.is_curved:
            self.path, self.is_curved = _rounded(_widened(self.points)), False


def course(start: Point, doors: Sequence[RouteGap], end: Point) -> EdgeRoute:
    """The smooth way from one point down to another through doors, which lie in this order between them."""
    if not doors:
        return EdgeRoute([start, end], [_wave(start, end)])
    points = _string(start, doors, end)
    if len(points) > 2 and not _is_flat(points):
        path = _curved(points)
        if _passes(path, doors):
            return EdgeRoute(points, path, is_curved=True)
    return EdgeRoute(points, _rounded(_widened(points)))


def keep_apart(courses: Sequence[EdgeRoute]) -> None:
    """Pull those taut that cross the next one by their curves; all begin, or end, at one side of a box."""
    if not any(one.is_curved for one in courses):
        return
    samples = [_samples(one.path, 4) for one in courses]
    for number in (*range(1, len(courses)), *range(len(courses) - 2, 0, -1)):
        first, second = courses[number - 1 : number + 1]
        if (first.is_curved or second.is_curved) and _cross(samples[number - 1], samples[number]):
            first.pull_taut()
            second.pull_taut()
            samples[number - 1 : number + 1] = _samples(first.path, 4), _samples(second.path, 4)


def _cross(one: Sequence[Point], other: Sequence[Point]) -> bool:
    """True if of two courses down the left one becomes the right one."""
    top, bottom = max(one[0][1], other[0][1]) + 1, min(one[-1][1], other[-1][1]) - 1
    is_right = is_left = False
    for points, rest, sign in ((one, other, 1), (other, one, -1)):
        place = 1
        for x, y in points:
            if top < y < bottom:
                while rest[place][1] < y:
                    place += 1
                (x0, y0), (x1, y1) = rest[place - 1], rest[place]
                distance = sign * (x - x0 - (x1 - x0) * (y - y0) / max(y1 - y0, 1e-6))
                is_right = is_right or distance > 0
                is_left = is_left or distance < 0
    return is_right and is_left


def _samples(path: Sequence[Cubic], count: int) -> list[Point]:
    return [path[0][0], *(point for cubic in path for point in points_at(cubic, count))]


def _string(start: Point, doors: Sequence[RouteGap], end: Point) -> list[Point]:
    """The corners of the shortest way, its ends included: a funnel that narrows door by door."""
    ahead = [*doors, RouteGap(end[1], end[0], end[0])]
    points = [start]
    number = 0
    while number < len(ahead):
        x, y = points[-1]
        least, most = float("-inf"), float("inf")
        at_least = at_most = number
        while number < len(ahead):
            along, low, high = ahead[number]
            depth = max(along - y, 1e-6)
            lower, upper = (low - x) / depth, (high - x) / depth
            if lower > most:
                points.append((ahead[at_most].high, ahead[at_most].along))
                number = at_most + 1
                break
            if upper < least:
                points.append((ahead[at_least].low, ahead[at_least].along))
                number = at_least + 1
                break
            if lower >= least:
                least, at_least = lower, number
            if upper <= most:
                most, at_most = upper, number
            number += 1
    if points[-1] != end:
        points.append(end)
    return points


def _wave(start: Point, end: Point) -> Cubic:
    """From one box to another below it."""
    (x0, y0), (x1, y1) = start, end
    dx, dy = x1 - x0, y1 - y0
    flatness = min(1.0, max(0.0, (abs(dx) / max(dy, 1e-6) - _STEEP) / (_FLAT - _STEEP)))
    across, along = dx * flatness / 3, dy * (0.5 - flatness / 6)
    return start, (x0 + across, y0 + along), (x1 - across, y1 - along), end


def _is_flat(points: Sequence[Point]) -> bool:
    """True if a way has pieces so flat that a curve through its corners would bulge, or bend sharply."""
    return any(abs(b[0] - a[0]) > _FLAT * (b[1] - a[1]) for a, b in pairwise(points))


def _widened(points: Sequence[Point]) -> list[Point]:
    """The corners of a way, those where it turns back drawn out along the flow: there is room for a bend.

    What it had to pass on that stretch it passes at the same place across the flow, further out.
    """
    wide = [points[0]]
    turned_until = float("-inf")
    for before, (x, y), after in zip(points, points[1:], points[2:], strict=False):
        (ax, ay), (bx, by) = _towards((x, y), before)[0], _towards((x, y), after)[0]
        high, low = y - _HAIRPIN, y + _HAIRPIN
        if ax * bx > -ay * by and points[0][1] + 2 < high and low < points[-1][1] - 2 and turned_until < high:
            while len(wide) > 1 and wide[-1][1] > high - 2:
                wide.pop()
            wide += ((x, high), (x, low))
            turned_until = low
        elif y > turned_until + 2:
            wide.append((x, y))
    return [*wide, points[-1]]


def _curved(points: Sequence[Point]) -> list[Cubic]:
    """One curve through all points, along the flow where it turns back across it (monotone tangents)."""
    slopes = [(b[0] - a[0]) / max(b[1] - a[1], 1e-6) for a, b in pairwise(points)]
    inner = [2 * a * b / (a + b) if a * b > 0 else 0.0 for a, b in pairwise(slopes)]
    tangents = [_towards((0.0, 0.0), (slope, 1.0))[0] for slope in (slopes[0], *inner, slopes[-1])]
    path: list[Cubic] = []
    for (a, b), (u, v) in zip(pairwise(points), pairwise(tangents), strict=True):
        out, back = _handle(a, b, u), _handle(a, b, v)
        path.append((a, (a[0] + u[0] * out, a[1] + u[1] * out), (b[0] - v[0] * back, b[1] - v[1] * back), b))
    return path


def _handle(start: Point, end: Point, direction: Point) -> float:
    """The maximum length of a handle in some direction: it stays between the two points."""
    dx, dy = abs(end[0] - start[0]), end[1] - start[1]
    return min(
        0.4 * hypot(dx, dy),
        0.72 * dy / max(direction[1], 1e-6),
        dx / abs(direction[0]) if abs(direction[0]) > 1e-6 else float("inf"),
    )


def _passes(path: Sequence[Cubic], doors: Sequence[RouteGap]) -> bool:
    """True if a way down leads through all doors, but for a hair's breadth."""
    points = _samples(path, 6)
    number = 0
    for (x0, y0), (x1, y1) in pairwise(points):
        while number < len(doors) and doors[number].along <= y1:
            along, low, high = doors[number]
            x = x0 + (x1 - x0) * (along - y0) / max(y1 - y0, 1e-6)
            if not low - _HAIR <= x <= high + _HAIR:
                return False
            number += 1
    return True


def _rounded(points: Sequence[Point]) -> list[Cubic]:
    """A line along some points, with a curve at each corner."""
    path: list[Cubic] = []
    here = points[0]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        inward, reach_in = _towards(corner, before)
        outward, reach_out = _towards(corner, after)
        half = hypot(inward[0] + outward[0], inward[1] + outward[1]) / 2
        reach = min(reach_in * (1 if before == points[0] else 0.5), reach_out * (1 if after == points[-1] else 0.5))
        if half > 1e-6:
            reach = min(0.9 * reach, 2 * _CUT / half)
        first = (corner[0] + inward[0] * reach, corner[1] + inward[1] * reach)
        last = (corner[0] + outward[0] * reach, corner[1] + outward[1] * reach)
        path += (straight(here, first), _curve(first, corner, last))
        here = last
    return [*path, straight(here, points[-1])]


def _curve(start: Point, corner: Point, end: Point) -> Cubic:
    """A parabola between two points of the sides of a corner."""
    return (
        start,
        (start[0] + (corner[0] - start[0]) * 2 / 3, start[1] + (corner[1] - start[1]) * 2 / 3),
        (end[0] + (corner[0] - end[0]) * 2 / 3, end[1] + (corner[1] - end[1]) * 2 / 3),
        end,
    )


def _towards(start: Point, end: Point) -> tuple[Point, float]:
    """The direction and the distance from one point to another."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = hypot(dx, dy) or 1.0
    return (dx / length, dy / length), length
