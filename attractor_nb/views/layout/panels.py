"""Panels in a layered layout: members side by side in every layer, with a border on either side.

The order that the layers came in is kept within each panel and around it; a panel stands where its
members were on average, and at the same side of another panel in every layer. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from attractor_nb.views.scene import shared_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attractor_nb.views.layout.layers import Layered
    from attractor_nb.views.scene import Scene

_Path = tuple[int, ...]


def gather_panels(scene: Scene, layered: Layered, keys: Mapping[int, float]) -> None:
    """Reorder the layers in place so that panels are contiguous, and fence each with border vertices.

    Args:
        scene: Where the panels are.
        layered: The layers; its ``borders`` and their edges are filled in.
        keys: Where each vertex would stand without panels.
    """
    paths = _panel_paths(scene, layered)
    places: dict[int, list[float]] = defaultdict(list)
    ranks: dict[int, list[int]] = defaultdict(list)
    for rank, layer in enumerate(layered.layers):
        for vertex in layer:
            for panel in paths.get(vertex, ()):
                places[panel].append(keys[vertex])
                ranks[panel].append(rank)
    fresh = 1 + max(keys)
    layered.borders = [[] for _ in scene.panels]
    fences: list[dict[int, tuple[int, int]]] = [{} for _ in layered.layers]
    for panel in sorted(ranks):
        for rank in range(min(ranks[panel]), max(ranks[panel]) + 1):
            fences[rank][panel] = (fresh, fresh + 1)
            layered.borders[panel].append((fresh, fresh + 1))
            fresh += 2
        for above, below in pairwise(layered.borders[panel]):
            layered.edges += zip(above, below, strict=True)
    panel_keys = {panel: sum(values) / len(values) for panel, values in places.items()}
    parents = [panel.parent for panel in scene.panels]
    for layer, fence in zip(layered.layers, fences, strict=True):
        row = _Row(defaultdict(list), fence)
        for vertex in layer:
            path = paths.get(vertex, ())
            row.items[path[-1] if path else None].append((keys[vertex], vertex, False))
        for panel in fence:
            row.items[parents[panel]].append((panel_keys[panel], panel, True))
        layer[:] = row.ordered(None)


@dataclass(frozen=True, slots=True)
class _Row:
    """One layer while it is ordered: (key, vertex or panel, whether it is a panel) in each panel."""

    items: dict[int | None, list[tuple[float, int, bool]]]
    fence: dict[int, tuple[int, int]]

    def ordered(self, owner: int | None) -> list[int]:
        """The vertices inside a panel, or all, from left to right."""
        result: list[int] = []
        for _, item, is_panel in sorted(self.items[owner]):
            if is_panel:
                left, right = self.fence[item]
                result += (left, *self.ordered(item), right)
            else:
                result.append(item)
        return result


def _panel_paths(scene: Scene, layered: Layered) -> dict[int, _Path]:
    """The panels around each vertex, outermost first; an edge belongs where both its ends do."""
    paths = dict(enumerate(scene.panel_paths()))
    for link, chain in zip(scene.links, layered.chains, strict=True):
        shared = shared_path(paths[link.source], paths[link.target])
        for vertex in chain[1:-1]:
            paths[vertex] = shared
    return paths
