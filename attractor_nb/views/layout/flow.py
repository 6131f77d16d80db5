"""The direction of a graph that sets none: down, or to the right where that fits a cell (pure).

A drawing that would be tall and narrow flows to the right if it is then no wider than a cell shows with legible texts.
Everything else flows down. Judged by sizes alone, before the layout: by the sum and the largest of each layer, layers
being counted along the longest paths.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from graphlib import TopologicalSorter
from typing import Final

from attractor_nb.views.layout.skeleton import skeleton_of
from attractor_nb.views.outlines import Direction, Scene

_TALL: Final = 330.0
_TIMES_AS_HIGH: Final = 1.6
"""A drawing that is no higher than this, or no higher than so many times its width, flows down."""
_PANEL_ENDS: Final = 30.0
"""More room between two layers where a panel begins or ends."""
_MARGINS: Final = 28.0
_BOX_GAP: Final = 33.0
_LABEL_GAP: Final = 18.0
_BESIDE: Final = 26.0


def flow_of(scene: Scene, widest: float) -> Direction:
    """The direction of a scene that may be at most so wide."""
    return _flow(scene.without_texts(), widest) if scene.boxes else Direction.DOWN


@lru_cache(maxsize=64)
def _flow(scene: Scene, widest: float) -> Direction:
    layers = _layers(scene)
    down = _length(layers, along=1)
    across = max((sum(width + _BESIDE for width, _ in layer.sizes) for layer in layers), default=0.0)
    if down <= _TALL or down <= _TIMES_AS_HIGH * across:
        return Direction.DOWN
    return Direction.RIGHT if _length(layers, along=0) <= widest else Direction.DOWN


def _length(layers: list[_Layer], *, along: int) -> float:
    """The length of a flow along one of the two axes."""
    length = _MARGINS
    for number, layer in enumerate(layers):
        if number:
            length += _BOX_GAP if layers[number - 1].has_boxes and layer.has_boxes else _LABEL_GAP
            length += layer.room * (1 - along)
        length += max(size[along] for size in layer.sizes)
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
            layers[ranks[upper] + 1].sizes.append((link.width, link.height))
    for panel in scene.panels:
        inside = [ranks[member] for member in panel.members]
        layers[min(inside)].room = layers[max(inside) + 1].room = _PANEL_ENDS
    return [layers[rank] for rank in sorted(layers) if layers[rank].sizes]
