"""The nodes and edges of a graph, prepared to be merged into another one (spec 9.4).

Start and exit are left out, and ids get a prefix. Graph attributes that affect the nodes (goal, stylesheet,
default retries) are written on the nodes, because the other graph may have different ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from msgspec import structs

from attractor_nb.errors import OptionError
from attractor_nb.languages.dot import parse_dot
from attractor_nb.model.graph import Edge, Graph, Node, Subgraph, marked_texts, place_of
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.attribute_table import AttrType, AttrValue, Scope
from attractor_nb.model.vocabulary.attributes import attribute
from attractor_nb.model.vocabulary.variables import NAMING_ATTRIBUTES, with_renamed_nodes
from attractor_nb.transforms.node_attributes import INHERITED, StylesheetApplication, VariableExpansion

_SETTLED: Final = {"max_retries": ("default_max_retries", "default_max_retry"), "retry_policy": ("retry_policy",)}
"""Node attributes, and the graph's that give their default."""
_HOOKS: Final = ("tool_hooks.pre", "tool_hooks.post", "tool_hooks.timeout")
"""Of these the nodes have the graph's whose model may call tools."""


@dataclass(frozen=True, slots=True)
class Inside:
    """The nodes and edges of a graph without its start and exit, with prefixed ids."""

    start: str  #: Prefixed id of the start that is left out.
    exit: str  #: Prefixed id of the exit that is left out.
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]  #: The edges between them.
    entries: tuple[Edge, ...]  #: The edges that left the start.
    leavings: tuple[Edge, ...]  #: The edges that entered the exit.
    subgraphs: tuple[Subgraph, ...]  #: The groups, with the members that are left; parents count from 0.

    def entry_for(self, what: str) -> str:
        """The first node, when there is only one."""
        targets = list(dict.fromkeys(edge.target for edge in self.entries))
        if len(targets) != 1:
            raise OptionError(
                f"{what} leads to the other graph, which begins at several nodes: {', '.join(targets)}",
                hint="let its start lead to one node",
            )
        return targets[0]


def graph_of(other: Any) -> Graph:
    """Return the graph of a ``Graph``, a DOT text, or an object with a ``graph``, such as a ``Pipeline``."""
    found = parse_dot(other) if isinstance(other, str) else getattr(other, "graph", other)
    if not isinstance(found, Graph):
        raise OptionError(
            f"a graph is merged with a graph, not with {type(other).__name__}",
            hint="give a Graph, DOT text, or a Pipeline",
        )
    return found


def inside_of(graph: Graph, prefix: str) -> Inside:
    """The inside of a graph."""
    if len(graph.start_nodes) != 1 or len(graph.exit_nodes) != 1:
        raise OptionError(
            f"the graph {graph.name or 'without a name'} has {len(graph.start_nodes)} starts and "
            f"{len(graph.exit_nodes)} exits; one that goes into another has one of each"
        )
    start, exit_id = graph.start_nodes[0].id, graph.exit_nodes[0].id
    settled = _settled(graph)
    ends = {start, exit_id}
    edges = tuple(
        structs.replace(edge, source=prefix + edge.source, target=prefix + edge.target, span=None)
        for edge in settled.edges
    )
    start, exit_id = prefix + start, prefix + exit_id
    if any(edge.source == start and edge.target == exit_id for edge in edges):
        raise OptionError(
            f"the start of {graph.name or 'the graph'} leads straight to its exit", hint="put a node between them"
        )
    result = Inside(
        start,
        exit_id,
        nodes=(),
        edges=tuple(edge for edge in edges if edge.source != start and edge.target != exit_id),
        entries=tuple(edge for edge in edges if edge.source == start),
        leavings=tuple(edge for edge in edges if edge.target == exit_id),
        subgraphs=tuple(_prefixed_group(group, prefix, ends) for group in settled.subgraphs),
    )
    nodes = tuple(_prefixed(node, settled, prefix, result) for node in settled.nodes.values() if node.id not in ends)
    return replace(result, nodes=nodes)


def with_inside(host: Graph, inside: Inside, edges: Iterable[Edge]) -> Graph:
    """Return a host with the nodes and edges of an inside, and new edges that replace its own."""
    twice = [node.id for node in inside.nodes if node.id in host.nodes]
    if twice:
        raise OptionError(f'both graphs have a node "{twice[0]}"', hint="choose another prefix")
    first = len(host.subgraphs)
    groups = tuple(
        group if group.parent is None else replace(group, parent=group.parent + first) for group in inside.subgraphs
    )
    merged = host.with_nodes(inside.nodes).with_edges((*edges, *inside.edges))
    return replace(merged, subgraphs=(*host.subgraphs, *groups))


def joined(outer: Edge, inner: Edge, source: str, target: str) -> Edge:
    """One edge that replaces two in a row: both conditions must hold, and other outer values win."""
    attrs = {**inner.attrs, **outer.attrs}
    conditions = [edge.condition.strip() for edge in (outer, inner) if edge.condition.strip()]
    if conditions:
        attrs["condition"] = " && ".join(conditions)
    return Edge(source, target, attrs)


def redirected(attrs: Mapping[str, AttrValue], names: Mapping[str, str], scope: Scope) -> dict[str, AttrValue]:
    """Those attributes that name a node, with its new id."""
    return {
        name: names[value]
        for name, value in attrs.items()
        if isinstance(value, str)
        and value in names
        and (row := attribute(scope, name)) is not None
        and row.type is AttrType.NODE_ID
    }


def _prefixed(node: Node, graph: Graph, prefix: str, inside: Inside) -> Node:
    names = {node_id: prefix + node_id for node_id in graph.nodes}
    changes = redirected(node.attrs, names, Scope.NODE)
    for name, target in changes.items():
        if target == inside.start:
            changes[name] = inside.entry_for(f"{name} of {node.id}")
        elif target == inside.exit:
            raise OptionError(f"{name} of {node.id} names the exit, which is left out", hint="name another node")
    for name in NAMING_ATTRIBUTES:
        text = node.attrs.get(name)
        if isinstance(text, str) and (respelt := with_renamed_nodes(text, names)) != text:
            changes[name] = respelt
    explicit = node.explicit | changes.keys()
    if "label" not in node.attrs and not node.prompt:
        changes["label"] = node.id  # a model gets it for a prompt: the prefix is none of its business
    return structs.replace(node.with_attrs(changes), id=prefix + node.id, explicit=frozenset(explicit))


def _prefixed_group(group: Subgraph, prefix: str, ends: set[str]) -> Subgraph:
    members = tuple(prefix + member for member in group.members if member not in ends)
    return replace(group, id=prefix + group.id if group.id else "", members=members, span=None)


def _settled(graph: Graph) -> Graph:
    """The graph with everything that it says as a whole written on its nodes."""
    whole = StylesheetApplication().apply(VariableExpansion().apply(graph))
    changed: list[Node] = []
    for node in whole.nodes.values():
        changes = {name: node.attrs[name] for name in INHERITED if name in node.attrs}
        if node.get("allowed_tools", str, ""):
            changes.update((name, graph.attrs[name]) for name in _HOOKS if name in graph.attrs.keys() - node.attrs)
        for name, givers in _SETTLED.items():
            given = [graph.attrs[origin] for origin in givers if origin in graph.attrs]
            if given and name not in node.attrs:
                changes[name] = given[0]
        if changes:
            changed.append(node.with_attrs(changes, explicit=True))
    return whole.with_nodes(changed) if changed else whole


# Merges the nodes of one graph into another: beside its nodes, or in place of one of them (spec 9.4).

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
    """The edges in place of an edge of the host: itself, when it does not touch the node."""
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
