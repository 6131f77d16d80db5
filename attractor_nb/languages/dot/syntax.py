"""The syntax tree of a DOT text: what was written, in order, with every offset.

Offsets are pairs of integers; ``DotTree.span`` turns a pair into a span on demand. Values are
kept as written: ``literals`` reads them, ``lower`` says what the statements mean. The tree knows nothing
of defaults, scopes or types.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from attractor_nb.model.vocabulary.attributes import AttrSpan

if TYPE_CHECKING:
    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.source import SourceText, Span


class Placed(Protocol):
    """Anything with a start and an end in the text."""

    @property
    def start(self) -> int:
        """Offset of the first character."""
        ...

    @property
    def end(self) -> int:
        """Offset after the last character."""
        ...


class Attr(NamedTuple):
    """One ``name = value``."""

    name: str  #: The name, without quotes.
    literal: str  #: The value as written, quotes and escapes included.
    start: int  #: Position at which the name begins.
    name_end: int  #: Position at which the name, quotes included, ends.
    value_start: int  #: Position at which the value begins.
    end: int  #: Position at which the value ends.


class Name(NamedTuple):
    """An id or a graph's name: its text without quotes, and its place with them."""

    text: str
    start: int
    end: int


class Block(NamedTuple):
    """An attribute block ``[ ... ]``."""

    attrs: tuple[Attr, ...]
    start: int
    end: int


class Comment(NamedTuple):
    """A comment as written: ``// ...``, ``/* ... */`` or ``# ...``."""

    text: str
    start: int
    end: int


class Defaults(NamedTuple):
    """``graph [...]``, ``node [...]`` or ``edge [...]``; ``scope`` is that word."""

    scope: str
    block: Block
    start: int
    end: int


class GraphDeclaration(NamedTuple):
    """A top-level ``name = value``."""

    attr: Attr
    start: int
    end: int


class NodeStatement(NamedTuple):
    """``id [...]``."""

    id: Name
    block: Block | None
    start: int
    end: int


class EdgeStatement(NamedTuple):
    """``a -> b -> c [...]``: at least two ids."""

    ids: tuple[Name, ...]
    block: Block | None
    start: int
    end: int


class SubgraphStatement(NamedTuple):
    """``subgraph id { ... }``, ``subgraph { ... }`` or ``{ ... }``."""

    id: Name | None  #: Its id, or None.
    body: tuple[Statement, ...]  #: Its statements.
    start: int  #: Position at which it begins.
    body_start: int  #: Offset of its opening brace.
    end: int  #: After its closing brace.


Gap = tuple[Attr, int | None, Attr]
"""Attributes that no comma separates: the one before, the offset of a semicolon or None, the one after."""
Statement = Defaults | GraphDeclaration | NodeStatement | EdgeStatement | SubgraphStatement


@dataclass(frozen=True, slots=True)
class DotTree:
    """A whole DOT text."""

    source: SourceText = field(repr=False)  #: The text.
    name: Name | None  #: The graph's name, or None.
    body: tuple[Statement, ...]  #: Its statements.
    body_start: int  #: Offset of the opening brace.
    end: int  #: After the closing brace.
    comments: tuple[Comment, ...] = ()  #: All comments, in order.
    notices: tuple[Diagnostic, ...] = ()  #: Notices about syntax outside the subset that was read (rulings 1 and 3).

    def span(self, part: Placed) -> Span:
        """The span of a part of the tree."""
        return self.source.span(part.start, part.end)


# The statement or attribute that a comment belongs to.
#
# A comment on the line where a part ends trails it; any other one leads the next part, be it the closing
# bracket. A comment in the middle of a statement's head leads that statement.


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
    """The offsets at which the parts of a tree begin and end that comments may belong to."""

    def __init__(self, tree: DotTree) -> None:
        self._starts = [tree.end - 1]
        self._ends = [tree.body_start + 1]
        self._heads: list[tuple[int, int]] = []
        self._add_body(tree.body)
        self._starts.sort()
        self._ends.sort()
        self._heads.sort()

    def head_around(self, offset: int) -> int | None:
        """The beginning of the statement in whose head an offset lies, or None."""
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


# The spans of attributes, as a mapping that makes each span at its lookup.


class AttrSpans(Mapping[str, AttrSpan]):
    """Spans by canonical attribute name."""

    __slots__ = ("_source", "_written")

    def __init__(self, source: SourceText, written: Mapping[str, Attr]) -> None:
        self._source = source
        self._written = written

    def __getitem__(self, name: str) -> AttrSpan:
        attr = self._written[name]
        return AttrSpan(self._source.span(attr.start, attr.name_end), self._source.span(attr.value_start, attr.end))

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)

    def __repr__(self) -> str:
        return f"AttrSpans({', '.join(self._written)})"
