"""Edge conditions: `key=value`, `key!=value`, joined by `&&` (spec 10).

A stranger to the other two languages; it knows neither graphs nor runs.
"""

from attractor_nb.languages.condition.evaluate import ClauseVerdict, evaluate_condition, explain_condition, value_text
from attractor_nb.languages.condition.parser import NOTICE_RULES, mend_condition, parse_condition
from attractor_nb.languages.condition.syntax import Clause, Condition, Operator

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
