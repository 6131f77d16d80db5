"""Differences of two texts: as lines for a terminal, and by words where marks can be shown."""

from __future__ import annotations

import re
import textwrap
from difflib import SequenceMatcher, unified_diff
from itertools import takewhile, zip_longest
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.views.markup import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

WRAP_AT: Final = 96
"""A model writes paragraphs as one line: a difference in it would be the whole paragraph."""
MAX_COMPARED: Final = 2_000
"""Lines of each text that are looked at; beyond, only whether they are equal is told."""
MAX_WORDS: Final = 1_200
"""Words, blanks and signs of two passages that are compared one by one; longer ones differ as a whole."""
MAX_ALL_WORDS: Final = 24_000
"""The same of all passages of a text."""
LIKE: Final = 0.4
"""Part of the shorter passage that must be in the other; with less, marks would be useless."""
KEPT: Final = 60
"""Of a long stretch without a change in a line, this number of characters is shown on either side."""
_AROUND: Final = 1
_WORDS: Final = re.compile(r"\w+|\s+|[^\w\s]")
_HEADS: Final = ("diff --git ", "index ", "new file ", "deleted file ", "rename ", "similarity ", "Index: ")
Piece = tuple[str, bool]
"""Words, and whether they are in this text alone."""
Row = tuple[str, list[Piece]]
"""A line: ``-``, ``+``, blank, ``@`` for a place and ``=`` for the name of a file; and its pieces."""


def text_diff(a: str, b: str, *, max_lines: int = 40) -> list[str]:
    r"""The lines that differ, each behind ``-`` (only in the first), ``+`` (only in the second) or a blank.

    Args:
        a: The first text.
        b: The second.
        max_lines: How many are given; then a line says how many more there are.

    >>> text_diff("one\ntwo", "one\nthree")
    [' one', '-two', '+three']
    """
    return _changed_lines(a, b, list(_wrapped(a)), list(_wrapped(b)), max_lines)


def word_diff(a: str, b: str, *, max_lines: int = 40) -> list[Row]:
    """The same with the words that differ; lines are not wrapped, long stretches without a change are cut.

    >>> word_diff("a red house", "a blue house")[0]
    ('-', [('-', False), ('a ', False), ('red', True), (' house', False)])
    """
    lines = _changed_lines(a, b, clean(a).splitlines(), clean(b).splitlines(), max_lines)
    return [(sign, _with_gaps(pieces)) for sign, pieces in marked_rows(lines, is_unified=False)]


def marked_rows(lines: Iterable[str], *, is_unified: bool = True) -> list[Row]:
    """The lines of a diff with the words marked that changed: of lines taken out before lines put in.

    Args:
        lines: Each behind ``-``, ``+`` or a blank.
        is_unified: There may be names of files and places (``@@``) among them.
    """
    given = list(lines)
    rows: list[Row] = []
    left = MAX_ALL_WORDS
    at = 0
    while at < len(given):
        line = given[at]
        if is_unified and (head := _head(given, at)):
            rows += [("=", [(text, False)]) for text in given[at : at + head]]
            at += head
        elif line.startswith("-"):
            gone = _block(given, at, "-")
            new = _block(given, at + len(gone), "+")
            pieces = _compared(gone, new, left)
            left -= sum(map(len, gone)) + sum(map(len, new))
            rows += pieces
            at += len(gone) + len(new)
        else:
            sign = "@" if line.startswith("@@") and is_unified else line[:1] if line[:1] == "+" else " "
            rows.append((sign, [(line, False)]))
            at += 1
    return rows


def word_sides(a: str, b: str) -> tuple[list[Any], list[Any]] | None:
    """Two short texts as nodes of ``prose.py``, the words marked that are in one alone; None if too unlike.

    >>> word_sides("n=1", "n=2")
    (['n=', ['del.word', '1']], ['n=', ['ins.word', '2']])
    """
    found = _marked_words(clean(a), clean(b), MAX_ALL_WORDS)
    if found is None:
        return None
    marks = ("del.word", "ins.word")
    before, after = (
        [[mark, words] if is_changed else words for words, is_changed in pieces]
        for mark, pieces in zip(marks, found, strict=True)
    )
    return before, after


def _changed_lines(a: str, b: str, lines_a: list[str], lines_b: list[str], max_lines: int) -> list[str]:
    if a == b:
        return []
    found = [
        line if not line.startswith("@@") else " …"
        for line in unified_diff(lines_a[:MAX_COMPARED], lines_b[:MAX_COMPARED], lineterm="", n=_AROUND)
    ][3:]  # two names and the first place
    if not found:
        beyond = len(lines_a) > MAX_COMPARED or len(lines_b) > MAX_COMPARED
        where = f"beyond line {MAX_COMPARED:,}" if beyond else "in blanks or characters that are not shown"
        return [f" they differ {where}"]
    if len(found) > max_lines:
        found[max_lines:] = [f" … {len(found) - max_lines} more lines"]
    return found


