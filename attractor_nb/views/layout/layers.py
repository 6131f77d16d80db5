"""Ranks and orders: which vertices share a layer, and their order from left to right.

Labelled edges have their own vertex (a *bead*), and long edges one in each layer that they cross (a *dummy*). The
order of each layer is that of the text unless another has fewer crossings; members of a panel stay together. It knows
no pixels.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from attractor_nb.views.layout.coordinates import assign_positions
from attractor_nb.views.layout.ordering import Neighbours, Rows, improved, swap_neighbours, text_keys, turned_branches
from attractor_nb.views.layout.ranking import Leg, ranks_of
from attractor_nb.views.outlines import Scene, shared_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from attractor_nb.views.layout.skeleton import Skeleton


_MANY_VERTICES: Final = 150
"""From here on the order of the text counts only if nothing crosses in it: to improve both takes twice the time."""
_PATIENCE: Final = 3
"""Sweeps without a better order that end the search from the text's end, which is worth more of them."""


@dataclass(slots=True)
class Layered:
    """A proper layered graph: every edge joins neighbouring layers.

    Vertices are numbers: first the boxes by position, then beads, dummies and panel borders.
    """

    layers: Rows  #: Vertices of each layer from left to right.
    edges: list[tuple[int, int]]  #: Pairs (upper vertex, lower vertex).
    chains: list[list[int]]  #: For each link its vertices from upper to lower; empty for a loop at one box.
    beads: dict[int, int]  #: The bead of each link that has one.
    #: For each panel its left and right border vertex on each of its layers.
    borders: list[list[tuple[int, int]]] = field(default_factory=list[list[tuple[int, int]]])
    ranks: dict[int, int] = field(init=False)  #: The layer of each vertex.

    def __post_init__(self) -> None:
        self.ranks = {vertex: rank for rank, layer in enumerate(self.layers) for vertex in layer}


def layer_scene(skeleton: Skeleton) -> Layered:
    """Assign layers to a scene's boxes and edges; nothing is in any order yet."""
    scene = skeleton.scene
    beads: dict[int, int] = {}
    legs: list[Leg] = []
    for position, link in enumerate(scene.links):
        if skeleton.is_loop(position):
            continue
        has_bead = bool(link.lines) or skeleton.is_crowded[position]
        if has_bead:
            beads[position] = len(scene.boxes) + len(beads)
        legs.append((*skeleton.ends[position], 1 + has_bead))
    ranks = ranks_of(len(scene.boxes), legs)
    layers: Rows = [[] for _ in range(1 + max(ranks))]
    for box, rank in enumerate(ranks):
        layers[rank].append(box)
    chains: list[list[int]] = []
    fresh = len(scene.boxes) + len(beads)
    for position in range(len(scene.links)):
        chain: list[int] = []
        if not skeleton.is_loop(position):
            upper, lower = skeleton.ends[position]
            inner = list(range(fresh, fresh + ranks[lower] - ranks[upper] - 1 - (position in beads)))
            fresh += len(inner)
            if position in beads:
                # The label is by the box that chooses the edge: at the lower end of a way back.
                inner.insert(0 if skeleton.is_forward[position] else len(inner), beads[position])
            chain = [upper, *inner, lower]
            for rank, vertex in enumerate(chain[1:-1], ranks[upper] + 1):
                layers[rank].append(vertex)
        chains.append(chain)
    return Layered(layers, [pair for chain in chains for pair in pairwise(chain)], chains, beads)


