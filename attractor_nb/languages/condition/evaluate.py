"""What a condition means: whether it holds, and why (spec 10.3-10.5, ruling 11).

Values are data: they are compared as text and never read as part of a condition.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec

from attractor_nb.languages.condition.syntax import Clause, Condition, Operator
from attractor_nb.model.vocabulary.labels import normalize_label

Lookup = Callable[[str], object]
"""Gives a context value by key, None when it is missing."""

_CONTEXT = "context."
_FALSE = frozenset({"", "false", "0"})


class ClauseVerdict(msgspec.Struct, frozen=True):
    """How one clause fared.

    Attributes:
        clause: The clause as text.
        value: What its key gave, as the text that was compared.
        holds: Whether the clause held.
    """

    clause: str
    value: str
    holds: bool


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
        verdicts.append(ClauseVerdict(str(clause), value, _holds(clause, value)))
    return verdicts


def value_text(value: object) -> str:
    """The text that a context value is compared by: itself, or its JSON spelling; empty for None.

    >>> value_text(True), value_text(3), value_text("yes"), value_text(None)
    ('true', '3', 'yes', '')
    """
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=str)


def _value(key: str, outcome_status: str, preferred_label: str, lookup: Lookup) -> str:
    if key == "outcome":
        return outcome_status
    if key == "preferred_label":
        return preferred_label
    value = lookup(key)
    if value is None and key.startswith(_CONTEXT):
        value = lookup(key[len(_CONTEXT) :])
    return value_text(value)


def _holds(clause: Clause, value: str) -> bool:
    if clause.operator is Operator.IS_TRUE:
        return value not in _FALSE
    literal = clause.literal
    if clause.key == "preferred_label":
        value, literal = normalize_label(value), normalize_label(literal)
    return (value == literal) is (clause.operator is Operator.EQUALS)
