"""Decisions that both engines share: the main path, edges that loop back, places of their own.

An edge with a label is led through a *bead*, a vertex as large as the label, so that the label sits
on its edge and nothing runs through it. Loop-backs are turned round before an engine sees them, and
loops at one box are drawn here, beside it. Links that cross too many layers are drawn straight. Pure.

The rule: at each box it continues by the first link in the text that leads forward to an exit. A fan-out has
no first branch, all go at once: there the path leaves out what lies between the fan-out and where its
branches meet. A labelled way beside branches without labels is none of them, but the way after a failure. A router,
a box with three ways or more that soon meet again, has no first way either.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate
from math import hypot
from typing import TYPE_CHECKING, Final

from attractor_nb.views.outlines import Panel, Point, Scene, Shape, outline

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence


_LOOP_REACH: Final = 24.0
_LEAST_WAYS: Final = 3
_MOST_BOXES: Final = 6
"""Of a router: least number of its ways, and most boxes of one of them."""
MOST_CROSSINGS: Final = 8_000
"""Layers that all links of a drawing may cross together: one to two seconds of work. A link costs a vertex in each
layer that it crosses, and where thousands do, no line can be followed with the eye anyway."""

MOST_PANEL_LAYERS: Final = 20_000
"""Layers that all panels of a drawing may pass together: about a second of work. A panel costs two vertices in each."""


Fans = tuple[tuple[int, int | None], ...]
"""Each fan-out or router, and the box where its branches meet; None where that is over another one."""


def main_path(scene: Scene, is_forward: Sequence[bool]) -> tuple[tuple[int, ...], Fans]:
    """The links of the main path in their order, and the fan-outs and routers.

    A scene that has no exit to reach has no main path.
    """
    outgoing: dict[int, list[int]] = defaultdict(list)
    has_incoming = set[int]()
    for position, link in enumerate(scene.links):
        if is_forward[position] and link.source != link.target:
            outgoing[link.source].append(position)
            has_incoming.add(link.target)
    boxes = range(len(scene.boxes))
    here = min(
        boxes, key=lambda box: (scene.boxes[box].shape is not Shape.START, box in has_incoming, box), default=None
    )
    ahead = _boxes_from_the_end(scene, outgoing)
    reaches_exit = set[int]()
    for box in ahead:
        is_end = scene.boxes[box].shape is Shape.EXIT
        if is_end or any(scene.links[position].target in reaches_exit for position in outgoing[box]):
            reaches_exit.add(box)
    meetings = _meetings(scene, ahead, outgoing)
    followers = {box: {scene.links[position].target for position in links} for box, links in outgoing.items()}
    fans = {box: None for box in boxes if _is_fan(scene.boxes[box].shape, followers, box, meetings[box])}
    path: list[int] = []
    passed = set[int | None]()
    while here is not None and here in reaches_exit and outgoing[here]:
        passed.add(here)
        if here in fans:
            here = meetings[here]
            continue
        link = next((link for link in outgoing[here] if scene.links[link].target in reaches_exit), None)
        if link is None:  # an exit that something leaves
            break
        path.append(link)
        here = scene.links[link].target
    passed.add(here)
    # Of several whose branches meet in one box, the first one is over it: the others are within its branches. A box of
    # the main path is over no other than one of the main path.
    over: dict[int, int] = {}
    for box in reversed(ahead):
        join = meetings[box]
        if box in fans and join is not None and (box in passed or join not in passed):
            over.setdefault(join, box)
    joins = {box: join for join, box in over.items()}
    return tuple(path), tuple((box, joins.get(box)) for box in fans if meetings[box] is not None)


def _is_fan(shape: Shape, ahead: Mapping[int, Collection[int]], box: int, meeting: int | None) -> bool:
    """True for a fan-out, and for a router: its ways are branches of a few boxes, beside one another, to one box.

    Args:
        shape: The shape of the box.
        ahead: The boxes that each box leads forward to.
        box: The box.
        meeting: Where all its ways meet.
    """
    starts = ahead.get(box, ())
    if shape is Shape.FAN_OUT:
        return len(starts) > 1
    if len(starts) < _LEAST_WAYS or meeting is None or meeting in starts:
        return False
    for start in starts:
        seen, rest = {start}, [start]
        while rest:
            for after in ahead.get(rest.pop(), ()):
                if after in seen or after == meeting:
                    continue
                if after in starts or len(seen) == _MOST_BOXES:
                    return False
                seen.add(after)
                rest.append(after)
    return True


def _boxes_from_the_end(scene: Scene, outgoing: Mapping[int, list[int]]) -> list[int]:
    """All boxes, each after those that its links lead to."""
    order: list[int] = []
    seen = set[int]()
    for root in range(len(scene.boxes)):
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(outgoing.get(root, ())))]
        while stack:
            box, rest = stack[-1]
            for position in rest:
                target = scene.links[position].target
                if target not in seen:
                    seen.add(target)
                    stack.append((target, iter(outgoing.get(target, ()))))
                    break
            else:
                stack.pop()
                order.append(box)
    return order


def _meetings(scene: Scene, ahead: list[int], outgoing: Mapping[int, list[int]]) -> dict[int, int | None]:
    """The first box that all paths from each box reach: its immediate post-dominator."""
    meeting: dict[int, int | None] = {}
    depth: dict[int | None, int] = {None: 0}
    for box in ahead:
        found: list[int | None] = [scene.links[position].target for position in outgoing.get(box, ())]
        if scene.boxes[box].shape is Shape.FAN_OUT:
            links = [scene.links[position] for position in outgoing.get(box, ())]
            found = [link.target for link in links if not link.lines] or found
        common = found[0] if found else None
        for other in found[1:]:
            while common != other:
                if depth[common] >= depth[other] and common is not None:
                    common = meeting[common]
                elif other is not None:
                    other = meeting[other]  # noqa: PLW2901 - climbs as the first one does
        meeting[box] = common
        depth[box] = depth[common] + 1
    return meeting


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A scene's edges, made acyclic."""

    scene: Scene
    #: Upper and lower box of each link, in the direction of the flow; equal for a loop.
    ends: tuple[tuple[int, int], ...]
    is_forward: tuple[bool, ...]  #: True if a link runs from its upper to its lower box.
    is_crowded: tuple[bool, ...]  #: True if another link joins the same two boxes.
    directions: frozenset[tuple[int, int]]  #: Source and target of all links.
    spine: tuple[int, ...]  #: The links of the main path, in its order.
    fans: Fans  #: The fan-outs and routers.
    loop_starts: Mapping[int, float]  #: Distance of each loop's beginning from the centre of its box, across the flow.

    def is_loop(self, position: int) -> bool:
        """True if a link joins a box to itself."""
        upper, lower = self.ends[position]
        return upper == lower

    def turned(self, width: float, height: float) -> tuple[float, float]:
        """A size as (across, along) the flow."""
        return (width, height) if self.scene.direction.is_vertical else (height, width)

    def box_rooms(self) -> list[tuple[float, float, float]]:
        """Room of each box: before and behind its centre across the flow, with its loops, and along it."""
        rooms: list[tuple[float, float, float]] = []
        for box in self.scene.boxes:
            across, along = self.turned(box.width, box.height)
            rooms.append((across / 2, across / 2, along))
        for position, link in enumerate(self.scene.links):
            if self.is_loop(position):
                (before, behind, along), label = rooms[link.source], self.turned(link.width, link.height)
                rooms[link.source] = before, behind + _LOOP_REACH + label[0], max(along, label[1])
        return rooms

    def is_beside(self, position: int) -> bool:
        """True if a link's label is beside its line: so it does in a loop between two boxes."""
        link = self.scene.links[position]
        return bool(link.lines) and (link.target, link.source) in self.directions and link.source != link.target

    def loop_path(self, position: int, centre: Point) -> tuple[list[Cubic], Point | None]:
        """A loop beside its box, outside of the loops before it, and the centre of its label.

        ``centre`` and the result are (across, along).
        """
        link = self.scene.links[position]
        box = self.scene.boxes[link.source]
        along = self.turned(box.width, box.height)[1]
        u, v = centre
        side = u + self.loop_starts[position]
        reach = side + _LOOP_REACH - 4
        rise = min(along / 2 - 2, 13.0)
        bend, lift = (reach - side) * 0.6, rise * 0.5
        path: list[Cubic] = [
            straight((u, v - rise), (side, v - rise)),
            ((side, v - rise), (side + bend, v - rise), (reach, v - lift), (reach, v)),
            ((reach, v), (reach, v + lift), (side + bend, v + rise), (side, v + rise)),
            straight((side, v + rise), (u, v + rise)),
        ]
        if not link.lines:
            return path, None
        return path, (reach + 2 + self.turned(link.width, link.height)[0] / 2, v)


