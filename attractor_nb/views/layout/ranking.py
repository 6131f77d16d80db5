"""Ranks: the layer of each vertex, so that edges are short.

The rule: each edge leads down by at least its least span, and the spans of all edges together are as small as they
can be. Of several such rankings it is one in which a vertex is as near as possible to what is above it. Each
connected part begins in the first layer. Pure; knows no sizes and no orders.

The network simplex method of Gansner, Koutsofios, North and Vo, "A Technique for Drawing Directed Graphs", 1993.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Leg = tuple[int, int, int]
"""An edge: its upper vertex, its lower vertex, and its least span in layers."""

_MOST_WORK: Final = 400_000
"""Vertices that all steps may look at together, about half a second; a ranking is valid after each step."""

# The ranks hang in a tree of edges that are tight: as short as they may be. A vertex above all, at rank 0, holds those
# that nothing else is above. Cutting an edge of the tree sets the subtree below it free, and the *pull* of a subtree
# is the number of edges that leave it less the number of those that enter it: one layer further down makes all edges
# together shorter by as many. The edge's cut value is the same number with the sign of the edge's direction.
#
# A subtree that hangs under its edge and pulls down, or stands on it and pulls up, moves that way until the first
# other edge becomes tight; then this edge holds it. When no subtree pulls at its edge, no ranking is better.
#
# Of several the first edge in the order of the text gives way, and of several that become tight the first holds
# (Bland's rule: no tree comes twice, so the steps end). Their last step, which moves vertices with as many edges above
# as below to the emptiest layer, is left out: such a vertex stays where the reader looks for it, after the one before.


def ranks_of(count: int, legs: Sequence[Leg]) -> list[int]:
    """The rank of each vertex.

    Args:
        count: The number of vertices.
        legs: Edges between different vertices, without cycles; several may join the same two.
    """
    tree = _Tree(count, legs)
    for _ in range(_MOST_WORK // (count + 1)):
        if (pulling := tree.first_pulling()) is None:
            break
        tree.move(pulling)
    return tree.ranks[:count]


class _Hold(NamedTuple):
    """The edge of the tree that holds a vertex."""

    holder: int  #: The vertex at its other end.
    edge: int  #: Its number in the order of the text.
    hangs: bool  #: True if the vertex is its lower end; otherwise it stands on the other one.


class _Tree:
    """The ranks, and the tree of tight edges that holds them.

    Attributes:
        ranks: By vertex; the last one is the vertex above all.
        pulls: The pull of the subtree that each vertex holds, itself included.
    """

    def __init__(self, count: int, legs: Sequence[Leg]) -> None:
        self.ranks = [0] * (count + 1)
        self.pulls = [0] * (count + 1)
        # The edges into and out of each vertex: the least span, the number, the vertex at the other end.
        self._above: list[list[tuple[int, int, int]]] = [[] for _ in self.ranks]
        self._below: list[list[tuple[int, int, int]]] = [[] for _ in self.ranks]
        for number, (upper, lower, span) in enumerate(legs):
            self._below[upper].append((span, number, lower))
            self._above[lower].append((span, number, upper))
        self._holds = [_Hold(count, len(legs), hangs=True)] * (count + 1)
        self._children: list[set[int]] = [set() for _ in self.ranks]
        for vertex in reversed(self._hang_up(count)):
            self.pulls[vertex] += len(self._below[vertex]) - len(self._above[vertex])
            holder = self._holds[vertex].holder
            self.pulls[holder] += self.pulls[vertex]
            self._children[holder].add(vertex)
            if holder == count:
                self._above[vertex].append((0, len(legs), count))

    def _hang_up(self, count: int) -> list[int]:
        """Hang each vertex under the longest path to it; returns an order in which edges lead on."""
        waiting = [len(legs) for legs in self._above[:count]]
        order = [vertex for vertex in range(count) if not waiting[vertex]]
        for vertex in order:
            for span, number, lower in self._below[vertex]:
                if self.ranks[vertex] + span > self.ranks[lower]:
                    self.ranks[lower] = self.ranks[vertex] + span
                    self._holds[lower] = _Hold(vertex, number, hangs=True)
                waiting[lower] -= 1
                if not waiting[lower]:
                    order.append(lower)
        return order

    def first_pulling(self) -> int | None:
        """The vertex whose subtree pulls at the first edge at which one does."""
        holds = self._holds
        pulling = [vertex for vertex, pull in enumerate(self.pulls) if pull and (pull > 0) == holds[vertex].hangs]
        return min(pulling, key=lambda vertex: holds[vertex].edge, default=None)

    def move(self, top: int) -> None:
        """Move a subtree to where another edge holds it, down if it hangs and up if it stands."""
        moved = [top]
        for vertex in moved:
            moved += self._children[vertex]
        inside = set(moved)
        is_down, ranks = self._holds[top].hangs, self.ranks
        sign, legs = (1, self._below) if is_down else (-1, self._above)
        slack, edge, vertex, holder = min(
            (sign * (ranks[other] - ranks[vertex]) - span, number, vertex, other)
            for vertex in moved
            for span, number, other in legs[vertex]
            if other not in inside
        )
        for one in moved:
            ranks[one] += sign * slack
        self._add_pull(self._holds[top].holder, -self.pulls[top])
        self._add_pull(holder, self.pulls[top])
        # The new edge holds another vertex of the subtree: the edges between it and the old one turn round.
        whole, pull, hold = self.pulls[top], self.pulls[top], _Hold(holder, edge, hangs=not is_down)
        while True:
            old, self._holds[vertex] = self._holds[vertex], hold
            below, self.pulls[vertex] = self.pulls[vertex], pull
            self._children[old.holder].discard(vertex)
            self._children[hold.holder].add(vertex)
            if vertex == top:
                break
            hold, pull, vertex = _Hold(vertex, old.edge, hangs=not old.hangs), whole - below, old.holder

    def _add_pull(self, vertex: int, pull: int) -> None:
        """Add to the pull of all subtrees that a vertex belongs to."""
        while vertex != len(self.ranks) - 1:
            self.pulls[vertex] += pull
            vertex = self._holds[vertex].holder
