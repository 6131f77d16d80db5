"""Ranks and orders: which vertices share a layer, and their order from left to right.

``fast_sugiyama`` ranks the vertices and breaks long edges with dummies. Around it this module makes the graph
acyclic, gives labelled edges their own vertex (a *bead*), chooses the order of each layer, that of the text
or the library's, and keeps the members of a panel together. It knows no pixels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from attractor_nb.views.layout.coordinates import assign_positions
from attractor_nb.views.layout.ordering import Neighbours, Rows, improved, swap_neighbours, text_keys, turned_branches
from attractor_nb.views.outlines import Scene, shared_path

if TYPE_CHECKING:
    from attractor_nb.views.layout.skeleton import Skeleton


Keys = Mapping[int, float]

_SPACING: Final = 10.0
_HOPELESS: Final = 3
_FEW: Final = 10
"""With this factor of the library's crossings, and these, the order of the text is not worth improving."""
_MANY_LEGS: Final = 1000
"""From here on the library skips its slowest refinement, which costs seconds and shows little."""


@dataclass(slots=True)
class Layered:
    """A proper layered graph: every edge joins neighbouring layers.

    Vertices are numbers: first the boxes by position, then beads, dummies and panel borders.
    """

    layers: Rows  #: Vertices of each layer from left to right.
    edges: list[tuple[int, int]]  #: Pairs (upper vertex, lower vertex).
    chains: list[list[int]]  #: For each link its vertices from upper to lower; empty for a loop at one box.
    beads: dict[int, int]  #: The bead of each link that has one.
    keys: dict[int, float]  #: Position of each vertex by the library, in no particular unit.
    #: For each panel its left and right border vertex on each of its layers.
    borders: list[list[tuple[int, int]]] = field(default_factory=list[list[tuple[int, int]]])
    ranks: dict[int, int] = field(default_factory=dict[int, int])  #: The layer of each vertex.


def layer_scene(skeleton: Skeleton) -> Layered:
    """Assign layers to a scene's boxes and edges, in the order that the library finds."""
    scene = skeleton.scene
    beads: dict[int, int] = {}
    legs: list[tuple[int, int]] = []
    for position, link in enumerate(scene.links):
        if skeleton.is_loop(position):
            continue
        upper, lower = skeleton.ends[position]
        if link.lines or skeleton.is_crowded[position]:
            bead = beads[position] = len(scene.boxes) + len(beads)
            legs += ((upper, bead), (bead, lower))
        else:
            legs.append((upper, lower))
    ranked = _Ranking(len(scene.boxes), legs)
    chains: list[list[int]] = []
    for position in range(len(scene.links)):
        upper, lower = skeleton.ends[position]
        bead = beads.get(position)
        if skeleton.is_loop(position):
            chain: list[int] = []
        elif bead is None:
            chain = ranked.run(upper, lower)
        else:
            chain = [*ranked.run(upper, bead), *ranked.run(bead, lower)[1:]]
        chains.append(chain)
    layered = Layered(ranked.layers(), ranked.edges, chains, beads, ranked.keys)
    layered.ranks = {vertex: rank for rank, layer in enumerate(layered.layers) for vertex in layer}
    return layered


def order_layers(skeleton: Skeleton, layered: Layered) -> None:
    """Put the vertices of each layer into the best order found, and the borders of panels between them.

    Args:
        skeleton: The scene, and which links go back.
        layered: Its layers; changed in place.
    """
    children, branches = _in_text_order(skeleton, layered)
    text = text_keys(_roots(skeleton, layered), children, layered.keys)
    paths = panel_paths(skeleton.scene, layered.chains)
    long = [chain[1:-1] for chain in layered.chains if len(chain) > 2]
    neighbours = Neighbours(layered.edges)
    best: tuple[tuple[int, int, int], Rows, list[list[tuple[int, int]]]] | None = None
    # Up to two orders are tried: that of the text and the library's. Each is scored by its crossings, by the panels
    # it cuts and by the branches it turns; the search ends at a perfect one. The order of the text is not even tried
    # where it begins with several times as many crossings as the library's.
    starts = [_sorted_rows(layered, keys) for keys in (text, layered.keys)]
    if neighbours.crossings(starts[0]) > _HOPELESS * neighbours.crossings(starts[1]) + _FEW:
        del starts[0]
    for start in starts:
        rows = improved(start, neighbours, long)
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


