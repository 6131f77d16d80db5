"""One slip, one finding: the graph as it was meant, and what a misspelling entails, left out beside it.

A finding that knows what was meant hands over the graph as it was meant (``meant``). What the rules do not
find in that graph any more is a consequence: it would only hide its cause. The cause is as bad as the worst
of what it entails, so that nothing runs that did not run before.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import structs

from attractor_nb.model.diagnostic import Diagnostic, Severity
from attractor_nb.model.graph import Edge, Graph
from attractor_nb.model.vocabulary.attribute_table import AttrValue, Scope
from attractor_nb.model.vocabulary.attributes import attribute, coerce

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    RepairedGraph = Callable[[Graph], Graph]
    """Gives the graph without the slip."""

MAX_MENDED: Final = 100
"""Slips that are mended, each by a look at the whole graph; what more of them entail stays beside them."""
MAX_APART: Final = 8
"""Slips that are mended one by one to tell which consequence is whose; of more the first has them all."""
_WORST_FIRST: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)


class Misspelling(NamedTuple):
    """A finding that knows what was meant."""

    finding: Diagnostic
    meant: RepairedGraph  #: Gives the graph without the slip.


def without_consequences(
    found: Sequence[Diagnostic],
    slips: Sequence[Misspelling],
    graph: Graph,
    diagnose: Callable[[Graph], Iterable[Diagnostic]],
) -> list[Diagnostic]:
    """The findings without those that would be gone if the slips were mended.

    Args:
        found: All findings.
        slips: Those that know what was meant.
        diagnose: What the rules find in a graph.
    """
    causes = {_key(slip.finding) for slip in slips}
    others = [each for each in found if _key(each) not in causes]
    if not others:
        return list(found)
    mended = graph
    for slip in slips[:MAX_MENDED]:
        mended = slip.meant(mended)
    left = {_key(each) for each in diagnose(mended)}
    entailed = [each for each in others if _key(each) not in left]
    if not entailed:
        return list(found)
    owners = _owners(entailed, slips, graph, diagnose)
    gone = {_key(each) for each in entailed}
    return [_as_bad(each, owners.get(_key(each), ())) for each in found if _key(each) not in gone]


def _owners(
    entailed: Sequence[Diagnostic],
    slips: Sequence[Misspelling],
    graph: Graph,
    diagnose: Callable[[Graph], Iterable[Diagnostic]],
) -> dict[Hashable, list[Diagnostic]]:
    """The consequences of each slip; those that several entail together are the first one's."""
    owners: dict[Hashable, list[Diagnostic]] = {_key(slip.finding): [] for slip in slips}
    left_over = list(entailed)
    if 1 < len(slips) <= MAX_APART:
        for slip in slips:
            left = {_key(each) for each in diagnose(slip.meant(graph))}
            owners[_key(slip.finding)] += [each for each in left_over if _key(each) not in left]
            left_over = [each for each in left_over if _key(each) in left]
    owners[_key(slips[0].finding)] += left_over
    return owners


def _as_bad(cause: Diagnostic, entailed: Sequence[Diagnostic]) -> Diagnostic:
    """A cause with the severity of the worst that it entails, which it then tells."""
    worst = min(entailed, key=lambda each: _WORST_FIRST.index(each.severity), default=cause)
    if _WORST_FIRST.index(worst.severity) >= _WORST_FIRST.index(cause.severity):
        return cause
    so = " As it stands, " if cause.message.endswith("?") else "; as it stands, "
    return replace(cause, severity=worst.severity, message=f"{cause.message}{so}{worst.message}")


def _key(found: Diagnostic) -> Hashable:
    """The identity of a finding, whatever its node or edge is called after the misspelling."""
    if found.span is None:
        return found.rule, found.message
    place = found.span.outermost()
    return found.rule, place.start, place.end


def with_ends(name: str, meant: str) -> RepairedGraph:
    """Edges that name a node otherwise."""

    def end(found: str) -> str:
        return meant if found == name else found

    def mend(graph: Graph) -> Graph:
        edges = [
            structs.replace(edge, source=end(edge.source), target=end(edge.target))
            if name in {edge.source, edge.target}
            else edge
            for edge in graph.edges
        ]
        return replace(graph, edges=tuple(edges))

    return mend


def with_node_named(name: str, meant: str) -> RepairedGraph:
    """A node with another id; the edges stay."""

    def mend(graph: Graph) -> Graph:
        nodes = {
            (meant if node_id == name else node_id): structs.replace(node, id=meant) if node_id == name else node
            for node_id, node in graph.nodes.items()
        }
        return replace(graph, nodes=nodes)

    return mend


def with_edge(source: str, target: str) -> RepairedGraph:
    """One edge more."""
    return lambda graph: replace(graph, edges=(*graph.edges, Edge(source, target)))


def with_attribute_named(scope: Scope, name: str, meant: str) -> RepairedGraph:
    """An attribute under another name, wherever it is in a scope."""

    def renamed(attrs: Mapping[str, AttrValue]) -> Mapping[str, AttrValue] | None:
        if name not in attrs or meant in attrs:
            return None
        spec, value = attribute(scope, meant), attrs[name]
        typed = None if spec is None else coerce(spec, value)
        kept = {key: each for key, each in attrs.items() if key != name}
        return MappingProxyType({**kept, meant: value if typed is None else typed})

    return _each(scope, renamed)


def with_value(scope: Scope, name: str, written: AttrValue, meant: str) -> RepairedGraph:
    """Another value of an attribute, wherever it is in a scope."""

    def valued(attrs: Mapping[str, AttrValue]) -> Mapping[str, AttrValue] | None:
        return MappingProxyType({**attrs, name: meant}) if attrs.get(name) == written else None

    return _each(scope, valued)


def _each(scope: Scope, change: Callable[[Mapping[str, AttrValue]], Mapping[str, AttrValue] | None]) -> RepairedGraph:
    """The graph with the attributes of all things of a scope changed that a function changes."""

    def mend(graph: Graph) -> Graph:
        if scope is Scope.GRAPH:
            changed = change(graph.attrs)
            return graph if changed is None else replace(graph, attrs=changed)
        if scope is Scope.EDGE:
            edges = [
                edge if (changed := change(edge.attrs)) is None else structs.replace(edge, attrs=changed)
                for edge in graph.edges
            ]
            return replace(graph, edges=tuple(edges))
        nodes = {
            node_id: node if (changed := change(node.attrs)) is None else structs.replace(node, attrs=changed)
            for node_id, node in graph.nodes.items()
        }
        return replace(graph, nodes=nodes)

    return mend
