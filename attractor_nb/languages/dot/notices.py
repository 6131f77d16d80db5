"""What is read although the subset does not have it: warnings, each with the edit that mends it.

Rulings 1 and 3: strict in what we write, generous in what we read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity, TextEdit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.languages.dot.syntax import Attr, Comment, Name
    from attractor_nb.source import SourceText, Span


def with_hash(source: SourceText, comment: Comment) -> Diagnostic:
    """A comment that begins with ``#``."""
    return _notice(
        "hash_comment",
        'a comment begins with "//", not "#"',
        source.span(comment.start, comment.end),
        "write the comment with //",
        TextEdit(source.span(comment.start, comment.start + 1), "//"),
    )


def quoted_id(source: SourceText, name: Name) -> Diagnostic:
    """A node or subgraph id in quotes."""
    span = source.span(name.start, name.end)
    return _notice(
        "quoted_id",
        f'the id "{name.text}" needs no quotes',
        span,
        f"write {name.text} without quotes",
        TextEdit(span, name.text),
    )


def bare_group(source: SourceText, brace: int) -> Diagnostic:
    """A group without the word ``subgraph``."""
    return _notice(
        "bare_group",
        'a group begins with the word "subgraph"',
        source.span(brace, brace + 1),
        "write subgraph before the brace",
        TextEdit(source.span(brace, brace), "subgraph "),
    )


def hidden_direction(source: SourceText, offset: int, character: str) -> Diagnostic:
    """An invisible character that makes a text look other than it is read."""
    span = source.span(offset, offset + 1)
    return _notice(
        "bidi_control",
        f"the invisible character {character} makes this line look other than it is read",
        span,
        "remove the character",
        TextEdit(span, ""),
    )


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
    return _notice(
        "attr_separator",
        "attributes are separated by commas",
        separator_span(source, gaps[0]),
        "put a comma between the attributes",
        *edits,
    )


def separator_span(source: SourceText, gap: tuple[Attr, int | None, Attr]) -> Span:
    """Where a separator is wrong: the semicolon, or the name that should follow a comma."""
    _, semicolon, after = gap
    if semicolon is not None:
        return source.span(semicolon, semicolon + 1)
    return source.span(after.start, after.name_end)


def _notice(rule: str, message: str, span: Span, title: str, *edits: TextEdit) -> Diagnostic:
    return Diagnostic(rule, Severity.WARNING, message, fix=Fix(title, edits), span=span)