def skeleton_of(scene: Scene) -> Skeleton:
    """Turn the loop-backs of a scene round."""
    is_forward = _orientation(scene)
    pairs = Counter(frozenset((link.source, link.target)) for link in scene.links)
    return Skeleton(
        scene,
        tuple(
            (link.source, link.target) if forward else (link.target, link.source)
            for link, forward in zip(scene.links, is_forward, strict=True)
        ),
        tuple(is_forward),
        tuple(pairs[frozenset((link.source, link.target))] > 1 for link in scene.links),
        frozenset((link.source, link.target) for link in scene.links),
        *main_path(scene, is_forward),
        _loop_starts(scene),
    )


def _loop_starts(scene: Scene) -> dict[int, float]:
    """The distance of each loop's start from the centre of its box: outside of the loops before it."""
    ends: dict[int, float] = {}
    starts: dict[int, float] = {}
    for position, link in enumerate(scene.links):
        if link.source == link.target:
            box, is_vertical = scene.boxes[link.source], scene.direction.is_vertical
            starts[position] = ends.get(link.source, (box.width if is_vertical else box.height) / 2)
            ends[link.source] = starts[position] + _LOOP_REACH + (link.width if is_vertical else link.height)
    return starts


def _orientation(scene: Scene) -> list[bool]:
    """True if each link points down: not those that go back in a depth-first search from the start."""
    outgoing: dict[int, list[tuple[int, int]]] = defaultdict(list)
    has_incoming: set[int] = set()
    for position, link in enumerate(scene.links):
        if link.source != link.target:
            outgoing[link.source].append((position, link.target))
            has_incoming.add(link.target)
    forward = [True] * len(scene.links)
    roots = sorted(
        range(len(scene.boxes)), key=lambda box: (scene.boxes[box].shape is not Shape.START, box in has_incoming)
    )
    on_path, is_finished = set[int](), set[int]()
    for root in roots:
        if root in is_finished:
            continue
        on_path.add(root)
        stack = [(root, iter(outgoing[root]))]
        while stack:
            vertex, rest = stack[-1]
            for position, target in rest:
                if target in on_path:
                    forward[position] = False
                elif target not in is_finished:
                    on_path.add(target)
                    stack.append((target, iter(outgoing[target])))
                    break
            else:
                stack.pop()
                on_path.discard(vertex)
                is_finished.add(vertex)
    return forward


