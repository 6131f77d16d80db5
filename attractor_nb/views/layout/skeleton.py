"""What both engines decide in the same way: which edges loop back, which need a place of their own.

An edge with a label is led through a *bead*, a vertex as large as the label, so that the label sits
on its edge and nothing runs through it. Loop-backs are turned round before an engine sees them, and
loops at one box are drawn here, beside it. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from attractor_nb.views.layout.geometry import straight
from attractor_nb.views.layout.main_path import main_path
from attractor_nb.views.scene import Shape

if TYPE_CHECKING:
    from attractor_nb.views.layout.geometry import Cubic, Point
    from attractor_nb.views.scene import Scene

_LOOP_REACH: Final = 24.0


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A scene's edges, made acyclic.

    Attributes:
        scene: The scene.
        ends: Upper and lower box of each link, in the direction of the flow; equal for a loop.
        is_forward: Whether a link runs from its upper to its lower box.
        is_crowded: Whether another link joins the same two boxes.
        ways: Source and target of all links.
        spine: The links of the main path, in its order.
        fans: Each fan-out and the box where its branches meet.
    """

    scene: Scene
    ends: tuple[tuple[int, int], ...]
    is_forward: tuple[bool, ...]
    is_crowded: tuple[bool, ...]
    ways: frozenset[tuple[int, int]]
    spine: tuple[int, ...]
    fans: tuple[tuple[int, int], ...]

    def is_loop(self, position: int) -> bool:
        """Whether a link joins a box to itself."""
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
        """Whether a link's label stands beside its line: so it does in a loop between two boxes."""
        link = self.scene.links[position]
        return bool(link.lines) and (link.target, link.source) in self.ways and link.source != link.target

    def loop_path(self, position: int, centre: Point) -> tuple[list[Cubic], Point | None]:
        """A loop beside its box, outside of the loops before it, and the centre of its label.

        ``centre`` and the result are (across, along).
        """
        link = self.scene.links[position]
        box = self.scene.boxes[link.source]
        across, along = self.turned(box.width, box.height)
        u, v = centre
        inner = across / 2
        for other in range(position):
            before = self.scene.links[other]
            if self.is_loop(other) and before.source == link.source:
                inner += _LOOP_REACH + self.turned(before.width, before.height)[0]
        reach = u + inner + _LOOP_REACH - 4
        rise = min(along / 2 - 2, 13.0)
        side = u + inner
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
    )


def _orientation(scene: Scene) -> list[bool]:
    """Whether each link points down: not those that go back in a depth-first search from the start."""
    outgoing: dict[int, list[tuple[int, int]]] = defaultdict(list)
    has_incoming: set[int] = set()
    for position, link in enumerate(scene.links):
        if link.source != link.target:
            outgoing[link.source].append((position, link.target))
            has_incoming.add(link.target)
    forward = [True] * len(scene.links)
    roots = sorted(
        range(len(scene.boxes)),
        key=lambda box: (scene.boxes[box].shape is not Shape.START, box in has_incoming),
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