def _sorted_rows(layered: Layered, keys: Keys) -> Rows:
    return [sorted(layer, key=lambda vertex: (keys[vertex], vertex)) for layer in layered.layers]


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


class _Ranking:
    """The ranking by ``fast_sugiyama`` for the legs of all edges, in our numbers.

    Attributes:
        keys: Position of each vertex from left to right, in no particular unit.
        edges: All edges between neighbouring layers.
    """

    def __init__(self, box_count: int, legs: list[tuple[int, int]]) -> None:
        self.keys: dict[int, float] = {}
        self.edges: list[tuple[int, int]] = []
        self._ranks: dict[int, int] = {}
        below: dict[int, list[int]] = defaultdict(list)
        inner = sorted({vertex for leg in legs for vertex in leg})
        self._first_dummy = max([box_count - 1, *inner]) + 1
        self._dummy_count = 0
        parts = [self._library_part(part) for part in _connected(legs)]
        parts += ([(box, 0.0, 0)] for box in sorted(set(range(box_count)) - set(inner)))
        shift = 0.0
        for part in sorted(parts, key=min):
            leftmost = min(x for _, x, _ in part)
            for vertex, x, rank in part:
                self.keys[vertex] = x - leftmost + shift
                self._ranks[vertex] = rank
            shift = max(self.keys[vertex] for vertex, _, _ in part) + 2 * _SPACING
        for upper, lower in self.edges:
            below[upper].append(lower)
        self._runs: dict[tuple[int, int], list[int]] = {}
        for upper in inner:
            for vertex in below[upper]:
                run = [upper, vertex]
                while run[-1] >= self._first_dummy:
                    run += below[run[-1]]
                self._runs[upper, run[-1]] = run

    def _library_part(self, legs: list[tuple[int, int]]) -> list[tuple[int, float, int]]:
        """(vertex, x, rank) of all vertices of one connected part; adds to ``edges``.

        The library is asked for one part at a time: with several, the numbers of its dummies
        collide with those of vertices.
        """
        from fast_sugiyama import from_edges  # noqa: PLC0415 - only drawings need it

        names = dict(enumerate(sorted({vertex for leg in legs for vertex in leg})))
        numbers = {vertex: number for number, vertex in names.items()}
        ((positions, _, _, short_edges),) = from_edges(
            [(numbers[a], numbers[b]) for a, b in legs],
            vertex_spacing=_SPACING,
            dummy_vertices=True,
            ranking_type="minimize",
            transpose=len(legs) < _MANY_LEGS,
            check_layout=False,
        )
        for number in sorted(int(number) for number, _ in positions):
            if number not in names:
                names[number] = self._first_dummy + self._dummy_count
                self._dummy_count += 1
        for a, b in short_edges or ():
            self.edges.append((names[int(a)], names[int(b)]))
        lowest = max(y for _, (_, y) in positions)
        return [(names[int(n)], float(x), round((lowest - y) / _SPACING)) for n, (x, y) in positions]

    def run(self, upper: int, lower: int) -> list[int]:
        """The vertices along a leg, its ends included."""
        if (run := self._runs.get((upper, lower))) is None:
            raise AssertionError("the library lost an edge")
        return run

    def layers(self) -> list[list[int]]:
        """The vertices of each layer from left to right."""
        layers: list[list[int]] = [[] for _ in range(1 + max(self._ranks.values()))]
        for vertex in sorted(self.keys, key=lambda vertex: (self.keys[vertex], vertex)):
            layers[self._ranks[vertex]].append(vertex)
        return layers


def _connected(legs: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """The legs of each connected part."""
    parent: dict[int, int] = {}

    def root(vertex: int) -> int:
        while parent.setdefault(vertex, vertex) != vertex:
            parent[vertex] = vertex = parent[parent[vertex]]
        return vertex

    for a, b in legs:
        parent[root(a)] = root(b)
    parts: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for leg in legs:
        parts[root(leg[0])].append(leg)
    return list(parts.values())


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
