"""Ids that stand side by side on a line: legal, two statements, and most often an arrow too few."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from attractor_nb.languages.dot.parser import parse_syntax
from attractor_nb.languages.dot.syntax import EdgeStatement, Name, NodeStatement, SubgraphStatement

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attractor_nb.languages.dot.syntax import Statement
    from attractor_nb.source import SourceText


class Arrowless(NamedTuple):
    """Two ids with one blank between them."""

    source: Name  #: The last id of a statement without attributes.
    target: Name  #: The first id of the statement after it.


def arrowless(source: SourceText) -> list[Arrowless]:
    """All such places where one of the two statements is an edge, in source order.

    >>> from attractor_nb.source import SourceText
    >>> [(gap.source.text, gap.target.text) for gap in arrowless(SourceText("digraph { a b -> c d }"))]
    [('a', 'b'), ('c', 'd')]
    """
    return list(_in(parse_syntax(source).body, source.text))


def _in(body: Sequence[Statement], text: str) -> Iterator[Arrowless]:
    for statement in body:
        if isinstance(statement, SubgraphStatement):
            yield from _in(statement.body, text)
    for before, after in pairwise(body):
        if not isinstance(before, NodeStatement | EdgeStatement) or before.block is not None:
            continue
        if not isinstance(after, NodeStatement | EdgeStatement):
            continue
        last = before.id if isinstance(before, NodeStatement) else before.ids[-1]
        first = after.id if isinstance(after, NodeStatement) else after.ids[0]
        has_edge = isinstance(before, EdgeStatement) or isinstance(after, EdgeStatement)
        if has_edge and text[last.end : first.start] == " ":  # two blanks are a way to separate statements
            yield Arrowless(last, first)
