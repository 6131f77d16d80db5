"""The one list of built-in rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.lint.rules import answer_rules as answers
from attractor_nb.lint.rules import (
    branches,
    conditions,
    handlers,
    models,
    secrets,
    structure,
    stylesheets,
    targets,
    values,
)
from attractor_nb.lint.rules import child_rules as children
from attractor_nb.lint.rules import fan_out_rules as fan_outs
from attractor_nb.lint.rules import gate_rules as gates
from attractor_nb.lint.rules import routing_rules as routing
from attractor_nb.lint.rules import variable_rules as variables

if TYPE_CHECKING:
    from attractor_nb.lint.rule import Rule

BUILT_IN_RULES: Final[tuple[Rule, ...]] = (
    *structure.RULES,
    *handlers.RULES,
    *values.RULES,
    *targets.RULES,
    *conditions.RULES,
    *routing.RULES,
    *fan_outs.RULES,
    *branches.RULES,
    *stylesheets.RULES,
    *models.RULES,
    *answers.RULES,
    *gates.RULES,
    *children.RULES,
    *variables.RULES,
    *secrets.RULES,
)
"""All rules, in the order in which they run."""
