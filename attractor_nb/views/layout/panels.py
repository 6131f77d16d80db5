"""Panels in a layered layout: members side by side in every layer, with a border on either side.

The order that the layers came in is kept within each panel and around it; a panel stands where its
members were on average, and at the same side of another panel in every layer. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attractor_nb.views.scene import shared_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.views.scene import Scene

_Path = tuple[int, ...]


def fenced(
    scene: Scene, layers: list[list[int]], paths: Mapping[int, _Path], keys: Mapping[int, float]
) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
    """The layers reordered so that panels are contiguous, each fenced with border vertices.

    Args:
        scene: Where the panels are.
        layers: The layers; left as they are.
        paths: The panels around each vertex.
        keys: Where each vertex would stand without panels.

    Returns:
        The new layers, and for each panel its left and right border vertex on each of its layers.
    """
    places: dict[int, list[float]] = defaultdict(list)
    ranks: dict[int, list[int]] = defaultdict(list)
    for rank, layer in enumerate(layers):
        for vertex in layer:
            for panel in paths.get(vertex, ()):
                places[panel].append(keys[vertex])
                ranks[panel].append(rank)
    fresh = 1 + max(keys)
    borders: list[list[tuple[int, int]]] = [[] for _ in scene.panels]
    fences: list[dict[int, tuple[int, int]]] = [{} for _ in layers]
    for panel in sorted(ranks):
        for rank in range(min(ranks[panel]), max(ranks[panel]) + 1):
            fences[rank][panel] = (fresh, fresh + 1)
            borders[panel].append((fresh, fresh + 1))
            fresh += 2
    panel_keys = {panel: sum(values) / len(values) for panel, values in places.items()}
    parents = [panel.parent for panel in scene.panels]
    rows: list[list[int]] = []
    for layer, fence in zip(layers, fences, strict=True):
        row = _Row(defaultdict(list), fence)
        for number, vertex in enumerate(layer):
            path = paths.get(vertex, ())
            row.items[path[-1] if path else None].append((keys[vertex], number, vertex, False))
        for panel in fence:
            row.items[parents[panel]].append((panel_keys[panel], -1, panel, True))
        rows.append(row.ordered(None))
    return rows, borders


@dataclass(frozen=True, slots=True)
class _Row:
    """One layer while it is ordered: in each panel (key, place before, vertex or panel, whether panel)."""

    items: dict[int | None, list[tuple[float, int, int, bool]]]
    fence: dict[int, tuple[int, int]]

    def ordered(self, owner: int | None) -> list[int]:
        """The vertices inside a panel, or all, from left to right."""
        result: list[int] = []
        for _, _, item, is_panel in sorted(self.items[owner]):
            if is_panel:
                left, right = self.fence[item]
                result += (left, *self.ordered(item), right)
            else:
                result.append(item)
        return result


def panel_paths(scene: Scene, chains: Sequence[Sequence[int]]) -> dict[int, _Path]:
    """The panels around each vertex, outermost first; an edge belongs where both its ends do."""
    paths = dict(enumerate(scene.panel_paths()))
    for link, chain in zip(scene.links, chains, strict=True):
        shared = shared_path(paths[link.source], paths[link.target])
        for vertex in chain[1:-1]:
            paths[vertex] = shared
    return paths
