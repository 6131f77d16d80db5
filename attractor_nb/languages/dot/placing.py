"""Where new text goes and what is taken out with an old one, so that a change touches as few lines as it can.

Comments outside of what is removed stay, as do order, indentation and line ends. Knows statements and lines,
not what they mean.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.languages.dot.comments import leading_comments
from attractor_nb.languages.dot.syntax import NodeStatement, SubgraphStatement
from attractor_nb.languages.dot.writer import INDENT
from attractor_nb.model.diagnostic import TextEdit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from attractor_nb.languages.dot.syntax import Attr, Block, DotTree, Placed, Statement

_BLANKS: Final = re.compile(r"[ \t\r]*+")
_SPACE: Final = re.compile(r"[ \t\r\n]*+")


class PlacedStatement(NamedTuple):
    """A statement and the groups that it stands in, outermost first."""

    statement: Statement
    groups: tuple[SubgraphStatement, ...]


def placed_statements(tree: DotTree) -> Iterator[PlacedStatement]:
    """All statements but groups, in source order; groups nest no deeper than the lexer allows."""

    def walk(body: Sequence[Statement], groups: tuple[SubgraphStatement, ...]) -> Iterator[PlacedStatement]:
        for statement in body:
            if isinstance(statement, SubgraphStatement):
                yield from walk(statement.body, (*groups, statement))
            else:
                yield PlacedStatement(statement, groups)

    return walk(tree.body, ())


class Page:
    """The text of a tree as lines, for placing changes in it."""

    def __init__(self, tree: DotTree) -> None:
        self.tree = tree
        self.text = tree.source.text
        first_end = self.text.find("\n")
        self.newline = "\r\n" if first_end > 0 and self.text[first_end - 1] == "\r" else "\n"
        self._starts = [comment.start for comment in tree.comments]

    def replace(self, start: int, end: int, text: str) -> TextEdit:
        """The edit that puts a text in place of what stands between two offsets."""
        return TextEdit(self.tree.source.span(start, end), text)

    # -- statements ------------------------------------------------------------------------------------

    def insert_after(self, statement: Placed, text: str) -> TextEdit:
        """A statement behind another one: on a line of its own if that one ends its line."""
        end = self._end_of_line(statement.end)
        if end is None:
            return self.replace(statement.end, statement.end, f"; {text}")
        return self.replace(end, end, f"{self.newline}{self.indent(statement.start)}{text}")

    def insert_before(self, statement: Placed, text: str) -> TextEdit:
        """A statement before another one and the comments that lead to it."""
        comments = leading_comments(self.tree).get(statement.start, ())
        start = min([statement.start, *(comment.start for comment in comments)])
        line = self._line_start(start)
        if self.text[line:start].strip():
            return self.replace(start, start, f"{text}; ")
        return self.replace(line, line, f"{self.indent(start)}{text}{self.newline}")

    def insert_last(self, text: str) -> TextEdit:
        """A statement at the end of the graph's body."""
        if self.tree.body:
            return self.insert_after(self.tree.body[-1], text)
        close = self.tree.end - 1
        line, outer = self._line_start(close), self.indent(self.tree.body_start)
        if line > self.tree.body_start and not self.text[line:close].strip():
            return self.replace(line, line, f"{outer}{INDENT}{text}{self.newline}")
        return self.replace(close, close, f"{self.newline}{outer}{INDENT}{text}{self.newline}{outer}")

    def separator_before(self, statement: Placed) -> str:
        """What to put between a statement and another one that takes a part of it."""
        line = self._line_start(statement.start)
        if self.text[line : statement.start].strip():
            return "; "
        return f"{self.newline}{self.indent(statement.start)}"

    def remove(self, statement: Placed) -> TextEdit:
        """Take a statement out, with its line if nothing else stands there."""
        start, end = statement.start, self._past(statement.end, ";")
        line = self._line_start(start)
        after = self._skip(_BLANKS, end)
        is_last_on_line = self.text.startswith("\n", after)
        if is_last_on_line and not self.text[line:start].strip():
            return self.replace(line, after + 1, "")
        end = end if is_last_on_line else after
        is_glue = (self.text[start - 1] + self.text[end]).replace("_", "a").isalnum()
        return self.replace(start, end, " " if is_glue else "")

    # -- attributes ------------------------------------------------------------------------------------

    def add_attribute(self, block: Block | None, end: int, pair: str) -> list[TextEdit]:
        """Add ``name=value`` to a block; without one, make it at ``end`` of the statement."""
        if block is None:
            return [self.replace(end, end, f" [{pair}]")]
        if not block.attrs:
            return [self.replace(block.start + 1, block.start + 1, pair)]
        last = block.attrs[-1]
        if self.text[self._line_start(last.start) : last.start].strip():
            return [self.replace(last.end, last.end, f", {pair}")]
        new_line = f"{self.newline}{self.indent(last.start)}{pair}"
        line_end = self._end_of_line(last.end)
        separator = self._separator(last.end)
        if line_end is None or not self._has_comment(last.end, line_end):
            return [self.replace(last.end, last.end, f",{new_line}")]
        # A comment stands behind the last one: it stays there.
        comma = [] if separator else [self.replace(last.end, last.end, ",")]
        return [*comma, self.replace(line_end, line_end, new_line + separator)]

    def remove_attribute(self, statement: Placed, block: Block, gone: Attr) -> list[TextEdit]:
        """Take one attribute out of a block; the last one takes the block with it, if no comment is in it."""
        if len(block.attrs) == 1 and not self._has_comment(block.start, block.end):
            start = block.start
            if not self._has_comment(statement.start, start):
                start = statement.start + len(self.text[statement.start : start].rstrip())
            return [self.replace(start, block.end, "")]
        end = self._past(gone.end, ",;")
        line, after = self._line_start(gone.start), self._skip(_BLANKS, end)
        at = block.attrs.index(gone)
        if at and at == len(block.attrs) - 1 and end == gone.end:
            before = block.attrs[at - 1].end
            if not self._has_comment(before, gone.start):
                return [self.replace(before, gone.end, "")]
        is_last_on_line = self.text.startswith("\n", after)
        if is_last_on_line and not self.text[line : gone.start].strip():
            return [self.replace(line, after + 1, "")]
        if end == gone.end:  # no separator, or a comment before it
            found = self._separator_place(gone.end)
            comma = [] if found is None else [self.replace(found, found + 1, "")]
            stop = after if found is None and not is_last_on_line else gone.end
            return [self.replace(gone.start, stop, ""), *comma]
        return [self.replace(gone.start, end if is_last_on_line else after, "")]

    # -- lines -----------------------------------------------------------------------------------------

    def indent(self, offset: int) -> str:
        """What stands before the first character of a line."""
        line = self._line_start(offset)
        return self.text[line : self._skip(_BLANKS, line)].replace("\r", "")

    def column_gap(self, statement: Statement) -> int:
        """How wide a node's id is with the blanks before its block; 0 where one blank stands."""
        if not isinstance(statement, NodeStatement) or statement.block is None:
            return 0
        between = self.text[statement.id.end : statement.block.start]
        return statement.block.start - statement.start if len(between) > 1 and between.isspace() else 0

    def _line_start(self, offset: int) -> int:
        return self.text.rfind("\n", 0, offset) + 1

    def _skip(self, what: re.Pattern[str], offset: int) -> int:
        found = what.match(self.text, offset)
        return found.end() if found else offset

    def _past(self, offset: int, separators: str) -> int:
        """Past a separator that stands there, blanks before it included; the offset itself without one."""
        place = self._skip(_BLANKS, offset)
        return place + 1 if self.text[place : place + 1] in tuple(separators) else offset

    def _end_of_line(self, offset: int) -> int | None:
        """Where the line of an offset ends, its separator and comments passed; None if more stands on it."""
        while True:
            offset = self._past(offset, ",;")
            after = self._skip(_BLANKS, offset)
            if after == len(self.text) or self.text[after] == "\n":
                return after - 1 if after > offset and self.text[after - 1] == "\r" else after
            comment = self._comment_at(after)
            if comment is None:
                return None
            offset = comment

    def _comment_at(self, offset: int) -> int | None:
        """The end of the comment that begins at an offset."""
        at = bisect_left(self._starts, offset)
        if at < len(self._starts) and self._starts[at] == offset:
            comment = self.tree.comments[at]
            return comment.end - 1 if comment.text.endswith("\r") else comment.end
        return None

    def _has_comment(self, start: int, end: int) -> bool:
        at = bisect_left(self._starts, start)
        return at < len(self._starts) and self._starts[at] < end

    def _separator(self, offset: int) -> str:
        place = self._separator_place(offset)
        return "" if place is None else self.text[place]

    def _separator_place(self, offset: int) -> int | None:
        """Where the separator behind an attribute stands, comments passed; None without one."""
        while True:
            offset = self._skip(_SPACE, offset)
            comment = self._comment_at(offset)
            if comment is None:
                return offset if self.text[offset : offset + 1] in {",", ";"} else None
            offset = comment
