"""Which way a drawing flows whose graph does not say: down, or to the right where that fits a cell (pure).

The rule: a drawing that would be tall and narrow flows to the right if it is then no wider than a cell
shows with legible texts. If it is wider it flows to the right in rows (see ``rows``), where that makes it
much lower and few lines lead from row to row. So a chain is read as a text is, and everything else flows
down. Judged by sizes alone, before anything is laid out: by the sum and the largest of each layer, layers
being counted along the longest paths.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from functools import lru_cache
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Final

from attractor_nb.views.layout.rows import PADDING, Gap, row_breaks
from attractor_nb.views.layout.skeleton import skeleton_of
from attractor_nb.views.scene import Direction

if TYPE_CHECKING:
    from attractor_nb.views.scene import Scene

_TALL: Final = 330.0
_MUCH_LOWER: Final = 0.6
_FEW_LINES: Final = 2
_MOST_LINES: Final = 5
"""So many lead from row to row in a flow that is broken, and so many from layer to layer anywhere in it."""
_PANEL_ENDS: Final = 30.0
"""More room between two layers where a panel begins or ends."""
_TIMES_AS_HIGH: Final = 1.6
_MARGINS: Final = 28.0
_BOX_GAP: Final = 33.0
_LABEL_GAP: Final = 18.0
_BESIDE: Final = 26.0
_BELOW: Final = 18.0


def flow_of(scene: Scene, widest: float) -> Direction:
    """The direction of a scene that may be at most so wide."""
    return _flow(scene.without_texts(), widest) if scene.boxes else Direction.DOWN


@lru_cache(maxsize=64)
def _flow(scene: Scene, widest: float) -> Direction:
    layers = _layers(scene)
    down = _ends(layers, along=1)[-1][1]
    across = max((sum(width + _BESIDE for width, _ in layer.sizes) for layer in layers), default=0.0)
    if down <= _TALL or down <= _TIMES_AS_HIGH * across:
        return Direction.DOWN
    if _ends(layers, along=0)[-1][1] <= widest or _fits_in_rows(layers, widest, _MUCH_LOWER * down):
        return Direction.RIGHT
    return Direction.DOWN


def _fits_in_rows(layers: list[_Layer], widest: float, highest: float) -> bool:
    """Whether a flow to the right has rows that are not too long, nor all together too high."""
    if max(layer.lines for layer in layers) > _MOST_LINES:
        return False
    starts, ends = zip(*_ends(layers, along=0), strict=True)
    gaps = [Gap(layer.lines) if layer.lines <= _FEW_LINES and not layer.is_within else None for layer in layers[:-1]]
    breaks = row_breaks(starts, ends, gaps, widest - _MARGINS)
    firsts = [0, *(rank + 1 for rank in breaks)]
    rows = [layers[first:end] for first, end in zip(firsts, [*firsts[1:], len(layers)], strict=True)]
    lengths = [ends[first + len(row) - 1] - starts[first] for first, row in zip(firsts, rows, strict=True)]
    heights = [max(sum(height + _BELOW for _, height in layer.sizes) for layer in row) for row in rows]
    return max(lengths) <= widest and sum(heights) + 2 * PADDING * len(breaks) <= highest


def _ends(layers: list[_Layer], *, along: int) -> list[tuple[float, float]]:
    """Where each layer begins and ends, if the flow runs along one of the two axes."""
    found: list[tuple[float, float]] = []
    for number, layer in enumerate(layers):
        gap = 0.0
        if number:
            gap = _BOX_GAP if layers[number - 1].has_boxes and layer.has_boxes else _LABEL_GAP
            gap += layer.room * (1 - along)
        start = gap + (found[-1][1] if found else _MARGINS)
        found.append((start, start + max(size[along] for size in layer.sizes)))
    return found


@dataclass(slots=True)
class _Layer:
    """What stands in a layer."""

    sizes: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])  #: Widths and heights.
    has_boxes: bool = False  #: Whether boxes do, and not labels only.
    lines: int = 0  #: How many lines lead to the next layer.
    is_within: bool = False  #: Whether a panel holds both.
    room: float = 0.0  #: Before it, for a panel that begins or ends there.


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
    # At each layer: how many lines, and panels, begin less those that end.
    lines, panels = Counter[int](), Counter[int]()
    for upper, lower in skeleton.ends:
        lines[ranks[upper]] += 1
        lines[ranks[lower]] -= 1
    for panel in scene.panels:
        inside = [ranks[member] for member in panel.members]
        panels[min(inside)] += 1
        panels[max(inside)] -= 1
        layers[min(inside)].room = layers[max(inside) + 1].room = _PANEL_ENDS
    line_count = panel_count = 0
    for rank in sorted(layers):
        line_count, panel_count = line_count + lines[rank], panel_count + panels[rank]
        layers[rank].lines, layers[rank].is_within = line_count, panel_count > 0
    return [layers[rank] for rank in sorted(layers) if layers[rank].sizes]
