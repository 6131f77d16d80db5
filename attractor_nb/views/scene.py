"""What is to be drawn, in pixels but without places: the values between a graph and a layout.

A scene is hashable and holds all that a layout depends on, so that it is the key of the layout
cache. It knows nothing of Graphviz, SVG or the graph it came from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum


class Direction(StrEnum):
    """Where the flow goes: top to bottom, left to right, or the other way round."""

    DOWN = "TB"
    RIGHT = "LR"
    UP = "BT"
    LEFT = "RL"

    @property
    def is_vertical(self) -> bool:
        """Whether ranks are rows."""
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
    """An id that edges name and nobody declared."""
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
    gutter: float = 35.0  #: Room on either side of the label of a round end: a sign stands in one, counts in the other.


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
        """What is written in it."""
        return "" if self.is_lane else self.label


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything that a layout needs."""

    boxes: tuple[Box, ...]  #: The nodes.
    links: tuple[Link, ...]  #: The edges.
    panels: tuple[Panel, ...] = ()  #: Subgraphs and lanes, outer ones before inner ones.
    direction: Direction = Direction.DOWN  #: Where the flow goes.
    unframed: int = 0  #: How many subgraphs have no panel, because the drawing is too large for theirs.
    #: How long a flow to the side may be, in pixels, before it goes on in the next row; 0 for any.
    longest: float = 0.0

    def without_texts(self) -> Scene:
        """The same for who asks for sizes and not for what is written; most letters change none."""
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
