"""What a condition means: whether it holds, and why (spec 10.3-10.5, rulings 11, 50).

Values are data: a literal is compared with what they mean (ruling 50), and they are never read as part of a condition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final

import msgspec

from attractor_nb.languages.condition.syntax import Clause, Condition, Operator
from attractor_nb.model.vocabulary.labels import normalize_label
from attractor_nb.model.vocabulary.value_paths import named_value

Lookup = Callable[[str], object]
"""Gives a context value by key, None when it is missing."""

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,400})(?:\.[0-9]{1,400})?(?:[eE][-+]?[0-9]{1,4})?")
"""As JSON writes it, and no longer than any number of a context."""


class ClauseVerdict(msgspec.Struct, frozen=True):
    """How one clause fared."""

    clause: str  #: The clause as text.
    value: str  #: What its key gave, as text.
    holds: bool  #: Whether the clause held.


def evaluate_condition(condition: Condition, outcome_status: str, preferred_label: str, lookup: Lookup) -> bool:
    """Whether every clause holds.

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
    """How each clause fares and which value it sees; for messages."""
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
