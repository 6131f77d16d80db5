"""Which way a drawing flows whose graph does not say: down, or to the right where that fits a cell (pure).

The rule: a drawing that would be tall and narrow flows to the right if it is then no wider than a cell
shows with legible texts. So chains of a few nodes are one line, and everything else flows down. Judged by
sizes alone, before anything is laid out: by the sum and the largest of each layer, layers being counted
along the longest ways.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from attractor_nb.views.layout.skeleton import skeleton_of
from attractor_nb.views.scene import Direction

if TYPE_CHECKING:
    from attractor_nb.views.scene import Scene

_TALL: Final = 330.0
_TIMES_AS_HIGH: Final = 1.6
_MARGINS: Final = 28.0
_BOX_GAP: Final = 33.0
_LABEL_GAP: Final = 18.0
_BESIDE: Final = 26.0


def flow_of(scene: Scene, widest: float) -> Direction:
    """The direction of a scene that may be at most so wide."""
    layers = _layers(scene)
    down = _extent(layers, along=1)
    across = max((sum(width + _BESIDE for width, _ in layer.sizes) for layer in layers), default=0.0)
    is_tall = down > _TALL and down > _TIMES_AS_HIGH * across
    return Direction.RIGHT if is_tall and _extent(layers, along=0) <= widest else Direction.DOWN


def _extent(layers: list[_Layer], *, along: int) -> float:
    """The length of the flow, if it runs along one of the two axes."""
    gaps = (
        _BOX_GAP if before.has_boxes and layer.has_boxes else _LABEL_GAP for before, layer in pairwise(layers)
    )
    return _MARGINS + sum(max(size[along] for size in layer.sizes) for layer in layers) + sum(gaps)


@dataclass(slots=True)
class _Layer:
    """Widths and heights of what stands in a layer, and whether boxes do."""

    sizes: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    has_boxes: bool = False


def _layers(scene: Scene) -> list[_Layer]:
    """The sizes of what stands in each layer: boxes and, in layers of their own, labels."""
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
    return [layers[rank] for rank in sorted(layers)]
