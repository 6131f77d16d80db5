"""Places of the vertices of a scene's layers: sizes, places across the flow, the bands of layers.

A label that is beside its line takes room at one side of it only; layers are as deep as what they hold,
and between two is room for their edges, or for the panels that end and begin there.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from attractor_nb.views.layout.coordinates import BORDER, LONG, MAIN, assign_positions, settled
from attractor_nb.views.layout.ordering import Segments
from attractor_nb.views.metrics import text_width
from attractor_nb.views.outlines import Direction, Panel

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from attractor_nb.views.layout.layers import Layered
    from attractor_nb.views.layout.skeleton import Skeleton

_BOX_GAP: Final = 24.0
_EDGE_GAP: Final = 16.0
_ROW_GAP: Final = 18.0
_EDGE_ROW_GAP: Final = 8.0
"""Between two boxes, and between an edge and what is beside it; smaller where they lie under one another."""
_PANEL_PADDING: Final = 10.0
_LANE_PADDING: Final = 5.0
_LANE_GAP: Final = 4.0
"""Lanes have no borders that are seen, and no titles: they take no more width than boxes without lanes."""
_PANEL_TITLE: Final = 18.0
_MOST_MISSING: Final = 160.0
"""So much wider a panel is made for its title, in both halves together; a longer one is cut."""
_PANEL_GAP: Final = 8.0
_PANEL_ROW_GAP: Final = 32.0
"""Between panels that follow one another along the flow; sidewards texts are there, too."""
_LAYER_GAP: Final = 33.0
_BEAD_GAP: Final = 18.0
_EXTRA: Final = 0.04
_MOST_EXTRA: Final = 3.0
"""Extra width of a gap for each pixel that its edges move across, so that they are not flat; and the most."""
PORT_GAP: Final = 16.0
"""Between the ends of two lines at one side of a box."""
_TWIN_GAP: Final = 18.0
"""Between two lines that join the same neighbours: a number of passes has room there."""
BESIDE: Final = 5.0
"""Between a line and its label, where that is beside it."""
_BEND: Final = 4.0
"""Length of the straight line before and after such a label."""


class Places:
    """The sizes of what a scene has in each layer, and its positions, across and along the flow."""

    def __init__(self, skeleton: Skeleton, layered: Layered) -> None:
        self.skeleton = skeleton
        self.scene = skeleton.scene
        self.layered = layered
        self.is_vertical = self.scene.direction.is_vertical
        self.borders = {v: side for rows in layered.borders for pair in rows for side, v in enumerate(pair)}
        self.panel_of_border = {v: panel for panel, rows in enumerate(layered.borders) for pair in rows for v in pair}
        self.lane_borders = {v for v, panel in self.panel_of_border.items() if self.scene.panels[panel].is_lane}
        self.panel_depths = _depths(self.scene.panels)
        self.places_in_row = {vertex: number for layer in layered.layers for number, vertex in enumerate(layer)}
        self.label_sides = self._label_sides()
        self.extents = self._extents()
        self.across = assign_positions(
            layered.layers, layered.edges, self._priorities(), self.borders, self._separation, skeleton.fans
        )
        settled(self.across, layered.layers, self._wanted(), self._separation)
        self.tops, self.bottoms = self._layer_bands()

    def _wanted(self) -> dict[int, tuple[int, int, float]]:
        """The wanted places of inner vertices of links: between those before and after them.

        The label of one of many ways stays beside the box that it leads to. Of two ways between neighbours each is
        above its port at the lower box.
        """
        spine, fans = set(self.skeleton.spine), {box for box, _ in self.skeleton.fans}
        wanted: dict[int, tuple[int, int, float]] = {}
        twins: dict[tuple[int, int], list[int]] = defaultdict(list)
        for position, chain in enumerate(self.layered.chains):
            if len(chain) == 3 and self.skeleton.is_crowded[position]:
                twins[chain[0], chain[2]].append(position)
            elif position not in spine and self.scene.links[position].source not in fans:
                inner = zip(chain, chain[1:], chain[2:], strict=False)
                wanted |= {vertex: (before, after, 0.0) for before, vertex, after in inner}
        for (_, lower), positions in twins.items():
            beads = {self.layered.beads[position]: position in spine for position in positions}
            order = sorted(beads, key=self.places_in_row.__getitem__)
            straight = next((number for number, bead in enumerate(order) if beads[bead]), (len(order) - 1) / 2)
            wanted |= {bead: (lower, lower, (number - straight) * _TWIN_GAP) for number, bead in enumerate(order)}
        return wanted

    def _label_sides(self) -> dict[int, int]:
        """For each link whose label is beside its line: -1 for its left, 1 for its right.

        Of the lines between two boxes the first half have them at the left, so that labels are outside.
        """
        between: dict[tuple[int, int], list[int]] = defaultdict(list)
        for position in self.layered.beads:
            between[self.skeleton.ends[position]].append(position)
        sides: dict[int, int] = {}
        for positions in between.values():
            positions.sort(key=lambda position: self.places_in_row[self.layered.beads[position]])
            for number, position in enumerate(positions):
                if self.skeleton.is_beside(position) and len(self.layered.chains[position]) == 3:
                    sides[position] = -1 if number < len(positions) / 2 else 1
        return sides

    def _extents(self) -> dict[int, tuple[float, float, float]]:
        """Room of boxes and beads: before and behind their place across the flow, and along it."""
        extents = dict(enumerate(self.skeleton.box_rooms()))
        for position, bead in self.layered.beads.items():
            link = self.scene.links[position]
            across, along = self.skeleton.turned(link.width, link.height)
            side = self.label_sides.get(position, 0)
            if side:
                room = across + BESIDE
                along += 2 * _BEND
                extents[bead] = (room, 0.0, along) if side < 0 else (0.0, room, along)
            else:
                extents[bead] = across / 2, across / 2, along
        if self.is_vertical:
            self._make_room_for_titles(extents)
        return extents

    def _make_room_for_titles(self, extents: dict[int, tuple[float, float, float]]) -> None:
        """Widen the panels beside whose middle, where edges come in, their titles have no room."""
        spine = {pair for position in self.skeleton.spine for pair in pairwise(self.layered.chains[position])}
        steps = _Steps(self.layered, self.places_in_row, spine)
        for panel, rows in zip(self.scene.panels, self.layered.borders, strict=True):
            if not rows or not panel.title:
                continue
            layer, (left, right) = self.layered.layers[self.layered.ranks[rows[0][0]]], rows[0]
            inside = layer[self.places_in_row[left] + 1 : self.places_in_row[right]]
            width = sum(sum(extents.get(vertex, (0.0, 0.0, 0.0))[:2]) + _EDGE_GAP for vertex in inside)
            missing = 2 * (text_width(panel.title, 11) + 18) + _EDGE_GAP - width - 2 * _PANEL_PADDING
            if missing > 0:
                room = min(missing, _MOST_MISSING) / 2
                for side in steps.free_sides(inside):
                    extents[rows[0][side]] = (0.0, room, 0.0) if side == 0 else (room, 0.0, 0.0)

    def _priorities(self) -> dict[tuple[int, int], int]:
        """The priority of a straight line for each edge between two layers."""
        count = len(self.scene.boxes)
        priorities = {pair: LONG for pair in self.layered.edges if min(pair) >= count}
        for position in self.skeleton.spine:
            chain = self.layered.chains[position]
            priorities.update(dict.fromkeys(pairwise(chain), MAIN))
        for rungs in self.layered.borders:
            for above, below in pairwise(rungs):
                priorities.update(dict.fromkeys(zip(above, below, strict=True), BORDER))
        return priorities

    def _separation(self, a: int, b: int) -> float:
        """Least distance between the places of two neighbours in a layer, ``a`` at the left."""
        none = (0.0, 0.0, 0.0)
        widths = self.extents.get(a, none)[1] + self.extents.get(b, none)[0]
        if a in self.borders and b in self.borders and self.borders[a] != self.borders[b]:
            gap = _LANE_GAP if a in self.lane_borders and b in self.lane_borders else _PANEL_GAP
        elif a in self.borders or b in self.borders:
            is_lane = (a in self.lane_borders or a not in self.borders) and (
                b in self.lane_borders or b not in self.borders
            )
            gap = _LANE_PADDING if is_lane else _PANEL_PADDING
        elif a < len(self.scene.boxes) and b < len(self.scene.boxes):
            gap = _BOX_GAP if self.is_vertical else _ROW_GAP
        else:
            gap = _EDGE_GAP if self.is_vertical else _EDGE_ROW_GAP
        if not self.is_vertical and (panel := self._panel_begun(a, b)) is not None:
            gap += _PANEL_TITLE * bool(self.scene.panels[panel].title)
        return widths + gap

    def _panel_begun(self, a: int, b: int) -> int | None:
        """The panel whose left border one of two neighbours is."""
        for vertex in (a, b):
            if self.borders.get(vertex) == 0:
                return self.panel_of_border[vertex]
        return None

    def _layer_bands(self) -> tuple[list[float], list[float]]:
        """The start and the end of each layer along the flow."""
        opening, closing = self._panel_rows()
        count = len(self.scene.boxes)
        gaps = [_BEAD_GAP] * len(self.layered.layers)
        for a, b in self.layered.edges:
            if a < count and b < count:
                gaps[self.layered.ranks[b]] = _LAYER_GAP
        for rank, step in enumerate(self._widest_steps()):
            gaps[rank] += min(_MOST_EXTRA, step * _EXTRA)
        tops: list[float] = []
        bottoms: list[float] = []
        for rank, layer in enumerate(self.layered.layers):
            depth = max((self.extents[vertex][2] for vertex in layer if vertex in self.extents), default=0.0)
            place = opening[rank]
            if rank:
                panels = closing[rank - 1] + opening[rank]
                between = _PANEL_GAP if self.is_vertical else _PANEL_ROW_GAP
                place = bottoms[-1] + max(gaps[rank], panels + between * bool(panels))
            tops.append(place)
            bottoms.append(place + depth)
        return tops, bottoms

    def _widest_steps(self) -> list[float]:
        """The greatest move across of the edges into each layer."""
        widest = [0.0] * len(self.layered.layers)
        for a, b in self.layered.edges:
            rank = self.layered.ranks[b]
            widest[rank] = max(widest[rank], abs(self.across[a] - self.across[b]))
        return widest

    def _panel_rows(self) -> tuple[list[float], list[float]]:
        """Room before and after each layer for the panels that begin or end there."""
        opening = [0.0] * len(self.layered.layers)
        closing = [0.0] * len(self.layered.layers)
        for panel, (first, last) in self._panel_ranks().items():
            before, after = self._panel_depths(panel)
            opening[first] = max(opening[first], before)
            closing[last] = max(closing[last], after)
        return opening, closing

    def _panel_depths(self, panel: int) -> tuple[float, float]:
        """The reach of a panel before its first layer and behind its last one."""
        depth, titles = self.panel_depths[panel]
        padding, title = depth * _PANEL_PADDING, titles * _PANEL_TITLE
        direction = self.scene.direction
        return padding + title * (direction is Direction.DOWN), padding + title * (direction is Direction.UP)

    def _panel_ranks(self) -> dict[int, tuple[int, int]]:
        ranks = self.layered.ranks
        return {
            panel: (ranks[rows[0][0]], ranks[rows[-1][0]]) for panel, rows in enumerate(self.layered.borders) if rows
        }

    def _middle(self, vertex: int) -> float:
        rank = self.layered.ranks[vertex]
        return (self.tops[rank] + self.bottoms[rank]) / 2


class _Steps:
    """The edges between each two layers."""

    def __init__(self, layered: Layered, places: Mapping[int, int], spine: Container[tuple[int, int]]) -> None:
        ends: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._first_into: dict[int, tuple[bool, int, tuple[int, int]]] = {}
        for number, (a, b) in enumerate(layered.edges):
            ends[layered.ranks[b]].append((places[a], places[b]))
            step = (a, b) not in spine, number, (places[a], places[b])
            self._first_into[b] = min(step, self._first_into.get(b, step))
        self._ranks = layered.ranks
        self._segments = {rank: Segments(pairs) for rank, pairs in ends.items()}

    def free_sides(self, inside: Sequence[int]) -> tuple[int, ...]:
        """The sides with room for a panel's title beside the line into it: left (0), else right (1), else both.

        A side is free when no other line runs there from the layer before to the panel's first one.
        """
        into = min((self._first_into[vertex] for vertex in inside if vertex in self._first_into), default=None)
        if into is None:
            return (0,)
        above, below = into[2]
        segments = self._segments[self._ranks[inside[0]]]
        (furthest, nearest), (furthest_with, nearest_behind) = segments.split(above), segments.split(above + 1)
        is_left_free = furthest < below <= nearest
        is_right_free = furthest_with <= below < nearest_behind
        return (0,) if is_left_free else (1,) if is_right_free else (0, 1)


def _depths(panels: Sequence[Panel]) -> list[tuple[int, int]]:
    """The number of levels of panels from each panel on inwards, and the number of those with a title."""
    depths = [(0, 0)] * len(panels)
    for position in reversed(range(len(panels))):
        panel, (depth, titles) = panels[position], depths[position]
        depths[position] = depth, titles = depth + 1, titles + bool(panel.title)
        if panel.parent is not None:
            deep, titled = depths[panel.parent]
            depths[panel.parent] = max(deep, depth), max(titled, titles)
    return depths
