"""Reads runs of plain statements at once: nodes, edges, defaults, declarations, and groups of these.

Plain is what has no comment, no quoted id but a node's, no group in a group and no mistake; nearly all of
a text is. A run is one token
(``PLAIN``), so that its statements cost neither a token nor a step of the parser for each of their parts.
Whatever is not plain ends the run where its statement begins, and the finer tokens of ``lexer`` take it
up: it is they who know what is wrong with it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from attractor_nb.languages.dot.literals import KEYWORDS, is_too_large
from attractor_nb.languages.dot.syntax import (
    Attr,
    Block,
    Defaults,
    EdgeStatement,
    GraphDeclaration,
    Name,
    NodeStatement,
    SubgraphStatement,
)

if TYPE_CHECKING:
    from attractor_nb.languages.dot.syntax import Gap, Statement

_ID: Final = r"[A-Za-z_][A-Za-z0-9_]*+"
_SPACE: Final = r"[ \t\r\n]*+"
_STRING: Final = r'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"'
BARE_VALUE: Final = (
    # "//" inside a bare value is text only after ":" (a URL), "->" never is.
    r"(?>(?:[A-Za-z0-9_.:]|-(?!>)|/(?![/*])|(?<=:)//)+)(?=[ \t\r\n,;\]}/\#]|->|\Z)"
)
_ATTR: Final = rf"({_ID}(?>(?:\.{_ID})*)){_SPACE}={_SPACE}({_STRING}|{BARE_VALUE})"
_STATEMENT: Final = re.compile(
    rf"[ \t\r\n;]*+({_ID})(?:{_SPACE}->{_SPACE}({_ID}))?((?>(?:{_SPACE}->{_SPACE}{_ID})*))"
    rf'(?:{_SPACE}(?:(\[\])|(\[))|(?={_SPACE}[A-Za-z_;{{}}"]))'
)
_HEAD, _SECOND, _CHAIN, _EMPTY, _BRACKET = 1, 2, 3, 4, 5
_QUOTED: Final = re.compile(rf'[ \t\r\n;]*+("({_ID})")(?:{_SPACE}(\[)|(?={_SPACE}[A-Za-z_;{{}}"]))')
_GROUP: Final = re.compile(
    rf"[ \t\r\n;]*+(?:(subgraph)(?=[ \t\r\n{{]){_SPACE}(?:({_ID}){_SPACE})?)?(\{{)[ \t\r\n;]*+(\}})?"
)
_WORD, _ID_OF_GROUP, _BRACE, _BRACE_AT_ONCE = 1, 2, 3, 4
_GROUP_END: Final = re.compile(r"[ \t\r\n;]*+\}")
_DECLARATION: Final = re.compile(rf"[ \t\r\n;]*+{_ATTR}", re.DOTALL)
_IN_BLOCK: Final = re.compile(rf"{_SPACE}(?:(\])|{_ATTR}{_SPACE}([,;\]]?))", re.DOTALL)
_CLOSE, _NAME, _VALUE, _SEPARATOR = 1, 2, 3, 4
_CHAINED: Final = re.compile(_ID)
_SCOPES: Final = frozenset({"graph", "node", "edge"})
_new: Final = cast("Any", tuple).__new__
"""What the constructor of a NamedTuple calls, at half of its price."""


class PlainRun(NamedTuple):
    """What a ``PLAIN`` token carries.

    Attributes:
        statements: The statements.
        gaps: Of each block, if it has any, the attributes that no comma parts.
        quoted_ids: Ids in quotes.
        bare_braces: Where groups without the word ``subgraph`` begin.
        total: How many statements, those inside groups included.
    """

    statements: list[Statement]
    gaps: list[list[Gap]]
    quoted_ids: list[Name]
    bare_braces: list[int]
    total: int = 0


class PlainReader:
    """Reads one text; ``is_strict`` leaves attributes without commas to the finer tokens (ruling 1)."""

    def __init__(self, text: str, *, is_strict: bool) -> None:
        self._text = text
        self._is_strict = is_strict
        self._ids: set[str] = set()
        self._words: set[str] = set()

    def read(self, position: int, most: int, *, with_groups: bool) -> tuple[PlainRun, int]:
        """The plain statements at an offset, at most so many, and where the last of them ends."""
        run = PlainRun([], [], [], [])
        count, end = self._body(position, most, run, with_groups=with_groups)
        return run._replace(total=count), end

    def _body(self, position: int, most: int, run: PlainRun, *, with_groups: bool) -> tuple[int, int]:
        """Add statements to a run; how many there are, and where the last of them ends."""
        text, match = self._text, _STATEMENT.match
        add, gaps, left = run.statements.append, run.gaps, most
        while left > 0:
            found = match(text, position)
            if found:
                statement = self._statement(found, gaps)
            else:
                ahead = text[position : position + 1]
                if ahead == "}":
                    break
                statement = self._rarer(position, run) if ahead != "{" else None
            if statement is None and with_groups:
                statement = self._group(position, left, run)
                left -= len(statement.body) if statement else 0
            if statement is None:
                break
            left -= 1
            add(statement)
            position = statement.end
        return most - left, position

    def _group(self, position: int, most: int, run: PlainRun) -> SubgraphStatement | None:
        """A group of plain statements, none of which is a group: so nothing is tried here once a level."""
        found = _GROUP.match(self._text, position)
        if found is None:
            return None
        word, name = found.group(_WORD, _ID_OF_GROUP)
        if name and name not in self._ids and not self._is_id(name):
            return None
        brace, end = found.span(_BRACE)
        body: tuple[Statement, ...] = ()
        if found[_BRACE_AT_ONCE]:
            end = found.end()
        else:
            inner = PlainRun([], [], [], [])
            _, end = self._body(end, most - 1, inner, with_groups=False)
            close = _GROUP_END.match(self._text, end)
            if close is None:
                return None
            end, body = close.end(), tuple(inner.statements)
            run.gaps.extend(inner.gaps)
            run.quoted_ids.extend(inner.quoted_ids)
        start = found.start(_WORD) if word else brace
        if not word:
            run.bare_braces.append(brace)
        group_id = _new(Name, (name, *found.span(_ID_OF_GROUP))) if name else None
        return _new(SubgraphStatement, (group_id, body, start, brace, end))

    def _rarer(self, position: int, run: PlainRun) -> Statement | None:
        """A declaration, or a node whose id is in quotes."""
        found = _DECLARATION.match(self._text, position)
        if found:
            return self._declaration(found)
        found = _QUOTED.match(self._text, position)
        if found is None or (found[2] not in self._ids and not self._is_id(found[2])):
            return None
        start, end = found.span(1)
        name = _new(Name, (found[2], start, end))
        block = None
        if found[3]:
            block = self._block(found.end(), run.gaps)
            if block is None:
                return None
            end = block.end
        run.quoted_ids.append(name)
        return _new(NodeStatement, (name, block, start, end))

    def _statement(self, found: re.Match[str], gaps: list[list[Gap]]) -> Statement | None:
        """A node, an edge or defaults; None when a keyword or the block is in the way."""
        head, second, empty, bracket = found.group(_HEAD, _SECOND, _EMPTY, _BRACKET)
        start, end = found.span(_HEAD)
        is_id = head in self._ids or self._is_id(head)
        if not is_id and (head not in _SCOPES or second or not (empty or bracket)):
            return None
        block: Block | None = None
        if bracket:
            block = self._block(found.end(), gaps)
            if block is None:
                return None
        elif empty:
            block = _new(Block, ((), *found.span(_EMPTY)))
        if not is_id and block:
            return _new(Defaults, (head, block, start, block.end))
        name = _new(Name, (head, start, end))
        if second:
            names = self._chain(name, found)
            if names is None:
                return None
            return _new(EdgeStatement, (names, block, start, block.end if block else names[-1].end))
        return _new(NodeStatement, (name, block, start, block.end if block else end))

    def _is_id(self, word: str) -> bool:
        if word.lower() in KEYWORDS:
            return False
        self._ids.add(word)
        return True

    def _chain(self, head: Name, found: re.Match[str]) -> tuple[Name, ...] | None:
        """The ids of a chain; None when one is a keyword."""
        second, chain = found.group(_SECOND, _CHAIN)
        if second not in self._ids and not self._is_id(second):
            return None
        start, end = found.span(_SECOND)
        names = (head, _new(Name, (second, start, end)))
        if not chain:
            return names
        ids = self._ids
        more: list[Name] = []
        for link in _CHAINED.finditer(self._text, *found.span(_CHAIN)):
            word = link[0]
            if word not in ids and not self._is_id(word):
                return None
            more.append(_new(Name, (word, *link.span())))
        return (*names, *more)

    def _declaration(self, found: re.Match[str]) -> GraphDeclaration | None:
        name, literal = found.groups()
        words = self._words
        if (name not in words or literal not in words) and not self._is_attr(name, literal):
            return None
        start, name_end = found.span(1)
        value_start, end = found.span(2)
        attr = _new(Attr, (name, literal, start, name_end, value_start, end))
        return _new(GraphDeclaration, (attr, start, end))

    def _is_attr(self, name: str, literal: str) -> bool:
        words = self._words
        if name not in words:
            if name.lower() in KEYWORDS:
                return False
            words.add(name)
        if literal not in words and literal[0] != '"':
            if literal.lower() in KEYWORDS or is_too_large(literal):
                return False
            words.add(literal)
        return True

    def _block(self, position: int, gaps: list[list[Gap]]) -> Block | None:
        """The attribute block after a ``[``, or None when it is not plain."""
        text, match, words = self._text, _IN_BLOCK.match, self._words
        attrs: list[Attr] = []
        found_gaps: list[Gap] = []
        start, add = position - 1, attrs.append
        before: Attr | None = None
        after: str = ","  # the separator after it
        while found := match(text, position):
            close, name, literal, separator = found.groups()
            position = found.end()
            if close:
                if after == ";" and found_gaps and before is not None:
                    found_gaps.append((before, text.rindex(";", before.end, position), before))
                break
            if (name not in words or literal not in words) and not self._is_attr(name, literal):
                return None
            name_start, name_end = found.span(_NAME)
            value_start, end = found.span(_VALUE)
            attr = _new(Attr, (name, literal, name_start, name_end, value_start, end))
            if after != ",":
                gap = self._gap(before, attr, after)
                if gap is None:
                    return None
                found_gaps.append(gap)
            add(attr)
            before, after = attr, separator
            if separator == "]":
                break
        else:
            return None
        if after == ";" and self._is_strict:
            return None
        if found_gaps:
            gaps.append(found_gaps)
        return _new(Block, (tuple(attrs), start, position))

    def _gap(self, before: Attr | None, attr: Attr, separator: str) -> Gap | None:
        """A wrong separator that is read with a warning, or None when it is a mistake (ruling 1)."""
        if before is None or self._is_strict:
            return None
        if separator:
            return before, self._text.index(";", before.end, attr.start), attr
        return (before, None, attr) if before.end < attr.start else None
