"""Adding, removing and renaming nodes, adding and removing edges: the text after it (pure).

A node that only edges name (ruling 4) is a node only as long as they do. Where a change would make one vanish
that was not named, it is declared first, just where it is first named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.errors import OptionError
from attractor_nb.languages.dot.attribute_edits import (
    Page,
    PlacedStatement,
    keeping,
    link_at,
    node_statements,
    placed_statements,
    reread,
    without_edge,
)
from attractor_nb.languages.dot.edits import apply_edits
from attractor_nb.languages.dot.lower import lower
from attractor_nb.languages.dot.respelling import spelled
from attractor_nb.languages.dot.syntax import (
    Attr,
    Defaults,
    DotTree,
    EdgeStatement,
    GraphDeclaration,
    Name,
    NodeStatement,
)
from attractor_nb.languages.dot.writer import is_identifier, is_quoted, quote, text_of
from attractor_nb.model.diagnostic import TextEdit
from attractor_nb.model.texts import did_you_mean
from attractor_nb.model.vocabulary.attribute_table import AttrType, Scope
from attractor_nb.model.vocabulary.attributes import attribute

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from attractor_nb.source import Span


def add_node(tree: DotTree, node_id: str, attrs: Mapping[str, object], *, after: str = "") -> str:
    """The text with a new node, behind another one or behind the last that is declared."""
    graph = lower(tree)
    _check_new(node_id, graph.nodes)
    pairs = _pairs(Scope.NODE, attrs)

    def change(tree: DotTree) -> str:
        page = Page(tree)
        place = _place_of_node(tree, after)
        if place is None:
            first = next((part for part in tree.body if isinstance(part, EdgeStatement)), None)
            text = _statement(node_id, pairs)
            edit = page.insert_last(text) if first is None else page.insert_before(first, text)
        else:
            text = _statement(node_id.ljust(max(0, page.column_gap(place) - 1)) if pairs else node_id, pairs)
            edit = page.insert_after(place, text)
        return apply_edits(tree.source, [edit])

    return keeping(tree, change, gone=())


def remove_node(tree: DotTree, node_id: str) -> str:
    """The text without a node, its edges and its place in groups. Attributes that name it stay, for lint."""
    _check_known(node_id, lower(tree).nodes)

    def change(tree: DotTree) -> str:
        while statements := node_statements(tree, node_id):
            tree = reread(tree, apply_edits(tree.source, [Page(tree).remove(statements[-1])]))
        while (position := _last_edge(tree, node_id)) is not None:
            tree = reread(tree, without_edge(tree, position))
        return tree.source.text

    return keeping(tree, change, gone=(node_id,))


def add_edge(tree: DotTree, source: str, target: str, attrs: Mapping[str, object]) -> str:
    """The text with a new edge, behind the last one that leaves the same node."""
    nodes = lower(tree).nodes
    _check_known(source, nodes)
    _check_known(target, nodes)
    text = _statement(f"{source} -> {target}", _pairs(Scope.EDGE, attrs))

    def change(tree: DotTree) -> str:
        page = Page(tree)
        edges = [part for part in tree.body if isinstance(part, EdgeStatement)]
        same = [part for part in edges if source in {name.text for name in part.ids[:-1]}]
        place = (same or edges)[-1] if edges else None
        edit = page.insert_last(text) if place is None else page.insert_after(place, text)
        return apply_edits(tree.source, [edit])

    return keeping(tree, change, gone=())


def remove_edge(tree: DotTree, position: int) -> str:
    """The text without the edge at a position of ``Graph.edges``; its nodes stay."""
    link_at(tree, position)
    return keeping(tree, lambda tree: without_edge(tree, position), gone=())


def rename_node(tree: DotTree, old: str, new: str) -> str:
    """The text in which a node has another id: its statements, its edges, and the attributes that name it.

    Those are the retry targets on graph, nodes and defaults, and ``human.default_choice`` of gates
    with an edge to it.
    """
    nodes = lower(tree).nodes
    _check_known(old, nodes)
    if new == old:
        return tree.source.text
    _check_new(new, nodes)

    def change(tree: DotTree) -> str:
        edits = [TextEdit(at, quote(new) if is_quoted(at.text) else new) for at in mentions(tree, old)]
        return apply_edits(tree.source, edits)

    return keeping(tree, change, gone=(old,))


def mentions(tree: DotTree, node_id: str) -> list[Span]:
    """The places at which a text names a node, in its order: statements, edges, and attributes that name it."""
    before = {edge.source for edge in lower(tree).edges if edge.target == node_id}
    places = [(name.start, name.end) for part in placed_statements(tree) for name in _ids(part) if name.text == node_id]
    places += [
        (attr.value_start, attr.end)
        for scope, attr, owner in _attributes(tree)
        if text_of(attr.literal) == node_id and _names_a_node(scope, attr.name, leads_there=owner in before)
    ]
    return [tree.source.span(start, end) for start, end in sorted(places)]


# -- places ------------------------------------------------------------------------------------------------


def _place_of_node(tree: DotTree, after: str) -> NodeStatement | None:
    """The statement after which a new node is inserted."""
    if after:
        statements = node_statements(tree, after)
        if not statements:
            declared = {part.id.text for part, _ in placed_statements(tree) if isinstance(part, NodeStatement)}
            raise OptionError(
                f'no statement declares "{after}"{did_you_mean(after, declared)}', hint="name a declared node"
            )
        return statements[0]
    return next((part for part in reversed(tree.body) if isinstance(part, NodeStatement)), None)


def _last_edge(tree: DotTree, node_id: str) -> int | None:
    edges = lower(tree).edges
    touching = (at for at in reversed(range(len(edges))) if node_id in {edges[at].source, edges[at].target})
    return next(touching, None)


# -- names -------------------------------------------------------------------------------------------------


def _ids(part: PlacedStatement) -> tuple[Name, ...]:
    statement = part.statement
    if isinstance(statement, NodeStatement):
        return (statement.id,)
    return statement.ids if isinstance(statement, EdgeStatement) else ()


def _attributes(tree: DotTree) -> Iterator[tuple[Scope, Attr, str]]:
    """All attributes of graph and nodes, defaults included: scope, attribute, and whose it is if a node's."""
    for statement, groups in placed_statements(tree):
        if isinstance(statement, NodeStatement):
            for attr in statement.block.attrs if statement.block else ():
                yield Scope.NODE, attr, statement.id.text
        elif isinstance(statement, Defaults) and statement.scope != Scope.EDGE:
            if statement.scope == Scope.NODE or not groups:
                for attr in statement.block.attrs:
                    yield Scope(statement.scope), attr, ""
        elif isinstance(statement, GraphDeclaration) and not groups:
            yield Scope.GRAPH, statement.attr, ""


def _names_a_node(scope: Scope, name: str, *, leads_there: bool) -> bool:
    row = attribute(scope, name)
    if row is not None and row.type is AttrType.NODE_ID:
        return True
    return name == "human.default_choice" and leads_there


# -- words -------------------------------------------------------------------------------------------------


def _pairs(scope: Scope, attrs: Mapping[str, object]) -> list[str]:
    return [f"{name}={spelled(scope, name, value)}" for name, value in attrs.items() if value is not None]


def _statement(head: str, pairs: list[str]) -> str:
    return f"{head} [{', '.join(pairs)}]" if pairs else head


def _check_new(node_id: str, nodes: Mapping[str, object]) -> None:
    if not is_identifier(node_id):
        raise OptionError(
            f'"{node_id}" cannot be a node\'s id',
            hint="use letters, digits and underscores, no digit first; the label may be any text",
        )
    if node_id in nodes:
        raise OptionError(f'a node "{node_id}" already exists', hint="use another id")


def _check_known(node_id: str, nodes: Mapping[str, object]) -> None:
    if node_id not in nodes:
        raise OptionError(f'there is no node "{node_id}"{did_you_mean(node_id, nodes)}', hint="add it first")
