"""What is read although the subset does not have it: warnings, each with the edit that mends it.

Rulings 1 and 3: strict in what we write, generous in what we read. A habit gives one warning a text,
whose fix mends every place.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity, TextEdit

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attractor_nb.languages.dot.syntax import Attr, Comment, Name
    from attractor_nb.source import SourceText, Span

_DIRECTION: Final = re.compile("[\u202a-\u202e\u2066-\u2069]+")


def hash_comments(source: SourceText, comments: Iterable[Comment]) -> list[Diagnostic]:
    """Comments that begin with ``#``."""
    hashes = [comment for comment in comments if comment.text.startswith("#")]
    edits = [TextEdit(source.span(comment.start, comment.start + 1), "//") for comment in hashes]
    first = source.span(hashes[0].start, hashes[0].end) if hashes else None
    return _notice(
        "hash_comment", 'comments begin with "//", not "#"', "write comments with //", edits, first
    )


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
