"""What both engines decide in the same way: which edges loop back, which need a place of their own.

An edge with a label is led through a *bead*, a vertex as large as the label, so that the label sits
on its edge and nothing runs through it. Loop-backs are turned round before an engine sees them, and
loops at one box are drawn here, beside it. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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
    """

    scene: Scene
    ends: tuple[tuple[int, int], ...]
    is_forward: tuple[bool, ...]
    is_crowded: tuple[bool, ...]

    def is_loop(self, position: int) -> bool:
        """Whether a link joins a box to itself."""
        upper, lower = self.ends[position]
        return upper == lower

    def turned(self, width: float, height: float) -> tuple[float, float]:
        """A size as (across, along) the flow."""
        return (width, height) if self.scene.direction.is_vertical else (height, width)

    def box_rooms(self) -> list[Point]:
        """Room of each box, across and along the flow: what its loops take up counts on both sides of it."""
        rooms = [self.turned(box.width, box.height) for box in self.scene.boxes]
        for position, link in enumerate(self.scene.links):
            if self.is_loop(position):
                (across, along), label = rooms[link.source], self.turned(link.width, link.height)
                rooms[link.source] = across + 2 * (_LOOP_REACH + label[0]), max(along, label[1])
        return rooms

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
        rise = min(along * 0.3, 14.0)
        reach = u + inner + _LOOP_REACH - 4
        high, low = v - 1.6 * rise, v + 1.6 * rise
        path: list[Cubic] = [
            ((u, v - rise), (u + inner, high), (reach, high), (reach, v)),
            ((reach, v), (reach, low), (u + inner, low), (u, v + rise)),
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
