"""Whether some condition always holds: a table of every answer that a set of conditions can tell apart."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Final

from attractor_nb.languages.condition import Operator, evaluate_condition
from attractor_nb.model.outcome import StageStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.languages.condition import Condition

MAX_ROWS: Final = 2_000
"""Tables beyond this are not looked at: nobody wrote such conditions to be complete."""

_OTHER: Final = "\N{SUBSTITUTE}other"
_ROUTED: Final = (StageStatus.SUCCESS, StageStatus.FAIL)
"""Statuses that edges see; RETRY has become another one by then, SKIPPED routes like SUCCESS, and so does a
partial success where no condition names it (ruling 35)."""


def find_gap(conditions: Sequence[Condition]) -> str:
    """A case in which none of the conditions holds, in words; empty when there is none.

    >>> from attractor_nb.languages.condition import parse_condition
    >>> find_gap([parse_condition("outcome=success"), parse_condition("outcome=partial_success")])
    'outcome=fail'
    >>> find_gap([parse_condition("outcome=success"), parse_condition("outcome=fail")])
    ''
    """
    values = _distinguished(conditions)
    size = 1
    for choices in values.values():
        size *= len(choices)
    if size > MAX_ROWS:
        return ""
    for row in product(*values.values()):
        case = dict(zip(values, row, strict=True))
        status, label = case.get("outcome", ""), case.get("preferred_label", "")
        if not any(evaluate_condition(each, status, label, case.get) for each in conditions):
            return " and ".join(_word(key, value, values[key]) for key, value in case.items())
    return ""


def _distinguished(conditions: Sequence[Condition]) -> dict[str, list[str]]:
    """By key, the values that make a difference to any clause, and one that stands for all others."""
    values: dict[str, list[str]] = {}
    for condition in conditions:
        for clause in condition.clauses:
            key = clause.key.removeprefix("context.")
            choices = values.setdefault(key, list(_ROUTED) if key == "outcome" else [_OTHER])
            literal = "" if clause.operator is Operator.IS_TRUE else clause.literal
            if literal not in choices and (key != "outcome" or literal):
                choices.append(literal)
    return values


def _word(key: str, value: str, choices: Sequence[str]) -> str:
    if value != _OTHER:
        return f"{key}={value}" if value else f"{key} is empty"
    named = [choice for choice in choices if choice not in (_OTHER, "")]
    return f"{key} is not one of {', '.join(named)}" if named else f"{key} is set"
