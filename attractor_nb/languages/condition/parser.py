"""Condition text to syntax tree, or one of our errors with a caret (spec 10.2, ruling 11).

What is right but deserves a word, aliases, slips and missing quotes, gives notices. Their fixes are in the
coordinates of the condition's own text; whoever knows what the text is embedded in carries them outwards.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

from attractor_nb.errors import ConditionSyntaxError
from attractor_nb.languages.condition.syntax import Clause, Condition, Operator
from attractor_nb.languages.syntax_trees import Branch, ReadingStoppedError, Token, parse_tree
from attractor_nb.lazy_imports import later
from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity, TextEdit
from attractor_nb.model.nearest_name import did_you_mean, nearest
from attractor_nb.model.outcome import StageStatus, read_status
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from attractor_nb.languages.condition import mistakes
    from attractor_nb.source import Span
else:
    mistakes = later("attractor_nb.languages.condition.mistakes")

MAX_CHARACTERS: Final = 10_000
"""How long a condition may be: it is evaluated after each visit, and people have to read it."""
_OTHER_NUMBER: Final = re.compile(
    r"[+-]?0[0-9]{1,30}(?:\.[0-9]{0,30})?|[+][0-9]{1,30}(?:\.[0-9]{1,30})?|[+-]?(?:[0-9]{1,30}\.|\.[0-9]{1,30})"
)
"""A number that JSON would not write so: with a leading zero or plus, or without digits beside its point."""
_ESCAPE = re.compile(r"\\([\"\\])")


def parse_condition(text: str | SourceText) -> Condition:
    r"""Read a condition; a blank one has no clauses and always holds.

    >>> str(parse_condition('outcome=success && context.note != "two words"'))
    'outcome=success && context.note!=two words'
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
        raise mistakes.diagnose(source, stopped.offset, stopped.expected) from None
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
    if not literal.is_quoted and literal.has_blanks and (error := mistakes.reserved_word_error(literal.span)):
        raise error
    notices = _literal_notices(key.text, literal)
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


NOTICE_RULES = ("outcome_alias", "outcome_unknown", "status_as_key", "literal_unquoted", "literal_spelling")
"""Rules that reading a condition can give notice of."""


def _literal_notices(key: str, written: _Literal) -> list[Diagnostic]:
    """Notices about the literal of a clause; one in quotes is a text on purpose."""
    literal, span = written.text, written.span
    if key == "outcome":
        status = read_status(literal)
        if status is None:
            return [_unknown_outcome(literal, span)]
        if status != literal:
            message = f'"{literal}" is read as the status "{status}"'
            return [_notice("outcome_alias", Severity.INFO, message, span, f'write "{status}"', status.value)]
        return []
    if written.has_blanks:
        message = f'the literal "{literal}" has several words and no quotes'
        return [_notice("literal_unquoted", Severity.WARNING, message, span, "quote it", f'"{literal}"')]
    if not written.is_quoted and key != "preferred_label" and (meant := _meant(literal)):
        message = f'"{literal}" matches only the text "{literal}", and never {meant[0]}'
        return [_notice("literal_spelling", Severity.WARNING, message, span, f"write {meant[1]}", meant[1])]
    return []


def _meant(literal: str) -> tuple[str, str] | None:
    """The value that a literal spells as another language does, in words and as it is written here."""
    if literal.lower() in {"true", "false"} and not literal.islower():
        return f"the value {literal.lower()}", literal.lower()
    if _OTHER_NUMBER.fullmatch(literal):
        number = format(Decimal(literal).normalize(), "f")
        return f"the number {number}", number
    return None


def truth_notices(key: str, span: Span) -> list[Diagnostic]:
    """Notices about a key that stands alone."""
    if status := read_status(key):
        message = f'"{key}" refers to a context value of that name, not to the outcome'
        replacement = f"outcome={status}"
        return [_notice("status_as_key", Severity.WARNING, message, span, f"write `{replacement}`", replacement)]
    return []


def _unknown_outcome(literal: str, span: Span) -> Diagnostic:
    statuses = [status.value for status in StageStatus]
    message = f'"{literal}" is not a status, so the comparison never matches{did_you_mean(literal, statuses)}'
    if near := nearest(literal, statuses):
        return _notice("outcome_unknown", Severity.WARNING, message, span, f'write "{near}"', near)
    title = (
        f"use one of {', '.join(statuses)}; for a word of your own write preferred_label={literal}, which a stage sets"
    )
    return Diagnostic("outcome_unknown", Severity.WARNING, message, fix=Fix(title), span=span)


def _notice(rule: str, severity: Severity, message: str, span: Span, title: str, text: str) -> Diagnostic:
    return Diagnostic(rule, severity, message, fix=Fix(title, (TextEdit(span, text),)), span=span)


_REPAIRS = (
    (re.compile(r"(!?)={2,3}"), r"\1="),
    (re.compile(r"(?<![!=])=!(?!=)|<>"), "!="),
    (re.compile(r"(?<!\s)\s*+(?<!&)&(?!&)\s*+"), " && "),
    (re.compile(r"(?<!\s)\s++and\s++", re.IGNORECASE), " && "),
    (re.compile(r"(?<==)(\s*+)'([^'\"\\]*+)'"), r'\1"\2"'),
    (re.compile(r"\A\s*+&&|&&(?=\s*+\Z)"), ""),
)
_SIGN = re.compile(r"[&=<!']|\band\b", re.IGNORECASE)


def mend_condition(text: str) -> str | None:
    """The condition that was most likely meant, or None when no one reading is safe.

    Only spellings with one possible meaning are repaired: `or` has none in this language.

    >>> mend_condition("outcome == 'success' and context.ok=true")
    'outcome = "success" && context.ok=true'
    """
    if len(text) > MAX_CHARACTERS:
        return None
    if any(_SIGN.search(between) for between in text.split('"')[1:-1]):
        return None  # a repair could change quoted data
    mended = text
    for pattern, replacement in _REPAIRS:
        mended = pattern.sub(replacement, mended)
    mended = mended.strip()
    if mended == text or not mended:
        return None
    try:
        parse_condition(mended)
    except ConditionSyntaxError:
        return None
    return mended
