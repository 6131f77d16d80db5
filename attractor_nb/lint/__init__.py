"""Lint: what is wrong with a pipeline before it runs (spec 7).

Rules look at a graph after its transforms and never at a run. All findings are collected before anything
is raised. Knows the three languages, but no handler, engine or file.
"""

from attractor_nb.lint.rules.handlers import HANDLER_MISSING
from attractor_nb.lint.survey import BUILT_IN_TYPES, Finding, LintOptions, Rule, Survey, rule
from attractor_nb.lint.validation import BUILT_IN_RULES, OFF, validate, validate_or_raise

__all__ = [
    "BUILT_IN_RULES",
    "BUILT_IN_TYPES",
    "HANDLER_MISSING",
    "OFF",
    "Finding",
    "LintOptions",
    "Rule",
    "Survey",
    "rule",
    "validate",
    "validate_or_raise",
]
