"""Which nodes stand in the lane of which branch: the region between a fan-out and its join (pure).

A lane holds what one branch alone leads to. A fan-out with many branches has no lanes: they would say less
than they take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from attractor_nb.decisions.joins import branch_edges, joins_of
from attractor_nb.model.branch import branch_ids

if TYPE_CHECKING:
    from attractor_nb.decisions.joins import Join
    from attractor_nb.model.graph import Graph

MAX_LANES: Final = 16


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
