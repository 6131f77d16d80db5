"""Where the branches of a fan-out meet again, and what lies before it (spec 4.8; rulings 22, 36).

All branches are walked at once, one edge deeper each turn; a node remembers which branches have come to
it. The first turn in which all have come to a fan-in node finds the join. Once they have met, only paths
that lead to a fan-in are followed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from attractor_nb.model.graph import Edge, Graph

PARALLEL_TYPE: Final = "parallel"
FAN_IN_TYPE: Final = "parallel.fan_in"


class Join(msgspec.Struct, frozen=True):
    """Where branches meet."""

    #: The node at which the run goes on; empty when the branches have no node in common, and run to their ends.
    node_id: str = ""
    is_fan_in: bool = False  #: It is a fan-in node; otherwise the nearest ordinary node that all branches lead to.


def branch_edges(graph: Graph, node_id: str) -> tuple[Edge, ...]:
    """The edges of a fan-out that begin its branches, in source order.

    Those with a condition begin none: they say where the run goes when it holds after the branches.
    """
    return tuple(edge for edge in graph.outgoing_edges(node_id) if not edge.condition.strip())


def joins_of(graph: Graph) -> dict[str, Join]:
    """The node where the branches of each fan-out meet: the nearest fan-in node, else the nearest common node.

    A node's distance is that from the branch that is farthest away; of equally near ones the least id wins.
    The fan-out itself is no way on, so a loop back to it joins nothing.
    """
    ahead = _fan_ins_ahead(graph)
    return {
        node_id: _join_of(graph, node_id, ahead)
        for node_id, handler_type in graph.handler_types.items()
        if handler_type == PARALLEL_TYPE
    }


def _join_of(graph: Graph, node_id: str, ahead: Mapping[str, _Ahead]) -> Join:
    starts = [edge.target for edge in branch_edges(graph, node_id) if edge.target in graph.nodes]
    everybody = (1 << len(starts)) - 1
    if not starts:
        return Join()
    # A set of branches is one number, bit n for branch n, so that thousands of them are joined and compared in one
    # step. `arrived` has who has ever come to a node, `coming` who comes to it in this turn and was not there before.
    arrived: dict[str, int] = {}
    coming: dict[str, int] = {}
    for number, start in enumerate(starts):
        coming[start] = coming.get(start, 0) | 1 << number
    ordinary = ""
    successors: dict[str, Sequence[str]] = {}
    while coming:
        complete = _take_in(arrived, coming, everybody)
        fan_ins = [name for name in complete if graph.nodes[name].handler_type == FAN_IN_TYPE]
        if fan_ins:
            return Join(min(fan_ins), is_fan_in=True)
        if complete and not ordinary:
            ordinary = min(complete)
        if ordinary:
            # All branches are at one node and go on together: what they come to first needs no more walking.
            if len(coming) == 1 and complete and (fan_in := _certain_fan_in(complete[0], node_id, ahead)):
                return Join(fan_in, is_fan_in=True)
            coming = {name: branches for name, branches in coming.items() if name in ahead}
        coming = _one_deeper(graph, node_id, coming, arrived, successors)
    return Join(ordinary)


class BranchBorders(msgspec.Struct, frozen=True):
    """What a branch may enter, and what it may not."""

    within: frozenset[str]  #: What branches can come to by edges until they end.
    before: frozenset[str]  #: The fan-out and all that leads to it again: no branch enters that (ruling 36).


def surroundings_of(graph: Graph, node_id: str, join: str) -> BranchBorders:
    """What lies within the branches of a fan-out, and what before it.

    A node lies before it when the fan-out can be reached from there without passing the join or a branch. So
    it either can be reached from the start without the fan-out, or the branches come to it by a jump alone;
    in both cases only a way back leads from a branch to it. A way through the join is none: that is the loop
    of the whole run.
    """

    def onward(name: str) -> Iterable[str]:
        return (edge.target for edge in graph.outgoing_edges(name) if edge.target in graph.nodes)

    def back(name: str) -> Iterable[str]:
        return (edge.source for edge in graph.incoming_edges(name) if edge.source in graph.nodes)

    fan_out, ends = {node_id}, {node_id, join}
    without_it = walked((node.id for node in graph.start_nodes), onward, fan_out)
    upstream = without_it & walked(back(node_id), back, ends)
    starts = [edge.target for edge in branch_edges(graph, node_id) if edge.target in graph.nodes]
    within = walked(starts, onward, upstream | ends)
    return BranchBorders(frozenset(within), frozenset(fan_out | walked(back(node_id), back, within | ends)))


def walked(starts: Iterable[str], successors: Callable[[str], Iterable[str]], stops: Collection[str]) -> set[str]:
    """All that can be come to from some nodes, these included, without entering others."""
    seen = {start for start in starts if start not in stops}
    work = list(seen)
    for name in work:
        for target in successors(name):
            if target not in seen and target not in stops:
                seen.add(target)
                work.append(target)
    return seen


class _Ahead(NamedTuple):
    """The nearest fan-in that can be reached from a node: how many edges away, and its id."""

    distance: int
    fan_in: str


def _fan_ins_ahead(graph: Graph) -> dict[str, _Ahead]:
    """For each node from which a fan-in can be reached, the nearest; walked backwards from all of them."""
    # Breadth first from all fan-ins at once, against the edges: whoever meets a node first is the nearest to it, and
    # of several in one turn the least id wins, whatever order the edges have.
    level = {name: name for name, kind in graph.handler_types.items() if kind == FAN_IN_TYPE}
    found: dict[str, _Ahead] = {}
    distance = 0
    while level:
        found.update((name, _Ahead(distance, fan_in)) for name, fan_in in level.items())
        before: dict[str, str] = {}
        for name, fan_in in level.items():
            for edge in graph.incoming_edges(name):
                source = edge.source
                if source in graph.nodes and source not in found:
                    before[source] = min(fan_in, before.get(source, fan_in))
        level = before
        distance += 1
    return found


def _certain_fan_in(name: str, fan_out: str, ahead: Mapping[str, _Ahead]) -> str:
    """The join when all branches are at one node and nowhere else: the fan-in ahead of it.

    Empty when there is none, or when the way to it may lead through the fan-out: then it must be walked.
    """
    here, there = ahead.get(name), ahead.get(fan_out)
    return here.fan_in if here and (there is None or here.distance < there.distance) else ""


def _take_in(arrived: dict[str, int], coming: Mapping[str, int], everybody: int) -> list[str]:
    """Note who has come where; the nodes at which the last branch came just now."""
    complete: list[str] = []
    for name, branches in coming.items():
        before = arrived.get(name, 0)
        arrived[name] = before | branches
        if arrived[name] == everybody != before:
            complete.append(name)
    return complete


def _one_deeper(
    graph: Graph,
    node_id: str,
    coming: Mapping[str, int],
    arrived: Mapping[str, int],
    successors: dict[str, Sequence[str]],
) -> dict[str, int]:
    """Which branches come to which nodes by one more edge and were not there before."""
    deeper: dict[str, int] = {}
    for name, branches in coming.items():
        if name not in successors:
            successors[name] = [
                edge.target
                for edge in graph.outgoing_edges(name)
                if edge.target != node_id and edge.target in graph.nodes
            ]
        for target in successors[name]:
            if new := branches & ~arrived.get(target, 0):
                deeper[target] = deeper.get(target, 0) | new
    return deeper
