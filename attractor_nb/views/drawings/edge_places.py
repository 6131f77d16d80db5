"""Places of small marks outside of any layout: numbers of passes beside edges, titles of panels (pure).

A place is free when no box, label, arrow head, title or line lies in it. What is drawn on its own edge, as
a label is, needs no background: the edge's line is cut there, so that what is beneath it stays what it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import lru_cache
from itertools import pairwise
from math import hypot
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.views.drawings.drawing import DETAIL_SIZE, TIMES
from attractor_nb.views.layout.skeleton import (
    HEAD_LENGTH,
    Cubic,
    Layout,
    Point,
    Rect,
    Route,
    point_at,
    points_at,
    split,
)
from attractor_nb.views.metrics import shorten, text_width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from attractor_nb.views.outlines import Panel, Scene

TITLE_SIZE: Final = 11.0
TITLE_STRIP: Final = 18.0
"""Height of the strip at the top of a panel for its title."""
MOST_PASSES: Final = 9999
_PASSES_WIDTH: Final = text_width(f"{TIMES}{MOST_PASSES}", DETAIL_SIZE, is_bold=True)
"""Beside each edge: how often it was passed may appear at any time."""
_SHORT_PASSES_WIDTH: Final = text_width(f"{TIMES}888", DETAIL_SIZE, is_bold=True)
FINDING_SIZE: Final = 15.0
_CELL: Final = 48.0
_STEP: Final = 5.0
"""Between two points of a line."""
_MOST_POINTS: Final = 200_000
"""Of all lines together; in a drawing that needs more, the points are further apart."""
_CROWDED: Final = 240
"""A cell with this many points, some 24 lines, or this many areas has no free place."""
_MOST_TRIES: Final = 29_000
_LEAST_TRIES: Final = 2
"""Places that are tried along all lines together, and along each: beyond 1,000 lines, each has fewer."""
_BISECTIONS: Final = 6
_CLEAR: Final = 3.0
"""Between a mark and a line."""
_ASIDE: Final = 0.3
"""A line that is less steep than this has places above and below rather than beside it."""
_EDGE: Final = 3.0
"""Between a mark and the edge of the drawing."""
_SHIFTS: Final = (
    0.0,
    *(sign * part / 100 for part in (14, 28, 40, 7, 21, 34, 46, 4, 11, 18, 25, 31, 37, 43) for sign in (1, -1)),
)
"""Positions that are tried for a mark, as distances from the middle of its edge in parts of the edge's length."""

Area = tuple[float, float, float, float]
"""Left, top, right and bottom."""


class EdgePlace(NamedTuple):
    """A place beside an edge: its centre and width, and whether it is right (1) or left (-1) of the line."""

    x: float
    y: float
    width: float
    side: int

    @property
    def start(self) -> float:
        """The x of a text as near to the line as possible."""
        return self.x - self.side * self.width / 2


class MarkPlaces(NamedTuple):
    """The places of the small marks of one edge."""

    finding: EdgePlace | None  #: The mark of an error; None where there is none.
    passes: EdgePlace | None  #: The number of passes; None where a node says it or there is no room.
    is_narrow: bool = False  #: There is room for a short number only.


@lru_cache(maxsize=16)
def places_of_marks(
    scene: Scene, layout: Layout, with_finding: frozenset[int], words: tuple[str, ...]
) -> tuple[tuple[tuple[Point, str], ...], tuple[MarkPlaces, ...]]:
    """The titles of panels, each with its place, and the places beside each edge.

    Args:
        scene: What is drawn; its texts do not matter.
        layout: Where.
        with_finding: Positions of links that a finding marks.
        words: For each link what is there in place of a number, or an empty text.
    """
    ground = Ground(scene, layout)
    titles = [ground.title(panel, rect) for panel, rect in zip(scene.panels, layout.panels, strict=True) if panel.title]
    marks: list[MarkPlaces] = []
    # The visits of a node say how often its only edge, in or out, was passed.
    outgoing, incoming = Counter(link.source for link in scene.links), Counter(link.target for link in scene.links)
    for position, (link, text) in enumerate(zip(scene.links, words, strict=True)):
        finding = None
        if position in with_finding:
            finding = ground.beside(position, FINDING_SIZE, FINDING_SIZE) or ground.nearest(position)
        if not text and min(outgoing[link.source], incoming[link.target]) == 1:
            marks.append(MarkPlaces(finding, None))
            continue
        wanted = text_width(text, DETAIL_SIZE, is_bold=True) or _PASSES_WIDTH
        place, is_narrow = ground.beside(position, wanted, DETAIL_SIZE), False
        if place is None and not text:
            place, is_narrow = ground.beside(position, _SHORT_PASSES_WIDTH, DETAIL_SIZE), True
        if place is None and text:
            place = ground.nearest(position)
        marks.append(MarkPlaces(finding, place, is_narrow))
    return tuple(titles), tuple(marks)