def order_layers(skeleton: Skeleton, layered: Layered) -> None:
    """Put the vertices of each layer into the best order found, and the borders of panels between them.

    Args:
        skeleton: The scene, and which links go back.
        layered: Its layers; changed in place.
    """
    children, branches = _in_text_order(skeleton, layered)
    paths = panel_paths(skeleton.scene, layered.chains)
    long = [chain[1:-1] for chain in layered.chains if len(chain) > 2]
    neighbours = Neighbours(layered.edges)
    best: tuple[tuple[int, int, int], Rows, list[list[tuple[int, int]]]] | None = None
    # Up to two orders are tried. Each is mirrored where that turns fewer branches, and scored by its crossings, by the
    # panels it cuts and by the branches it turns; the search ends at a perfect one.
    for start, patience in _starts(layered, children, _roots(skeleton, layered), neighbours):
        rows = improved(start, neighbours, long, patience)
        if turned := turned_branches(rows, branches):
            mirrored = [row[::-1] for row in rows]
            rows = mirrored if turned_branches(mirrored, branches) < turned else rows
        borders: list[list[tuple[int, int]]] = []
        if skeleton.scene.panels:
            places = assign_positions(rows, layered.edges, {}, {}, lambda _, __: 1.0)
            rows, borders = fenced(skeleton.scene, rows, paths, places)
            homes: dict[int, int | None] = {vertex: path[-1] if path else None for vertex, path in paths.items()}
            homes.update((vertex, -1) for rungs in borders for rung in rungs for vertex in rung)
            swap_neighbours(rows, neighbours, homes)
        crossings = neighbours.crossings(rows)
        all_edges = Neighbours([*layered.edges, *_border_edges(borders)]) if borders else neighbours
        cuts = all_edges.crossings(rows) - crossings if borders else 0
        score = crossings, cuts, turned_branches(rows, branches)
        if best is None or score < best[0]:
            best = score, rows, borders
        if score == (0, 0, 0):
            break
    assert best is not None
    _, layered.layers, layered.borders = best
    layered.edges += _border_edges(layered.borders)
    layered.ranks = {vertex: rank for rank, layer in enumerate(layered.layers) for vertex in layer}


def _starts(
    layered: Layered, children: dict[int, list[int]], roots: list[int], neighbours: Neighbours
) -> Iterator[tuple[Rows, int]]:
    """The orders from which the search begins, and its patience with each.

    They are that of the text, and that of the text walked from its end, where a vertex with several above it is by
    the last of them.
    """
    text = text_keys(roots, children)
    rows = [sorted(layer, key=text.__getitem__) for layer in layered.layers]
    if len(layered.ranks) < _MANY_VERTICES or not neighbours.crossings(rows):
        yield rows, 1
    from_end = text_keys(roots[::-1], {vertex: steps[::-1] for vertex, steps in children.items()})
    yield [sorted(layer, key=from_end.__getitem__)[::-1] for layer in layered.layers], _PATIENCE


def _border_edges(borders: list[list[tuple[int, int]]]) -> list[tuple[int, int]]:
    return [pair for rungs in borders for above, below in pairwise(rungs) for pair in zip(above, below, strict=True)]


def _in_text_order(skeleton: Skeleton, layered: Layered) -> tuple[dict[int, list[int]], list[list[int]]]:
    """The children of each vertex, back edges first; and the first steps of branches."""
    steps: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    children: dict[int, list[int]] = {}
    for position, chain in enumerate(layered.chains):
        if chain:
            is_forward = skeleton.is_forward[position]
            steps[chain[0]].append((is_forward, position if is_forward else -len(chain), chain[1]))
            for vertex, below in pairwise(chain[1:]):
                children[vertex] = [below]
    children |= {box: [step for *_, step in sorted(found)] for box, found in steps.items()}
    branches = [[step for is_forward, _, step in sorted(found) if is_forward] for found in steps.values()]
    return children, branches


def _roots(skeleton: Skeleton, layered: Layered) -> list[int]:
    """The boxes that nothing hangs above, the main path's first one before the others."""
    hanging = {chain[-1] for chain in layered.chains if chain}
    first = [skeleton.ends[position][0] for position in skeleton.spine[:1]]
    return [*first, *(box for box in range(len(skeleton.scene.boxes)) if box not in hanging)]


# Panels in a layered layout: members side by side in every layer, with a border on either side.
#
# The original order of the layers is kept within each panel and around it; a panel is at the average place of its
# members, and on the same side of another panel in every layer. Pure.

_Path = tuple[int, ...]


def fenced(
    scene: Scene, layers: list[list[int]], paths: Mapping[int, _Path], keys: Mapping[int, float]
) -> tuple[list[list[int]], list[list[tuple[int, int]]]]:
    """The layers reordered so that panels are contiguous, each fenced with border vertices.

    Args:
        scene: Where the panels are.
        layers: The layers; left as they are.
        paths: The panels around each vertex.
        keys: Position of each vertex without panels.

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
