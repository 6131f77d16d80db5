"""Fan-outs in a picture: the lane of each branch, and very many branches as one box (pure).

A picture in a cell is about 900 px wide. Branches that would make it so wide that its texts could not be read
are stacked: one box that says how many they are and their states. A live view and a page draw all of them.

A lane holds what one branch alone leads to. A fan-out with many branches has no lanes: they would say less
than they take.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.branch_policies import Join, branch_edges
from attractor_nb.model.branch import branch_ids
from attractor_nb.model.states import NodeStatus, stage_word
from attractor_nb.views.metrics import text_width
from attractor_nb.views.outlines import Box, Link, Panel, Scene, Shape
from attractor_nb.views.state import NodeState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from attractor_nb.model.graph import Graph

MAX_LANES: Final = 16
_MOST_WALKED: Final = 20_000
"""Nodes that are met on the way from all fan-outs to their joins, those within one another counted each time: there
the search ends, and later fan-outs have neither lanes nor stacks."""
_SHARED: Final = -1

WIDEST: Final = 1000.0
"""A picture of this width has texts of 9 px in a cell of 900 px."""
_MARGINS: Final = 60.0
_GAP: Final = 24.0
_GUTTER: Final = 26.0
"""On either side of the label: the sign of the state is there."""
_BEHIND: Final = 6.0
"""So much of the box behind is seen."""
_STACK_HEIGHT: Final = 52.0
_LEAST_SHOWN: Final = 2
_PENDING: Final = NodeState()
_WORST_FIRST: Final = (NodeStatus.FAIL, NodeStatus.WAITING, NodeStatus.RETRYING, NodeStatus.RUNNING)
_ORDER: Final = (*_WORST_FIRST, NodeStatus.PARTIAL_SUCCESS, NodeStatus.SUCCESS, NodeStatus.PENDING)


@dataclass(frozen=True, slots=True)
class Lane:
    """The nodes of one branch."""

    fan_out: str  #: The fan-out's node.
    id: str  #: The branch's id.
    members: frozenset[str]  #: Nodes that only it leads to, including nested fan-outs and their branches.


def lanes_of(graph: Graph, joins: Mapping[str, Join]) -> list[Lane]:
    """The lanes of all fan-outs, outer ones before those within them; no two overlap but by nesting."""
    found: list[Lane] = []
    walk = BranchWalk(graph)
    for node_id, join in joins.items():
        if len(_starts(graph, node_id)) <= MAX_LANES:
            found += walk.lanes(node_id, join)
    found.sort(key=lambda lane: -len(lane.members))
    kept: list[Lane] = []
    innermost: dict[str, Lane] = {}
    for lane in found:
        around = {innermost.get(name) for name in lane.members}
        outer = around.pop()
        if not around and (outer is None or lane.members < outer.members):
            kept.append(lane)
            innermost.update(dict.fromkeys(lane.members, lane))
    return kept


def _starts(graph: Graph, fan_out: str) -> list[str]:
    return [edge.target for edge in branch_edges(graph, fan_out) if edge.target in graph.nodes]


class BranchWalk:
    """The walk along the branches of fan-outs, until it has met ``_MOST_WALKED`` nodes."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._left = _MOST_WALKED

    def lanes(self, fan_out: str, join: Join) -> list[Lane]:
        """The lanes of a fan-out: for each branch the nodes that it alone leads to. An exit is in no branch."""
        if self._left <= 0:
            return []
        starts = _starts(self._graph, fan_out)
        members: dict[int, set[str]] = {number: set() for number in range(len(starts))}
        for name, owner in self._owners(starts, {fan_out, join.node_id}).items():
            if owner != _SHARED and self._graph.handler_types[name] not in {"start", "exit"}:
                members[owner].add(name)
        return [
            Lane(fan_out, branch_id, frozenset(members[number]))
            for number, branch_id in enumerate(branch_ids(starts))
            if members[number]
        ]

    def _owners(self, starts: Sequence[str], ends: set[str]) -> dict[str, int]:
        """The one branch that reaches each node, or that several do, without passing an end."""
        owners: dict[str, int] = {}
        ahead = [(start, number) for number, start in enumerate(starts)]
        while ahead:
            name, number = ahead.pop()
            before = owners.get(name, number)
            # Met a second time by the same, or by any once it is shared, a node leads to nothing new.
            if name in ends or name not in self._graph.nodes or (name in owners and before in {number, _SHARED}):
                continue
            owners[name] = number if before == number else _SHARED
            ahead += [(edge.target, owners[name]) for edge in self._graph.outgoing_edges(name)]
        self._left -= len(owners)
        return owners


