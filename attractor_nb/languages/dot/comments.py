"""Which statement or attribute a comment belongs to.

A comment on the line where something ends trails it; any other one leads what comes next, be it the
closing bracket. A comment in the middle of a statement's head leads that statement.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from attractor_nb.languages.dot.syntax import EdgeStatement, GraphDeclaration, SubgraphStatement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attractor_nb.languages.dot.syntax import Block, Comment, DotTree, Statement


def leading_comments(tree: DotTree) -> dict[int, list[Comment]]:
    """The comments that lead something, by the offset at which that statement, attribute or closing bracket begins."""
    leading: dict[int, list[Comment]] = {}
    if not tree.comments:
        return leading
    anchors = _Anchors(tree)
    for comment in tree.comments:
        if not tree.body_start < comment.start < tree.end:
            continue
        start = anchors.head_around(comment.start)
        if start is None and "\n" in tree.source.text[anchors.end_before(comment.start) : comment.start]:
            start = anchors.start_after(comment.end)
        if start is not None:
            leading.setdefault(start, []).append(comment)
    return leading


class _Anchors:
    """Where the parts of a tree that comments may belong to begin and end."""

    def __init__(self, tree: DotTree) -> None:
        self._starts = [tree.end - 1]
        self._ends = [tree.body_start + 1]
        self._heads: list[tuple[int, int]] = []
        self._add_body(tree.body)
        self._starts.sort()
        self._ends.sort()
        self._heads.sort()

    def head_around(self, offset: int) -> int | None:
        """Where the statement begins in whose head an offset lies, or None."""
        place = bisect_right(self._heads, (offset, 0)) - 1
        if place >= 0 and self._heads[place][0] < offset < self._heads[place][1]:
            return self._heads[place][0]
        return None

    def end_before(self, offset: int) -> int:
        """The last end at or before an offset."""
        return self._ends[bisect_right(self._ends, offset) - 1]

    def start_after(self, offset: int) -> int:
        """The first start at or after an offset."""
        return self._starts[bisect_left(self._starts, offset)]

    def _add_body(self, body: Iterable[Statement]) -> None:
        for statement in body:
            self._starts.append(statement.start)
            self._ends.append(statement.end)
            if isinstance(statement, SubgraphStatement):
                self._heads.append((statement.start, statement.body_start))
                self._ends.append(statement.body_start + 1)
                self._starts.append(statement.end - 1)
                self._add_body(statement.body)
            elif isinstance(statement, GraphDeclaration):
                self._heads.append((statement.start, statement.end))
            elif statement.block is not None:
                self._heads.append((statement.start, statement.block.start))
                self._add_block(statement.block)
            elif isinstance(statement, EdgeStatement):
                self._heads.append((statement.start, statement.end))

    def _add_block(self, block: Block) -> None:
        self._ends.append(block.start + 1)
        self._starts.append(block.end - 1)
        for attr in block.attrs:
            self._starts.append(attr.start)
            self._ends.append(attr.end)
            self._heads.append((attr.start, attr.end))
