"""The layout of a scene: layers by ``fast_sugiyama``, places by ourselves.

It works in two axes of its own, ``across`` and ``along`` the flow, and turns the result at the end.
An edge passes each layer between what stands there at its left and at its right, so that it never runs
through a box or a label.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Final

from attractor_nb.views.layout.geometry import Cubic, Point, RawLayout, Rect, moved_path, reversed_path
from attractor_nb.views.layout.layers import Layered, layer_scene, order_layers
from attractor_nb.views.layout.routes import Course, Door, course, keep_apart
from attractor_nb.views.layout.rows import RUN, Gap, Strip, gaps_between_layers, row_breaks, with_turns
from attractor_nb.views.layout.skeleton import Skeleton, skeleton_of, straight_links, with_straight_links, without_links
from attractor_nb.views.layout.vertex_places import BESIDE, Places
from attractor_nb.views.outlines import outline
from attractor_nb.views.scene import Direction

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from attractor_nb.views.scene import Scene

_PORT_GAP: Final = 16.0
_CLEARANCE: Final = 8.0
"""Between a line and a box that it passes; lines side by side there are ``_SPACING`` apart."""
_SPACING: Final = 7.0
_BORDER_CLEARANCE: Final = 4.0
_FAN: Final = 4.0
_SLACK: Final = 4.0
"""How far a line may pass from the middle of its label."""
_FAR: Final = 1e9
_MOST_LINES: Final = 8
"""So many lines may lead from row to row. More make each row so high that all together are larger than one line."""

_Bound = tuple[float, int]


def lay_out_in_layers(scene: Scene) -> RawLayout:
    """Coordinates for a scene."""
    if not scene.boxes:
        return RawLayout([], [], [], [])
    skeleton = skeleton_of(scene)
    if straight := straight_links(skeleton):
        rest = _led_around(skeleton_of(without_links(scene, straight)))
        return with_straight_links(scene, rest, straight)
    return _led_around(skeleton)


def _led_around(skeleton: Skeleton) -> RawLayout:
    """Coordinates with every link led around the boxes."""
    layered = layer_scene(skeleton)
    order_layers(skeleton, layered)
    drawing = _Drawing(skeleton, layered)
    longest = skeleton.scene.longest
    if longest and not skeleton.scene.direction.is_vertical:
        gaps = gaps_between_layers(layered, drawing.across)
        breaks = row_breaks(drawing.tops, drawing.bottoms, gaps, longest)
        if breaks and all(_is_thin(gaps[rank]) for rank in breaks):
            drawing = _Drawing(skeleton, layered, with_turns(layered, breaks))
    return drawing.result()


def _is_thin(gap: Gap | None) -> bool:
    """Whether rows may be broken there."""
    return gap is not None and gap.lines <= _MOST_LINES


def _shifted(shift: Point, point: Point) -> Point:
    return point[0] + shift[0], point[1] + shift[1]


class _Drawing(Places):
    """The courses of a scene's edges between what has its places, and all of it in the final axes."""

    def __init__(self, skeleton: Skeleton, layered: Layered, turns: Sequence[int] = ()) -> None:
        super().__init__(skeleton, layered, turns)
        self.free = self._free_rooms()
        self.turn_ranks = frozenset(self.turns)
        self.row_of_rank = [bisect_left(self.turns, rank) for rank in range(len(layered.layers))]

    def _free_rooms(self) -> dict[int, tuple[_Bound, _Bound]]:
        """Between what an edge through each vertex has to stay across the flow, in its layer."""
        free: dict[int, tuple[_Bound, _Bound]] = {}
        for layer in self.layered.layers:
            lows = self._bounds_from(layer, 1)
            highs = self._bounds_from(layer[::-1], -1)
            free.update((vertex, (lows[vertex], highs[vertex])) for vertex in layer)
        return free

    def _bounds_from(self, row: list[int], sign: int) -> dict[int, _Bound]:
        """For each vertex the bound on its side where the row begins, and how many lines pass between."""
        bound, count = -sign * _FAR, 0
        bounds: dict[int, _Bound] = {}
        for vertex in row:
            bounds[vertex] = bound, count
            if vertex in self.borders:
                bound, count = self.across[vertex] + sign * _BORDER_CLEARANCE, 0
            elif vertex in self.extents:
                room = self.extents[vertex][1 if sign > 0 else 0]
                bound, count = self.across[vertex] + sign * (room + _CLEARANCE), 0
            elif abs(bound) < _FAR:
                bound, count = bound + sign * _SPACING, count + 1
        return bounds

    def result(self) -> RawLayout:
        """Everything in the final axes."""
        turn, courses = self._turn(), self._courses()
        strip = self._strip(courses)
        shifts = strip.shifts

        def placed_at(vertex: int, point: Point) -> Point:
            """The final place of a point in the row of a vertex."""
            return turn(_shifted(shifts[self._row(vertex)], point))

        paths: list[list[Cubic]] = []
        labels: list[Point | None] = []
        for position in range(len(self.scene.links)):
            if position in courses:
                vertex = self.layered.beads.get(position)
                path = moved_path(self._whole_route(position, courses[position], strip), turn)
                path = path if self.skeleton.is_forward[position] else reversed_path(path)
                label = None if vertex is None else placed_at(vertex, self._label(position, vertex))
            else:
                box = self.scene.links[position].source
                loop, place = self.skeleton.loop_path(position, (self.across[box], self._middle(box)))
                path = moved_path(loop, partial(placed_at, box))
                label = None if place is None else placed_at(box, place)
            paths.append(path)
            labels.append(label)
        boxes = range(len(self.scene.boxes))
        centres = [placed_at(box, (self.across[box], self._middle(box))) for box in boxes]
        return RawLayout(centres, paths, labels, self._panel_rects(placed_at))

    def _row(self, vertex: int) -> int:
        return self.row_of_rank[self.layered.ranks[vertex]]

    def _strip(self, courses: Mapping[int, list[Course]]) -> Strip:
        """What a flow that is broken into rows is before it is broken."""
        if not self.turns:
            return Strip([0.0], [0.0], [0.0], [])
        lows, highs = [_FAR] * (len(self.turns) + 1), [-_FAR] * (len(self.turns) + 1)
        for rank, layer in enumerate(self.layered.layers):
            row = self.row_of_rank[rank]
            for vertex in layer:
                before, behind, _ = self.extents.get(vertex, (0.0, 0.0, 0.0))
                lows[row] = min(lows[row], self.across[vertex] - before)
                highs[row] = max(highs[row], self.across[vertex] + behind)
        for position, pieces in courses.items():
            first = self._row(self.layered.chains[position][0])
            for row, piece in enumerate(pieces, first):
                across = [point[0] for cubic in piece.path for point in cubic]
                lows[row], highs[row] = min(lows[row], *across), max(highs[row], *across)
        begins = [self.tops[0], *(self.tops[rank + 1] for rank in self.turns)]
        return Strip(begins, lows, highs, [len(self.layered.layers[rank]) for rank in self.turns])

    def _whole_route(self, position: int, pieces: Sequence[Course], strip: Strip) -> list[Cubic]:
        """The way of a link over all its rows, moved to where they are."""
        if not self.turns:
            return pieces[0].path
        chain = self.layered.chains[position]
        places = [self.places_in_row[vertex] for vertex in chain if self.layered.ranks[vertex] in self.turn_ranks]
        path: list[Cubic] = []
        for row, piece in enumerate(pieces, self._row(chain[0])):
            moved = moved_path(piece.path, partial(_shifted, strip.shifts[row]))
            if path:
                path += strip.return_route(row - 1, places.pop(0), path[-1][3], moved[0][0])
            path += moved
        return path

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

    def _courses(self) -> dict[int, list[Course]]:
        """The way of each link between two boxes, from upper to lower; in each row a piece."""
        sides = self._sides()
        ports = {
            (position, box): place
            for (box, _), positions in sides.items()
            for position, place in zip(positions, self._ports(box, positions), strict=True)
        }
        courses: dict[int, list[Course]] = {}
        for position, chain in enumerate(self.layered.chains):
            if chain:
                start, end = ports[position, chain[0]], ports[position, chain[-1]]
                courses[position] = self._pieces(
                    position,
                    (start, self._rim(chain[0], start, is_below=True)),
                    (end, self._rim(chain[-1], end, is_below=False)),
                )
        for (_, is_below), positions in sides.items():
            keep_apart([courses[position][0 if is_below else -1] for position in positions])
        return courses

    def _pieces(self, position: int, start: Point, end: Point) -> list[Course]:
        """The way of a link in pieces, from turn to turn; before and behind a turn it runs straight."""
        pieces: list[Course] = []
        doors: list[Door] = []
        for vertex in self.layered.chains[position]:
            if self.layered.ranks[vertex] in self.turn_ranks:
                place, along = self.across[vertex], self._middle(vertex)
                pieces.append(course(start, [*doors, Door(along - RUN, place, place)], (place, along)))
                start, doors = (place, along), [Door(along + RUN, place, place)]
            else:
                doors += self._doors(position, vertex)
        return [*pieces, course(start, doors, end)]

    def _neighbour(self, position: int, box: int) -> int:
        """The vertex of a link that is next to one of its boxes."""
        chain = self.layered.chains[position]
        return chain[1] if chain[0] == box else chain[-2]

    def _sides(self) -> dict[tuple[int, bool], list[int]]:
        """The links at the lower and at the upper side of each box, in the order of where they lead."""
        sides: dict[tuple[int, bool], list[int]] = defaultdict(list)
        for position, chain in enumerate(self.layered.chains):
            if chain:
                sides[chain[0], True].append(position)
                sides[chain[-1], False].append(position)
        for (box, _), positions in sides.items():
            positions.sort(key=lambda position, at=box: self.places_in_row[self._neighbour(position, at)])
        return sides

    def _ports(self, box: int, positions: Sequence[int]) -> list[float]:
        """Where the links at one side of a box meet it: apart, one that can be straight in the middle."""
        centre, drawn = self.across[box], self.scene.boxes[box]
        count = len(positions)
        room = self.skeleton.turned(drawn.width, drawn.height)[0] * 0.6
        gap = min(_PORT_GAP, room / max(1, count - 1))
        middle = (count - 1) / 2
        aside = [abs(self.across[self._neighbour(position, box)] - centre) for position in positions]
        if min(aside) < 1:
            middle = float(aside.index(min(aside)))
            gap = min(gap, room / 2 / max(1.0, middle, count - 1 - middle))
        return [centre + (place - middle) * gap for place in range(count)]

    def _doors(self, position: int, vertex: int) -> list[Door]:
        """What a link has to pass in the layer of one of its vertices.

        It leaves the layer of its upper box and comes into that of its lower one beside what is taller than
        these. It passes under its label, or along it where that stands beside it.
        """
        rank, rims = self.layered.ranks[vertex], self._rims(vertex)
        ends = self.layered.chains[position]
        middle = self._middle(vertex)
        if vertex in (ends[0], ends[-1]):
            is_tallest = self.extents[vertex][2] > self.bottoms[rank] - self.tops[rank] - 2
            is_behind = vertex == ends[0]
            return [] if is_tallest else [door for door in rims if (door.along > middle) == is_behind]
        if vertex not in self.extents:
            return rims
        place = self.across[vertex]
        if position in self.label_sides:
            half, slack = self.extents[vertex][2] / 2, 0.0
        else:
            half, slack = 0.0, min(_SLACK, self.extents[vertex][0] / 3)
        doors = [Door(along, place - slack, place + slack) for along in {middle - half, middle + half}]
        return sorted([*rims, *doors])

    def _rims(self, vertex: int) -> list[Door]:
        """Where a layer begins and ends for a line; it gives way further to what others pass before it."""
        rank = self.layered.ranks[vertex]
        doors: list[Door] = []
        low, lines_before = self.free[vertex][0]
        high, lines_behind = self.free[vertex][1]
        before, behind = (min(number, 3) * _FAN for number in (lines_before, lines_behind))
        if before == behind and (low, high) != (-_FAR, _FAR):
            return [Door(self.tops[rank] - before, low, high), Door(self.bottoms[rank] + before, low, high)]
        if low > -_FAR:
            doors += (Door(self.tops[rank] - before, low, _FAR), Door(self.bottoms[rank] + before, low, _FAR))
        if high < _FAR:
            doors += (Door(self.tops[rank] - behind, -_FAR, high), Door(self.bottoms[rank] + behind, -_FAR, high))
        return sorted(doors)

    def _rim(self, box: int, place: float, *, is_below: bool) -> float:
        """Where the outline of a box is, along the flow, at a place across it."""
        offset = place - self.across[box]
        corners = [self._local(corner) for corner in outline(self.scene.boxes[box])]
        found = [
            a[1] + (b[1] - a[1]) * (offset - a[0]) / (b[0] - a[0])
            for a, b in zip(corners, (*corners[1:], corners[0]), strict=True)
            if a[0] != b[0] and min(a[0], b[0]) <= offset <= max(a[0], b[0])
        ]
        return self._middle(box) + (max(found) if is_below else min(found))

    def _local(self, corner: Point) -> Point:
        """A point relative to a box's centre, across and along the flow."""
        x, y = corner
        match self.scene.direction:
            case Direction.DOWN:
                return x, y
            case Direction.UP:
                return x, -y
            case Direction.RIGHT:
                return y, x
            case Direction.LEFT:
                return y, -x

    def _label(self, position: int, bead: int) -> Point:
        link = self.scene.links[position]
        room = self.skeleton.turned(link.width, link.height)[0] / 2 + BESIDE
        return self.across[bead] + self.label_sides.get(position, 0) * room, self._middle(bead)

    def _panel_rects(self, placed_at: Callable[[int, Point], Point]) -> list[Rect]:
        ranks = self._panel_ranks()
        rects = [Rect(0, 0, 0, 0)] * len(self.scene.panels)
        for panel, (first, last) in ranks.items():
            before, after = self._panel_depths(panel)
            left, right = self.layered.borders[panel][0]
            start, end = self.tops[first] - before, self.bottoms[last] + after
            (x0, y0), (x1, y1) = (
                placed_at(left, (self.across[left], start)),
                placed_at(right, (self.across[right], end)),
            )
            x, y, width, height = min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0)
            rects[panel] = Rect(x, y, width, height)
        return rects