def straight_links(skeleton: Skeleton, budget: int = MOST_CROSSINGS) -> frozenset[int]:
    """Positions of the links that are drawn straight, once the budget is used: the longest ones, and repeated ones."""
    ranks = _ranks(skeleton)
    spans = [abs(ranks[lower] - ranks[upper]) for upper, lower in skeleton.ends]
    if sum(spans) <= budget:
        return frozenset()
    main_path = frozenset(skeleton.spine)
    crossings = 0
    found = set[int]()
    led_around = set[tuple[int, int]]()
    for position in sorted(range(len(spans)), key=lambda link: (link not in main_path, spans[link], link)):
        crossings += spans[position]
        link = skeleton.scene.links[position]
        is_repeat = (link.source, link.target) in led_around and link.source != link.target
        if crossings > budget and (spans[position] > 1 or is_repeat):
            found.add(position)
        else:
            led_around.add((link.source, link.target))
    return frozenset(found)


def _ranks(skeleton: Skeleton) -> list[int]:
    """The layer of each box: below all boxes that a link leads from."""
    below: dict[int, list[int]] = defaultdict(list)
    above = [0] * len(skeleton.scene.boxes)
    for upper, lower in skeleton.ends:
        if upper != lower:
            below[upper].append(lower)
            above[lower] += 1
    ranks = [0] * len(above)
    ready = deque(box for box, count in enumerate(above) if not count)
    while ready:
        box = ready.popleft()
        for lower in below[box]:
            ranks[lower] = max(ranks[lower], ranks[box] + 1)
            above[lower] -= 1
            if not above[lower]:
                ready.append(lower)
    return ranks


