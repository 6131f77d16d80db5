"""Edge conditions: `key=value`, `key!=value`, joined by `&&` (spec 10).

A stranger to the other two languages; it knows neither graphs nor runs.
"""

from attractor_nb.languages.condition.parser import (
    NOTICE_RULES,
    Clause,
    ClauseVerdict,
    Condition,
    Operator,
    evaluate_condition,
    explain_condition,
    mend_condition,
    parse_condition,
    value_text,
)

__all__ = [
    "NOTICE_RULES",
    "Clause",
    "ClauseVerdict",
    "Condition",
    "Operator",
    "evaluate_condition",
    "explain_condition",
    "mend_condition",
    "parse_condition",
    "value_text",
]
