"""All syntax errors of a DOT text: each statement with a mistake is set aside, and the rest is read.

A statement is set aside by blanks in a copy of the text of the same length, so places hold. How far it goes is not
known, for a mistake may be a missing quote or bracket. Rule:

1. It begins after the last line end, semicolon or brace before the mistake that is in no string, comment or block.
2. It ends at the first line end, semicolon or brace at which its square brackets are balanced, strings ignored, for
   a missing quote turns strings inside out; at the latest before a line that begins another statement.
3. If that is before the mistake and does not help, it ends at the first such place behind it, or with its line. Of
   these ends the first counts, unless another one lets more be read and the next mistake of the first is not in what
   it sets aside: that mistake was a consequence.
4. If nothing is read behind any of them, the rest of the text is set aside, and the search ends.

A mistake counts if it is behind everything that was set aside before it: one mistake a statement.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.errors import DotSyntaxError
from attractor_nb.languages.dot.parser import parse_syntax

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.languages.dot.syntax import DotTree
    from attractor_nb.source import SourceText

MAX_MISTAKES: Final = 20
"""Mistakes that are looked for in a text; more would not be read."""
MAX_CHARACTERS: Final = 4_000_000
"""Characters that the search reads at most, all its attempts together: half a second."""

_STRING: Final = r'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)(?:"|\\?\Z)'
_REGION: Final = r"/\*[^*]*+(?>(?:\*(?!/)[^*]*+)*)(?:\*/|\Z)"
# One that is never closed is a token, too: a search that began again at each quote would take the square of the time.
_COMMENT: Final = r"(?://|\#)[^\n]*+"
_LINE_ENDS: Final = rf"(?P<line_end>(?>(?:(?:{_REGION}[ \t\r]*+|{_COMMENT})?\n\s*+)+))"  # with the comments before them
_TOKEN: Final = re.compile(rf"{_STRING}|{_LINE_ENDS}|{_REGION}|{_COMMENT}|[\[\]{{}};]", re.DOTALL)
_MARK: Final = re.compile(r"[\[\]{};\n]")
_CONTINUES: Final = re.compile(r"\[|->")
_IS_CONTINUED: Final = re.compile(r"(?:->|\b(?:node|edge|graph|subgraph))\Z")
_NEXT_GRAPH: Final = re.compile(r"(?:strict\s+)?digraph\b")
_BEGINS_STATEMENT: Final = re.compile(
    r"[ \t\r]*(?:[A-Za-z_]\w*[ \t]*(?:\[|->)|(?:subgraph|digraph)\b|\}[ \t\r;]*(?:\n|\Z))"
)
_HEADER: Final = re.compile(r"([^{]*?\b)digraph\b([^{]*+)(?=\{)")
_LINE_END: Final = re.compile(r"[{}\n]")
_VISIBLE: Final = re.compile(r"\S")


class Rest(NamedTuple):
    """The statements and the mistakes of a text."""

    mistakes: tuple[DotSyntaxError, ...]  #: In the order in which they were met, the first included.
    tree: DotTree | None  #: The statements without a mistake; None where too little could be read.


class _Place(NamedTuple):
    """The surroundings of a mistake."""

    start: int  #: The offset at which its statement begins.
    depth: int  #: Number of braces that are open there.
    last_brace: int  #: The offset of the last closing brace before it, or -1.
    has_brace: bool  #: True if a brace was opened before it.


class _Copy(NamedTuple):
    """A copy of the text in which a statement is set aside."""

    text: str
    end: int  #: The offset behind what is set aside.
    is_last_resort: bool = False  #: True if all that follows is set aside, too.


class _Reading(NamedTuple):
    """An attempt to read a copy."""

    copy: _Copy
    tree: DotTree | None  #: Its statements, if all of it was read.
    mistake: DotSyntaxError | None  #: Its first mistake, if it was not.
    at: int  #: The offset up to which it was read; more than its length if all of it was.


class _Search:
    """Reads copies of one text, as long as ``MAX_CHARACTERS`` allows."""

    def __init__(self, source: SourceText, *, is_strict: bool) -> None:
        self._source = source
        self._is_strict = is_strict
        self._left = MAX_CHARACTERS

    def past(self, text: str, mistake: DotSyntaxError) -> _Reading | None:
        """The best reading of a text without the statement of a mistake; None if nothing is read past it."""
        best: _Reading | None = None
        at = _offset(mistake, text)
        for copy in _copies(text, at, is_brace_open=mistake.is_brace_open):
            if best is not None and copy.is_last_resort:
                break
            self._left -= len(text)
            if self._left < 0:
                break
            reading = self._read(copy)
            is_further = reading.at > at and reading.at >= copy.end
            if is_further and (best is None or reading.at > best.at >= copy.end):
                best = reading
            if best is not None and (best.mistake is None or best.mistake.is_limit):
                break
        return best

    def _read(self, copy: _Copy) -> _Reading:
        try:
            tree = parse_syntax(self._source, strict=self._is_strict, text=copy.text)
        except DotSyntaxError as mistake:
            return _Reading(copy, None, mistake, _offset(mistake, copy.text))
        return _Reading(copy, tree, None, len(copy.text) + 1)


def read_rest(source: SourceText, first: DotSyntaxError, *, is_strict: bool) -> Rest:
    """Read a text past its mistakes.

    Args:
        source: The text, without a byte order mark.
        first: Its first mistake.
        is_strict: As of ``parse_syntax``.
    """
    search, mistakes, text = _Search(source, is_strict=is_strict), [first], source.text
    reading = search.past(text, first)
    while reading is not None and reading.mistake is not None and len(mistakes) < MAX_MISTAKES:
        mistakes.append(reading.mistake)
        if reading.mistake.is_limit:
            break
        reading = search.past(reading.copy.text, reading.mistake)
    tree = reading.tree if reading else None
    if tree is not None:  # the word before the brace of a group may be set aside
        tree = replace(tree, notices=tuple(notice for notice in tree.notices if notice.rule != "bare_group"))
    return Rest(tuple(mistakes), tree)


def _offset(mistake: DotSyntaxError, text: str) -> int:
    """The offset up to which a text was read."""
    if mistake.span is None or mistake.is_brace_open:
        return len(text)
    return mistake.span.start if mistake.read_to is None else mistake.read_to


def _copies(text: str, at: int, *, is_brace_open: bool) -> Iterator[_Copy]:
    """The copies to try for a mistake at an offset, the likeliest first."""
    place = _place(text, at)
    if is_brace_open:
        yield _Copy(text + "}", at)
    elif not place.has_brace:
        if header := _HEADER.match(text):
            yield _Copy(_blank(_blank(text, *header.span(1)), *header.span(2)), header.end())
    elif not place.depth:  # the graph was closed too early, or something follows it
        reopened = _blank(text, place.last_brace, place.last_brace + 1)
        yield _Copy(reopened if _place(text, len(text)).depth < 0 else reopened + "}", at)
        yield _Copy(_blank(text, at, len(text)), len(text), is_last_resort=True)
    else:
        ends = () if _NEXT_GRAPH.match(text, at) else _ends(text, place.start, at)
        for end in dict.fromkeys(ends):
            yield _Copy(_blank(text, place.start, end), end)
        yield _Copy(_blank(text, place.start, len(text)) + "}" * place.depth, len(text), is_last_resort=True)


def _place(text: str, at: int) -> _Place:
    """The surroundings of an offset, in a text that was read up to there."""
    start, depth, brackets, last_brace, has_brace = 0, 0, 0, -1, False
    for token in _TOKEN.finditer(text):
        if token.end() > at:
            break
        mark = token[0]
        if mark == "[":
            brackets += 1
        elif mark == "]":
            brackets = max(0, brackets - 1)
        elif brackets:
            continue
        elif mark == "{":
            start, depth, has_brace = token.end(), depth + 1, True
        elif mark == "}":
            start, depth, last_brace = token.end(), depth - 1, token.start()
        elif mark == ";" or (token["line_end"] and not _is_inside_statement(text, *token.span())):
            start = token.end()
    return _Place(start, depth, last_brace, has_brace)


def _is_inside_statement(text: str, end: int, begin: int) -> bool:
    """True if the line that ends at an offset, and the one that begins at another, belong together."""
    if _CONTINUES.match(text, begin):
        return True
    while end and text[end - 1].isspace():
        end -= 1
    return _IS_CONTINUED.search(text, max(0, end - len("subgraph")), end) is not None


def _balanced_end(text: str, start: int, at: int) -> int:
    """The first end behind an offset at which brackets are balanced, or before a line that begins a statement."""
    depth = 0
    first = _VISIBLE.search(text, start)
    for found in _MARK.finditer(text, first.start() if first else start):
        mark, place = found[0], found.start()
        if mark == "[":
            depth += 1
        elif mark == "]":
            depth = max(0, depth - 1)
        elif place >= at and (not depth or (mark == "\n" and _BEGINS_STATEMENT.match(text, place + 1))):
            return place
    return len(text)


def _ends(text: str, start: int, at: int) -> Iterator[int]:
    """The offsets at which a statement with a mistake may end, the likeliest first."""
    yield _balanced_end(text, start, start)
    yield _balanced_end(text, start, at)
    found = _LINE_END.search(text, at)
    yield found.start() if found else len(text)


def _blank(text: str, start: int, end: int) -> str:
    return text[:start] + _VISIBLE.sub(" ", text[start:end]) + text[end:]