def without_long_panels(scene: Scene) -> Scene:
    """A scene without its longest panels, once the others pass ``MOST_PANEL_LAYERS``."""
    if len(scene.panels) * len(scene.boxes) <= MOST_PANEL_LAYERS:
        return scene
    ranks = _ranks(skeleton_of(scene))
    layers = [{ranks[member] for member in panel.members} for panel in scene.panels]
    spans = [max(inside) - min(inside) + 1 for inside in layers]
    order = sorted(range(len(spans)), key=spans.__getitem__)
    ends = accumulate(spans[position] for position in order)
    kept = {position for position, end in zip(order, ends, strict=True) if end <= MOST_PANEL_LAYERS}
    panels: list[Panel] = []
    places: dict[int | None, int | None] = {None: None}
    for position, panel in enumerate(scene.panels):
        places[position] = parent = places[panel.parent]
        if position in kept:
            places[position] = len(panels)
            panels.append(replace(panel, parent=parent))
    unframed = sum(not panel.is_lane for panel in scene.panels) - sum(not panel.is_lane for panel in panels)
    return replace(scene, panels=tuple(panels), unframed=unframed)


def without_links(scene: Scene, positions: Collection[int]) -> Scene:
    """A scene without some of its links."""
    return replace(scene, links=tuple(link for place, link in enumerate(scene.links) if place not in positions))


def with_straight_links(scene: Scene, raw: RawLayout, positions: Collection[int]) -> RawLayout:
    """The layout of a scene whose links at some positions were left out, with these as straight lines."""
    paths, labels = iter(raw.paths), iter(raw.labels)
    whole = RawLayout(raw.centres, [], [], raw.panels)
    drawn: dict[tuple[int, int], list[Cubic]] = {}
    for position, link in enumerate(scene.links):
        if position not in positions:
            whole.paths.append(next(paths))
            whole.labels.append(next(labels))
            continue
        start, end = raw.centres[link.source], raw.centres[link.target]
        if (path := drawn.get((link.source, link.target))) is None:
            path = clip_start([straight(start, end)], outline(scene.boxes[link.source]), start)
            path = reversed_path(clip_start(reversed_path(path), outline(scene.boxes[link.target]), end))
            drawn[link.source, link.target] = path
        whole.paths.append(path)
        whole.labels.append(((start[0] + end[0]) / 2, (start[1] + end[1]) / 2) if link.lines else None)
    return whole


# Points, cubic paths and outlines, and the places in pixels that the layout returns (pure).

Cubic = tuple[Point, Point, Point, Point]

