"""What every layout engine returns: places in pixels, the origin at the top left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attractor_nb.views.layout.geometry import Cubic, Point, Rect


@dataclass(frozen=True, slots=True)
class Route:
    """The way of an edge.

    Attributes:
        path: Cubics in order, from the source's outline to the base of the arrow head.
        tip: Where the arrow head touches the target.
        base: Where it begins.
        label: Centre of the edge's label; for an edge without one its middle.
    """

    path: tuple[Cubic, ...]
    tip: Point
    base: Point
    label: Point


@dataclass(frozen=True, slots=True)
class Layout:
    """Places for everything in a scene, in the scene's order.

    Attributes:
        width: Width of the whole drawing, margins included.
        height: Height of the same.
        centres: Centre of each box.
        routes: One for each link.
        panels: One rectangle for each panel.
        engine: Which engine made it: ``dot`` or ``layered``.
    """

    width: float
    height: float
    centres: tuple[Point, ...]
    routes: tuple[Route, ...]
    panels: tuple[Rect, ...]
    engine: str


@dataclass(frozen=True, slots=True)
class RawLayout:
    """What an engine finds, before margins and arrow heads.

    Attributes:
        centres: Centre of each box.
        paths: Cubics of each link from outline to outline; of a loop from within its box.
        labels: Centre of each label, or None where there is none.
        panels: One rectangle for each panel.
    """

    centres: list[Point]
    paths: list[list[Cubic]]
    labels: list[Point | None]
    panels: list[Rect]
