"""The course of an edge: taut between the doors that it has to pass, and smooth.

The rule: in each layer that an edge passes, two doors leave it the room between what stands at its left and
at its right. A string pulled tight through all doors is the shortest way that meets nothing; it bends only
at the posts of doors. Each bend is then rounded, as widely as the posts' distance from the boxes allows, so
that a line has one tangent everywhere. An edge from one layer to the next leaves and enters its boxes along
the flow where it is steep enough, else on the straight line. Pure; coordinates are (across, along) the
flow.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import hypot
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.views.layout.geometry import Cubic, Point, points_at, straight

if TYPE_CHECKING:
    from collections.abc import Sequence

_CUT: Final = 5.0
"""How far a rounded bend may pass inside of its corner."""
_HAIR: Final = 3.0
_HAIRPIN: Final = 14.0
"""How far before and behind its middle a way that turns back runs along the flow."""
_STEEP: Final = 0.8
_FLAT: Final = 2.6
"""Steps across for each step along: up to the one an edge is a wave, from the other on a straight line."""


class Door(NamedTuple):
    """Between ``low`` and ``high`` across the flow, at one place along it."""

    along: float
    low: float
    high: float


@dataclass(slots=True)
class Course:
    """The way of an edge from its upper box down to the lower one."""

    points: list[Point]  #: The corners of the taut way.
    path: list[Cubic]  #: The way as it is drawn.
    is_curved: bool = False  #: It bulges beyond the taut way.

    def pull_taut(self) -> None:
        """Draw it with bends at its corners only."""
        if self.is_curved:
            self.path, self.is_curved = _rounded(_widened(self.points)), False


def course(start: Point, doors: Sequence[Door], end: Point) -> Course:
    """The smooth way from one point down to another through doors, which lie in this order between them."""
    if not doors:
        return Course([start, end], [_wave(start, end)])
    points = _string(start, doors, end)
    if len(points) > 2 and not _is_flat(points):
        path = _curved(points)
        if _passes(path, doors):
            return Course(points, path, is_curved=True)
    return Course(points, _rounded(_widened(points)))


def keep_apart(courses: Sequence[Course]) -> None:
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
    """Whether of two courses down the left one becomes the right one."""
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


def _string(start: Point, doors: Sequence[Door], end: Point) -> list[Point]:
    """The corners of the shortest way, its ends included: a funnel that narrows door by door."""
    ahead = [*doors, Door(end[1], end[0], end[0])]
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
    """Whether a way has pieces so flat that a curve through its corners would bulge, or bend sharply."""
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
    """How long a handle in some direction may be: it stays between the two points."""
    dx, dy = abs(end[0] - start[0]), end[1] - start[1]
    return min(
        0.4 * hypot(dx, dy),
        0.72 * dy / max(direction[1], 1e-6),
        dx / abs(direction[0]) if abs(direction[0]) > 1e-6 else float("inf"),
    )


def _passes(path: Sequence[Cubic], doors: Sequence[Door]) -> bool:
    """Whether a way down leads through all doors, but for a hair's breadth."""
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
