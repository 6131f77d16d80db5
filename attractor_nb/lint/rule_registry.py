"""The one list of built-in rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.lint.rules import (
    answer_rules,
    branches,
    child_rules,
    conditions,
    fan_out_rules,
    gate_rules,
    handlers,
    models,
    provider_rules,
    routing_rules,
    secrets,
    structure,
    stylesheets,
    targets,
    values,
    variable_rules,
)

if TYPE_CHECKING:
    from attractor_nb.lint.rule import Rule

BUILT_IN_RULES: Final[tuple[Rule, ...]] = (
    *structure.RULES,
    *handlers.RULES,
    *values.RULES,
    *targets.RULES,
    *conditions.RULES,
    *routing_rules.RULES,
    *fan_out_rules.RULES,
    *branches.RULES,
    *stylesheets.RULES,
    *models.RULES,
    *provider_rules.RULES,
    *answer_rules.RULES,
    *gate_rules.RULES,
    *child_rules.RULES,
    *variable_rules.RULES,
    *secrets.RULES,
)
"""All rules, in the order in which they run."""