class Ground:
    """The occupied areas and lines of one drawing, found by cells."""

    def __init__(self, scene: Scene, layout: Layout) -> None:
        self._areas: dict[tuple[int, int], list[Area]] = defaultdict(list)
        self._points: dict[tuple[int, int], list[Point]] = defaultdict(list)
        self._frames: dict[tuple[int, int], list[Area]] = defaultdict(list)
        self._size = layout.width, layout.height
        self.links = scene.links
        self.labels = [route.label for route in layout.routes]
        cubics = [cubic for route in layout.routes for cubic in route.path]
        step = max(_STEP, sum(_length(cubic) for cubic in cubics) / _MOST_POINTS)
        self.lines = [_points_along(route, step) for route in layout.routes]
        self._tries = max(_LEAST_TRIES, _MOST_TRIES // max(1, len(self.lines)))
        for box, (x, y) in zip(scene.boxes, layout.centres, strict=True):
            self.take(around(x, y, box.width, box.height))
        for link, route in zip(scene.links, layout.routes, strict=True):
            if link.lines:
                self.take(around(*route.label, link.width, link.height))
            self.take(around(*middle(route.tip, route.base), HEAD_LENGTH + 2, HEAD_LENGTH + 2))
        for rect in layout.panels:
            for area in _sides(rect):
                for cell in _cells(area):
                    self._frames[cell].append(area)
        for line in self.lines:
            for point in line:
                self._points[int(point[0] // _CELL), int(point[1] // _CELL)].append(point)

    def take(self, area: Area) -> None:
        """Nothing else may be there."""
        for cell in _cells(area):
            self._areas[cell].append(area)

    def is_free(self, area: Area, *, may_cross_frames: bool = False) -> bool:
        """True if it is in the drawing, nothing is there, and no line runs there."""
        left, top, right, bottom = area
        if left < _EDGE or top < _EDGE or right > self._size[0] - _EDGE or bottom > self._size[1] - _EDGE:
            return False
        near, far, high, low = left - _CLEAR, right + _CLEAR, top - _CLEAR, bottom + _CLEAR
        rows = range(int(top // _CELL), int(bottom // _CELL) + 1)
        for column in range(int(left // _CELL), int(right // _CELL) + 1):
            for row in rows:
                cell = column, row
                points, areas = self._points.get(cell, ()), self._areas.get(cell, ())
                if len(points) >= _CROWDED or len(areas) >= _CROWDED:
                    return False
                for a, b, c, d in areas:
                    if a < right and left < c and b < bottom and top < d:
                        return False
                for x, y in points:
                    if near < x < far and high < y < low:
                        return False
                if not may_cross_frames and self._is_framed(area, cell):
                    return False
        return True

    def _is_framed(self, area: Area, cell: tuple[int, int]) -> bool:
        left, top, right, bottom = area
        frames = self._frames.get(cell, ())
        return any(a < right and left < c and b < bottom and top < d for a, b, c, d in frames)

    def beside(self, position: int, width: float, height: float) -> EdgePlace | None:
        """A free place of some size beside an edge, near its middle, which is then taken; or None.

        At need it lies over the frame of a panel, which is a quiet line.
        """
        for may_cross_frames in (False, True)[: 1 + bool(self._frames)]:
            for x, y, side in self._candidates(position, width, height):
                area = around(x, y, width, height)
                if self.is_free(area, may_cross_frames=may_cross_frames):
                    self.take(area)
                    return EdgePlace(x, y, width, side)
        return None

    def nearest(self, position: int) -> EdgePlace:
        """The middle of an edge's line, for what found no place."""
        line = self.lines[position]
        return EdgePlace(*line[len(line) // 2], 0.0, 0)

    def _candidates(self, position: int, width: float, height: float) -> Iterator[tuple[float, float, int]]:
        """Places on both sides of a line, the nearest to its middle first, then those beside its label."""
        line = self.lines[position]
        last = len(line) - 1
        for place in _tried(last)[: self._tries]:
            (x, y), (ax, ay), (bx, by) = line[place], line[max(0, place - 1)], line[min(last, place + 1)]
            length = hypot(bx - ax, by - ay) or 1.0
            across, down = (by - ay) / length, (ax - bx) / length
            if across < 0:
                across, down = -across, -down
            far = abs(across) * width / 2 + abs(down) * height / 2 + _CLEAR + 1
            side = 1 if across > _ASIDE else 0
            yield x + across * far, y + down * far, side
            yield x - across * far, y - down * far, -side
        link, (x, y) = self.links[position], self.labels[position]
        beside, below = (link.width + width) / 2, (link.height + height) / 2
        for across, down, side in ((beside, 0.0, 1), (-beside, 0.0, -1), (0.0, below, 0), (0.0, -below, 0)):
            yield x + across, y + down, side

    def title(self, panel: Panel, rect: Rect) -> tuple[Point, str]:
        """The start of a panel's title, and as much of it as fits between the edges that cross the strip.

        The strip is at the top, or at the bottom where only that has room.
        """
        width = text_width(panel.title, TITLE_SIZE)
        left, right, bottom = rect.x + 10, rect.x + rect.width - 10, rect.y + rect.height
        strips = ((left, rect.y + 4, right, rect.y + TITLE_STRIP), (left, bottom - TITLE_STRIP, right, bottom - 4))
        gaps = [(gap, strip) for strip in strips for gap in _gaps(strip, self._spans_in(strip))]
        fitting = next((found for found in gaps if found[0][1] - found[0][0] >= width), None)
        widest = max(gaps, key=lambda found: found[0][1] - found[0][0], default=((left, right), strips[0]))
        (start, end), strip = fitting or widest
        shown = shorten(panel.title, end - start, TITLE_SIZE)
        self.take((start, strip[1], start + text_width(shown, TITLE_SIZE), strip[3]))
        return (start, strip[3] - 1), shown

    def _spans_in(self, strip: Area) -> Iterator[tuple[float, float]]:
        """From where to where something lies in a strip."""
        left, top, right, bottom = strip
        for cell in _cells(strip):
            for x, y in self._points.get(cell, ()):
                if top - _STEP < y < bottom + _STEP:
                    yield x - _CLEAR - 1, x + _CLEAR + 1
            for a, b, c, d in self._areas.get(cell, ()):
                if b < bottom and top < d and a < right and left < c:
                    yield a - _CLEAR, c + _CLEAR


@lru_cache(maxsize=1024)
def _tried(last: int) -> tuple[int, ...]:
    """The points of a line to try, by the last one's number: each point of a short line once."""
    return tuple(dict.fromkeys(min(last, max(0, round((0.5 + shift) * last))) for shift in _SHIFTS))


def around(x: float, y: float, width: float, height: float) -> Area:
    """The area of a thing by its centre."""
    return x - width / 2, y - height / 2, x + width / 2, y + height / 2


def middle(a: Point, b: Point) -> Point:
    """Half-way between two points."""
    return (a[0] + b[0]) / 2, (a[1] + b[1]) / 2


def cut(path: Sequence[Cubic], area: Area) -> list[list[Cubic]]:
    """A path without what lies in an area, in pieces; one that has nothing outside stays whole."""
    pieces: list[list[Cubic]] = [[]]
    for cubic in path:
        ends = 0.0
        for start, end in _outside(cubic, area):
            if start > 0 or ends < start:
                pieces.append([])
            pieces[-1].append(_between(cubic, start, end))
            ends = end
        if ends < 1:
            pieces.append([])
    return [piece for piece in pieces if piece] or [list(path)]


def _outside(cubic: Cubic, area: Area) -> list[tuple[float, float]]:
    """The parts of a cubic outside of an area: parameters from and to."""
    left, top, right, bottom = area
    xs, ys = [x for x, _ in cubic], [y for _, y in cubic]
    if max(xs) <= left or min(xs) >= right or max(ys) <= top or min(ys) >= bottom:
        return [(0.0, 1.0)]

    def is_outside(point: Point) -> bool:
        return not (left < point[0] < right and top < point[1] < bottom)

    count = min(64, max(2, int((max(xs) - min(xs) + max(ys) - min(ys)) / 4)))
    looks = [is_outside(point) for point in (cubic[0], *points_at(cubic, count))]
    turns = [
        _turn(cubic, step / count, (step + 1) / count, is_outside)
        for step, (before, after) in enumerate(pairwise(looks))
        if before != after
    ]
    marks = [0.0, *turns, 1.0]
    spans = list(pairwise(marks))
    return spans[0 if looks[0] else 1 :: 2]


def _turn(cubic: Cubic, a: float, b: float, is_outside: Callable[[Point], bool]) -> float:
    """The parameter between two others at which the cubic crosses to the other side."""
    at_a = is_outside(point_at(cubic, a))
    for _ in range(_BISECTIONS):
        half = (a + b) / 2
        a, b = (half, b) if is_outside(point_at(cubic, half)) == at_a else (a, half)
    return (a + b) / 2


def _between(cubic: Cubic, start: float, end: float) -> Cubic:
    """The part of a cubic between two parameters."""
    if end < 1:
        cubic = split(cubic, end)[0]
    return split(cubic, start / end)[1] if start > 0 else cubic


def _is_straight(cubic: Cubic) -> bool:
    (ax, ay), (dx, dy) = cubic[0], cubic[3]
    length = hypot(dx - ax, dy - ay) or 1.0
    return all(abs((dx - ax) * (y - ay) - (dy - ay) * (x - ax)) / length < 0.1 for x, y in cubic[1:3])


def _length(cubic: Cubic) -> float:
    """About the length of a cubic."""
    (x0, y0), (x1, y1) = cubic[0], cubic[3]
    return abs(x1 - x0) + abs(y1 - y0)


def _points_along(route: Route, step: float) -> list[Point]:
    """Points of a path, a step apart, in order."""
    points = [route.path[0][0]]
    for cubic in route.path:
        (x0, y0), (x1, y1) = cubic[0], cubic[3]
        count = max(1, int(_length(cubic) / step))
        if _is_straight(cubic):
            dx, dy = (x1 - x0) / count, (y1 - y0) / count
            points += [(x0 + dx * number, y0 + dy * number) for number in range(1, count + 1)]
        else:
            points += points_at(cubic, count)
    return points


def _gaps(strip: Area, spans: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The gaps of a strip between the spans, from left to right."""
    left, _, right, _ = strip
    ends = left
    for start, end in sorted(spans):
        if start > ends:
            yield ends, min(start, right)
        ends = max(ends, end)
    if ends < right:
        yield ends, right


def _sides(rect: Rect) -> list[Area]:
    """The four lines around a panel."""
    x, y, right, bottom = rect.x, rect.y, rect.x + rect.width, rect.y + rect.height
    lines = ((x, y, right, y), (x, bottom, right, bottom), (x, y, x, bottom), (right, y, right, bottom))
    return [(a - 2, b - 2, c + 2, d + 2) for a, b, c, d in lines]


def _cells(area: Area) -> list[tuple[int, int]]:
    left, top, right, bottom = area
    columns = range(int(left // _CELL), int(right // _CELL) + 1)
    rows = range(int(top // _CELL), int(bottom // _CELL) + 1)
    return [(column, row) for column in columns for row in rows]
