"""Condition text to syntax tree, or one of our errors with a caret (spec 10.2, ruling 11)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.errors import ConditionSyntaxError
from attractor_nb.languages.condition.mistakes import diagnose, reserved_word_error
from attractor_nb.languages.condition.notices import literal_notices, truth_notices
from attractor_nb.languages.condition.syntax import Clause, Condition, Operator
from attractor_nb.languages.syntax_trees import Branch, ReadingStoppedError, Token, parse_tree
from attractor_nb.model.outcome import read_status
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.source import Span

MAX_CHARACTERS: Final = 10_000
"""How long a condition may be: it is evaluated after each visit, and people have to read it."""
_ESCAPE = re.compile(r"\\([\"\\])")


def parse_condition(text: str | SourceText) -> Condition:
    r"""Read a condition; a blank one has no clauses and always holds.

    >>> str(parse_condition('outcome=success && context.note != "two words"'))
    'outcome=success && context.note!=two words'

    Raises:
        ConditionSyntaxError: It is outside the language; the span is in the given text.
    """
    source = SourceText(text, "<condition>") if isinstance(text, str) else text
    if len(source.text) > MAX_CHARACTERS:
        raise ConditionSyntaxError(
            f"the condition is longer than {MAX_CHARACTERS:,} characters",
            source.span(MAX_CHARACTERS, MAX_CHARACTERS + 1),
            hint="let a stage put one answer in the context and compare that",
        )
    try:
        tree = parse_tree("condition", source.text)
    except ReadingStoppedError as stopped:
        raise diagnose(source, stopped.offset, stopped.expected) from None
    return _condition(source, tree)


class _Literal(NamedTuple):
    text: str
    span: Span
    is_quoted: bool
    has_blanks: bool


def _condition(source: SourceText, tree: Branch) -> Condition:
    clauses: list[Clause] = []
    notices: list[Diagnostic] = []
    for part in tree.branches:
        clause, found = _truth(source, part) if part.rule == "truth" else _comparison(source, part)
        clauses.append(clause)
        notices.extend(found)
    return Condition(tuple(clauses), tuple(notices))


def _truth(source: SourceText, branch: Branch) -> tuple[Clause, list[Diagnostic]]:
    (key,) = branch.tokens
    span = source.span(key.start, key.end)
    return Clause(key.text, span=span), truth_notices(key.text, span)


def _comparison(source: SourceText, branch: Branch) -> tuple[Clause, list[Diagnostic]]:
    key, operator = branch.tokens
    literal = _literal(source, branch.branches[0].tokens)
    if not literal.is_quoted and literal.has_blanks and (error := reserved_word_error(literal.span)):
        raise error
    notices = literal_notices(key.text, literal.text, literal.span, needs_quotes=literal.has_blanks)
    text = literal.text
    if key.text == "outcome" and (status := read_status(text)):
        text = status.value
    clause = Clause(key.text, Operator(operator.text), text, source.span(key.start, literal.span.end))
    return clause, notices


def _literal(source: SourceText, parts: list[Token]) -> _Literal:
    span = source.span(parts[0].start, parts[-1].end)
    if parts[0].kind == "QUOTED":
        return _Literal(_ESCAPE.sub(r"\1", span.text[1:-1]), span, is_quoted=True, has_blanks=False)
    return _Literal(span.text, span, is_quoted=False, has_blanks=len(parts) > 1)
