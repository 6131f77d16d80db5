"""Runs the built-in rules: all of them, whatever the first ones find (spec 7.3, 7.4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import OptionError, ValidationError
from attractor_nb.lint.entailed_findings import without_consequences
from attractor_nb.lint.rules import (
    answer_rules,
    branches,
    handlers,
    language_rules,
    models,
    provider_rules,
    routing_rules,
    structure,
    values,
    variable_forms,
    variable_rules,
)
from attractor_nb.lint.survey import LintOptions, Rule, Survey
from attractor_nb.model.diagnostic import Diagnostic, Severity
from attractor_nb.model.texts import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from attractor_nb.model.graph import Graph
    from attractor_nb.protocols import LintRule

BUILT_IN_RULES: Final[tuple[Rule, ...]] = (
    *structure.RULES,
    *handlers.RULES,
    *values.RULES,
    *structure.TARGET_RULES,
    *language_rules.CONDITION_RULES,
    *routing_rules.RULES,
    *branches.FAN_OUT_RULES,
    *branches.RULES,
    *language_rules.STYLESHEET_RULES,
    *models.RULES,
    *provider_rules.RULES,
    *answer_rules.RULES,
    *handlers.CHILD_RULES,
    *variable_rules.RULES,
    *variable_forms.RULES,
    *structure.REPETITION_RULES,
    *values.SECRET_RULES,
)
"""All rules, in the order in which they run."""

OFF: Final = "off"
"""The severity override that silences a rule."""


def validate(
    graph: Graph,
    extra_rules: Iterable[LintRule] | None = None,
    *,
    options: LintOptions | None = None,
    severity: Mapping[str, Severity | str] | None = None,
    only_local: bool = False,
) -> list[Diagnostic]:
    """Everything that the built-in rules and ``extra_rules`` find, in source order.

    Args:
        graph: A graph after its transforms (ruling 9).
        extra_rules: Rules of the caller. One that raises becomes an ERROR that names it.
        options: Which handlers there are and how strict to be.
        severity: Another severity, or ``"off"``, by the name of a rule.
        only_local: Apply only the rules that look at each statement alone, because statements are missing.

    Raises:
        OptionError: ``severity`` holds something else.
    """
    overrides = {name: _read_severity(name, level) for name, level in (severity or {}).items()}
    rules = [each for each in BUILT_IN_RULES if overrides.get(each.name) != OFF and (each.is_local or not only_local)]
    survey = Survey(graph, options or LintOptions())

    def diagnose(looked_at: Survey) -> list[Diagnostic]:
        return [each for built_in in rules for each in built_in.diagnose(looked_at)]

    found = diagnose(survey)
    for extra in extra_rules or ():
        found.extend(_apply(extra, graph))
    if overrides:
        found = [
            replace(each, severity=level) if isinstance(level, Severity) else each
            for each in found
            if (level := overrides.get(each.rule)) != OFF
        ]
    slips = [slip for slip in survey.slips if slip.finding.rule not in overrides]
    if slips:
        found = without_consequences(found, slips, graph, lambda meant: diagnose(Survey(meant, survey.options)))
    return sorted(found, key=_position)


def validate_or_raise(
    graph: Graph,
    extra_rules: Iterable[LintRule] | None = None,
    *,
    options: LintOptions | None = None,
    severity: Mapping[str, Severity | str] | None = None,
) -> list[Diagnostic]:
    """The findings of ``validate``, when none of them is an ERROR.

    Args:
        graph: A graph after its transforms (ruling 9).
        extra_rules: Rules of the caller.
        options: Which handlers there are and how strict to be.
        severity: Another severity, or ``"off"``, by the name of a rule.

    Raises:
        ValidationError: Some of it is; the error carries all findings.
        OptionError: ``severity`` holds something else.
    """
    diagnostics = validate(graph, extra_rules, options=options, severity=severity)
    if any(found.is_error for found in diagnostics):
        raise ValidationError(diagnostics)
    return diagnostics


def _apply(rule: LintRule, graph: Graph) -> Sequence[Diagnostic]:
    """The findings of a rule that is not ours, whatever it does."""
    name = type(rule).__name__
    try:
        name = rule.name
        found = list(rule.apply(graph))
        stranger = next((each for each in found if not isinstance(each, Diagnostic)), None)  # pyright: ignore[reportUnnecessaryIsInstance] - other people's code keeps no types
    except Exception as error:  # noqa: BLE001 - a rule of the caller may raise anything
        return [_broken(name, f"raised {type(error).__name__}: {error}")]
    if stranger is not None:
        return [_broken(name, f"returned a {type(stranger).__name__} instead of a Diagnostic")]
    return found


def _broken(name: str, what: str) -> Diagnostic:
    return Diagnostic(str(name), Severity.ERROR, f'the lint rule "{name}" {what}')


def _read_severity(name: str, level: Severity | str) -> Severity | str:
    if level == OFF:
        return OFF
    if level in Severity.__members__.values():
        return Severity(level)
    levels = [*Severity, OFF]
    raise OptionError(
        f'"{level}" is not a severity for the rule "{name}"{did_you_mean(str(level), levels)}',
        hint=f"use one of {', '.join(levels)}",
    )


def _position(found: Diagnostic) -> int:
    """The position of a finding in the source; those about the whole graph come first."""
    return found.span.outermost().start if found.span is not None else -1
