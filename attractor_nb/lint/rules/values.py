"""Rules about attributes: their names and what they hold (appendix A, the attribute table)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from attractor_nb.lint.places import name_span, renaming, replacing_value, value_span
from attractor_nb.lint.rule import Finding, rule
from attractor_nb.model.attributes import (
    FIDELITY_MODES,
    AttributeSpec,
    AttrType,
    AttrValue,
    Scope,
    attributes_of,
    literal_text,
)
from attractor_nb.model.diagnostic import Fix, Severity
from attractor_nb.model.duration import Duration
from attractor_nb.model.spelling import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.lint.survey import Survey
    from attractor_nb.lint.suspects import Suspect

_FIDELITY: Final = frozenset({"fidelity", "default_fidelity"})
_HARMLESS: Final = frozenset({"reasoning_effort", "rankdir"})
"""Choices that a provider may extend, or that only the drawing reads."""

_KINDS: Final[dict[AttrType, tuple[type, ...]]] = {
    AttrType.INTEGER: (int,),
    AttrType.FLOAT: (int, float),
    AttrType.DURATION: (Duration,),
}
_SWITCHES: Final = {"yes": True, "on": True, "1": True, "no": False, "off": False, "0": False}
_WORDED_DURATION: Final = re.compile(
    r"\s*(?P<count>\d+)\s*"
    r"(?P<unit>milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)\s*\Z",
    re.IGNORECASE,
)


@rule(Severity.ERROR)
def bad_value(survey: Survey) -> Iterator[Finding]:
    """An attribute's value is of the attribute's type, among its choices and not below its minimum.

    A value that cannot be read counts as not given, so that `goal_gate=yes` would silently guard nothing.
    `rankdir` and `reasoning_effort`, which cannot mislead a run, are WARNINGs.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", goal_gate=yes, retry_target=work]
            exit [shape=Msquare]  start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", goal_gate=true, retry_target=work]
            exit [shape=Msquare]  start -> work -> exit }
    """
    for suspect in survey.suspects:
        row, value = suspect.row, suspect.value
        if row is None or row.name in _FIDELITY:
            continue
        if row.type in _KINDS and isinstance(value, _KINDS[row.type]) and not isinstance(value, bool):
            message, meant = _too_small(row, value), None
        elif row.type is AttrType.DURATION:
            continue
        else:
            message, meant = _wrong_type(row, value)
        severity = Severity.WARNING if row.name in _HARMLESS else Severity.ERROR
        fix = None
        if meant is not None:
            fix = replacing_value(suspect.thing, row.name, meant, f"write {literal_text(meant)}")
        span = value_span(suspect.thing, row.name)
        yield Finding(message, span, suspect.node_id, suspect.ends, fix, severity)


def _too_small(row: AttributeSpec, value: AttrValue) -> str:
    if isinstance(value, Duration):
        return f'{row.name} "{value}" must be longer than nothing'
    return f"{row.name} {literal_text(value)} is below {row.minimum}"


def _wrong_type(row: AttributeSpec, value: AttrValue) -> tuple[str, AttrValue | None]:
    """The message, and the value that was probably meant."""
    text = literal_text(value)
    match row.type:
        case AttrType.CHOICE:
            near = nearest(text, row.choices)
            hint = f'; did you mean "{near}"?' if near else ""
            return f'{row.name} "{text}" is not one of {", ".join(row.choices)}{hint}', near or None
        case AttrType.BOOLEAN:
            return f'{row.name} "{text}" is neither true nor false', _SWITCHES.get(text.lower())
        case AttrType.INTEGER:
            return f'{row.name} "{text}" is not a whole number', None
        case _:
            return f'{row.name} "{text}" is not a number', None


@rule(Severity.ERROR)
def bad_duration(survey: Survey) -> Iterator[Finding]:
    """A duration is a whole number with a unit: `250ms`, `900s`, `15m`, `2h`, `1d`.

    One that cannot be read counts as not given, and a stage without its timeout may wait for ever
    (spec 2.4). A number without a unit means seconds.

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", timeout="5 minutes"] exit [shape=Msquare]
            start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", timeout="5m"] exit [shape=Msquare]
            start -> work -> exit }
    """
    for suspect in survey.suspects:
        row, value = suspect.row, suspect.value
        if row is not None and row.type is AttrType.DURATION and not isinstance(value, Duration):
            message = f'{row.name} "{literal_text(value)}" is not a duration'
            span = value_span(suspect.thing, row.name)
            yield Finding(message, span, suspect.node_id, suspect.ends, _duration_fix(suspect))


def _duration_fix(suspect: Suspect) -> Fix:
    if found := _WORDED_DURATION.match(literal_text(suspect.value)):
        unit = found["unit"].lower()
        short = "ms" if unit.startswith(("ms", "milli")) else unit[0]
        duration = f"{found['count']}{short}"
        return replacing_value(suspect.thing, suspect.name, duration, f'write "{duration}"')
    return Fix('write a number and a unit, such as "15m"')


@rule(Severity.WARNING)
def fidelity_valid(survey: Survey) -> Iterator[Finding]:
    """A fidelity is one of the six modes.

    Any other word counts as not given, and the stage gets `compact` (spec 5.4, 7.2).

    Bad:

        digraph { start [shape=Mdiamond] work [prompt="Do it", fidelity=ful] exit [shape=Msquare]
            start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [prompt="Do it", fidelity=full] exit [shape=Msquare]
            start -> work -> exit }
    """
    for suspect in survey.suspects:
        if suspect.row is None or suspect.name not in _FIDELITY:
            continue
        text = literal_text(suspect.value)
        message = f'{suspect.name} "{text}" is not one of {", ".join(FIDELITY_MODES)}'
        fix = Fix(f"use one of {', '.join(FIDELITY_MODES)}")
        if near := nearest(text, FIDELITY_MODES):
            message += f'; did you mean "{near}"?'
            fix = replacing_value(suspect.thing, suspect.name, near, f'write "{near}"')
        span = value_span(suspect.thing, suspect.name)
        yield Finding(message, span, suspect.node_id, suspect.ends, fix)


@rule(Severity.INFO)
def attribute_typo(survey: Survey) -> Iterator[Finding]:
    """An attribute's name is not almost the name of a known one.

    Unknown attributes are kept for custom handlers (ruling 5), so a slip is silent: `promt` is nobody's
    prompt.

    Bad:

        digraph { start [shape=Mdiamond] work [label="Work", promt="Do it"] exit [shape=Msquare]
            start -> work -> exit }

    Good:

        digraph { start [shape=Mdiamond] work [label="Work", prompt="Do it"] exit [shape=Msquare]
            start -> work -> exit }
    """
    suggestions: dict[tuple[Scope, str], str] = {}
    for suspect in survey.suspects:
        if suspect.row is not None:
            continue
        scope, name = suspect.scope, suspect.name
        if (scope, name) not in suggestions:
            suggestions[scope, name] = nearest(name, [row.name for row in attributes_of(scope)])
        if near := suggestions[scope, name]:
            message = f'"{name}" is not an attribute of a {scope}; did you mean "{near}"?'
            # Where the known attribute is there too, renaming would replace its value.
            fix = Fix(f'remove "{name}", or keep it for a custom handler')
            if near not in suspect.thing.attrs:
                fix = renaming(suspect.thing, name, near, f'write "{near}"')
            yield Finding(message, name_span(suspect.thing, name), suspect.node_id, suspect.ends, fix)


RULES: Final = (bad_value, bad_duration, fidelity_valid, attribute_typo)
