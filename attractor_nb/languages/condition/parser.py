"""Condition text to syntax tree, or one of our errors with a caret (spec 10.2, ruling 11)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from attractor_nb.languages.condition.mistakes import diagnose, reserved_word_error
from attractor_nb.languages.condition.notices import literal_notices, truth_notices
from attractor_nb.languages.condition.syntax import Clause, Condition, Operator
from attractor_nb.languages.parse_tables import ReadingStoppedError, parse_tree
from attractor_nb.model.outcome import read_status
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from lark import Token, Tree

    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.source import Span

_ESCAPE = re.compile(r"\\([\"\\])")


def parse_condition(text: str | SourceText) -> Condition:
    r"""Read a condition; a blank one has no clauses and always holds.

    >>> str(parse_condition('outcome=success && context.note != "two words"'))
    'outcome=success && context.note!=two words'

    Raises:
        ConditionSyntaxError: It is outside the language; the span is in the given text.
    """
    source = SourceText(text, "<condition>") if isinstance(text, str) else text
    try:
        tree = parse_tree("attractor_nb.languages.condition", source.text)
    except ReadingStoppedError as stopped:
        raise diagnose(source, stopped.offset, stopped.expected) from None
    return _condition(source, tree)


class _Literal(NamedTuple):
    text: str
    span: Span
    is_quoted: bool
    has_blanks: bool


def _condition(source: SourceText, tree: Tree[Token]) -> Condition:
    clauses: list[Clause] = []
    notices: list[Diagnostic] = []
    for part in tree.children:
        if isinstance(part, str):
            continue
        clause, found = _truth(source, part) if part.data == "truth" else _comparison(source, part)
        clauses.append(clause)
        notices.extend(found)
    return Condition(tuple(clauses), tuple(notices))


def _truth(source: SourceText, tree: Tree[Token]) -> tuple[Clause, list[Diagnostic]]:
    (key,) = _tokens(tree)
    span = _span(source, key, key)
    return Clause(str(key), span=span), truth_notices(str(key), span)


def _comparison(source: SourceText, tree: Tree[Token]) -> tuple[Clause, list[Diagnostic]]:
    key, operator, *parts = _tokens(tree)
    literal = _literal(source, parts)
    if not literal.is_quoted and literal.has_blanks and (error := reserved_word_error(literal.span)):
        raise error
    notices = literal_notices(str(key), literal.text, literal.span, needs_quotes=literal.has_blanks)
    text = literal.text
    if key == "outcome" and (status := read_status(text)):
        text = status.value
    clause = Clause(str(key), Operator(str(operator)), text, _span(source, key, parts[-1]))
    return clause, notices


def _literal(source: SourceText, parts: list[Token]) -> _Literal:
    span = _span(source, parts[0], parts[-1])
    if parts[0].type == "QUOTED":
        return _Literal(_ESCAPE.sub(r"\1", span.text[1:-1]), span, is_quoted=True, has_blanks=False)
    return _Literal(span.text, span, is_quoted=False, has_blanks=len(parts) > 1)


def _tokens(tree: Tree[Token]) -> list[Token]:
    """All tokens of a clause, those of its literal included, in source order."""
    tokens: list[Token] = []
    for child in tree.children:
        if isinstance(child, str):
            tokens.append(child)
        else:
            tokens.extend(leaf for leaf in child.children if isinstance(leaf, str))
    return tokens


def _span(source: SourceText, first: Token, last: Token) -> Span:
    assert first.start_pos is not None
    assert last.end_pos is not None
    return source.span(first.start_pos, last.end_pos)
