"""The main path of a scene: the way from the start to the exit that is drawn straight (pure).

The rule: at each box it goes on by the first link in the text that leads forward to an exit. A fan-out has
no first branch, all go at once: there the path leaves out what lies between the fan-out and where its
branches meet.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from attractor_nb.views.scene import Shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attractor_nb.views.scene import Scene


def main_path(
    scene: Scene, is_forward: Sequence[bool]
) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    """The links of the main path in their order, and each fan-out with the box where its branches meet.

    A scene that has no exit to come to has no main path.
    """
    outgoing: dict[int, list[int]] = defaultdict(list)
    has_incoming = set[int]()
    for position, link in enumerate(scene.links):
        if is_forward[position] and link.source != link.target:
            outgoing[link.source].append(position)
            has_incoming.add(link.target)
    boxes = range(len(scene.boxes))
    here = min(
        boxes,
        key=lambda box: (scene.boxes[box].shape is not Shape.START, box in has_incoming, box),
        default=None,
    )
    ahead = _boxes_from_the_end(scene, outgoing)
    reaches_exit = set[int]()
    for box in ahead:
        is_end = scene.boxes[box].shape is Shape.EXIT
        if is_end or any(scene.links[position].target in reaches_exit for position in outgoing[box]):
            reaches_exit.add(box)
    meetings = _meetings(scene, ahead, outgoing)
    path: list[int] = []
    while here is not None and here in reaches_exit and outgoing[here]:
        if scene.boxes[here].shape is Shape.FAN_OUT and len(outgoing[here]) > 1:
            here = meetings[here]
            continue
        link = next((link for link in outgoing[here] if scene.links[link].target in reaches_exit), None)
        if link is None:  # an exit that something leaves
            break
        path.append(link)
        here = scene.links[link].target
    fans = [box for box in boxes if scene.boxes[box].shape is Shape.FAN_OUT and len(outgoing[box]) > 1]
    return tuple(path), tuple((box, join) for box in fans if (join := meetings[box]) is not None)


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
    """The first box that all ways from each box come to: its immediate post-dominator."""
    meeting: dict[int, int | None] = {}
    depth: dict[int | None, int] = {None: 0}
    for box in ahead:
        found: list[int | None] = [scene.links[position].target for position in outgoing.get(box, ())]
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
