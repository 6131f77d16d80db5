"""Stylesheet text to syntax tree, or one of our errors with a caret (spec 8.2, ruling 10).

What is right but deserves a word, unknown properties and values, gives notices.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import StylesheetSyntaxError
from attractor_nb.languages.stylesheet.syntax import (
    PROPERTIES,
    PROPERTY_ALIASES,
    Declaration,
    Selector,
    SelectorKind,
    StyleRule,
    Stylesheet,
)
from attractor_nb.languages.syntax_trees import Branch, ReadingStoppedError, parse_tree
from attractor_nb.lazy_imports import later
from attractor_nb.model.diagnostic import Diagnostic, Fix, Severity, TextEdit
from attractor_nb.model.nearest_name import did_you_mean, nearest
from attractor_nb.model.vocabulary.attribute_kinds import Scope
from attractor_nb.model.vocabulary.attribute_table import REASONING_EFFORTS
from attractor_nb.model.vocabulary.attributes import attribute, coerce
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.languages.stylesheet import mistakes
    from attractor_nb.source import Span
else:
    mistakes = later("attractor_nb.languages.stylesheet.mistakes")

MAX_CHARACTERS: Final = 50_000
"""How long a stylesheet may be: room for a thousand rules, each of which looks at each node."""
_ESCAPE = re.compile(r"\\([\"'\\])")


def parse_stylesheet(text: str | SourceText) -> Stylesheet:
    """Read a stylesheet; a blank one has no rules.

    >>> sheet = parse_stylesheet("* { model: small } #review { llm_model = 'large'; }")
    >>> [(str(rule.selector), rule.declarations[0].value) for rule in sheet.rules]
    [('*', 'small'), ('#review', 'large')]
    """
    source = SourceText(text, "<stylesheet>") if isinstance(text, str) else text
    if len(source.text) > MAX_CHARACTERS:
        raise StylesheetSyntaxError(
            f"the stylesheet is longer than {MAX_CHARACTERS:,} characters",
            source.span(MAX_CHARACTERS, MAX_CHARACTERS + 1),
            hint="give the nodes a class and write one rule for the class",
        )
    try:
        tree = parse_tree("stylesheet", source.text)
    except ReadingStoppedError as stopped:
        raise mistakes.diagnose(source, stopped.offset, stopped.expected) from None
    rules: list[StyleRule] = []
    notices: list[Diagnostic] = []
    for part in tree.branches:
        selector, *declarations = part.branches
        read = [_declaration(source, each, notices) for each in declarations]
        rules.append(StyleRule(_selector(source, selector), tuple(read)))
    return Stylesheet(tuple(rules), tuple(notices))


def _selector(source: SourceText, branch: Branch) -> Selector:
    (token,) = branch.tokens
    kind = SelectorKind[token.kind]
    has_sign = kind in (SelectorKind.CLASS, SelectorKind.ID)
    name = "" if kind is SelectorKind.EVERY else token.text[1 if has_sign else 0 :]
    return Selector(kind, name, source.span(token.start, token.end))


def _declaration(source: SourceText, branch: Branch, notices: list[Diagnostic]) -> Declaration:
    name, _ = branch.tokens
    (value,) = branch.branches[0].tokens
    text = value.text
    if value.kind == "QUOTED":
        text = _ESCAPE.sub(r"\1", text[1:-1])
    canonical = PROPERTY_ALIASES.get(name.text, name.text)
    name_span, value_span = source.span(name.start, name.end), source.span(value.start, value.end)
    notices.extend(declaration_notices(canonical, text, name_span, value_span))
    return Declaration(canonical, text, source.span(name.start, value.end))


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
