"""The direction of a graph that sets none: down, or to the right where that fits a cell (pure).

A drawing that would be tall and narrow flows to the right if it is then no wider than a cell shows with legible texts;
so does one that is too wide for a cell because of its many branches, if those have room below one another. Everything
else flows down. Judged by sizes alone, before the layout: by the sum and the largest of each layer, layers
being counted along the longest paths.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from graphlib import TopologicalSorter
from typing import Final, NamedTuple

from attractor_nb.views.layout.skeleton import skeleton_of
from attractor_nb.views.outlines import Direction, Scene, Shape

_TALL: Final = 330.0
_TIMES_AS_HIGH: Final = 1.6
"""A drawing that is no higher than this, or no higher than so many times its width, flows down."""
_PANEL_ENDS: Final = 30.0
"""More room between two layers where a panel begins or ends."""
_MARGINS: Final = 28.0
_BOX_GAP: Final = 36.0
_LABEL_GAP: Final = 21.0
"""Between two layers, at most."""
_BESIDE: Final = 24.0
_BETWEEN_LANES: Final = 14.0
_BELOW: Final = 18.0
_HIGHEST: Final = 900.0
"""The height of a live view: branches below one another are no higher."""


class Extents(NamedTuple):
    """Width and height that a scene takes, about: if it flows down, and if it flows to the right."""

    down: tuple[float, float]
    right: tuple[float, float]


def flow_of(scene: Scene, widest: float) -> Direction:
    """The direction of a scene that may be at most so wide."""
    (width, height), (length, across) = extents_of(scene)
    if width > widest:
        # Branches of a fan-out that have no room become one box; of anything else the narrower way is taken.
        is_foldable = any(box.shape is Shape.FAN_OUT for box in scene.boxes)
        most = widest if is_foldable else width
        return Direction.RIGHT if length <= most and across <= _HIGHEST else Direction.DOWN
    is_tall = height > _TALL and height > _TIMES_AS_HIGH * width
    return Direction.RIGHT if is_tall and length <= widest else Direction.DOWN


def extents_of(scene: Scene) -> Extents:
    """The extents of a scene, from its sizes alone."""
    return _extents(scene.without_texts())


@lru_cache(maxsize=64)
def _extents(scene: Scene) -> Extents:
    layers = _layers(scene)
    beside = _BETWEEN_LANES if any(panel.is_lane for panel in scene.panels) else _BESIDE
    return Extents(
        (_breadth(layers, beside, axis=0), _length(layers, axis=1)),
        (_length(layers, axis=0), _breadth(layers, _BELOW, axis=1)),
    )


def _breadth(layers: list[_Layer], gap: float, *, axis: int) -> float:
    """The extent across the flow: that of the widest layer."""
    return _MARGINS + max((sum(size[axis] + gap for size in layer.sizes) - gap for layer in layers), default=0.0)


def _length(layers: list[_Layer], *, axis: int) -> float:
    """The extent along the flow."""
    length = _MARGINS
    for number, layer in enumerate(layers):
        if number:
            length += _BOX_GAP if layers[number - 1].has_boxes and layer.has_boxes else _LABEL_GAP
            length += layer.room * (1 - axis)
        length += max(size[axis] for size in layer.sizes)
    return length


@dataclass(slots=True)
class _Layer:
    """The content of a layer."""

    sizes: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])  #: Widths and heights.
    has_boxes: bool = False  #: True if boxes do, and not labels only.
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
            rank = ranks[upper] + 1 if skeleton.is_forward[position] else ranks[lower] - 1
            layers[rank].sizes.append((link.width, link.height))
    for panel in scene.panels:
        inside = [ranks[member] for member in panel.members]
        layers[min(inside)].room = layers[max(inside) + 1].room = _PANEL_ENDS
    return [layers[rank] for rank in sorted(layers) if layers[rank].sizes]
