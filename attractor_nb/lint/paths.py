"""The ways that a run can take through a graph: what all of them pass, detours, cycles.

Loads networkx, which takes half a second, so only rules on demand use it. A fan-out that waits for all its branches
counts as one step to its join, and each branch as a stretch of its own that the run walks, too.
"""

from __future__ import annotations

from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, cast

import networkx as nx

from attractor_nb.decisions.branch_policies import branch_edges, policy_of, walked
from attractor_nb.errors import OptionError

if TYPE_CHECKING:
    from attractor_nb.lint.survey import Survey
    from attractor_nb.model.graph import Graph

MAX_CYCLES: Final = 100
"""A graph can have exponentially many; these are enough to see where it loops."""
_END: Final = ""
"""Behind all exits. No node has this id."""
_ENDS: Final = frozenset({"start", "exit"})


class Stretch(NamedTuple):
    """A part of a run from one node to another: from the start to the end, or a branch to its join."""

    begin: str  #: The node that it begins with.
    end: str  #: The node that it leads to; not a part of it.
    nodes: frozenset[str]  #: The nodes that it may pass.
    passed: tuple[str, ...]  #: Those that it always passes, in order: the dominators of its end.


class Paths:
    """The ways through one graph, from its first start node."""

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self._place = {node_id: place for place, node_id in enumerate(survey.graph.nodes)}

    @cached_property
    def _onward(self) -> nx.DiGraph[str]:
        """The next node of a run: along an edge, to a retry target, from a fan-out that waits to its join."""
        survey = self.survey
        ways: nx.DiGraph[str] = nx.DiGraph()
        ways.add_nodes_from((*survey.successors, _END))
        for node_id, targets in survey.successors.items():
            if join := self._joins.get(node_id):  # edges with a condition lead on, too, after the branches
                begins = {edge.target for edge in branch_edges(survey.graph, node_id)}
                ways.add_edge(node_id, join)
                ways.add_edges_from((node_id, target) for target in targets if target not in begins)
                continue
            ways.add_edges_from((node_id, target) for target in targets)
            if survey.types[node_id] not in _ENDS:
                jumps = [*survey.jumps.get(node_id, ()), *survey.graph_jumps]
                ways.add_edges_from((node_id, target) for target in jumps if target in survey.successors)
        ways.add_edges_from((node.id, _END) for node in survey.graph.exit_nodes)
        return ways

    @cached_property
    def _joins(self) -> dict[str, str]:
        """The join of each fan-out that waits for all its branches."""
        graph = self.survey.graph
        return {name: join.node_id for name, join in self.survey.joins.items() if join.node_id and _waits(graph, name)}

    @cached_property
    def stretches(self) -> list[Stretch]:
        """The way from start to end, then the branches of the fan-outs that wait for all."""
        graph = self.survey.graph
        ends = [(node.id, _END) for node in graph.start_nodes[:1]]
        ends += [(edge.target, join) for name, join in self._joins.items() for edge in branch_edges(graph, name)]
        return [stretch for begin, end in dict.fromkeys(ends) if (stretch := self._stretch(begin, end))]

    def _stretch(self, begin: str, end: str) -> Stretch | None:
        """The stretch between two nodes, or None when no way leads from one to the other."""
        if begin == end or begin not in self._onward:
            return None
        nodes = walked([begin], self._onward.successors, {end})
        ways = self._onward.subgraph({*nodes, end})
        found = nx.immediate_dominators(ways, begin)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - it has no types
        dominators = cast("dict[str, str]", found)
        if end not in dominators:
            return None
        passed = [dominators[end]]
        while passed[-1] != begin:
            passed.append(dominators[passed[-1]])
        return Stretch(begin, end, frozenset(nodes), tuple(reversed(passed)))

    @cached_property
    def must_pass(self) -> list[str]:
        """The nodes that every run passes on its way to an exit, in this order; branches after their fan-out."""
        passed = {(each.begin, each.end): each.passed[::-1] for each in self.stretches}
        found: dict[str, None] = {}
        work = [node_id for (_, end), nodes in passed.items() if end == _END for node_id in nodes]
        while work:
            node_id = work.pop()
            if node_id not in found and node_id in self._joins:
                for edge in reversed(branch_edges(self.survey.graph, node_id)):
                    work += passed.get((edge.target, self._joins[node_id]), ())
            found[node_id] = None
        return list(found)

    def detour(self, node_id: str) -> list[str]:
        """The shortest way around a node: from the start to an exit, or from the beginning of its branch to its join.

        Returns:
            The nodes of the way, with a word after one that must fail; empty without a way or where no run comes.
        """
        for begin, end, nodes, passed in self.stretches:
            if node_id in nodes and node_id not in passed:
                ways = self._onward.subgraph({*nodes, end} - {node_id})
                way = nx.shortest_path(ways, begin, end)  # pyright: ignore[reportUnknownMemberType] - as above
                named = [name + " (failed)" * self._is_jump(name, target) for name, target in pairwise(way)]
                return named if end == _END else [*named, end]
        return []

    def _is_jump(self, source: str, target: str) -> bool:
        """True if only a failure leads from one node to another."""
        return target != _END and source not in self._joins and target not in self.survey.successors[source]

    @cached_property
    def _cycles(self) -> list[list[str]]:
        edges: nx.DiGraph[str] = nx.DiGraph(
            (node_id, target) for node_id, targets in self.survey.successors.items() for target in targets
        )
        return list(islice(nx.simple_cycles(edges), MAX_CYCLES + 1))

    @property
    def are_cycles_cut(self) -> bool:
        """True if there are more cycles than ``cycles`` has."""
        return len(self._cycles) > MAX_CYCLES

    @cached_property
    def cycles(self) -> list[tuple[str, ...]]:
        """The simple cycles of edges, at most ``MAX_CYCLES``: short ones first, each from its first node."""
        places = [[self._place[node_id] for node_id in cycle] for cycle in self._cycles[:MAX_CYCLES]]
        turned = [(*cycle[(at := cycle.index(min(cycle))) :], *cycle[:at]) for cycle in places]
        names = list(self._place)
        return [tuple(names[place] for place in cycle) for cycle in sorted(turned, key=lambda each: (len(each), each))]


def _waits(graph: Graph, fan_out: str) -> bool:
    """True if a fan-out ends when all its branches have ended."""
    try:
        policy = policy_of(graph.nodes[fan_out], len(branch_edges(graph, fan_out)))
    except OptionError:
        return False
    return policy.needed == policy.count
