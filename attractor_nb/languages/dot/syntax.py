"""The syntax tree of a DOT text: what was written, in order, with every offset.

Offsets are pairs of integers; ``DotTree.span`` turns a pair into a span when somebody asks. Values are
kept as written: ``literals`` reads them, ``lower`` says what the statements mean. The tree knows nothing
of defaults, scopes or types.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

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
    start: int  #: Where the name begins.
    name_end: int  #: Where the name, quotes included, ends.
    value_start: int  #: Where the value begins.
    end: int  #: Where the value ends.


class Name(NamedTuple):
    """An id or a graph's name: its text without quotes, and where it stands with them."""

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
    start: int  #: Where it begins.
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
    notices: tuple[Diagnostic, ...] = ()  #: What was read although the subset does not have it (rulings 1 and 3).

    def span(self, part: Placed) -> Span:
        """Where a part of the tree stands."""
        return self.source.span(part.start, part.end)
