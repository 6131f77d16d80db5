"""The outlines of the house style: as polygons for clipping, as paths for drawing.

Everything is relative to the centre of a box. It knows boxes and numbers, nothing of layouts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

from attractor_nb.views.markup import path_data

# The scene: the elements of a drawing in pixels, without places; between a graph and a layout.
#
# A scene is hashable and holds all that a layout depends on, so it is the key of the layout cache. It knows nothing
# of Graphviz, SVG or its graph.


class Direction(StrEnum):
    """The direction of the flow: top to bottom, left to right, or the other way round."""

    DOWN = "TB"
    RIGHT = "LR"
    UP = "BT"
    LEFT = "RL"

    @property
    def is_vertical(self) -> bool:
        """True if ranks are rows."""
        return self in {Direction.DOWN, Direction.UP}


class Shape(StrEnum):
    """The outlines of the house style; each stands for a kind of handler."""

    START = "start"
    EXIT = "exit"
    BOX = "box"
    HEXAGON = "hexagon"
    DIAMOND = "diamond"
    PARALLELOGRAM = "parallelogram"
    FAN_OUT = "fan-out"
    FAN_IN = "fan-in"
    HOUSE = "house"
    MISSING = "missing"
    """An undeclared id that edges name."""
    STACK = "stack"
    """Branches that are drawn as one box."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node."""

    node_id: str
    shape: Shape  #: Its outline.
    lines: tuple[str, ...]  #: Its label, wrapped.
    detail: str  #: The small grey line, or empty.
    width: float  #: Width of the outline.
    height: float  #: Height of the same.
    gutter: float = 35.0  #: Room on either side of the label of a round end: a sign is in one, counts in the other.


@dataclass(frozen=True, slots=True)
class Link:
    """An edge between two boxes, given by their positions in ``Scene.boxes``."""

    index: int  #: Position of the edge in ``Graph.edges``.
    source: int
    target: int
    lines: tuple[str, ...] = ()  #: Wrapped label, or the condition when there is no label; empty for neither.
    is_mono: bool = False  #: The text is a condition.
    width: float = 0.0  #: Width of the label with its background; 0 without label.
    height: float = 0.0  #: Height of the same.
    others: tuple[int, ...] = ()  #: Positions of further edges that it stands for: those of branches drawn as one box.


@dataclass(frozen=True, slots=True)
class Panel:
    """A subgraph, or the lane of a branch."""

    label: str  #: Its title; a lane's has none, the label is told by its tooltip.
    members: tuple[int, ...]  #: Member boxes, nested ones included.
    parent: int | None = None  #: Position of the enclosing panel.
    is_lane: bool = False  #: It is the lane of a branch.
    is_stack: bool = False  #: It is the lane of all branches that a picture draws as one box.

    @property
    def title(self) -> str:
        """The text of its title."""
        return "" if self.is_lane else self.label


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that a layout needs."""

    boxes: tuple[Box, ...]  #: The nodes.
    links: tuple[Link, ...]  #: The edges.
    panels: tuple[Panel, ...] = ()  #: Subgraphs and lanes, outer ones before inner ones.
    direction: Direction = Direction.DOWN  #: Direction of the flow.
    unframed: int = 0  #: Number of subgraphs without a panel, because the drawing is too large for theirs.

    def without_texts(self) -> Scene:
        """The same for sizes without the text; most letters change none."""
        return replace(
            self,
            boxes=tuple(Box("", box.shape, (), "", box.width, box.height, box.gutter) for box in self.boxes),
            links=tuple(replace(link, lines=("",)) if link.lines else link for link in self.links),
        )

    def panel_paths(self) -> list[tuple[int, ...]]:
        """The panels around each box, outermost first.

        A box that two unrelated panels claim belongs to the first.
        """
        paths: list[tuple[int, ...]] = [()] * len(self.boxes)
        for position, panel in enumerate(self.panels):
            for member in panel.members:
                innermost = paths[member][-1] if paths[member] else None
                if innermost == panel.parent:
                    paths[member] = (*paths[member], position)
        return paths


def shared_path(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """The panels that two paths begin with: where an edge between their boxes belongs."""
    count = 0
    while count < min(len(first), len(second)) and first[count] == second[count]:
        count += 1
    return first[:count]


Point = tuple[float, float]

SLANT: Final = 12.0
"""Slant of a hexagon's corners and a parallelogram's sides."""
ROOF: Final = 12.0
"""Height of a house's roof."""
SIGN_RADIUS: Final = 7.0
"""Of the disc that tells a state."""
SIGN_PLACE: Final = 11.0
"""Distance of the middle of such a disc from the sides of its outline."""

_CORNER: Final = {Shape.BOX: 8.0, Shape.MISSING: 8.0, Shape.FAN_OUT: 6.0, Shape.FAN_IN: 6.0}
_OTHER_CORNER: Final = 4.0


