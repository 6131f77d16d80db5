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
    """One ``name = value``.

    Attributes:
        name: The name, without quotes.
        literal: The value as written, quotes and escapes included.
        start: Where the name begins.
        name_end: Where the name, quotes included, ends.
        value_start: Where the value begins.
        end: Where the value ends.
    """

    name: str
    literal: str
    start: int
    name_end: int
    value_start: int
    end: int


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
    """``subgraph id { ... }``, ``subgraph { ... }`` or ``{ ... }``.

    Attributes:
        id: Its id, or None.
        body: Its statements.
        start: Where it begins.
        body_start: Offset of its opening brace.
        end: After its closing brace.
    """

    id: Name | None
    body: tuple[Statement, ...]
    start: int
    body_start: int
    end: int


Gap = tuple[Attr, int | None, Attr]
"""Attributes that no comma separates: the one before, the offset of a semicolon or None, the one after."""
Statement = Defaults | GraphDeclaration | NodeStatement | EdgeStatement | SubgraphStatement


@dataclass(frozen=True, slots=True)
class DotTree:
    """A whole DOT text.

    Attributes:
        source: The text.
        name: The graph's name, or None.
        body: Its statements.
        body_start: Offset of the opening brace.
        end: After the closing brace.
        comments: All comments, in order.
        notices: What was read although the subset does not have it (rulings 1 and 3).
    """

    source: SourceText = field(repr=False)
    name: Name | None
    body: tuple[Statement, ...]
    body_start: int
    end: int
    comments: tuple[Comment, ...] = ()
    notices: tuple[Diagnostic, ...] = ()

    def span(self, part: Placed) -> Span:
        """Where a part of the tree stands."""
        return self.source.span(part.start, part.end)
