"""What is right in a condition but deserves a word: aliases, slips and missing quotes (ruling 11).

The fixes are in the coordinates of the condition's own text; whoever knows what the text is embedded
in carries them outwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity, TextEdit
from attractor_nb.model.nearest_name import did_you_mean, nearest
from attractor_nb.model.outcome import StageStatus, read_status

if TYPE_CHECKING:
    from attractor_nb.source import Span

NOTICE_RULES = ("outcome_alias", "outcome_unknown", "status_as_key", "literal_unquoted")
"""Rules that reading a condition can give notice of."""


def literal_notices(key: str, literal: str, span: Span, *, needs_quotes: bool) -> list[Diagnostic]:
    """Notices about the literal of a clause.

    Args:
        key: The clause's key.
        literal: The literal's text, without quotes.
        span: Where it stands.
        needs_quotes: It is several bare words.
    """
    if key == "outcome":
        status = read_status(literal)
        if status is None:
            return [_unknown_outcome(literal, span)]
        if status != literal:
            message = f'"{literal}" is read as the status "{status}"'
            return [_notice("outcome_alias", Severity.INFO, message, span, f'write "{status}"', status.value)]
        return []
    if needs_quotes:
        message = f'the literal "{literal}" has several words and no quotes'
        return [_notice("literal_unquoted", Severity.WARNING, message, span, "quote it", f'"{literal}"')]
    return []


def truth_notices(key: str, span: Span) -> list[Diagnostic]:
    """Notices about a key that stands alone."""
    if status := read_status(key):
        message = f'"{key}" refers to a context value of that name, not to the outcome'
        replacement = f"outcome={status}"
        return [
            _notice("status_as_key", Severity.WARNING, message, span, f"write `{replacement}`", replacement)
        ]
    return []


def _unknown_outcome(literal: str, span: Span) -> Diagnostic:
    statuses = [status.value for status in StageStatus]
    message = f'"{literal}" is not a status, so the comparison never matches{did_you_mean(literal, statuses)}'
    if near := nearest(literal, statuses):
        return _notice("outcome_unknown", Severity.WARNING, message, span, f'write "{near}"', near)
    title = f"use one of {', '.join(statuses)}"
    return Diagnostic("outcome_unknown", Severity.WARNING, message, fix=Fix(title), span=span)


def _notice(rule: str, severity: Severity, message: str, span: Span, title: str, text: str) -> Diagnostic:
    return Diagnostic(rule, severity, message, fix=Fix(title, (TextEdit(span, text),)), span=span)