HEAD_LENGTH: Final = 7.0
_BISECTIONS: Final = 9
_CLIP_BISECTIONS: Final = 14
"""A line through a whole drawing is clipped within two pixels."""


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle by its top left corner and its size."""

    x: float
    y: float
    width: float
    height: float


def straight(start: Point, end: Point) -> Cubic:
    """A straight line as a cubic."""
    (x0, y0), (x1, y1) = start, end
    third_x, third_y = (x1 - x0) / 3, (y1 - y0) / 3
    return start, (x0 + third_x, y0 + third_y), (x1 - third_x, y1 - third_y), end


def point_at(cubic: Cubic, t: float) -> Point:
    """The point of a cubic at a parameter from 0 to 1."""
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = cubic
    s = 1 - t
    a, b, c, d = s * s * s, 3 * s * s * t, 3 * s * t * t, t * t * t
    return a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3


def points_at(cubic: Cubic, count: int) -> list[Point]:
    """So many points of a cubic, at equal steps of its parameter; the last one is its end."""
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = cubic
    return [(a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3) for a, b, c, d in _weights(count)]


@lru_cache(maxsize=256)
def _weights(count: int) -> list[tuple[float, float, float, float]]:
    """The weights of the four points of a cubic, at N steps."""
    steps = [step / count for step in range(1, count + 1)]
    return [((1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t * t, t**3) for t in steps]


def split(cubic: Cubic, t: float) -> tuple[Cubic, Cubic]:
    """The two parts of a cubic on either side of a parameter."""
    p0, p1, p2, p3 = cubic
    a, b, c = _between(p0, p1, t), _between(p1, p2, t), _between(p2, p3, t)
    d, e = _between(a, b, t), _between(b, c, t)
    middle = _between(d, e, t)
    return (p0, a, d, middle), (middle, e, c, p3)


def moved_path(path: Sequence[Cubic], move: Callable[[Point], Point]) -> list[Cubic]:
    """A path whose points are all moved."""
    return [(move(a), move(b), move(c), move(d)) for a, b, c, d in path]


def reversed_path(path: list[Cubic]) -> list[Cubic]:
    """The same path from its end to its start."""
    return [(d, c, b, a) for a, b, c, d in reversed(path)]


def clip_start(path: list[Cubic], corners: list[Point], centre: Point) -> list[Cubic]:
    """A path that starts inside an outline, without that part; of one that never leaves it the last cubic."""
    for position, cubic in enumerate(path):
        if _is_inside(cubic[3], corners, centre):
            continue
        low, high = 0.0, 1.0
        for _ in range(_CLIP_BISECTIONS):
            middle = (low + high) / 2
            if _is_inside(point_at(cubic, middle), corners, centre):
                low = middle
            else:
                high = middle
        return [split(cubic, high)[1], *path[position + 1 :]]
    return path[-1:]


def make_room_for_head(path: list[Cubic]) -> tuple[list[Cubic], Point, Point]:
    """Shorten a path by an arrow head.

    Returns:
        The shortened path, the tip (its old end), and the point where the head's base is.
    """
    tip = path[-1][3]
    position = len(path) - 1
    while position and _distance(path[position][0], tip) <= HEAD_LENGTH:
        position -= 1
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _distance(point_at(path[position], middle), tip) > HEAD_LENGTH:
            low = middle
        else:
            high = middle
    kept = split(path[position], high)[0]
    return [*path[:position], kept], tip, kept[3]


def _distance(a: Point, b: Point) -> float:
    return hypot(a[0] - b[0], a[1] - b[1])


def _between(a: Point, b: Point, t: float) -> Point:
    return a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t


def _is_inside(point: Point, corners: list[Point], centre: Point) -> bool:
    x, y = point[0] - centre[0], point[1] - centre[1]
    ax, ay = corners[-1]
    for bx, by in corners:
        if (bx - ax) * (y - ay) - (by - ay) * (x - ax) < 0:
            return False
        ax, ay = bx, by
    return True


@dataclass(frozen=True, slots=True)
class Route:
    """The way of an edge."""

    path: tuple[Cubic, ...]  #: Cubics in order, from the source's outline to the base of the arrow head.
    tip: Point  #: Point where the arrow head touches the target.
    base: Point  #: Point where it begins.
    label: Point  #: Centre of the edge's label; for an edge without one its middle.


@dataclass(frozen=True, slots=True)
class Layout:
    """Places for everything in a scene, in the scene's order."""

    width: float  #: Width of the whole drawing, margins included.
    height: float  #: Height of the same.
    centres: tuple[Point, ...]  #: Centre of each box.
    routes: tuple[Route, ...]  #: One for each link.
    panels: tuple[Rect, ...]  #: One rectangle for each panel.


@dataclass(frozen=True, slots=True)
class RawLayout:
    """Coordinates before margins and arrow heads."""

    centres: list[Point]  #: Centre of each box.
    paths: list[list[Cubic]]  #: Cubics of each link from outline to outline; of a loop from within its box.
    labels: list[Point | None]  #: Centre of each label, or None where there is none.
    panels: list[Rect]  #: One rectangle for each panel.