def _wrapped(text: str) -> Iterator[str]:
    for line in clean(text).splitlines():
        yield from textwrap.wrap(line, WRAP_AT, drop_whitespace=False) if len(line) > WRAP_AT else (line,)


def _head(lines: Sequence[str], at: int) -> int:
    """The number of lines from here on that name a file."""
    if lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
        return 2
    return int(lines[at].startswith(_HEADS))


def _block(lines: Sequence[str], at: int, sign: str) -> list[str]:
    end = at
    while end < len(lines) and lines[end].startswith(sign) and not (end > at and _head(lines, end) == 2):
        end += 1
    return list(lines[at:end])


def _compared(gone: list[str], new: list[str], left: int) -> list[Row]:
    """Lines taken out beside those put in their place: line by line if as many, else as one passage."""
    out, put = [line[1:] for line in gone], [line[1:] for line in new]
    if len(out) == len(put):
        pairs = [_marked_words(a, b, left) for a, b in zip(out, put, strict=True)]
        sides = [[pair[side] if pair else None for pair in pairs] for side in (0, 1)]
    else:
        found = _marked_words("\n".join(out), "\n".join(put), left) if out and put else None
        sides = [_lines_of(found[side]) if found else [] for side in (0, 1)]
    rows: list[Row] = []
    for sign, lines, marked in (("-", out, sides[0]), ("+", put, sides[1])):
        for line, pieces in zip_longest(lines, marked[: len(lines)]):
            rows.append((sign, [(sign, False), *(pieces or [(line, False)])]))
    return rows


def _marked_words(a: str, b: str, left: int) -> tuple[list[Piece], list[Piece]] | None:
    """Both texts in pieces; None where they are too unlike, or too long, to be compared word by word."""
    words_a, words_b = _WORDS.findall(a), _WORDS.findall(b)
    same = zip(words_a, words_b, strict=False)
    begin = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], same))
    same = zip(reversed(words_a[begin:]), reversed(words_b[begin:]), strict=False)
    end = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], same))
    inner_a, inner_b = words_a[begin : len(words_a) - end], words_b[begin : len(words_b) - end]
    if len(inner_a) + len(inner_b) > min(MAX_WORDS, left):
        return None
    matcher = SequenceMatcher(None, inner_a, inner_b, autojunk=False)
    common = [*words_a[:begin], *words_a[len(words_a) - end :]]
    for at, _, size in matcher.get_matching_blocks():
        common += inner_a[at : at + size]
    if _length(common) < LIKE * min(_length(words_a), _length(words_b)):
        return None
    first, last = "".join(words_a[:begin]), "".join(words_a[len(words_a) - end :])
    pieces_a: list[Piece] = [(first, False)] if first else []
    pieces_b = list(pieces_a)
    for tag, from_a, to_a, from_b, to_b in matcher.get_opcodes():
        is_changed = tag != "equal"
        _add(pieces_a, "".join(inner_a[from_a:to_a]), is_changed=is_changed)
        _add(pieces_b, "".join(inner_b[from_b:to_b]), is_changed=is_changed)
    _add(pieces_a, last, is_changed=False)
    _add(pieces_b, last, is_changed=False)
    return _bridged(pieces_a), _bridged(pieces_b)


def _length(words: Iterable[str]) -> int:
    """Characters of words, without the blanks among them."""
    return sum(len(word.strip()) for word in words)


def _add(pieces: list[Piece], words: str, *, is_changed: bool) -> None:
    if words:
        pieces.append((words, is_changed))


def _bridged(pieces: list[Piece]) -> list[Piece]:
    """Pieces in which a blank between two marked ones is marked as well."""
    joined: list[Piece] = []
    for at, (words, is_changed) in enumerate(pieces):
        is_between = 0 < at < len(pieces) - 1 and words.isspace() and "\n" not in words
        is_marked = is_changed or is_between
        if joined and joined[-1][1] == is_marked:
            joined[-1] = (joined[-1][0] + words, is_marked)
        else:
            joined.append((words, is_marked))
    return joined


def _lines_of(pieces: list[Piece]) -> list[list[Piece] | None]:
    """The pieces of a passage, line by line."""
    lines: list[list[Piece] | None] = []
    line: list[Piece] = []
    for words, is_changed in pieces:
        first, *others = words.split("\n")
        _add(line, first, is_changed=is_changed)
        for other in others:
            lines.append(line)
            line = []
            _add(line, other, is_changed=is_changed)
    return [*lines, line]


def _with_gaps(pieces: list[Piece]) -> list[Piece]:
    """A line in which long stretches without a change are cut; one without any change stays."""
    if not any(is_changed for _, is_changed in pieces):
        return pieces
    last = len(pieces) - 1
    found: list[Piece] = []
    for at, (words, is_changed) in enumerate(pieces):
        if is_changed or len(words) <= 3 * KEPT:
            found.append((words, is_changed))
            continue
        begin = words[:KEPT] if at > 1 else ""  # the sign is before it
        end = words[-KEPT:] if at < last else ""
        found.append((f"{begin} … {end}", False))
    return found