@dataclass(frozen=True, slots=True)
class Stack:
    """Branches that are one box."""

    fan_out: str  #: The fan-out's node.
    branches: tuple[frozenset[str], ...]  #: The nodes of each branch.

    @property
    def members(self) -> frozenset[str]:
        """All nodes in it."""
        return frozenset(name for branch in self.branches for name in branch)

    def statuses(self, states: Mapping[str, NodeState]) -> list[NodeStatus]:
        """The status of each branch."""
        return [summed(states.get(name, _PENDING).status for name in sorted(branch)) for branch in self.branches]


def summed(statuses: Iterable[NodeStatus]) -> NodeStatus:
    """The combined status of several nodes: a node that waits for a person first, then active ones, then ended ones.

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
    """The number of nodes by status, most important first; those that do not fit are others.

    >>> in_words([NodeStatus.SUCCESS, NodeStatus.FAIL, NodeStatus.SUCCESS])
    '1 failed, 2 success'
    >>> in_words([NodeStatus.FAIL, NodeStatus.SUCCESS, NodeStatus.PENDING], lambda words: len(words) < 20)
    '1 failed, 2 others'
    """
    counts = Counter(statuses)
    states = [(counts[status], stage_word(status)) for status in _ORDER if counts[status]]
    for shown in range(len(states), 0, -1):
        others = sum(count for count, _ in states[shown:])
        rest = [(others, "other" if others == 1 else "others")] if others else []
        words = ", ".join(f"{count} {word}" for count, word in (*states[:shown], *rest))
        if fits(words):
            return words
    return " ".join(map(str, states[0]))


def with_stacks(scene: Scene, graph: Graph, joins: Mapping[str, Join]) -> tuple[Scene, dict[str, Stack]]:
    """The scene with those branches stacked that make it too wide to be read; the stacks by box id."""
    if not scene.direction.is_vertical:
        return scene, {}
    stacks = {f"{stack.fan_out}+": stack for stack in _stacks(scene, graph, joins)}
    return _stacked(scene, stacks) if stacks else scene, stacks


def with_stack_lanes(scene: Scene, graph: Graph, joins: Mapping[str, Join]) -> Scene:
    """The scene with the same branches in their own lane: a live view folds it to the same box.

    Where each branch has its lane already those are enough.
    """
    if not scene.direction.is_vertical or any(panel.is_lane for panel in scene.panels):
        return scene
    positions = {box.node_id: place for place, box in enumerate(scene.boxes)}
    panels, groups = list(scene.panels), _groups_around(scene)
    for stack in _stacks(scene, graph, joins):
        members = tuple(sorted(positions[name] for name in stack.members))
        around = groups[next(iter(stack.members))]
        panels.append(
            Panel(_label(len(stack.branches)), members, around[-1] if around else None, is_lane=True, is_stack=True)
        )
    return replace(scene, panels=tuple(panels))


def _stacks(scene: Scene, graph: Graph, joins: Mapping[str, Join]) -> list[Stack]:
    """The branches that find no room beside the first ones of their fan-outs."""
    widths, groups = {box.node_id: box.width for box in scene.boxes}, _groups_around(scene)
    stacks: list[Stack] = []
    hidden = set[str]()
    walk = BranchWalk(graph)
    for fan_out, join in joins.items():
        if fan_out in hidden:
            continue
        branches = [lane.members for lane in walk.lanes(fan_out, join) if hidden.isdisjoint(lane.members)]
        stack = _stack_of(fan_out, branches, widths, groups)
        if stack is not None:
            stacks.append(stack)
            hidden |= stack.members
    return stacks


def _stack_of(
    fan_out: str, branches: Sequence[frozenset[str]], widths: Mapping[str, float], groups: Mapping[str, tuple[int, ...]]
) -> Stack | None:
    """The branches of a fan-out that find no room beside its first ones."""
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
    around = {groups[name] for members in rest for name in members}
    return Stack(fan_out, tuple(rest)) if len(rest) > 1 and len(around) == 1 else None


def _label(count: int) -> str:
    return f"and {count} more"


def _stack_width(count: int) -> float:
    """As wide as the label of that many branches needs it, in whole even pixels."""
    return 2.0 * ceil(text_width(_label(count), 12) / 2) + 2 * _GUTTER + _BEHIND


def _groups_around(scene: Scene) -> dict[str, tuple[int, ...]]:
    """The subgraphs around each node, outer ones first."""
    groups: list[tuple[int, ...]] = [()] * len(scene.boxes)
    for number, panel in enumerate(scene.panels):
        for member in () if panel.is_lane else panel.members:
            groups[member] += (number,)
    return {box.node_id: found for box, found in zip(scene.boxes, groups, strict=True)}


def _stacked(scene: Scene, stacks: Mapping[str, Stack]) -> Scene:
    """The scene with one box in place of the branches of each stack."""
    stack_of = {name: number for number, stack in enumerate(stacks.values()) for name in stack.members}
    kept = [place for place, box in enumerate(scene.boxes) if box.node_id not in stack_of]
    moved = {old: new for new, old in enumerate(kept)}
    moved.update(
        (place, len(kept) + stack_of[box.node_id]) for place, box in enumerate(scene.boxes) if place not in moved
    )
    counts = {box_id: len(stack.branches) for box_id, stack in stacks.items()}
    boxes = [
        Box(box_id, Shape.STACK, (_label(count),), "branches", _stack_width(count), _STACK_HEIGHT)
        for box_id, count in counts.items()
    ]
    panels, parents = _kept_panels(scene.panels, moved, len(kept))
    return replace(
        scene,
        boxes=(*(scene.boxes[place] for place in kept), *boxes),
        links=_kept_links(scene.links, moved, len(kept)),
        panels=tuple(replace(panel, parent=parents.get(panel.parent)) for panel in panels),
    )


def _kept_links(links: Sequence[Link], moved: Mapping[int, int], first_stack: int) -> tuple[Link, ...]:
    """Links with their new ends; those that join a stack to one box are one link that stands for all."""
    kept: dict[object, Link] = {}
    for link in links:
        source, target = moved[link.source], moved[link.target]
        is_of_stack = max(source, target) >= first_stack
        if is_of_stack and source == target:
            continue
        key: object = (source, target) if is_of_stack else link.index
        if before := kept.get(key):
            kept[key] = replace(before, others=(*before.others, link.index))
        elif is_of_stack:
            kept[key] = Link(link.index, source, target)
        else:
            kept[key] = replace(link, source=source, target=target)
    return tuple(kept.values())


def _kept_panels(
    panels: Sequence[Panel], moved: Mapping[int, int], first_stack: int
) -> tuple[list[Panel], dict[int | None, int | None]]:
    """Panels with their new members, without lanes of what is stacked; the new place of each panel."""
    kept: list[Panel] = []
    places: dict[int | None, int | None] = {None: None}
    for number, panel in enumerate(panels):
        members = tuple(dict.fromkeys(moved[member] for member in panel.members))
        if panel.is_lane and len(members) == 1 and members[0] >= first_stack:
            places[number] = places[panel.parent]
            continue
        places[number] = len(kept)
        kept.append(replace(panel, members=members))
    return kept, places
