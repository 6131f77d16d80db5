"""Condition text to syntax tree, or one of our errors with a caret (spec 10.2, ruling 11).

What is right but deserves a word, aliases, slips and missing quotes, gives notices. Their fixes are in the
coordinates of the condition's own text; a caller that knows the outer text translates them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from attractor_nb.errors import ConditionSyntaxError
from attractor_nb.languages.syntax_trees import Branch, ReadingStoppedError, Token, parse_tree
from attractor_nb.lazy_imports import later
from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity, TextEdit
from attractor_nb.model.outcome import StageStatus, read_status
from attractor_nb.model.texts import did_you_mean, nearest
from attractor_nb.model.vocabulary.value_forms import named_value, normalize_label
from attractor_nb.source import SourceText, Span

if TYPE_CHECKING:
    from attractor_nb.languages.condition import mistakes
else:
    mistakes = later("attractor_nb.languages.condition.mistakes")


MAX_CHARACTERS: Final = 10_000
"""Longest condition: it is evaluated after each visit, and a person must be able to read it."""
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
    if literal in {"null", "None"}:
        return "the value null", '""'
    if _OTHER_NUMBER.fullmatch(literal):
        number = format(Decimal(literal).normalize(), "f")
        return f"the number {number}", number
    return None


def truth_notices(key: str, span: Span) -> list[Diagnostic]:
    """Notices about a key that is alone."""
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


# The evaluation of a condition: whether it holds, and why (spec 10.3-10.5, rulings 11, 50).
#
# Values are data: a literal is compared with what they mean (ruling 50), and they are never read as part of a
# condition.

Lookup = Callable[[str], object]
"""Gives a context value by key, None when it is missing."""

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,400})(?:\.[0-9]{1,400})?(?:[eE][-+]?[0-9]{1,4})?")
"""As JSON writes it, and no longer than any number of a context."""


class ClauseVerdict(msgspec.Struct, frozen=True):
    """The result of one clause."""

    clause: str  #: The clause as text.
    value: str  #: Value of its key, as text.
    holds: bool  #: True if the clause held.


def evaluate_condition(condition: Condition, outcome_status: str, preferred_label: str, lookup: Lookup) -> bool:
    """True if every clause holds.

    Args:
        condition: A parsed condition.
        outcome_status: The status that ``outcome`` stands for.
        preferred_label: The label that ``preferred_label`` stands for, or empty.
        lookup: The run's context.

    >>> from attractor_nb.languages.condition.parser import parse_condition
    >>> condition = parse_condition("outcome=success && context.ok=true")
    >>> evaluate_condition(condition, "success", "", {"ok": True}.get)
    True
    """
    for clause in condition.clauses:
        if not _holds(clause, _value(clause.key, outcome_status, preferred_label, lookup)):
            return False
    return True


def explain_condition(
    condition: Condition, outcome_status: str, preferred_label: str, lookup: Lookup
) -> list[ClauseVerdict]:
    """The verdict of each clause and the value that it sees; for messages."""
    verdicts: list[ClauseVerdict] = []
    for clause in condition.clauses:
        value = _value(clause.key, outcome_status, preferred_label, lookup)
        verdicts.append(ClauseVerdict(str(clause), value_text(value), _holds(clause, value)))
    return verdicts


def value_text(value: object) -> str:
    """A context value as text: itself, or its JSON spelling; empty for None.

    >>> value_text(True), value_text(3), value_text("yes"), value_text(None)
    ('true', '3', 'yes', '')
    """
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def value_at_key(key: str, lookup: Lookup) -> object:
    """The value of a key that is neither ``outcome`` nor ``preferred_label``; None when nothing has set it."""

    def stored(name: str, default: object) -> object:
        found = lookup(name)
        return default if found is None else found

    return named_value(stored, key)


def _value(key: str, outcome_status: str, preferred_label: str, lookup: Lookup) -> object:
    if key == "outcome":
        return outcome_status
    if key == "preferred_label":
        return preferred_label
    return value_at_key(key, lookup)


def _holds(clause: Clause, value: object) -> bool:
    if clause.operator is Operator.IS_TRUE:
        return bool(value)
    literal = clause.literal
    if clause.key == "preferred_label":
        is_equal = normalize_label(value_text(value)) == normalize_label(literal)
    else:
        is_equal = _is_equal(value, literal)
    return is_equal is (clause.operator is Operator.EQUALS)


def _is_equal(value: object, literal: str) -> bool:
    """Compare a value with what a literal means: a text without its trailing line breaks, a number, a truth value."""
    if isinstance(value, str):
        return value.rstrip("\r\n") == literal.rstrip("\r\n")
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _NUMBER.fullmatch(literal) is not None and Decimal(literal) == Decimal(repr(value))
    return value_text(value) == literal


# The syntax tree of a condition (spec 10.2).


class Operator(StrEnum):
    """The comparison of a clause's key with its literal."""

    EQUALS = "="
    DIFFERS = "!="
    IS_TRUE = ""
    """A key alone: whether its value is true as Python takes it; every text but the empty one is (ruling 50)."""


@dataclass(frozen=True, slots=True)
class Clause:
    """One comparison."""

    key: str  #: The key of the lookup: ``outcome``, ``preferred_label``, or a context key.
    operator: Operator = Operator.IS_TRUE  #: Its comparison.
    #: The text it is compared with: quotes and escapes resolved, outcome aliases replaced by the status they mean
    #: (ruling 11). Empty when the key is alone.
    literal: str = ""
    span: Span | None = field(default=None, compare=False, repr=False)  #: The whole clause.

    def __str__(self) -> str:
        return f"{self.key}{self.operator}{self.literal}"


@dataclass(frozen=True, slots=True)
class Condition:
    """Clauses that must all hold; none at all always holds (spec 10.3)."""

    clauses: tuple[Clause, ...] = ()  #: In source order.
    #: Notices about valid parts: rule, severity, span and fix, in the coordinates of the condition's own text.
    notices: tuple[Diagnostic, ...] = field(default=(), compare=False, repr=False)

    def __str__(self) -> str:
        return " && ".join(str(clause) for clause in self.clauses)
