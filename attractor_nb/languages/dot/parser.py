"""DOT text to syntax tree, or one ``DotSyntaxError`` with a caret (spec 2.1-2.4, rulings 1-3).

The grammar decides (``grammar.lark``, compiled by lark); the actions here only make tree nodes and note
what was read out of generosity.

Rulings 1 and 3: strict in what we write, generous in what we read. A habit gives one warning a text,
whose fix mends every place.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from attractor_nb.errors import DotSyntaxError
from attractor_nb.languages.dot.lexer import Lexer, Token
from attractor_nb.languages.dot.syntax import (
    Attr,
    Block,
    Comment,
    Defaults,
    DotTree,
    EdgeStatement,
    Gap,
    GraphDeclaration,
    Name,
    NodeStatement,
    Statement,
    SubgraphStatement,
)
from attractor_nb.languages.syntax_trees import load_tables, run_tables
from attractor_nb.lazy_imports import later
from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity, TextEdit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from attractor_nb.languages.dot import mistakes
    from attractor_nb.languages.syntax_trees import Action
    from attractor_nb.source import SourceText, Span
else:
    mistakes = later("attractor_nb.languages.dot.mistakes")


MAX_STATEMENTS: Final = 250_000
"""Most statements of a text: 100,000 nodes with their edges. A megabyte of the shortest ones has
twice as many, each of which costs as much as a long one."""


def parse_syntax(source: SourceText, *, strict: bool = False, text: str | None = None) -> DotTree:
    """Read a DOT text.

    Args:
        source: The text, without a byte order mark.
        strict: Whether attributes without commas are an error and not a warning (ruling 1).
        text: A copy to read in its place, with blanks for statements that are set aside.
    """
    lexer = Lexer(source, is_strict=strict, text=text)

    def refuse(token: Token, before: Token | None) -> DotSyntaxError:
        kind, start, end, _ = token
        braces = [brace for brace in lexer.braces if brace < start]
        return mistakes.structure_mistake(source, (kind, start, end), before[:3] if before else ("START", 0, 0), braces)

    tokens = lexer.tokens()
    return cast("DotTree", run_tables(load_tables("dot"), lambda _: tokens, _Actions(lexer).table(), refuse))


class _Actions:
    """The action of each rule of the grammar; one method a rule, named as the rule is."""

    def __init__(self, lexer: Lexer) -> None:
        self._lexer = lexer
        self._source = lexer.source
        self._bare_braces: list[int] = []
        self._statements_left = MAX_STATEMENTS

    def table(self) -> dict[str, Action]:
        """The actions by rule name."""
        return {name: getattr(self, name) for name in _RULES}

    def nameless_graph(self, v: list[Any]) -> DotTree:
        return self._graph(None, v[1], v[2], v[3])

    def named_graph(self, v: list[Any]) -> DotTree:
        return self._graph(v[1][3], v[2], v[3], v[4])

    def _graph(self, name: Name | None, brace: Token, body: list[Statement], close: Token) -> DotTree:
        lexer, source = self._lexer, self._source
        notices = (
            *(separators(source, gaps) for gaps in lexer.gaps),
            *hash_comments(source, lexer.comments),
            *quoted_ids(source, lexer.quoted_ids),
            *bare_groups(source, sorted(self._bare_braces)),
            *hidden_directions(source),
        )
        return DotTree(source, name, tuple(body), brace[1], close[2], tuple(lexer.comments), notices)

    def no_statements(self, _: list[Any]) -> list[Statement]:
        return []

    def one_more_statement(self, v: list[Any]) -> list[Statement]:
        body, statement = v
        body.append(statement)
        self._statements_left -= 1
        if self._statements_left < 0:
            raise DotSyntaxError(
                f"the text has more than {MAX_STATEMENTS:,} statements",
                self._source.span(statement.start, statement.end),
                hint="split it into several pipelines",
                is_limit=True,
            )
        return body

    def semicolon_after_statement(self, v: list[Any]) -> list[Statement]:
        return v[0]

    def defaults(self, v: list[Any]) -> Defaults:
        word, block = v
        return Defaults(word[0].lower(), block, word[1], block.end)

    def declaration(self, v: list[Any]) -> GraphDeclaration:
        attr: Attr = v[0][3]
        return GraphDeclaration(attr, attr.start, attr.end)

    def subgraph(self, v: list[Any]) -> SubgraphStatement:
        word, brace, body, close = v
        return SubgraphStatement(None, tuple(body), word[1], brace[1], close[2])

    def named_subgraph(self, v: list[Any]) -> SubgraphStatement:
        word, name, brace, body, close = v
        return SubgraphStatement(name[3], tuple(body), word[1], brace[1], close[2])

    def bare_group(self, v: list[Any]) -> SubgraphStatement:
        brace, body, close = v
        self._bare_braces.append(brace[1])
        return SubgraphStatement(None, tuple(body), brace[1], brace[1], close[2])

    def bare_node(self, v: list[Any]) -> NodeStatement:
        name: Name = v[0][3]
        return NodeStatement(name, None, name.start, name.end)

    def node(self, v: list[Any]) -> NodeStatement:
        name: Name = v[0][3]
        block: Block = v[1]
        return NodeStatement(name, block, name.start, block.end)

    def bare_edge(self, v: list[Any]) -> EdgeStatement:
        ids: list[Name] = v[0]
        return EdgeStatement(tuple(ids), None, ids[0].start, ids[-1].end)

    def edge(self, v: list[Any]) -> EdgeStatement:
        ids: list[Name] = v[0]
        block: Block = v[1]
        return EdgeStatement(tuple(ids), block, ids[0].start, block.end)

    def first_link(self, v: list[Any]) -> list[Name]:
        return [v[0][3], v[2][3]]

    def next_link(self, v: list[Any]) -> list[Name]:
        ids: list[Name] = v[0]
        ids.append(v[2][3])
        return ids

    def block(self, v: list[Any]) -> Block:
        return v[1][3]


_RULES = frozenset(name for name in vars(_Actions) if not name.startswith("_")) - {"table"}


_DIRECTION: Final = re.compile("[\u202a-\u202e\u2066-\u2069]+")


def hash_comments(source: SourceText, comments: Iterable[Comment]) -> list[Diagnostic]:
    """Comments that begin with ``#``."""
    hashes = [comment for comment in comments if comment.text.startswith("#")]
    edits = [TextEdit(source.span(comment.start, comment.start + 1), "//") for comment in hashes]
    first = source.span(hashes[0].start, hashes[0].end) if hashes else None
    return _notice("hash_comment", 'comments begin with "//", not "#"', "write comments with //", edits, first)


