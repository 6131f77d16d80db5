"""The layout engine that needs no other program: layers by ``fast_sugiyama``, places by ourselves.

It works in two axes of its own, ``across`` and ``along`` the flow, and turns the result at the end.
An edge passes each layer at a place that is reserved for it and bends only between layers, so that
it never runs through a box or a label.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from attractor_nb.views.layout.coordinates import assign_positions
from attractor_nb.views.layout.geometry import Cubic, Point, Rect, straight
from attractor_nb.views.layout.layers import Layered, layer_scene
from attractor_nb.views.layout.result import RawLayout
from attractor_nb.views.layout.skeleton import Skeleton, skeleton_of
from attractor_nb.views.metrics import text_width
from attractor_nb.views.scene import Direction

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.views.scene import Scene

_BOX_GAP: Final = 30.0
_EDGE_GAP: Final = 16.0
_PANEL_PADDING: Final = 12.0
_PANEL_TITLE: Final = 20.0
_LAYER_GAP: Final = 36.0
_BEAD_GAP: Final = 16.0
_PORT_GAP: Final = 16.0


def lay_out_in_layers(scene: Scene) -> RawLayout:
    """Coordinates for a scene, computed in this process."""
    if not scene.boxes:
        return RawLayout([], [], [], [])
    skeleton = skeleton_of(scene)
    return _Drawing(skeleton, layer_scene(skeleton)).result()


class _Drawing:
    """The sizes and places of one scene while they are worked out."""

    def __init__(self, skeleton: Skeleton, layered: Layered) -> None:
        self.skeleton = skeleton
        self.scene = skeleton.scene
        self.layered = layered
        self.is_vertical = self.scene.direction.is_vertical
        self.borders = {v: side for rows in layered.borders for pair in rows for side, v in enumerate(pair)}
        self.extents = self._extents()
        priorities = {
            vertex: 2 if vertex in self.borders else 1
            for vertex in layered.ranks
            if vertex >= len(self.scene.boxes)
        }
        self.across = assign_positions(
            layered.layers, layered.edges, priorities, self.borders, self._separation
        )
        self.tops, self.bottoms = self._layer_bands()

    def _extents(self) -> dict[int, tuple[float, float]]:
        """Room of boxes and beads, across and along the flow."""
        extents = dict(enumerate(self.skeleton.box_rooms()))
        for position, bead in self.layered.beads.items():
            link = self.scene.links[position]
            extents[bead] = self.skeleton.turned(link.width, link.height)
        if self.is_vertical:
            self._make_room_for_titles(extents)
        return extents

    def _make_room_for_titles(self, extents: dict[int, tuple[float, float]]) -> None:
        """Widen the borders of a panel that is narrower than its title."""
        for panel, rows in zip(self.scene.panels, self.layered.borders, strict=True):
            if not rows or not panel.title:
                continue
            layer = next(layer for layer in self.layered.layers if rows[0][0] in layer)
            inside = layer[layer.index(rows[0][0]) + 1 : layer.index(rows[0][1])]
            width = sum(extents.get(vertex, (0.0, 0.0))[0] + _EDGE_GAP for vertex in inside) - _EDGE_GAP
            missing = text_width(panel.title, 11) + 20 - width - 2 * _PANEL_PADDING
            if missing > 0:
                extents.update(dict.fromkeys(rows[0], (min(missing, 160.0), 0.0)))

    def _separation(self, a: int, b: int) -> float:
        """Least distance between the centres of two neighbours in a layer."""
        widths = (self.extents.get(a, (0.0, 0.0))[0] + self.extents.get(b, (0.0, 0.0))[0]) / 2
        if a in self.borders or b in self.borders:
            gap = _PANEL_PADDING
            if not self.is_vertical and 0 in {self.borders.get(a), self.borders.get(b)}:
                gap += _PANEL_TITLE
        elif a < len(self.scene.boxes) and b < len(self.scene.boxes):
            gap = _BOX_GAP
        else:
            gap = _EDGE_GAP
        return widths + gap

    def _layer_bands(self) -> tuple[list[float], list[float]]:
        """Where each layer begins and ends along the flow."""
        opening, closing = self._panel_rows()
        steepest = self._widest_steps()
        tops: list[float] = []
        bottoms: list[float] = []
        place = 0.0
        for rank, layer in enumerate(self.layered.layers):
            depth = max((self.extents.get(vertex, (0.0, 0.0))[1] for vertex in layer), default=0.0)
            if rank:
                has_boxes = [
                    any(vertex < len(self.scene.boxes) for vertex in row)
                    for row in (layer, self.layered.layers[rank - 1])
                ]
                gap = _LAYER_GAP if all(has_boxes) else _BEAD_GAP
                gap += min(48.0, steepest[rank] * 0.07)
                place = bottoms[-1] + gap + closing[rank - 1]
            place += opening[rank]
            tops.append(place)
            bottoms.append(place + depth)
        return tops, bottoms

    def _widest_steps(self) -> list[float]:
        """How far the edges into each layer move across, at most: wide gaps keep them from lying flat."""
        widest = [0.0] * len(self.layered.layers)
        for a, b in self.layered.edges:
            rank = self.layered.ranks[b]
            widest[rank] = max(widest[rank], abs(self.across[a] - self.across[b]))
        return widest

    def _panel_rows(self) -> tuple[list[float], list[float]]:
        """Extra room before and after each layer for the panels that begin or end there."""
        opening = [0.0] * len(self.layered.layers)
        closing = [0.0] * len(self.layered.layers)
        is_title_first = self.scene.direction is Direction.DOWN
        is_title_last = self.scene.direction is Direction.UP
        for panel, (first, last) in self._panel_ranks().items():
            depth, titles = _depth_below(self.scene, panel)
            opening[first] = max(
                opening[first], depth * _PANEL_PADDING + titles * _PANEL_TITLE * is_title_first
            )
            closing[last] = max(closing[last], depth * _PANEL_PADDING + titles * _PANEL_TITLE * is_title_last)
        return opening, closing

    def _panel_ranks(self) -> dict[int, tuple[int, int]]:
        ranks = self.layered.ranks
        return {
            panel: (ranks[rows[0][0]], ranks[rows[-1][0]])
            for panel, rows in enumerate(self.layered.borders)
            if rows
        }

    def _middle(self, vertex: int) -> float:
        rank = self.layered.ranks[vertex]
        return (self.tops[rank] + self.bottoms[rank]) / 2

    def result(self) -> RawLayout:
        """Everything in the final axes."""
        turn = self._turn()
        centres = [turn((self.across[box], self._middle(box))) for box in range(len(self.scene.boxes))]
        ports = self._ports()
        paths: list[list[Cubic]] = []
        labels: list[Point | None] = []
        for position in range(len(self.scene.links)):
            chain = self.layered.chains[position]
            if chain:
                path = self._path(position, ports)
                bead = self.layered.beads.get(position)
                label = None if bead is None else (self.across[bead], self._middle(bead))
            else:
                box = self.scene.links[position].source
                path, label = self.skeleton.loop_path(position, (self.across[box], self._middle(box)))
            paths.append([(turn(a), turn(b), turn(c), turn(d)) for a, b, c, d in path])
            labels.append(None if label is None else turn(label))
        return RawLayout(centres, paths, labels, self._panel_rects(turn))

    def _turn(self) -> Callable[[Point], Point]:
        end = self.bottoms[-1]
        match self.scene.direction:
            case Direction.DOWN:
                return lambda p: p
            case Direction.UP:
                return lambda p: (p[0], end - p[1])
            case Direction.RIGHT:
                return lambda p: (p[1], p[0])
            case Direction.LEFT:
                return lambda p: (end - p[1], p[0])

    def _ports(self) -> dict[tuple[int, int, bool], float]:
        """Where each link leaves or enters its boxes across the flow: (link, box, at its lower side).

        Ends at one side of a box stand apart in the order of where they lead; the one that can be
        straight stays in the middle.
        """
        ends: dict[tuple[int, bool], list[tuple[float, int]]] = defaultdict(list)
        for position, chain in enumerate(self.layered.chains):
            if chain:
                for box, neighbour in ((chain[0], chain[1]), (chain[-1], chain[-2])):
                    is_below = self.layered.ranks[neighbour] > self.layered.ranks[box]
                    ends[box, is_below].append((self.across[neighbour], position))
        ports: dict[tuple[int, int, bool], float] = {}
        for (box, is_below), arrivals in ends.items():
            centre = self.across[box]
            drawn = self.scene.boxes[box]
            room = self.skeleton.turned(drawn.width, drawn.height)[0] * 0.6
            gap = min(_PORT_GAP, room / max(1, len(arrivals) - 1))
            arrivals.sort()
            middle = (len(arrivals) - 1) / 2
            straightest = min(
                range(len(arrivals)), key=lambda place, near=arrivals: abs(near[place][0] - centre)
            )
            if abs(arrivals[straightest][0] - centre) < 1 and len(arrivals) <= 4:
                middle = float(straightest)
                gap = min(gap, room / 2 / max(1.0, middle, len(arrivals) - 1 - middle))
            for place, (_, position) in enumerate(arrivals):
                ports[position, box, is_below] = centre + (place - middle) * gap
        return ports

    def _path(self, position: int, ports: dict[tuple[int, int, bool], float]) -> list[Cubic]:
        """From centre to centre: straight through each layer, a smooth bend between two."""
        chain = self.layered.chains[position]
        ranks = self.layered.ranks
        is_down = ranks[chain[1]] > ranks[chain[0]]
        places = [
            ports[position, chain[0], is_down],
            *(self.across[vertex] for vertex in chain[1:-1]),
            ports[position, chain[-1], not is_down],
        ]
        path: list[Cubic] = []
        here = (places[0], self._middle(chain[0]))
        for step in range(1, len(chain)):
            before, after = ranks[chain[step - 1]], ranks[chain[step]]
            leave = (places[step - 1], self.bottoms[before] if is_down else self.tops[before])
            enter = (places[step], self.tops[after] if is_down else self.bottoms[after])
            if leave != here:
                path.append(straight(here, leave))
            bend = (leave[1] + enter[1]) / 2
            path.append((leave, (leave[0], bend), (enter[0], bend), enter))
            here = enter
        end = (places[-1], self._middle(chain[-1]))
        if end != here:
            path.append(straight(here, end))
        return path

    def _panel_rects(self, turn: Callable[[Point], Point]) -> list[Rect]:
        ranks = self._panel_ranks()
        rects = [Rect(0, 0, 0, 0)] * len(self.scene.panels)
        for panel, (first, last) in ranks.items():
            depth, titles = _depth_below(self.scene, panel)
            is_title_first = self.scene.direction is Direction.DOWN
            is_title_last = self.scene.direction is Direction.UP
            left, right = self.layered.borders[panel][0]
            start = self.tops[first] - depth * _PANEL_PADDING - titles * _PANEL_TITLE * is_title_first
            end = self.bottoms[last] + depth * _PANEL_PADDING + titles * _PANEL_TITLE * is_title_last
            (x0, y0), (x1, y1) = turn((self.across[left], start)), turn((self.across[right], end))
            x, y, width, height = min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0)
            rects[panel] = Rect(x, y, width, height)
        return rects


def _depth_below(scene: Scene, panel: int) -> tuple[int, int]:
    """How many levels of panels there are from a panel on inwards, and how many of them have a title."""
    inner = [position for position, other in enumerate(scene.panels) if other.parent == panel]
    depths = [_depth_below(scene, position) for position in inner]
    depth, titles = max((deep for deep, _ in depths), default=0), max((deep for _, deep in depths), default=0)
    return depth + 1, titles + bool(scene.panels[panel].title)
