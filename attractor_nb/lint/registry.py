"""The one list of built-in rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.lint.rules import (
    answers,
    branches,
    children,
    conditions,
    fan_outs,
    gates,
    handlers,
    models,
    routing,
    secrets,
    structure,
    stylesheets,
    targets,
    values,
    variables,
)

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
