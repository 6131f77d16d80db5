"""Merges the nodes of one graph into another: beside its nodes, or in place of one of them (spec 9.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attractor_nb.errors import OptionError
from attractor_nb.model.graph import Edge
from attractor_nb.model.nearest_name import did_you_mean
from attractor_nb.model.text_files import marked_texts, place_of
from attractor_nb.model.vocabulary.attribute_kinds import Scope
from attractor_nb.transforms.splicing import Inside, graph_of, inside_of, joined, redirected, with_inside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.model.graph import Graph, Subgraph

Connections = Mapping[str, str | Sequence[str]]


class MergeTransform:
    """Adds the nodes of another graph, except its start and exit, to a pipeline, and connects both.

    >>> from attractor_nb.languages.dot import parse_dot
    >>> frame = "digraph { s [shape=Mdiamond] e [shape=Msquare] s -> %s -> e }"
    >>> merge = MergeTransform(parse_dot(frame % "test"), prefix="qa_", connect={"work": "qa_s", "qa_e": "e"})
    >>> sorted(merge.apply(parse_dot(frame % "work")).nodes)
    ['e', 'qa_test', 's', 'work']
    """

    def __init__(self, other: Any, *, prefix: str, connect: Connections | None = None) -> None:
        """Choose what to merge.

        Args:
            other: A ``Graph``, DOT text, or a ``Pipeline``.
            prefix: The prefix for its ids.
            connect: Edges from a source to one target or several. The prefixed id of its start stands for all
                its first nodes, the prefixed id of its exit for all its last nodes; both are not nodes of the
                merged graph.
        """
        given = graph_of(other)
        if given is other or isinstance(other, str):
            for node_id, name, _ in marked_texts(given):
                raise OptionError(
                    f"{place_of(node_id, name)} names a file that was not read",
                    hint="merge a Pipeline, which reads the files of its texts",
                )
        self._inside = inside_of(given, prefix)
        self._connect = dict(connect or {})

    def apply(self, graph: Graph) -> Graph:
        """Return both graphs merged into one; the given graph stays unchanged."""
        known = {*graph.nodes, *(node.id for node in self._inside.nodes), self._inside.start, self._inside.exit}
        edges = [*graph.edges]
        for source, given in self._connect.items():
            for target in [given] if isinstance(given, str) else given:
                for end in (source, target):
                    if end not in known:
                        raise OptionError(f'connect names "{end}", which is not a node{did_you_mean(end, known)}')
                edges.extend(_connected(self._inside, source, target))
        return with_inside(graph, self._inside, edges)


def _connected(inside: Inside, source: str, target: str) -> Iterator[Edge]:
    plain = Edge(source, target)
    sources = inside.leavings if source == inside.exit else (plain,)
    targets = inside.entries if target == inside.start else (plain,)
    for leaving in sources:
        for entry in targets:
            yield joined(leaving, entry, leaving.source, entry.target)


def replaced(graph: Graph, node_id: str, other: Any, prefix: str) -> Graph:
    """Return a graph in which the nodes of another graph, except its start and exit, replace one node.

    Edges into the node now lead to the first nodes of the other graph, and edges out of it leave from the
    last ones. Such an edge can be taken when the conditions of both original edges hold. Attributes that
    named the node as a target now name the first node of the other graph. The node's own attributes are
    dropped.

    Args:
        other: A ``Graph``, DOT text, or a ``Pipeline``.
        prefix: The prefix for the ids of the other graph.
    """
    if node_id not in graph.nodes:
        raise OptionError(f'the pipeline has no node "{node_id}"{did_you_mean(node_id, graph.nodes)}')
    if node_id in {node.id for node in (*graph.start_nodes, *graph.exit_nodes)}:
        raise OptionError(f'"{node_id}" is the start or exit of the pipeline', hint="replace another node")
    inside = inside_of(graph_of(other), prefix)
    edges = [edge for outer in graph.edges for edge in _rerouted(outer, node_id, inside)]
    nodes = {name: node for name, node in graph.nodes.items() if name != node_id}
    groups = tuple(_with_members(group, node_id, inside) for group in graph.subgraphs)
    host = _pointing_to(replace(graph, nodes=nodes, subgraphs=groups), node_id, inside)
    return with_inside(host, inside, edges)


def _rerouted(outer: Edge, node_id: str, inside: Inside) -> Iterator[Edge]:
    """What stands in place of an edge of the host: itself, when it does not touch the node."""
    plain = Edge(outer.source, outer.target)
    sources = inside.leavings if outer.source == node_id else (plain,)
    targets = inside.entries if outer.target == node_id else (plain,)
    if sources == targets == (plain,):
        yield outer
        return
    for leaving in sources:
        for entry in targets:
            yield joined(outer, joined(leaving, entry, "", ""), leaving.source, entry.target)


def _pointing_to(graph: Graph, node_id: str, inside: Inside) -> Graph:
    """The host with the targets that named the node naming where the other begins."""
    wanting = [node for node in graph.nodes.values() if redirected(node.attrs, {node_id: ""}, Scope.NODE)]
    of_graph = redirected(graph.attrs, {node_id: ""}, Scope.GRAPH)
    if not wanting and not of_graph:
        return graph
    names = {node_id: inside.entry_for(f"a target that named {node_id}")}
    changed = graph.with_nodes(node.with_attrs(redirected(node.attrs, names, Scope.NODE)) for node in wanting)
    return replace(changed, attrs={**changed.attrs, **redirected(changed.attrs, names, Scope.GRAPH)})


def _with_members(group: Subgraph, node_id: str, inside: Inside) -> Subgraph:
    """A group that held the node holds the other's nodes."""
    if node_id not in group.members:
        return group
    members = [
        new
        for member in group.members
        for new in ([node.id for node in inside.nodes] if member == node_id else [member])
    ]
    return replace(group, members=tuple(members))
