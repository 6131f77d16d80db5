"""Fan-outs of very many branches in a picture: the first ones, and the others as one box (pure).

A picture in a cell is about 900 px wide. Branches that would make it so wide that its texts could not be read
are stacked: one box that says how many they are and how they stand. A live view and a page draw all of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.joins import joins_of
from attractor_nb.views.drawings.lanes import branches_of
from attractor_nb.views.scene import Box, Link, Panel, Scene, Shape
from attractor_nb.views.state import NodeState, NodeStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from attractor_nb.model.graph import Graph

WIDEST: Final = 1000.0
"""A picture of this width has texts of 9 px in a cell of 900 px."""
_MARGINS: Final = 60.0
_GAP: Final = 30.0
_STACK_WIDTH: Final = 136.0
_STACK_HEIGHT: Final = 52.0
_LEAST_SHOWN: Final = 2
_PENDING: Final = NodeState()
_WORST_FIRST: Final = (
    NodeStatus.FAIL,
    NodeStatus.WAITING,
    NodeStatus.RETRYING,
    NodeStatus.RUNNING,
)
_ORDER: Final = (*_WORST_FIRST, NodeStatus.PARTIAL_SUCCESS, NodeStatus.SUCCESS, NodeStatus.PENDING)


@dataclass(frozen=True, slots=True)
class Stack:
    """Branches that are one box.

    Attributes:
        fan_out: The fan-out's node.
        branches: The nodes of each branch.
    """

    fan_out: str
    branches: tuple[frozenset[str], ...]

    @property
    def members(self) -> frozenset[str]:
        """All nodes in it."""
        return frozenset(name for branch in self.branches for name in branch)

    def statuses(self, states: Mapping[str, NodeState]) -> list[NodeStatus]:
        """How each branch stands."""
        return [
            summed(states.get(name, _PENDING).status for name in sorted(branch)) for branch in self.branches
        ]


def summed(statuses: Iterable[NodeStatus]) -> NodeStatus:
    """How many nodes stand as one: what needs a person first, then what goes on, then what is done.

    >>> summed([NodeStatus.SUCCESS, NodeStatus.FAIL]).value, summed([NodeStatus.CACHED]).value
    ('fail', 'success')
    """
    found = set(statuses)
    for status in _WORST_FIRST:
        if status in found:
            return status
    if not found - {NodeStatus.PENDING, NodeStatus.SKIPPED}:
        return NodeStatus.PENDING
    if NodeStatus.PENDING in found:
        return NodeStatus.RUNNING
    return NodeStatus.PARTIAL_SUCCESS if NodeStatus.PARTIAL_SUCCESS in found else NodeStatus.SUCCESS


def in_words(statuses: Iterable[NodeStatus]) -> str:
    """How many stand how, what matters first.

    >>> in_words([NodeStatus.SUCCESS, NodeStatus.FAIL, NodeStatus.SUCCESS])
    '1 fail, 2 success'
    """
    counts = Counter(statuses)
    return ", ".join(f"{counts[status]} {status.replace('_', ' ')}" for status in _ORDER if counts[status])


def with_stacks(scene: Scene, graph: Graph) -> tuple[Scene, dict[str, Stack]]:
    """The scene with those branches stacked that make it too wide to be read; the stacks by box id."""
    stacks: dict[str, Stack] = {}
    if not scene.direction.is_vertical:
        return scene, stacks
    hidden: frozenset[str] = frozenset()
    for fan_out in joins_of(graph):
        if fan_out in hidden:
            continue
        stack = _stack_of(scene, graph, fan_out, hidden)
        if stack is not None:
            box_id = f"{fan_out}+"
            scene = _stacked(scene, stack, box_id)
            stacks[box_id] = stack
            hidden |= stack.members
    return scene, stacks


def with_stack_lanes(scene: Scene, graph: Graph) -> Scene:
    """The scene with the same branches in a lane of their own: a live view folds it to the same box.

    Where each branch has its lane already those are enough.
    """
    if not scene.direction.is_vertical or any(panel.is_lane for panel in scene.panels):
        return scene
    positions = {box.node_id: place for place, box in enumerate(scene.boxes)}
    panels = list(scene.panels)
    taken: frozenset[str] = frozenset()
    for fan_out in joins_of(graph):
        stack = _stack_of(scene, graph, fan_out, taken)
        if stack is None or fan_out in taken:
            continue
        taken |= stack.members
        members = tuple(sorted(positions[name] for name in stack.members))
        groups = _groups_around(scene, next(iter(stack.members)))
        label = f"and {len(stack.branches)} more"
        panels.append(Panel(label, members, groups[-1] if groups else None, is_lane=True, is_stack=True))
    return replace(scene, panels=tuple(panels))


def _stack_of(scene: Scene, graph: Graph, fan_out: str, hidden: frozenset[str]) -> Stack | None:
    """The branches of a fan-out that find no room beside its first ones."""
    widths = {box.node_id: box.width for box in scene.boxes}
    branches = [lane.members for lane in branches_of(graph, fan_out) if not lane.members & hidden]
    if any(name not in widths for members in branches for name in members):
        return None
    taken = [max(widths[name] for name in members) + _GAP for members in branches]
    if sum(taken) <= WIDEST - _MARGINS:
        return None
    shown, used = 0, _STACK_WIDTH + _GAP
    while used + taken[shown] <= WIDEST - _MARGINS or shown < _LEAST_SHOWN:
        used += taken[shown]
        shown += 1
        if shown == len(branches):
            return None
    rest = branches[shown:]
    groups = {_groups_around(scene, name) for members in rest for name in members}
    return Stack(fan_out, tuple(rest)) if len(rest) > 1 and len(groups) == 1 else None


def _groups_around(scene: Scene, node_id: str) -> tuple[int, ...]:
    position = next(place for place, box in enumerate(scene.boxes) if box.node_id == node_id)
    return tuple(
        number for number, panel in enumerate(scene.panels) if not panel.is_lane and position in panel.members
    )


def _stacked(scene: Scene, stack: Stack, box_id: str) -> Scene:
    """The scene with one box in place of the branches."""
    members = stack.members
    label = f"and {len(stack.branches)} more"
    kept = [place for place, box in enumerate(scene.boxes) if box.node_id not in members]
    moved = {old: new for new, old in enumerate(kept)}
    moved.update((old, len(kept)) for old in range(len(scene.boxes)) if old not in moved)
    box = Box(box_id, Shape.STACK, (label,), "branches", _STACK_WIDTH, _STACK_HEIGHT)
    panels, parents = _kept_panels(scene.panels, moved, len(kept))
    return replace(
        scene,
        boxes=(*(scene.boxes[place] for place in kept), box),
        links=_kept_links(scene.links, moved, len(kept)),
        panels=tuple(replace(panel, parent=parents.get(panel.parent)) for panel in panels),
    )


def _kept_links(links: Sequence[Link], moved: Mapping[int, int], stack: int) -> tuple[Link, ...]:
    """Links with their new ends; those that join the stack to one box are one link that stands for all."""
    kept: dict[object, Link] = {}
    for link in links:
        source, target = moved[link.source], moved[link.target]
        if source == target == stack:
            continue
        is_of_stack = stack in {source, target}
        key: object = (source, target) if is_of_stack else link.index
        if before := kept.get(key):
            kept[key] = replace(before, others=(*before.others, link.index))
        elif is_of_stack:
            kept[key] = Link(link.index, source, target)
        else:
            kept[key] = replace(link, source=source, target=target)
    return tuple(kept.values())


def _kept_panels(
    panels: Sequence[Panel], moved: Mapping[int, int], stack: int
) -> tuple[list[Panel], dict[int | None, int | None]]:
    """Panels with their new members, without lanes of what is stacked; where each panel stands now."""
    kept: list[Panel] = []
    places: dict[int | None, int | None] = {None: None}
    for number, panel in enumerate(panels):
        members = tuple(dict.fromkeys(moved[member] for member in panel.members))
        if panel.is_lane and members == (stack,):
            places[number] = places[panel.parent]
            continue
        places[number] = len(kept)
        kept.append(replace(panel, members=members))
    return kept, places
