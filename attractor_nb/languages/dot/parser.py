"""DOT text to syntax tree, or one ``DotSyntaxError`` with a caret (spec 2.1-2.4, rulings 1-3).

The grammar decides (``grammar.lark``, compiled by lark); the actions here only make tree nodes and note
what was read out of generosity.

Rulings 1 and 3: strict in what we write, generous in what we read. A habit gives one warning a text,
whose fix mends every place.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.errors import DotSyntaxError
from attractor_nb.languages.dot.lexer import Lexer, Token
from attractor_nb.languages.dot.syntax import (
    Attr,
    Block,
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
from attractor_nb.languages.parse_tables import load_tables, run_tables
from attractor_nb.lazy_imports import later
from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity, TextEdit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attractor_nb.languages.dot import structure_mistakes
    from attractor_nb.languages.dot.plain import PlainRun
    from attractor_nb.languages.dot.syntax import Attr, Comment, Name
    from attractor_nb.languages.parse_tables import Action
    from attractor_nb.source import SourceText, Span
else:
    structure_mistakes = later("attractor_nb.languages.dot.structure_mistakes")

MAX_STATEMENTS: Final = 250_000
"""How many statements a text may have: 100,000 nodes with their edges. A megabyte of the shortest ones has
twice as many, each of which costs as much as a long one."""


def parse_syntax(source: SourceText, *, strict: bool = False) -> DotTree:
    """Read a DOT text.

    Args:
        source: The text, without a byte order mark.
        strict: Whether attributes without commas are an error and not a warning (ruling 1).

    Raises:
        DotSyntaxError: It is outside the supported subset; only the first mistake is reported.
    """
    lexer = Lexer(source, is_strict=strict, statements_left=MAX_STATEMENTS)

    def refuse(token: Token, before: Token | None) -> DotSyntaxError:
        kind, start, end, _ = token
        if before and before[0] == "PLAIN":  # many statements: what is the last token of the last one?
            before = _token_before(token, Lexer(source).tokens())
        braces = [brace for brace in lexer.braces if brace < start]
        return structure_mistakes.structure_mistake(
            source, (kind, start, end), before[:3] if before else ("START", 0, 0), braces
        )

    actions = _Actions(lexer, is_strict=strict)
    plain_states = _plain_states()

    def lex(states: Sequence[int]) -> Iterable[Token]:
        return lexer.tokens(states, plain_states)

    return cast("DotTree", run_tables(load_tables("dot"), lex, actions.table(), refuse))


def _token_before(token: Token, read: Iterable[Token]) -> Token | None:
    """What stands before a token, in all tokens from the first."""
    return next((before for before, found in pairwise(read) if found[:2] == token[:2]), None)


@cache
def _plain_states() -> frozenset[int]:
    """The states in which a run of plain statements can come next."""
    return frozenset(number for number, row in enumerate(load_tables("dot").states) if "PLAIN" in row)


class _Actions:
    """What to make of each rule of the grammar; one method a rule, named as the rule is."""

    def __init__(self, lexer: Lexer, *, is_strict: bool) -> None:
        self._lexer = lexer
        self._source = lexer.source
        self._is_strict = is_strict
        self._gaps: list[Gap] = []
        self._separators: list[Diagnostic] = []
        self._bare_braces: list[int] = []

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
            *self._separators,
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
        self._count_statements(1, statement)
        return body

    def plain_statements(self, v: list[Any]) -> list[Statement]:
        body: list[Statement] = v[0]
        run: PlainRun = v[1][3]
        body.extend(run.statements)
        self._count_statements(run.total, run.statements[-1])
        self._bare_braces.extend(run.bare_braces)
        self._separators.extend(separators(self._source, gaps) for gaps in run.gaps)
        return body

    def _count_statements(self, count: int, last: Statement) -> None:
        self._lexer.statements_left -= count
        if self._lexer.statements_left < 0:
            raise DotSyntaxError(
                f"the text has more than {MAX_STATEMENTS:,} statements",
                self._source.span(last.start, last.end),
                hint="split it into several pipelines",
            )

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

    def empty_block(self, v: list[Any]) -> Block:
        return Block((), v[0][1], v[1][2])

    def block(self, v: list[Any]) -> Block:
        if self._gaps:
            self._separators.append(separators(self._source, self._gaps))
            self._gaps = []
        return Block(tuple(v[1]), v[0][1], v[-1][2])

    block_with_comma = block

    def block_with_semicolon(self, v: list[Any]) -> Block:
        attrs: list[Attr] = v[1]
        if self._gaps or self._is_strict:
            self._note_gap((attrs[-1], v[2][1], attrs[-1]))
        return self.block(v)

    def first_attr(self, v: list[Any]) -> list[Attr]:
        return [v[0][3]]

    def next_attr(self, v: list[Any]) -> list[Attr]:
        attrs: list[Attr] = v[0]
        attrs.append(v[2][3])
        return attrs

    def attr_after_semicolon(self, v: list[Any]) -> list[Attr]:
        attrs: list[Attr] = v[0]
        self._note_gap((attrs[-1], v[1][1], v[2][3]))
        attrs.append(v[2][3])
        return attrs

    def attr_after_nothing(self, v: list[Any]) -> list[Attr]:
        attrs: list[Attr] = v[0]
        self._note_gap((attrs[-1], None, v[1][3]))
        attrs.append(v[1][3])
        return attrs

    def _note_gap(self, gap: Gap) -> None:
        """Keep a wrong separator for the block's warning (rulings 1, 1a).

        Attributes that touch are an error: `prompt="Say "x="1"` is a quote inside a string.
        """
        before, semicolon, after = gap
        is_touching = semicolon is None and before.end == after.start
        if self._is_strict or is_touching:
            hint = "separate attributes with commas"
            raise DotSyntaxError(
                'expected "," between attributes',
                separator_span(self._source, gap),
                hint=f'{hint}, and inside a string write \\" for a quote' if is_touching else hint,
            )
        self._gaps.append(gap)


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


def separators(source: SourceText, gaps: Sequence[tuple[Attr, int | None, Attr]]) -> Diagnostic:
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
        span=separator_span(source, gaps[0]),
    )


def separator_span(source: SourceText, gap: tuple[Attr, int | None, Attr]) -> Span:
    """Where a separator is wrong: the semicolon, or the name that should follow a comma."""
    _, semicolon, after = gap
    if semicolon is not None:
        return source.span(semicolon, semicolon + 1)
    return source.span(after.start, after.name_end)


def _notice(
    rule: str, message: str, title: str, edits: Sequence[TextEdit], first: Span | None = None
) -> list[Diagnostic]:
    """One finding at the first place, whose fix mends all places; none when there is no place."""
    if not edits:
        return []
    more = f" (and {len(edits) - 1} more)" if len(edits) > 1 else ""
    fix = Fix(title, tuple(edits))
    return [Diagnostic(rule, Severity.WARNING, message + more, fix=fix, span=first or edits[0].span)]
