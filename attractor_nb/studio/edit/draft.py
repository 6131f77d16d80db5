"""One change of a pipeline's text: which thing of the graph is meant, and the text after it (pure)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import AttractorError, OptionError, StylesheetSyntaxError
from attractor_nb.languages.condition import parse_condition
from attractor_nb.languages.dot import apply_edits, embed_value, parse_dot
from attractor_nb.languages.dot.attribute_edits import (
    remove_edge_attribute,
    remove_graph_attribute,
    remove_node_attribute,
    set_edge_attribute,
    set_graph_attribute,
    set_node_attribute,
)
from attractor_nb.languages.dot.statements import reread
from attractor_nb.languages.dot.structure_edits import rename_node
from attractor_nb.languages.stylesheet import SelectorKind, parse_stylesheet
from attractor_nb.model.diagnostic import TextEdit
from attractor_nb.model.nearest_name import did_you_mean
from attractor_nb.model.text_files import named_file
from attractor_nb.model.vocabulary.attribute_kinds import AttrType, Scope
from attractor_nb.model.vocabulary.attributes import attribute, coerce
from attractor_nb.model.vocabulary.variables import NAMING_ATTRIBUTES, stages_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.languages.dot import DotTree
    from attractor_nb.model.graph import Graph
    from attractor_nb.model.vocabulary.attributed import Attributed
    from attractor_nb.source import Span

Target = str | int | tuple[str, str] | tuple[str, str, int]
"""What a change is made on: "" for the graph, a node's id, "a -> b" or ("a", "b") for the first such edge,
("a", "b", 1) for the second, or an edge's position."""

STYLESHEET: Final = "model_stylesheet"
_EDGE: Final = re.compile(r"\s*(\w+)\s*->\s*(\w+)\s*\Z")


@dataclass(frozen=True, slots=True)
class EditTarget:
    """The thing that a target means."""

    scope: Scope  #: Graph, node or edge.
    node_id: str = ""
    position: int = -1  #: The edge's place in ``Graph.edges``, if it is one.

    def thing(self, graph: Graph) -> Attributed:
        """The thing itself."""
        if self.scope is Scope.NODE:
            return graph.nodes[self.node_id]
        return graph if self.scope is Scope.GRAPH else graph.edges[self.position]


def find_place(graph: Graph, target: object) -> EditTarget:
    """What a target means."""
    if target == "":
        return EditTarget(Scope.GRAPH)
    if isinstance(target, int) and not isinstance(target, bool):
        if 0 <= target < len(graph.edges):
            return EditTarget(Scope.EDGE, position=target)
        raise OptionError(f"the graph has no edge number {target}", hint=f"it has {len(graph.edges)}, from 0 on")
    if isinstance(target, str) and "->" not in target:
        if target in graph.nodes:
            return EditTarget(Scope.NODE, target)
        raise OptionError(f'there is no node "{target}"{did_you_mean(target, graph.nodes)}')
    return _edge_place(graph, target)


def _edge_place(graph: Graph, target: object) -> EditTarget:
    found = _EDGE.match(target) if isinstance(target, str) else None
    match found.groups() if found else target:
        case (str(source), str(goal)):
            number = 0
        case (str(source), str(goal), int(number)):
            pass
        case _:
            raise OptionError(
                f"{target!r} names nothing of a graph", hint='name a node "plan", or an edge "plan -> done"'
            )
    same = [at for at, edge in enumerate(graph.edges) if (edge.source, edge.target) == (source, goal)]
    if not 0 <= number < len(same):
        leaving = [f"{source} -> {edge.target}" for edge in graph.outgoing_edges(source)]
        hint = f"its edges: {', '.join(leaving)}" if leaving else f"no edge leaves {source}"
        raise OptionError(f"there is no edge {source} -> {goal}", hint=hint)
    return EditTarget(Scope.EDGE, position=same[number])


def with_attributes(tree: DotTree, place: EditTarget, attrs: Mapping[str, object]) -> str:
    """The text with attributes set; those that are None removed."""
    for name, value in attrs.items():
        match place.scope:
            case Scope.NODE if value is None:
                text = remove_node_attribute(tree, place.node_id, name)
            case Scope.NODE:
                text = set_node_attribute(tree, place.node_id, name, value)
            case Scope.EDGE if value is None:
                text = remove_edge_attribute(tree, place.position, name)
            case Scope.EDGE:
                text = set_edge_attribute(tree, place.position, name, value)
            case _ if value is None:
                text = remove_graph_attribute(tree, name)
            case _:
                text = set_graph_attribute(tree, name, value)
        tree = reread(tree, text)
    return tree.source.text


def renamed(tree: DotTree, old: str, new: str) -> str:
    """The text in which a node has another id, also where the stylesheet selects it or a prompt names it."""
    tree = reread(tree, rename_node(tree, old, new))
    graph = parse_dot(tree.source)
    edits = {TextEdit(span, f"#{new}") for span in _selectors(graph, old)}
    edits |= {TextEdit(span, new) for span in _variables(graph, old)}
    return apply_edits(tree.source, sorted(edits, key=lambda edit: edit.span.start))


def _selectors(graph: Graph, node_id: str) -> Iterator[Span]:
    """Where the stylesheet selects a node by its id."""
    written = graph.attr_spans.get(STYLESHEET)
    if written is None:
        return
    try:
        sheet = parse_stylesheet(embed_value(written.value))
    except StylesheetSyntaxError:  # lint reports it; nobody knows what it selects
        return
    for rule in sheet.rules:
        if rule.selector.kind is SelectorKind.ID and rule.selector.name == node_id and rule.selector.span:
            yield rule.selector.span.outermost()


def _variables(graph: Graph, node_id: str) -> Iterator[Span]:
    """Where texts name what a node leaves; a default block's once for each node that has it from there."""
    for node in graph.nodes.values():
        for name in NAMING_ATTRIBUTES:
            written = node.attr_spans.get(name)
            if written is None or "$" not in written.value.text:
                continue
            source = embed_value(written.value)
            for start, end in stages_named(source.text):
                if source.text[start:end] == node_id:
                    yield source.span(start, end).outermost()


def value_problem(scope: Scope, name: str, text: str) -> str:
    """What is wrong with a value while it is being typed; empty when nothing is."""
    row = attribute(scope, name)
    try:
        if (scope, name) == (Scope.EDGE, "condition") and text.strip():
            parse_condition(text)
        if (scope, name) == (Scope.GRAPH, STYLESHEET) and named_file(text) is None:
            parse_stylesheet(text)
    except AttractorError as error:
        return str(error)
    if row is None or not text:
        return ""
    if coerce(row, text) is None:
        return f"this is no {row.type.value}"
    if row.type is AttrType.CHOICE and text not in row.choices:
        return f"one of {', '.join(row.choices)}"
    return ""
