"""Reads runs of plain statements at once: nodes, edges, defaults and declarations.

Plain is what has no comment, no quoted id and no mistake; nearly all of a text is. A run is one token
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
    Declaration,
    Defaults,
    EdgeStatement,
    Name,
    NodeStatement,
)

if TYPE_CHECKING:
    from attractor_nb.languages.dot.syntax import Gap, Statement

_ID: Final = r"[A-Za-z_][A-Za-z0-9_]*+"
_SPACE: Final = r"[ \t\r\n]*+"
_STRING: Final = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
BARE_VALUE: Final = (
    # "//" inside a bare value is text only after ":" (a URL), "->" never is.
    r"(?:[A-Za-z0-9_.:]|-(?!>)|/(?![/*])|(?<=:)//)++(?=[ \t\r\n,;\]}/\#]|->|\Z)"
)
_ATTR: Final = rf"({_ID}(?:\.{_ID})*+){_SPACE}={_SPACE}({_STRING}|{BARE_VALUE})"
_STATEMENT: Final = re.compile(
    rf"[ \t\r\n;]*+({_ID})(?:{_SPACE}->{_SPACE}({_ID}))?((?:{_SPACE}->{_SPACE}{_ID})*+)"
    rf'(?:{_SPACE}(\[)|(?={_SPACE}[A-Za-z_;{{}}"]))'
)
_HEAD, _SECOND, _CHAIN, _BRACKET = 1, 2, 3, 4
_DECLARATION: Final = re.compile(rf"[ \t\r\n;]*+{_ATTR}", re.DOTALL)
_IN_BLOCK: Final = re.compile(rf"{_SPACE}(?:(\])|{_ATTR}{_SPACE}([,;\]]?))", re.DOTALL)
_CLOSE, _NAME, _VALUE, _SEPARATOR = 1, 2, 3, 4
_CHAINED: Final = re.compile(_ID)
_SCOPES: Final = frozenset({"graph", "node", "edge"})
_new: Final = cast("Any", tuple).__new__
"""What the constructor of a NamedTuple calls, at half of its price."""


class PlainRun(NamedTuple):
    """What a ``PLAIN`` token carries: statements, and of each block its attributes that no comma parts."""

    statements: list[Statement]
    gaps: list[list[Gap]]


class PlainReader:
    """Reads one text; ``is_strict`` leaves attributes without commas to the finer tokens (ruling 1)."""

    def __init__(self, text: str, *, is_strict: bool) -> None:
        self._text = text
        self._is_strict = is_strict
        self._ids: set[str] = set()
        self._words: set[str] = set()

    def read(self, position: int, most: int) -> tuple[PlainRun, int]:
        """The plain statements at an offset, at most so many, and where the last of them ends."""
        text, match = self._text, _STATEMENT.match
        run = PlainRun([], [])
        add, gaps = run.statements.append, run.gaps
        for _ in range(most):
            found = match(text, position)
            statement = self._statement(found, gaps) if found else self._declaration(position)
            if statement is None:
                break
            add(statement)
            position = statement.end
        return run, position

    def _statement(self, found: re.Match[str], gaps: list[list[Gap]]) -> Statement | None:
        """A node, an edge or defaults; None when a keyword or the block is in the way."""
        head, second, bracket = found.group(_HEAD, _SECOND, _BRACKET)
        start, end = found.span(_HEAD)
        if head not in self._ids and not self._is_id(head):
            is_scope = head in _SCOPES and bracket and not second
            block = self._block(found.end(), gaps) if is_scope else None
            return _new(Defaults, (head, block, start, block.end)) if block else None
        name = _new(Name, (head, start, end))
        names = None
        if second:
            names = self._chain(name, found)
            if names is None:
                return None
            end = names[-1].end
        block = None
        if bracket:
            block = self._block(found.end(), gaps)
            if block is None:
                return None
            end = block.end
        if names:
            return _new(EdgeStatement, (names, block, start, end))
        return _new(NodeStatement, (name, block, start, end))

    def _is_id(self, word: str) -> bool:
        if word.lower() in KEYWORDS:
            return False
        self._ids.add(word)
        return True

    def _chain(self, head: Name, found: re.Match[str]) -> tuple[Name, ...] | None:
        """The ids of a chain; None when one is a keyword."""
        second = found[_SECOND]
        if second not in self._ids and not self._is_id(second):
            return None
        names = (head, _new(Name, (second, *found.span(_SECOND))))
        if not found[_CHAIN]:
            return names
        ids = self._ids
        more: list[Name] = []
        for link in _CHAINED.finditer(self._text, *found.span(_CHAIN)):
            word = link[0]
            if word not in ids and not self._is_id(word):
                return None
            more.append(_new(Name, (word, *link.span())))
        return (*names, *more)

    def _declaration(self, position: int) -> Declaration | None:
        found = _DECLARATION.match(self._text, position)
        if found is None:
            return None
        name, literal = found.groups()
        if not self._is_attr(name, literal):
            return None
        start, name_end = found.span(1)
        value_start, end = found.span(2)
        attr = _new(Attr, (name, literal, start, name_end, value_start, end))
        return _new(Declaration, (attr, start, end))

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
        return (before, None, attr) if "\n" in self._text[before.end : attr.start] else None
