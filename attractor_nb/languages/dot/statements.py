"""Statements of nodes and edges: finding one, and making one for what only a chain has (ruling 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attractor_nb.errors import OptionError
from attractor_nb.languages.dot.edits import apply_edits
from attractor_nb.languages.dot.lower import lower
from attractor_nb.languages.dot.parser import parse_syntax
from attractor_nb.languages.dot.placing import Page, placed_statements
from attractor_nb.languages.dot.syntax import Defaults, EdgeStatement, GraphDeclaration, NodeStatement
from attractor_nb.model.vocabulary.attribute_kinds import Scope
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.languages.dot.syntax import DotTree, SubgraphStatement


def node_statements(tree: DotTree, node_id: str) -> list[NodeStatement]:
    """The statements that declare a node, in source order."""
    return [part for part, _ in placed_statements(tree) if isinstance(part, NodeStatement) and part.id.text == node_id]


def declare_node(tree: DotTree, node_id: str) -> str:
    """The text in which a node that only edges name has a statement of its own, and all else that it had.

    It stands where the node is first named. Of a group with a name or attributes it would become a member: it
    stands before that, unless it inherits what only the group has.
    """
    page, before = Page(tree), lower(tree).nodes.get(node_id)
    for statement, groups in placed_statements(tree):
        if isinstance(statement, EdgeStatement) and node_id in {name.text for name in statement.ids}:
            outer = next((group for group in groups if _is_remembered(group)), statement)
            text = apply_edits(tree.source, [page.insert_before(outer, node_id)])
            if before is None or lower(reread(tree, text)).nodes[node_id].attrs == before.attrs:
                return text
            return apply_edits(tree.source, [page.insert_before(statement, node_id)])
    raise OptionError(f'there is no node "{node_id}"', hint="add it first")


def keeping(tree: DotTree, change: Callable[[DotTree], str], *, gone: tuple[str, ...] = ()) -> str:
    """The text after a change, with every node that it was not to take.

    A node that edges alone name is taken for a slip of one that is declared under nearly its name (ruling 4):
    it is declared first.

    Args:
        tree: The tree.
        change: Gives the text after the change, of any tree.
        gone: The nodes that it is to take.
    """
    before = lower(tree).nodes
    while True:
        text = change(tree)
        after = lower(reread(tree, text)).nodes
        lost = next((node_id for node_id in before if node_id not in after and node_id not in gone), None)
        if lost is None or node_statements(tree, lost):
            return text
        tree = reread(tree, declare_node(tree, lost))


def reread(tree: DotTree, text: str) -> DotTree:
    """The tree of the text that a first edit left, for the next one."""
    if text == tree.source.text:
        return tree
    return parse_syntax(SourceText(text, tree.source.name, tree.source.first_line))


def _is_remembered(group: SubgraphStatement) -> bool:
    """Whether the graph has the group as one, and not only as a scope of defaults."""
    return group.id is not None or any(
        isinstance(part, GraphDeclaration) or (isinstance(part, Defaults) and part.scope == Scope.GRAPH)
        for part in group.body
    )


class ChainLink(NamedTuple):
    """The arrow behind ``statement.ids[at]``."""

    statement: EdgeStatement
    at: int

    @property
    def is_alone(self) -> bool:
        """Whether it is all that its statement says."""
        return len(self.statement.ids) == 2


def link_at(tree: DotTree, position: int) -> ChainLink:
    """The link that is the edge at a position of ``Graph.edges``."""
    left = position
    for statement, _ in placed_statements(tree):
        if isinstance(statement, EdgeStatement):
            links = len(statement.ids) - 1
            if 0 <= left < links:
                return ChainLink(statement, left)
            left -= links
    raise OptionError(f"the graph has no edge number {position}", hint="edges count from 0, in source order")


def detached(tree: DotTree, position: int) -> str:
    """The text in which an edge is a statement of its own; the rest of its chain stands around it."""
    link = link_at(tree, position)
    return tree.source.text if link.is_alone else _split(tree, link, is_kept=True)


def without_edge(tree: DotTree, position: int) -> str:
    """The text without an edge; a chain is parted there. Attributes of the chain stay on both parts."""
    link = link_at(tree, position)
    page = Page(tree)
    statement, at = link
    if link.is_alone:
        return apply_edits(tree.source, [page.remove(statement)])
    ids = statement.ids
    if at == 0:
        return apply_edits(tree.source, [page.replace(ids[0].start, ids[1].start, "")])
    if at == len(ids) - 2:
        return apply_edits(tree.source, [page.replace(ids[-2].end, ids[-1].end, "")])
    return _split(tree, link, is_kept=False)


def _split(tree: DotTree, link: ChainLink, *, is_kept: bool) -> str:
    """Part a chain at a link; every comment in it stays on the part that it stands in."""
    page = Page(tree)
    statement, at = link
    ids, text = statement.ids, page.text
    last = len(ids) - 1
    block = "" if statement.block is None else text[ids[-1].end : statement.block.end]
    bounds = [(0, at), *([(at, at + 1)] if is_kept else []), (at + 1, last)]
    parts = [text[ids[first].start : ids[end].end] for first, end in bounds if first < end]
    joint = f"{block}{page.separator_before(statement)}"
    return apply_edits(tree.source, [page.replace(statement.start, ids[-1].end, joint.join(parts))])
