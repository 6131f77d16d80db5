"""What is right in a stylesheet but deserves a word: unknown properties and values (ruling 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attractor_nb.languages.stylesheet.syntax import PROPERTIES, PROPERTY_ALIASES
from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity, TextEdit
from attractor_nb.model.nearest_name import did_you_mean, nearest
from attractor_nb.model.vocabulary.attributes import REASONING_EFFORTS, Scope, attribute, coerce

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.source import Span

NOTICE_RULES: Final = ("unknown_property", "style_value")
"""Rules that reading a stylesheet can give notice of."""


def declaration_notices(name: str, value: str, name_span: Span, value_span: Span) -> list[Diagnostic]:
    """Notices about one declaration, whose name is canonical already."""
    if name not in PROPERTIES:
        known = (*PROPERTIES, *PROPERTY_ALIASES)
        message = f'the stylesheet property "{name}" is unknown and has no effect'
        return [_notice("unknown_property", message, name, name_span, known)]
    if name == "reasoning_effort" and value not in REASONING_EFFORTS:
        message = f'reasoning_effort "{value}" is not one of {", ".join(REASONING_EFFORTS)}'
        return [_notice("style_value", message, value, value_span, REASONING_EFFORTS)]
    row = attribute(Scope.NODE, name)
    if row is not None and coerce(row, value) is None:
        message = f'{name} "{value}" must have the type {row.type}'
        fix = Fix(f"write it as on a node, for example {name}=…")
        return [Diagnostic("style_value", Severity.WARNING, message, fix=fix, span=value_span)]
    return []


def _notice(rule: str, message: str, word: str, span: Span, known: Sequence[str]) -> Diagnostic:
    message += did_you_mean(word, known)
    if near := nearest(word, known):
        fix = Fix(f'write "{near}"', (TextEdit(span, near),))
    else:
        fix = Fix(f"use one of {', '.join(known)}")
    return Diagnostic(rule, Severity.WARNING, message, fix=fix, span=span)
