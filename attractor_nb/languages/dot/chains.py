"""Edges as the links of written chains: finding one, making it a statement of its own, taking it out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attractor_nb.errors import OptionError
from attractor_nb.languages.dot.edits import apply_edits
from attractor_nb.languages.dot.placing import Page, standing
from attractor_nb.languages.dot.syntax import EdgeStatement

if TYPE_CHECKING:
    from attractor_nb.languages.dot.syntax import DotTree


class ChainLink(NamedTuple):
    """The arrow behind ``statement.ids[at]``."""

    statement: EdgeStatement
    at: int

    @property
    def is_alone(self) -> bool:
        """Whether it is all that its statement says."""
        return len(self.statement.ids) == 2


def link_at(tree: DotTree, position: int) -> ChainLink:
    """The link that is the edge at a position of ``Graph.edges``.

    Raises:
        OptionError: There is no such edge.
    """
    left = position
    for statement, _ in standing(tree):
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
