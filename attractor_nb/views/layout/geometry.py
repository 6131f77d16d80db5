"""Points, cubic paths and outlines, and the places in pixels that the layout returns (pure).

It knows nothing of engines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import hypot
from typing import TYPE_CHECKING, Final

from attractor_nb.views.outlines import Point

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Cubic = tuple[Point, Point, Point, Point]

HEAD_LENGTH: Final = 7.0
_BISECTIONS: Final = 9
_CLIP_BISECTIONS: Final = 14
"""A line through a whole drawing is clipped within two pixels."""


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle by its top left corner and its size."""

    x: float
    y: float
    width: float
    height: float


def straight(start: Point, end: Point) -> Cubic:
    """A straight line as a cubic."""
    (x0, y0), (x1, y1) = start, end
    third_x, third_y = (x1 - x0) / 3, (y1 - y0) / 3
    return start, (x0 + third_x, y0 + third_y), (x1 - third_x, y1 - third_y), end


def point_at(cubic: Cubic, t: float) -> Point:
    """The point of a cubic at a parameter from 0 to 1."""
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = cubic
    s = 1 - t
    a, b, c, d = s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t
    return a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3


def points_at(cubic: Cubic, count: int) -> list[Point]:
    """So many points of a cubic, at equal steps of its parameter; the last one is its end."""
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = cubic
    return [(a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3) for a, b, c, d in _weights(count)]


@lru_cache(maxsize=256)
def _weights(count: int) -> list[tuple[float, float, float, float]]:
    """What each of the four points of a cubic counts, at so many steps."""
    steps = [step / count for step in range(1, count + 1)]
    return [((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t * t, t**3) for t in steps]


def split(cubic: Cubic, t: float) -> tuple[Cubic, Cubic]:
    """The two parts of a cubic on either side of a parameter."""
    p0, p1, p2, p3 = cubic
    a, b, c = _between(p0, p1, t), _between(p1, p2, t), _between(p2, p3, t)
    d, e = _between(a, b, t), _between(b, c, t)
    middle = _between(d, e, t)
    return (p0, a, d, middle), (middle, e, c, p3)


def moved_path(path: Sequence[Cubic], move: Callable[[Point], Point]) -> list[Cubic]:
    """A path whose points are all moved."""
    return [(move(a), move(b), move(c), move(d)) for a, b, c, d in path]


def reversed_path(path: list[Cubic]) -> list[Cubic]:
    """The same path from its end to its start."""
    return [(d, c, b, a) for a, b, c, d in reversed(path)]


def clip_start(path: list[Cubic], corners: list[Point], centre: Point) -> list[Cubic]:
    """A path that starts inside an outline, without that part; of one that never leaves it the last cubic."""
    for position, cubic in enumerate(path):
        if _is_inside(cubic[3], corners, centre):
            continue
        low, high = 0.0, 1.0
        for _ in range(_CLIP_BISECTIONS):
            middle = (low + high) / 2
            if _is_inside(point_at(cubic, middle), corners, centre):
                low = middle
            else:
                high = middle
        return [split(cubic, high)[1], *path[position + 1 :]]
    return path[-1:]


def make_room_for_head(path: list[Cubic]) -> tuple[list[Cubic], Point, Point]:
    """Shorten a path by an arrow head.

    Returns:
        The shortened path, the tip (its old end), and the point where the head's base is.
    """
    tip = path[-1][3]
    position = len(path) - 1
    while position and _distance(path[position][0], tip) <= HEAD_LENGTH:
        position -= 1
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _distance(point_at(path[position], middle), tip) > HEAD_LENGTH:
            low = middle
        else:
            high = middle
    kept = split(path[position], high)[0]
    return [*path[:position], kept], tip, kept[3]


def _distance(a: Point, b: Point) -> float:
    return hypot(a[0] - b[0], a[1] - b[1])


def _between(a: Point, b: Point, t: float) -> Point:
    return a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t


def _is_inside(point: Point, corners: list[Point], centre: Point) -> bool:
    x, y = point[0] - centre[0], point[1] - centre[1]
    ax, ay = corners[-1]
    for bx, by in corners:
        if (bx - ax) * (y - ay) - (by - ay) * (x - ax) < 0:
            return False
        ax, ay = bx, by
    return True


@dataclass(frozen=True, slots=True)
class Route:
    """The way of an edge."""

    path: tuple[Cubic, ...]  #: Cubics in order, from the source's outline to the base of the arrow head.
    tip: Point  #: Where the arrow head touches the target.
    base: Point  #: Where it begins.
    label: Point  #: Centre of the edge's label; for an edge without one its middle.


@dataclass(frozen=True, slots=True)
class Layout:
    """Places for everything in a scene, in the scene's order."""

    width: float  #: Width of the whole drawing, margins included.
    height: float  #: Height of the same.
    centres: tuple[Point, ...]  #: Centre of each box.
    routes: tuple[Route, ...]  #: One for each link.
    panels: tuple[Rect, ...]  #: One rectangle for each panel.


@dataclass(frozen=True, slots=True)
class RawLayout:
    """Coordinates before margins and arrow heads."""

    centres: list[Point]  #: Centre of each box.
    paths: list[list[Cubic]]  #: Cubics of each link from outline to outline; of a loop from within its box.
    labels: list[Point | None]  #: Centre of each label, or None where there is none.
    panels: list[Rect]  #: One rectangle for each panel.
