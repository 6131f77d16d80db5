"""Source texts, spans and caret excerpts.

Every message that points into a text goes through here: this is the only module that counts lines
and columns (both 1-based, columns in characters). A span is a pair of offsets and knows its text, so
positions cost nothing until requested. A text may be *embedded* in another one, as a
condition is in a DOT string: its spans then point into the outer file, through the escapes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from attractor_nb.redaction import MARK, secret_places

if TYPE_CHECKING:
    import re

TAB_WIDTH = 4
MAX_EXCERPT_COLUMNS = 160

OffsetMap = Callable[[], Sequence[int]]


@dataclass(frozen=True)
class SourceText:
    """A named text that spans point into."""

    text: str  #: The whole text.
    name: str = "<string>"  #: Its name in messages: a file path, ``<cell>``, ``<string>``.
    first_line: int = 1  #: The number of its first line; 2 for a cell body below its magic line.
    #: Place of an embedded text: the span of the literal in the outer text, else None.
    host: Span | None = field(default=None, compare=False, repr=False)
    #: Gives, for each offset of this text (and one past the end), the offset in the outer text. Called only when
    #: a position is asked for.
    host_offsets: OffsetMap | None = field(default=None, compare=False, repr=False)

    @cached_property
    def host_table(self) -> Sequence[int]:
        """The result of ``host_offsets``, computed once: a text may have many findings."""
        return array("q", self.host_offsets() if self.host_offsets else ())

    @cached_property
    def _line_starts(self) -> list[int]:
        starts = [0]
        find = self.text.find
        position = find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = find("\n", position + 1)
        return starts

    def span(self, start: int, end: int) -> Span:
        """The span from offset ``start`` up to, not including, ``end``."""
        # In half the time of Span(…): a large text has a hundred thousand.
        return tuple.__new__(Span, (self, start, end))  # type: ignore[reportUnknownMemberType]

    def span_before(self, offset: int, backwards: re.Pattern[str]) -> Span | None:
        """The first group of a pattern that is matched from an offset on against the text, read backwards.

        It takes as long as what it reads: a search for what ends there would begin at each place before it.
        """
        found = backwards.match(self.text[:offset][::-1])
        return None if found is None else self.span(offset - found.end(1), offset - found.start(1))

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column of an offset."""
        row = bisect_right(self._line_starts, offset) - 1
        return row + self.first_line, offset - self._line_starts[row] + 1

    def line(self, number: int) -> str:
        """The text of a line, numbered as in ``position``, without its line end."""
        start, end = self.line_ends(number)
        return self.text[start:end]

    def line_ends(self, number: int) -> tuple[int, int]:
        """The offsets at which a line begins and ends, without its line end."""
        row = number - self.first_line
        start = self._line_starts[row]
        end = self._line_starts[row + 1] if row + 1 < len(self._line_starts) else len(self.text)
        while end > start and self.text[end - 1] in "\r\n":
            end -= 1
        return start, end

    def without_secrets(self, offset: int) -> tuple[SourceText, int]:
        """The text as it may be shown, and where an offset is in it."""
        places = self._secret_places
        if not places:
            return self, offset
        pieces: list[str] = []
        position, shown_offset = 0, offset
        for start, end in places:
            pieces += [self.text[position:start], MARK]
            if start < offset:  # what points into a secret points to its mark
                shown_offset += start - min(offset, end)
                shown_offset += len(MARK) if offset >= end else 0
            position = end
        return SourceText("".join([*pieces, self.text[position:]]), self.name), shown_offset

    @cached_property
    def _secret_places(self) -> list[tuple[int, int]]:
        return secret_places(self.text)

    def embedded(self, host: Span, text: str, host_offsets: OffsetMap) -> SourceText:
        """A text that lives inside ``host``, a span of this text."""
        return SourceText(text, self.name, host=host, host_offsets=host_offsets)


class Span(NamedTuple):
    """A half-open range of offsets in a source text. Spans compare by text and offsets."""

    source: SourceText
    start: int
    end: int

    def __repr__(self) -> str:
        return f"Span(start={self.start}, end={self.end})"

    @property
    def text(self) -> str:
        """The characters under the span."""
        return self.source.text[self.start : self.end]

    def outermost(self) -> Span:
        """The same place in the outermost text: the file or cell that the user wrote."""
        host, table = self.source.host, self.source.host_table
        if host is None or not table:
            return self
        start = table[self.start]
        end = max(table[self.end], start + 1) if self.end > self.start else start
        return Span(host.source, start, end).outermost()

    @property
    def line(self) -> int:
        """1-based line of the first character, in the outermost text."""
        outer = self.outermost()
        return outer.source.position(outer.start)[0]

    @property
    def column(self) -> int:
        """1-based column of the first character, in the outermost text."""
        outer = self.outermost()
        return outer.source.position(outer.start)[1]

    @property
    def place(self) -> str:
        """``name:line:column`` of the first character, as compilers and editors write it."""
        return f"{self.outermost().source.name}:{self.line}:{self.column}"


def render_excerpt(span: Span) -> list[str]:
    r"""The lines that show a span: its place, its first line, and carets under the whole of it.

    A span of several lines is shown by its first line. Tabs are widened, control and bidirectional
    characters are made visible, and very long lines are cut around the span, so that the carets
    always are under the offending text.

    >>> source = SourceText("a -- b", "demo.dot")
    >>> print("\n".join(render_excerpt(source.span(2, 4))))
      --> demo.dot:1:3
     1 |  a -- b
       |    ^^
    """
    outer = span.outermost()
    line, place = outer.source.position(outer.start)
    shown, start = outer.source.without_secrets(outer.start)
    shown_line, column = shown.position(start)
    line_start, line_end = shown.line_ends(shown_line)
    end = outer.source.without_secrets(outer.end)[1]
    length = max(1, min(end - start, line_end - line_start - column + 1))
    cut = 0
    if line_end - line_start > MAX_EXCERPT_COLUMNS:
        # Of a long line only what is shown is copied: thousands of spans may be in it.
        cut = max(0, column - 1 - MAX_EXCERPT_COLUMNS // 3)
        line_end = min(line_end, line_start + cut + MAX_EXCERPT_COLUMNS)
    raw = shown.text[line_start + cut : line_end]
    before = _visible(raw[: column - 1 - cut])
    under = _visible(raw[column - 1 - cut : column - 1 - cut + length])
    after = _visible(raw[column - 1 - cut + length :])
    lead = "…" if cut else ""
    number = str(line)
    margin = " " * len(number)
    return [
        f"  --> {outer.source.name}:{line}:{place}",
        f" {number} |  {lead}{before}{under}{after}",
        f" {margin} |  {' ' * (len(lead) + len(before))}{'^' * max(1, len(under))}",
    ]


def _visible(text: str) -> str:
    """The text with tabs widened and every character that would move the carets replaced."""
    if text.isprintable():
        return text
    return "".join(
        " " * TAB_WIDTH if char == "\t" else char if char.isprintable() else "\N{SYMBOL FOR SUBSTITUTE}"
        for char in text
    )
