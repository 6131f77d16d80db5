"""DOT text to tokens, coarse ones: a whole ``name = value`` is one.

Two readings take turns: statements, and the inside of an attribute block. Each is one regular
expression without backtracking (possessive repeats), so the time is linear in the text whatever it
holds. Comments and quoted ids are set aside on the way. What no expression matches goes to the two
modules of mistakes, which say what is wrong with it. Knows no statement's meaning.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.errors import DotSyntaxError
from attractor_nb.languages.dot.literals import KEYWORDS, is_attribute_name, is_identifier, is_too_large, text_of
from attractor_nb.languages.dot.plain import BARE_VALUE, PlainReader
from attractor_nb.languages.dot.syntax import Attr, Comment, Name
from attractor_nb.lazy_imports import later

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Sequence

    from attractor_nb.languages.dot import attribute_mistakes, character_mistakes
    from attractor_nb.source import SourceText
else:
    attribute_mistakes = later("attractor_nb.languages.dot.attribute_mistakes")
    character_mistakes = later("attractor_nb.languages.dot.character_mistakes")

Token = tuple[str, int, int, Any]
"""Terminal, start, end, and an ``Attr`` or ``Name`` where the terminal carries one."""

END: Final = "$END"
MAX_DEPTH: Final = 20
"""How deep groups may nest: nobody writes ten, what follows may recurse, each level lists members."""

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
      | ([\[\]{{}};,])
      | ({_COMMENT})
      | ({_STRING})(?!{_GAP}=)
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORD, _ARROW, _PUNCTUATION, _STATEMENT_COMMENT = 1, 2, 3, 4
_BLOCK = re.compile(rf"[ \t\r\n]*+(?:{_ATTR}|([,;\]])|({_COMMENT}))", re.DOTALL)
_BARE_NAME, _QUOTED_NAME, _VALUE, _SEPARATOR = 1, 2, 3, 4
_DECLARATION = re.compile(_ATTR, re.DOTALL)
_COMMENTS = re.compile(_COMMENT, re.DOTALL)
_BLANKS = re.compile(r"[ \t\r\n]*+")
_PLAIN_AHEAD = re.compile(r'[ \t\r\n;]*+[A-Za-z_{"]')
_SEMICOLONS = re.compile(r"[ \t\r\n;]*+")
_FORBIDDEN = re.compile("[\x00\ud800-\udfff]")
_KINDS = {"{": "LBRACE", "}": "RBRACE", "[": "LBRACK", "]": "RBRACK", ",": "COMMA", ";": "SEMICOLON"}
_WORDS = {word: word.upper() for word in KEYWORDS}


class Lexer:
    """Reads one text once.

    Attributes:
        comments: What comments were met, in order.
        quoted_ids: Ids in quotes, in order (ruling 3).
        braces: Offsets of the braces that are open.
        statements_left: How many statements the text may still have; the parser counts them.
    """

    def __init__(self, source: SourceText, *, is_strict: bool = False, statements_left: int = 0) -> None:
        self.source = source
        self.text = source.text
        self.comments: list[Comment] = []
        self.quoted_ids: list[Name] = []
        self.braces: list[int] = []
        self.statements_left = statements_left
        self._plain = PlainReader(source.text, is_strict=is_strict)
        self._last_run = 0
        self._not_plain = -1

    def tokens(self, states: Sequence[int] = (0,), plain_states: Collection[int] = ()) -> Generator[Token, None, None]:
        """All tokens, the last being ``END``. The caller must take them one by one.

        Args:
            states: The parser's stack of states.
            plain_states: Those states in which a run of plain statements may come as one token.

        Raises:
            DotSyntaxError: At the first character that begins no token.
        """
        self._look_for_forbidden_characters()
        text, match, may_be_plain = self.text, _STATEMENT.match, _PLAIN_AHEAD.match
        # Three readings, the fastest first: a run of plain statements (most of a large file) in one go, a single
        # token by `_STATEMENT`, and `name = value` outside of brackets, which is also where mistakes are named. The
        # parser asks for one token at a time, so its state says which of them may come here.
        position, kind = 0, ""
        while True:
            is_statement = states[-1] in plain_states
            token = self._plain_token(position) if is_statement and may_be_plain(text, position) else None
            found = None if token else match(text, position)
            if found is None:
                token = token or self._declaration_or_end(position, kind)
                yield token
                kind, _, position, _ = token
                if kind == END:
                    return
                continue
            group = found.lastindex
            start, position = found.span(group or 0)
            if group == _WORD:
                token = self._word(found[_WORD], start, position)
                kind = token[0]
                yield token
            elif group == _ARROW:
                kind = "ARROW"
                yield kind, start, position, None
            elif group == _PUNCTUATION:
                kind = _KINDS[found[_PUNCTUATION]]
                self._count_braces(kind, start)
                yield kind, start, position, None
                if kind == "LBRACK":
                    position = yield from self._block(start, position)
                elif kind == "SEMICOLON":
                    position = self._skip_semicolons(position) if is_statement else position
            elif group == _STATEMENT_COMMENT:
                self._keep_comment(start, position)
            else:
                name = Name(text_of(found[0].lstrip()), start, position)
                kind = "NAME" if kind == "DIGRAPH" else self._quoted_id(name, kind)
                yield kind, start, position, name

    def _plain_token(self, position: int) -> Token | None:
        """A run of plain statements at an offset, if there is one.

        Near the bound on statements it is one at a time, so that nothing after the bound can speak first.
        The parser counts statements only when it has seen what follows them: hence the last run.
        """
        if position == self._not_plain:
            return None
        most = max(1, self.statements_left - 1 - self._last_run)
        run, end = self._plain.read(position, most, with_groups=len(self.braces) < MAX_DEPTH)
        if run.total < most:
            self._not_plain = end
        if not run.total:
            return None
        self._last_run = run.total
        self.quoted_ids += run.quoted_ids
        return "PLAIN", run.statements[0].start, end, run

    def _word(self, word: str, start: int, end: int) -> Token:
        kind = _WORDS.get(word)
        if kind is not None:
            return kind, start, end, None
        self._refuse_keyword_in_capitals(word, start)
        return "ID", start, end, Name(word, start, end)

    def _block(self, bracket: int, position: int) -> Generator[Token, None, int]:
        """The tokens of an attribute block after its ``[``; returns where the block ends."""
        text, match = self.text, _BLOCK.match
        while True:
            found = match(text, position)
            if found is None:
                start = self._skip_blanks(position)
                raise attribute_mistakes.attribute_mistake(self.source, start, position, bracket)
            group = found.lastindex
            if group == _VALUE:
                attr = self._attr(found)
                position = attr.end
                yield "ATTR", attr.start, position, attr
            elif group == _SEPARATOR:
                start, position = found.span(_SEPARATOR)
                kind = _KINDS[found[_SEPARATOR]]
                yield kind, start, position, None
                if kind == "RBRACK":
                    return position
            else:
                start, position = found.span(group or 0)
                self._keep_comment(start, position)

    def _declaration_or_end(self, position: int, before: str) -> Token:
        start = self._skip_blanks(position)
        if start == len(self.text):
            return END, start, start, None
        found = _DECLARATION.match(self.text, start)
        if found is None:
            raise character_mistakes.statement_mistake(self.source, start, before)
        attr = self._attr(found)
        return "ATTR", start, attr.end, attr

    def _attr(self, found: re.Match[str]) -> Attr:
        name, literal = found[_BARE_NAME], found[_VALUE]
        value_start, end = found.span(_VALUE)
        if name is None:
            start, name_end = found.span(_QUOTED_NAME)
            name = text_of(found[_QUOTED_NAME])
        else:
            start, name_end = found.span(_BARE_NAME)
        attr = Attr(name, literal, start, name_end, value_start, end)
        if not is_attribute_name(name):
            raise attribute_mistakes.name_mistake(self.source, attr)
        if literal[0] != '"' and (literal.lower() in KEYWORDS or is_too_large(literal)):
            raise attribute_mistakes.value_mistake(self.source, attr)
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
            raise character_mistakes.statement_mistake(self.source, name.start, before)
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
                )
        elif kind == "RBRACE" and self.braces:
            self.braces.pop()

    def _skip_blanks(self, position: int) -> int:
        found = _BLANKS.match(self.text, position)
        return found.end() if found else position

    def _skip_semicolons(self, position: int) -> int:
        """Where semicolons end: between statements many are as good as one."""
        found = _SEMICOLONS.match(self.text, position)
        return found.end() if found else position

    def _look_for_forbidden_characters(self) -> None:
        if found := _FORBIDDEN.search(self.text):
            name = "a NUL character" if found[0] == "\0" else f"half a character (U+{ord(found[0]):04X})"
            raise DotSyntaxError(
                f"the text contains {name}",
                self.source.span(*found.span()),
                hint="the file is not a text, or it was read with the wrong encoding; use UTF-8",
            )