def quoted_ids(source: SourceText, names: Iterable[Name]) -> list[Diagnostic]:
    """Node and subgraph ids in quotes."""
    edits = [TextEdit(source.span(name.start, name.end), name.text) for name in names]
    first = f'the id "{edits[0].text}" needs no quotes' if edits else ""
    return _notice("quoted_id", first, "write ids without quotes", edits)


def bare_groups(source: SourceText, braces: Iterable[int]) -> list[Diagnostic]:
    """Groups without the word ``subgraph``."""
    edits = [TextEdit(source.span(brace, brace), "subgraph ") for brace in braces]
    message = 'a group must begin with the word "subgraph"'
    first = source.span(edits[0].span.start, edits[0].span.start + 1) if edits else None
    return _notice("bare_group", message, "write subgraph before the brace", edits, first)


def hidden_directions(source: SourceText) -> list[Diagnostic]:
    """Invisible characters that make a text look other than it is read."""
    edits = [TextEdit(source.span(*found.span()), "") for found in _DIRECTION.finditer(source.text)]
    name = unicodedata.name(edits[0].span.text[0]).lower() if edits else ""
    message = f"the invisible character {name} makes this line look different from how it is read"
    return _notice("bidi_control", message, "remove such characters", edits)


def separators(source: SourceText, gaps: Sequence[Gap]) -> Diagnostic:
    """The attributes of one block that are not separated by commas.

    Args:
        source: The text.
        gaps: The attribute before, the offset of the semicolon or None, and the attribute after.
    """
    edits = [
        TextEdit(source.span(before.end, before.end), ",")
        if semicolon is None
        else TextEdit(source.span(semicolon, semicolon + 1), ",")
        for before, semicolon, _ in gaps
    ]
    return Diagnostic(
        "attr_separator",
        Severity.WARNING,
        "attributes must be separated by commas",
        fix=Fix("put a comma between the attributes", tuple(edits)),
        span=mistakes.separator_span(source, gaps[0]),
    )


def _notice(
    rule: str, message: str, title: str, edits: Sequence[TextEdit], first: Span | None = None
) -> list[Diagnostic]:
    """One finding at the first place, whose fix mends all places; none when there is no place."""
    if not edits:
        return []
    more = f" (and {len(edits) - 1} more)" if len(edits) > 1 else ""
    fix = Fix(title, tuple(edits))
    return [Diagnostic(rule, Severity.WARNING, message + more, fix=fix, span=first or edits[0].span)]


# Ids side by side on a line: legal, two statements, and most often an arrow too few.


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
