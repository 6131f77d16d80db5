"""DOT text to tokens, coarse ones: the attributes of a block are one.

Two readings take turns: statements, and the inside of an attribute block. Each is one regular
expression without backtracking (possessive repeats), so the time is linear in the text whatever it
holds. Comments, quoted ids and wrong separators are set aside on the way. What no expression matches goes
to the modules of mistakes, which say what is wrong with it. Knows no statement's meaning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.errors import DotSyntaxError
from attractor_nb.languages.dot.syntax import Attr, Block, Comment, Gap, Name
from attractor_nb.languages.dot.writer import (
    BARE_VALUE,
    KEYWORDS,
    is_attribute_name,
    is_identifier,
    is_too_large,
    text_of,
)
from attractor_nb.lazy_imports import later

if TYPE_CHECKING:
    from collections.abc import Generator

    from attractor_nb.languages.dot import mistakes
    from attractor_nb.source import SourceText
else:
    mistakes = later("attractor_nb.languages.dot.mistakes")

Token = tuple[str, int, int, Any]
"""Terminal, start, end, and the ``Attr``, ``Name`` or (the ``]`` of a block) ``Block`` that the terminal carries."""

END: Final = "$END"
MAX_DEPTH: Final = 20
"""Deepest nesting of groups: ten are unusual, later steps may recurse, and each level lists members."""

_ID = r"[A-Za-z_][A-Za-z0-9_]*+"
_STRING = r'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"'
_LINE = r"//[^\n]*+"
_REGION = r"/\*[^*]*+(?>(?:\*(?!/)[^*]*+)*)\*/"
_HASH = r"\#[^\n]*+"
_COMMENT = rf"{_LINE}|{_REGION}|{_HASH}"
_GAP = rf"(?>(?:[ \t\r\n]++|{_COMMENT})*)"
# After "=" a "#" begins a comment only at the start of a line: `color=#ff0000` is a slip, not a comment.
_VALUE_GAP = rf"(?>(?:[ \t\r]++|\n(?:[ \t\r]*+{_HASH})?|{_LINE}|{_REGION})*)"
_ATTR = rf"(?:({_ID}(?>(?:\.{_ID})*))|({_STRING})){_GAP}={_VALUE_GAP}({_STRING}|{BARE_VALUE})"

_STATEMENT = re.compile(
    rf"""[ \t\r\n]*+(?:
        ({_ID})(?=[ \t\r\n\[\]{{}};,/\#"]|->|\Z)(?!{_GAP}=)
      | (->)
      | ([\[\]{{}},]|;(?>(?:[ \t\r\n]*+;)*))
      | ({_COMMENT})
      | ({_STRING})(?!{_GAP}=)
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORD, _ARROW, _PUNCTUATION, _STATEMENT_COMMENT = 1, 2, 3, 4
_IN_BLOCK = re.compile(rf"[ \t\r\n]*+(?:{_ATTR}(?:[ \t\r\n]*+([,;\]]))?|([,;\]])|({_COMMENT}))", re.DOTALL)
_BARE_NAME, _QUOTED_NAME, _VALUE, _MARK_AFTER, _MARK, _BLOCK_COMMENT = 1, 2, 3, 4, 5, 6
_DECLARATION = re.compile(_ATTR, re.DOTALL)
_COMMENTS = re.compile(_COMMENT, re.DOTALL)
_BLANKS = re.compile(r"[ \t\r\n]*+")
_FORBIDDEN = re.compile("[\x00\ud800-\udfff]")
_KINDS = {"{": "LBRACE", "}": "RBRACE", "[": "LBRACK", "]": "RBRACK", ",": "COMMA", ";": "SEMICOLON"}
_BRACES = {"LBRACE", "RBRACE"}
_new: Final = cast("Any", tuple).__new__
"""Constructor that a NamedTuple calls, at half of its price."""
_WORDS = {word: word.upper() for word in KEYWORDS}


class Lexer:
    """Reads one text once.

    Attributes:
        comments: What comments were met, in order.
        quoted_ids: Ids in quotes, in order (ruling 3).
        gaps: Of each block that has any, the attributes that no comma separates (rulings 1, 1a).
        braces: Offsets of the braces that are open.
    """

    def __init__(self, source: SourceText, *, is_strict: bool = False, text: str | None = None) -> None:
        """Take a text; ``text`` is a copy of it with blanks in place of statements that are set aside."""
        self.source = source
        self.text = source.text if text is None else text
        self.comments: list[Comment] = []
        self.quoted_ids: list[Name] = []
        self.gaps: list[list[Gap]] = []
        self.braces: list[int] = []
        self._is_strict = is_strict
        self._ids: set[str] = set()
        self._words: set[str] = set()

    def tokens(self) -> Generator[Token]:
        """All tokens, the last being ``END``; the parser takes one at a time, so that the first mistake speaks."""
        self._look_for_forbidden_characters()
        text, match, ids = self.text, _STATEMENT.match, self._ids
        position, kind = 0, ""
        while True:
            found = match(text, position)
            if found is None:
                token = self._declaration_or_end(position, kind)
                yield token
                kind, _, position, _ = token
                if kind == END:
                    return
                continue
            group = found.lastindex
            start, position = found.span(group or 0)
            if group == _WORD:
                word = found[_WORD]
                kind = "ID" if word in ids else self._word(word, start)
                yield kind, start, position, _new(Name, (word, start, position))
            elif group == _ARROW:
                kind = "ARROW"
                yield kind, start, position, None
            elif group == _PUNCTUATION:
                kind = _KINDS[text[start]]
                if kind in _BRACES:
                    self._count_braces(kind, start)
                yield kind, start, start + 1, None
                if kind == "LBRACK":
                    token = self._block(start, position)
                    yield token
                    kind, _, position, _ = token
            elif group == _STATEMENT_COMMENT:
                self._keep_comment(start, position)
            else:
                name = Name(text_of(found[0].lstrip()), start, position)
                kind = "NAME" if kind == "DIGRAPH" else self._quoted_id(name, kind)
                yield kind, start, position, name

    def _word(self, word: str, start: int) -> str:
        """The terminal of a word that was not read as an id before."""
        kind = _WORDS.get(word)
        if kind is None:
            self._refuse_keyword_in_capitals(word, start)
            self._ids.add(word)
        return kind or "ID"

    def _block(self, bracket: int, position: int) -> Token:
        """The ``]`` of an attribute block, with the block, from the offset after its ``[``."""
        text, match, read = self.text, _IN_BLOCK.match, self._attr
        attrs: list[Attr] = []
        gaps: list[Gap] = []
        before, at = "[", bracket  # the mark before what comes next, and its place; no mark after an attribute
        while found := match(text, position):
            literal, mark = found.group(_VALUE, _MARK_AFTER)
            if literal:
                attr = read(found, literal)
                if before != "," and attrs:
                    gaps.append(self._gap(attrs[-1], at if before else None, attr))
                attrs.append(attr)
                before = ""
            mark = mark or found[_MARK]
            position = found.end()
            if mark == "]":
                if before == ";" and (gaps or self._is_strict):
                    gaps.append(self._gap(attrs[-1], at, attrs[-1]))
                if gaps:
                    self.gaps.append(gaps)
                return "RBRACK", position - 1, position, _new(Block, (tuple(attrs), bracket, position))
            if mark:
                if before:
                    place = _KINDS[mark], position - 1, position
                    raise mistakes.structure_mistake(self.source, place, (_KINDS[before], at, at + 1), [])
                before, at = mark, position - 1
            elif not literal:
                self._keep_comment(*found.span(_BLOCK_COMMENT))
        start = self._skip_blanks(position)
        raise mistakes.attribute_mistake(self.source, start, position, bracket)

    def _gap(self, before: Attr, semicolon: int | None, after: Attr) -> Gap:
        """Two attributes that no comma separates (rulings 1, 1a).

        Attributes that touch are an error: `prompt="Say "x="1"` is a quote inside a string.
        """
        gap = before, semicolon, after
        if self._is_strict or (semicolon is None and before.end == after.start):
            raise mistakes.separator_mistake(self.source, gap)
        return gap

    def _declaration_or_end(self, position: int, before: str) -> Token:
        start = self._skip_blanks(position)
        if start == len(self.text):
            return END, start, start, None
        found = _DECLARATION.match(self.text, start)
        if found is None:
            raise mistakes.statement_mistake(self.source, start, before)
        attr = self._attr(found, found[_VALUE])
        return "ATTR", start, attr.end, attr

    def _attr(self, found: re.Match[str], literal: str) -> Attr:
        name, words = found[_BARE_NAME], self._words
        value_start, end = found.span(_VALUE)
        if name is None:
            start, name_end = found.span(_QUOTED_NAME)
            name = text_of(found[_QUOTED_NAME])
        else:
            start, name_end = found.span(_BARE_NAME)
        attr = _new(Attr, (name, literal, start, name_end, value_start, end))
        if name not in words:
            if not is_attribute_name(name):
                raise mistakes.name_mistake(self.source, attr)
            words.add(name)
        if literal[0] != '"' and literal not in words:
            if literal.lower() in KEYWORDS or is_too_large(literal):
                raise mistakes.value_mistake(self.source, attr)
            words.add(literal)
        if value_start - name_end > 1:
            gap = self.text[name_end:value_start]
            if "/" in gap or "#" in gap:
                for comment in _COMMENTS.finditer(self.text, name_end, value_start):
                    self._keep_comment(*comment.span())
        return attr

    def _keep_comment(self, start: int, end: int) -> None:
        self.comments.append(Comment(self.text[start:end].rstrip("\r"), start, end))

    def _quoted_id(self, name: Name, before: str) -> str:
        if not is_identifier(name.text):
            raise mistakes.statement_mistake(self.source, name.start, before)
        self.quoted_ids.append(name)
        return "ID"

    def _refuse_keyword_in_capitals(self, word: str, start: int) -> None:
        if word.lower() in _WORDS:
            raise DotSyntaxError(
                f'the keyword "{word.lower()}" is written in lower case',
                self.source.span(start, start + len(word)),
                hint=f'Graphviz reads "{word}" as the same word; write "{word.lower()}", or use another id',
            )

    def _count_braces(self, kind: str, start: int) -> None:
        if kind == "LBRACE":
            self.braces.append(start)
            if len(self.braces) > MAX_DEPTH:
                raise DotSyntaxError(
                    f"groups are nested more than {MAX_DEPTH} deep",
                    self.source.span(start, start + 1),
                    hint="put the nodes into fewer groups",
                    is_limit=True,
                )
        elif kind == "RBRACE" and self.braces:
            self.braces.pop()

    def _skip_blanks(self, position: int) -> int:
        found = _BLANKS.match(self.text, position)
        return found.end() if found else position

    def _look_for_forbidden_characters(self) -> None:
        if found := _FORBIDDEN.search(self.text):
            name = "a NUL character" if found[0] == "\0" else f"half a character (U+{ord(found[0]):04X})"
            raise DotSyntaxError(
                f"the text contains {name}",
                self.source.span(*found.span()),
                hint="the file is not a text, or it was read with the wrong encoding; use UTF-8",
            )
