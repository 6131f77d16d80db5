"""Setting and removing one attribute of a graph, node or edge: the text after it (pure).

What the text says elsewhere keeps every character. A value replaces the one that counts, wherever that
stands; a new one joins the attributes of the first statement that has some. Removing takes out all that the
thing itself says of it, so that what it inherits shows again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.errors import OptionError
from attractor_nb.languages.dot.edits import apply_edits
from attractor_nb.languages.dot.literals import is_attribute_name
from attractor_nb.languages.dot.placing import Page
from attractor_nb.languages.dot.respelling import spelled
from attractor_nb.languages.dot.statements import declare_node, detached, keeping, link_at, node_statements, reread
from attractor_nb.languages.dot.syntax import Defaults, EdgeStatement, GraphDeclaration, NodeStatement
from attractor_nb.languages.dot.typing_rules import readings
from attractor_nb.model.vocabulary.attribute_kinds import Scope

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attractor_nb.languages.dot.syntax import Attr, DotTree
    from attractor_nb.model.diagnostic import TextEdit

Holder = NodeStatement | EdgeStatement | Defaults | GraphDeclaration


def set_graph_attribute(tree: DotTree, name: str, value: object) -> str:
    """The text with an attribute of the graph set."""
    _check_name(name)
    if found := _attributes_named(_of_graph(tree), Scope.GRAPH, name):
        return _replaced(tree, Scope.GRAPH, found[-1][1], value)
    return apply_edits(tree.source, [*_new_on_graph(tree, name, spelled(Scope.GRAPH, name, value))])


def remove_graph_attribute(tree: DotTree, name: str) -> str:
    """The text without an attribute of the graph."""
    _check_present(_attributes_named(_of_graph(tree), Scope.GRAPH, name), f"the graph has no attribute {name}")
    while found := _attributes_named(_of_graph(tree), Scope.GRAPH, name):
        tree = reread(tree, apply_edits(tree.source, _removal(tree, *found[-1])))
    return tree.source.text


def set_node_attribute(tree: DotTree, node_id: str, name: str, value: object) -> str:
    """The text with an attribute of a node set, also where it inherits one or only edges name it."""
    _check_name(name)
    if not node_statements(tree, node_id):
        tree = reread(tree, keeping(tree, lambda tree: declare_node(tree, node_id)))
    statements = node_statements(tree, node_id)
    if found := _attributes_named(statements, Scope.NODE, name):
        return _replaced(tree, Scope.NODE, found[-1][1], value)
    holder = next((part for part in statements if part.block and part.block.attrs), statements[0])
    return _added(tree, holder, Scope.NODE, name, value)


def remove_node_attribute(tree: DotTree, node_id: str, name: str) -> str:
    """The text without an attribute of a node; what it inherits counts again."""
    problem = f"{node_id} itself has no attribute {name}"
    _check_present(_attributes_named(node_statements(tree, node_id), Scope.NODE, name), problem)
    while found := _attributes_named(node_statements(tree, node_id), Scope.NODE, name):
        tree = reread(tree, apply_edits(tree.source, _removal(tree, *found[-1])))
    return tree.source.text


def set_edge_attribute(tree: DotTree, position: int, name: str, value: object) -> str:
    """The text with an attribute of one edge set; a chain is parted so that its other edges keep theirs."""
    _check_name(name)
    tree = reread(tree, detached(tree, position))
    statement = link_at(tree, position).statement
    if found := _attributes_named([statement], Scope.EDGE, name):
        return _replaced(tree, Scope.EDGE, found[-1][1], value)
    return _added(tree, statement, Scope.EDGE, name, value)


def remove_edge_attribute(tree: DotTree, position: int, name: str) -> str:
    """The text without an attribute of one edge; a chain is parted so that its other edges keep theirs."""
    statement = link_at(tree, position).statement
    problem = f"the edge itself has no attribute {name}"
    _check_present(_attributes_named([statement], Scope.EDGE, name), problem)
    tree = reread(tree, detached(tree, position))
    while found := _attributes_named([link_at(tree, position).statement], Scope.EDGE, name):
        tree = reread(tree, apply_edits(tree.source, _removal(tree, *found[-1])))
    return tree.source.text


def _of_graph(tree: DotTree) -> list[Holder]:
    """The statements that say attributes of the graph itself."""
    return [
        part
        for part in tree.body
        if isinstance(part, GraphDeclaration) or (isinstance(part, Defaults) and part.scope == Scope.GRAPH)
    ]


def _attributes_named(holders: Iterable[Holder], scope: Scope, name: str) -> list[tuple[Holder, Attr]]:
    """Where statements say an attribute, under any of its names; the last one counts."""
    known = readings(scope)

    def canonical(written: str) -> str:
        return known[written][0] if written in known else written

    wanted = canonical(name)
    return [(holder, attr) for holder in holders for attr in _attrs(holder) if canonical(attr.name) == wanted]


def _attrs(holder: Holder) -> Sequence[Attr]:
    if isinstance(holder, GraphDeclaration):
        return (holder.attr,)
    return holder.block.attrs if holder.block is not None else ()


def _replaced(tree: DotTree, scope: Scope, attr: Attr, value: object) -> str:
    literal = spelled(scope, attr.name, value, attr.literal)
    return apply_edits(tree.source, [Page(tree).replace(attr.value_start, attr.end, literal)])


def _added(tree: DotTree, holder: NodeStatement | EdgeStatement, scope: Scope, name: str, value: object) -> str:
    pair = f"{name}={spelled(scope, name, value)}"
    return apply_edits(tree.source, Page(tree).add_attribute(holder.block, holder.end, pair))


def _new_on_graph(tree: DotTree, name: str, literal: str) -> list[TextEdit]:
    """A first mention: in the graph's block, else below its declarations, else in a block of its own."""
    page, parts = Page(tree), _of_graph(tree)
    block = next((part.block for part in parts if isinstance(part, Defaults)), None)
    if block is not None:
        return page.add_attribute(block, block.end, f"{name}={literal}")
    if parts and isinstance(last := parts[-1], GraphDeclaration):
        sign = tree.source.text[last.attr.name_end : last.attr.value_start]
        return [page.insert_after(last, f"{name}{sign if sign.strip(' ') == '=' else '='}{literal}")]
    text = f"graph [{name}={literal}]"
    return [page.insert_before(tree.body[0], text) if tree.body else page.insert_last(text)]


def _removal(tree: DotTree, holder: Holder, attr: Attr) -> list[TextEdit]:
    page = Page(tree)
    if isinstance(holder, GraphDeclaration):
        return [page.remove(holder)]
    assert holder.block is not None, "it says an attribute"
    if isinstance(holder, Defaults) and len(holder.block.attrs) == 1:
        return [page.remove(holder)]
    return page.remove_attribute(holder, holder.block, attr)


def _check_present(found: Sequence[object], problem: str) -> None:
    if not found:
        raise OptionError(problem, hint="an inherited attribute can only be overridden: set it")


def _check_name(name: str) -> None:
    if not is_attribute_name(name):
        raise OptionError(
            f'"{name}" cannot name an attribute', hint="use letters, digits and underscores, with dots between"
        )
