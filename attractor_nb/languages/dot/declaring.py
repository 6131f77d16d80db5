"""The statements that declare a node, and making one for a node that only edges name (ruling 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.errors import OptionError
from attractor_nb.languages.dot.edits import apply_edits
from attractor_nb.languages.dot.lower import lower
from attractor_nb.languages.dot.parser import parse_syntax
from attractor_nb.languages.dot.placing import Page, standing
from attractor_nb.languages.dot.syntax import Defaults, EdgeStatement, GraphDeclaration, NodeStatement
from attractor_nb.model.attributes import Scope
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.languages.dot.syntax import DotTree, SubgraphStatement


def node_statements(tree: DotTree, node_id: str) -> list[NodeStatement]:
    """The statements that declare a node, in source order."""
    return [part for part, _ in standing(tree) if isinstance(part, NodeStatement) and part.id.text == node_id]


def declare_node(tree: DotTree, node_id: str) -> str:
    """The text in which a node that only edges name has a statement of its own, and all else that it had.

    It stands where the node is first named. Of a group with a name or attributes it would become a member: it
    stands before that, unless it inherits what only the group has.

    Raises:
        OptionError: No edge names it.
    """
    page, before = Page(tree), lower(tree).nodes.get(node_id)
    for statement, groups in standing(tree):
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
