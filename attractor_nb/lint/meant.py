"""A graph as it was meant where it has a slip: what a finding that knows the slip hands over (pure)."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from attractor_nb.model.graph import Edge, Graph
from attractor_nb.model.vocabulary.attributes import Scope, attribute, coerce

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attractor_nb.model.vocabulary.attributes import AttrValue

    Meant = Callable[[Graph], Graph]
    """Gives the graph without the slip."""


def with_ends(name: str, meant: str) -> Meant:
    """Edges that name a node otherwise."""

    def end(found: str) -> str:
        return meant if found == name else found

    def mend(graph: Graph) -> Graph:
        edges = [
            replace(edge, source=end(edge.source), target=end(edge.target))
            if name in {edge.source, edge.target}
            else edge
            for edge in graph.edges
        ]
        return replace(graph, edges=tuple(edges))

    return mend


def with_node_named(name: str, meant: str) -> Meant:
    """A node with another id; the edges stay."""

    def mend(graph: Graph) -> Graph:
        nodes = {
            (meant if node_id == name else node_id): replace(node, id=meant) if node_id == name else node
            for node_id, node in graph.nodes.items()
        }
        return replace(graph, nodes=nodes)

    return mend


def with_edge(source: str, target: str) -> Meant:
    """One edge more."""
    return lambda graph: replace(graph, edges=(*graph.edges, Edge(source, target)))


def with_attribute_named(scope: Scope, name: str, meant: str) -> Meant:
    """An attribute under another name, wherever it stands in a scope."""

    def renamed(attrs: Mapping[str, AttrValue]) -> Mapping[str, AttrValue] | None:
        if name not in attrs or meant in attrs:
            return None
        spec, value = attribute(scope, meant), attrs[name]
        typed = None if spec is None else coerce(spec, value)
        kept = {key: each for key, each in attrs.items() if key != name}
        return MappingProxyType({**kept, meant: value if typed is None else typed})

    return _each(scope, renamed)


def with_value(scope: Scope, name: str, written: AttrValue, meant: str) -> Meant:
    """Another value of an attribute, wherever it stands in a scope."""

    def valued(attrs: Mapping[str, AttrValue]) -> Mapping[str, AttrValue] | None:
        return MappingProxyType({**attrs, name: meant}) if attrs.get(name) == written else None

    return _each(scope, valued)


def _each(scope: Scope, change: Callable[[Mapping[str, AttrValue]], Mapping[str, AttrValue] | None]) -> Meant:
    """The graph with the attributes of all things of a scope changed that a function changes."""

    def mend(graph: Graph) -> Graph:
        if scope is Scope.GRAPH:
            changed = change(graph.attrs)
            return graph if changed is None else replace(graph, attrs=changed)
        if scope is Scope.EDGE:
            edges = [
                edge if (changed := change(edge.attrs)) is None else replace(edge, attrs=changed)
                for edge in graph.edges
            ]
            return replace(graph, edges=tuple(edges))
        nodes = {
            node_id: node if (changed := change(node.attrs)) is None else replace(node, attrs=changed)
            for node_id, node in graph.nodes.items()
        }
        return replace(graph, nodes=nodes)

    return mend