def outline(box: Box) -> list[Point]:
    """The corners of a box's outline, clockwise: a convex polygon, good to a pixel for round shapes."""
    x, y = box.width / 2, box.height / 2
    match box.shape:
        case Shape.DIAMOND:
            return [(0, -y), (x, 0), (0, y), (-x, 0)]
        case Shape.HEXAGON:
            return [(SLANT - x, -y), (x - SLANT, -y), (x, 0), (x - SLANT, y), (SLANT - x, y), (-x, 0)]
        case Shape.PARALLELOGRAM:
            return [(SLANT - x, -y), (x, -y), (x - SLANT, y), (-x, y)]
        case Shape.HOUSE:
            return [(0, -y), (x, ROOF - y), (x, y), (-x, y), (-x, ROOF - y)]
        case Shape.START | Shape.EXIT:
            bend, cut = y * 0.3, y * 0.95
            return [
                *((cut - x, -y), (x - cut, -y), (x - bend, -y * 0.7), (x, 0), (x - bend, y * 0.7)),
                *((x - cut, y), (cut - x, y), (bend - x, y * 0.7), (-x, 0), (bend - x, -y * 0.7)),
            ]
        case _:
            return [(-x, -y), (x, -y), (x, y), (-x, y)]


def sign_places(box: Box) -> tuple[float, float, float]:
    """The places of signs inside an outline: x of the left ones, x of the right ones, y of both.

    Inside, because edges may end anywhere on an outline.
    """
    x, y = box.width / 2, box.height / 2
    top = SIGN_PLACE - y
    match box.shape:
        case Shape.DIAMOND:
            reach = x * (1 - SIGN_RADIUS / y) - SIGN_RADIUS - 1
            return -reach, reach, -0.5
        case Shape.HEXAGON:
            inset = SIGN_PLACE + SLANT * -top / y
            return inset - x, x - inset, top
        case Shape.PARALLELOGRAM:
            lean = SLANT * top / box.height
            return SIGN_PLACE + SLANT / 2 - lean - x, x - SIGN_PLACE - SLANT / 2 - lean, top
        case Shape.HOUSE:
            return SIGN_PLACE - x, x - SIGN_PLACE, ROOF + 7.5 - y
        case Shape.FAN_OUT | Shape.FAN_IN:
            return SIGN_PLACE + 3 - x, x - SIGN_PLACE - 3, top + 3
        case Shape.START | Shape.EXIT:
            return 13.5 - x, x - 13.5, -0.5
        case _:
            return SIGN_PLACE - x, x - SIGN_PLACE, top


def small_line_place(box: Box) -> tuple[float, float, float]:
    """The place of counts inside an outline without a line of small text: middle, baseline and room.

    Under the label; at the round ends, which are low, beside it.
    """
    below = len(box.lines) * 15 / 2 + 8.5
    match box.shape:
        case Shape.DIAMOND:
            return 0.0, below + 1, box.width * (1 - 2 * (below + 3) / box.height)
        case Shape.START | Shape.EXIT:
            return (box.width - box.gutter) / 2 - 1, 3.5, box.gutter - 8
        case _:
            return 0.0, below, text_room(box)


def text_room(box: Box) -> float:
    """Width for a line of text inside an outline."""
    match box.shape:
        case Shape.PARALLELOGRAM:
            return box.width - 2 * SLANT - 8
        case Shape.HEXAGON:
            return box.width - SLANT - 12
        case _:
            return box.width - 14


def text_shift(box: Box, direction: Direction) -> float:
    """The distance of the text's middle below the box's centre."""
    if box.shape is Shape.HOUSE:
        return ROOF / 2
    if box.shape in {Shape.FAN_IN, Shape.FAN_OUT} and direction.is_vertical:
        is_bar_below = (box.shape is Shape.FAN_OUT) == (direction is Direction.DOWN)
        return -2 if is_bar_below else 2
    return 0


def bar(box: Box, direction: Direction) -> str:
    """The bar at the out-side of a fan-out and at the in-side of a join."""
    if box.shape not in {Shape.FAN_OUT, Shape.FAN_IN}:
        return ""
    x, y = box.width / 2, box.height / 2
    is_end = (box.shape is Shape.FAN_OUT) == (direction in {Direction.DOWN, Direction.RIGHT})
    sign = 1 if is_end else -1
    if direction.is_vertical:
        return path_data("M", 8 - x, sign * (y - 4.5), "H", x - 8)
    return path_data("M", sign * (x - 4.5), 8 - y, "V", y - 8)


def pill(width: float, height: float) -> str:
    """A box with round ends as path data."""
    x, y = width / 2, height / 2
    side, end = x - 0.448 * y, 0.552 * y
    right = ("H", x - y, "C", side, -y, x, -end, x, 0, "C", x, end, side, y, x - y, y)
    left = ("H", y - x, "C", -side, y, -x, end, -x, 0, "C", -x, -end, -side, -y, y - x, -y)
    return path_data("M", y - x, -y, *right, *left, "Z")


def outline_path(box: Box) -> str:
    """A box's outline as path data, its corners rounded."""
    return _outline_path(box.shape, box.width, box.height)


@lru_cache(maxsize=512)
def _outline_path(shape: Shape, width: float, height: float) -> str:
    if shape in {Shape.START, Shape.EXIT}:
        return pill(width, height)
    corners = outline(Box("", shape, (), "", width, height))
    radius = _CORNER.get(shape, _OTHER_CORNER)
    data: list[str | float] = []
    count = len(corners)
    for number, corner in enumerate(corners):
        before = _towards(corner, corners[number - 1], radius)
        after = _towards(corner, corners[(number + 1) % count], radius)
        data += ("L" if data else "M", *before, "Q", *corner, *after)
    return path_data(*data, "Z")


def _towards(start: Point, end: Point, distance: float) -> Point:
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = (dx * dx + dy * dy) ** 0.5
    part = min(0.5, distance / length)
    return start[0] + dx * part, start[1] + dy * part
