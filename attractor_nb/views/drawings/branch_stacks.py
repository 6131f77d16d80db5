"""Fan-outs in a picture: the lane of each branch, and very many branches as one box (pure).

A picture in a cell is about 900 px wide. Branches that would make it so wide that its texts could not be read
are stacked: one box that says how many they are and how they stand. A live view and a page draw all of them.

A lane holds what one branch alone leads to. A fan-out with many branches has no lanes: they would say less
than they take.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.fan_outs.joins import branch_edges, joins_of
from attractor_nb.model.branch import branch_ids
from attractor_nb.model.states import NodeStatus
from attractor_nb.views.metrics import text_width
from attractor_nb.views.scene import Box, Link, Panel, Scene, Shape
from attractor_nb.views.state import NodeState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from attractor_nb.decisions.fan_outs.joins import Join
    from attractor_nb.model.graph import Graph

MAX_LANES: Final = 16

WIDEST: Final = 1000.0
"""A picture of this width has texts of 9 px in a cell of 900 px."""
_MARGINS: Final = 60.0
_GAP: Final = 24.0
_GUTTER: Final = 26.0
"""On either side of the label: the sign of the state stands there."""
_BEHIND: Final = 6.0
"""So much of the box behind is seen."""
_STACK_HEIGHT: Final = 52.0
_LEAST_SHOWN: Final = 2
_PENDING: Final = NodeState()
_WORST_FIRST: Final = (NodeStatus.FAIL, NodeStatus.WAITING, NodeStatus.RETRYING, NodeStatus.RUNNING)
_ORDER: Final = (*_WORST_FIRST, NodeStatus.PARTIAL_SUCCESS, NodeStatus.SUCCESS, NodeStatus.PENDING)


@dataclass(frozen=True, slots=True)
class Lane:
    """The nodes of one branch.

    Attributes:
        fan_out: The fan-out's node.
        id: The branch's id.
        members: What it alone leads to, fan-outs within it and their branches included.
    """

    fan_out: str
    id: str
    members: frozenset[str]


def lanes_of(graph: Graph) -> list[Lane]:
    """The lanes of all fan-outs, outer ones before those within them; no two overlap but by nesting."""
    found: list[Lane] = []
    for node_id, join in joins_of(graph).items():
        starts = _starts(graph, node_id)
        if len(starts) <= MAX_LANES:
            found += _lanes(graph, node_id, join, starts)
    found.sort(key=lambda lane: -len(lane.members))
    kept: list[Lane] = []
    for lane in found:
        if all(lane.members < other.members or not lane.members & other.members for other in kept):
            kept.append(lane)
    return kept


def branches_of(graph: Graph, fan_out: str) -> list[Lane]:
    """What each branch of one fan-out alone leads to, however many they are."""
    return _lanes(graph, fan_out, joins_of(graph)[fan_out], _starts(graph, fan_out))


def _starts(graph: Graph, fan_out: str) -> list[str]:
    return [edge.target for edge in branch_edges(graph, fan_out) if edge.target in graph.nodes]


def _lanes(graph: Graph, fan_out: str, join: Join, starts: list[str]) -> list[Lane]:
    reached = [_reached(graph, start, {fan_out, join.node_id}) for start in starts]
    lanes: list[Lane] = []
    for number, (branch_id, nodes) in enumerate(zip(branch_ids(starts), reached, strict=True)):
        others = {name for other in (*reached[:number], *reached[number + 1 :]) for name in other}
        members = {name for name in nodes - others if graph.handler_types[name] not in {"start", "exit"}}
        if members:
            lanes.append(Lane(fan_out, branch_id, frozenset(members)))
    return lanes


def _reached(graph: Graph, start: str, ends: set[str]) -> set[str]:
    """What can be reached from a node without passing an end; an exit is outside of all branches."""
    if start in ends:
        return set()
    found, ahead = {start}, [start]
    while ahead:
        for edge in graph.outgoing_edges(ahead.pop()):
            target = edge.target
            if target not in ends and target not in found and target in graph.nodes:
                found.add(target)
                ahead.append(target)
    return found


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
        return [summed(states.get(name, _PENDING).status for name in sorted(branch)) for branch in self.branches]


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


def in_words(statuses: Iterable[NodeStatus], fits: Callable[[str], bool] = lambda _: True) -> str:
    """How many stand how, what matters first; those that do not fit are others.

    >>> in_words([NodeStatus.SUCCESS, NodeStatus.FAIL, NodeStatus.SUCCESS])
    '1 fail, 2 success'
    >>> in_words([NodeStatus.FAIL, NodeStatus.SUCCESS, NodeStatus.PENDING], lambda words: len(words) < 20)
    '1 fail, 2 others'
    """
    counts = Counter(statuses)
    stand = [(counts[status], status.replace("_", " ")) for status in _ORDER if counts[status]]
    for shown in range(len(stand), 0, -1):
        others = sum(count for count, _ in stand[shown:])
        rest = [(others, "other" if others == 1 else "others")] if others else []
        words = ", ".join(f"{count} {word}" for count, word in (*stand[:shown], *rest))
        if fits(words):
            return words
    return " ".join(map(str, stand[0]))


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
        around = groups[-1] if groups else None
        panels.append(Panel(_label(len(stack.branches)), members, around, is_lane=True, is_stack=True))
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
    shown, used = 0, _stack_width(len(branches)) + _GAP
    while used + taken[shown] <= WIDEST - _MARGINS or shown < _LEAST_SHOWN:
        used += taken[shown]
        shown += 1
        if shown == len(branches):
            return None
    rest = branches[shown:]
    groups = {_groups_around(scene, name) for members in rest for name in members}
    return Stack(fan_out, tuple(rest)) if len(rest) > 1 and len(groups) == 1 else None


def _label(count: int) -> str:
    return f"and {count} more"


def _stack_width(count: int) -> float:
    """As wide as the label of so many branches needs it, in whole even pixels."""
    return 2.0 * ceil(text_width(_label(count), 12) / 2) + 2 * _GUTTER + _BEHIND


def _groups_around(scene: Scene, node_id: str) -> tuple[int, ...]:
    position = next(place for place, box in enumerate(scene.boxes) if box.node_id == node_id)
    return tuple(number for number, panel in enumerate(scene.panels) if not panel.is_lane and position in panel.members)


def _stacked(scene: Scene, stack: Stack, box_id: str) -> Scene:
    """The scene with one box in place of the branches."""
    members, count = stack.members, len(stack.branches)
    kept = [place for place, box in enumerate(scene.boxes) if box.node_id not in members]
    moved = {old: new for new, old in enumerate(kept)}
    moved.update((old, len(kept)) for old in range(len(scene.boxes)) if old not in moved)
    box = Box(box_id, Shape.STACK, (_label(count),), "branches", _stack_width(count), _STACK_HEIGHT)
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
