"""Stylesheet text to syntax tree, or one of our errors with a caret (spec 8.2, ruling 10)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attractor_nb.languages.parse_tables import ReadingStoppedError, parse_tree
from attractor_nb.languages.stylesheet.mistakes import diagnose
from attractor_nb.languages.stylesheet.notices import declaration_notices
from attractor_nb.languages.stylesheet.syntax import (
    PROPERTY_ALIASES,
    Declaration,
    Selector,
    SelectorKind,
    StyleRule,
    Stylesheet,
)
from attractor_nb.source import SourceText

if TYPE_CHECKING:
    from lark import Token, Tree

    from attractor_nb.model.diagnostic import Diagnostic
    from attractor_nb.source import Span

_ESCAPE = re.compile(r"\\([\"'\\])")


def parse_stylesheet(text: str | SourceText) -> Stylesheet:
    """Read a stylesheet; a blank one has no rules.

    >>> sheet = parse_stylesheet("* { model: small } #review { llm_model = 'large'; }")
    >>> [(str(rule.selector), rule.declarations[0].value) for rule in sheet.rules]
    [('*', 'small'), ('#review', 'large')]

    Raises:
        StylesheetSyntaxError: It is outside the language; the span is in the given text.
    """
    source = SourceText(text, "<stylesheet>") if isinstance(text, str) else text
    try:
        tree = parse_tree("attractor_nb.languages.stylesheet", source.text)
    except ReadingStoppedError as stopped:
        raise diagnose(source, stopped.offset, stopped.expected) from None
    rules: list[StyleRule] = []
    notices: list[Diagnostic] = []
    for part in _subtrees(tree):
        selector, *declarations = _subtrees(part)
        read = [_declaration(source, each, notices) for each in declarations]
        rules.append(StyleRule(_selector(source, selector), tuple(read)))
    return Stylesheet(tuple(rules), tuple(notices))


def _selector(source: SourceText, tree: Tree[Token]) -> Selector:
    (token,) = _tokens(tree)
    kind = SelectorKind[token.type]
    has_sign = kind in (SelectorKind.CLASS, SelectorKind.ID)
    name = "" if kind is SelectorKind.EVERY else str(token)[1 if has_sign else 0 :]
    return Selector(kind, name, _span(source, token, token))


def _declaration(source: SourceText, tree: Tree[Token], notices: list[Diagnostic]) -> Declaration:
    name, _ = _tokens(tree)
    (holder,) = _subtrees(tree)
    (value,) = _tokens(holder)
    text = str(value)
    if value.type == "QUOTED":
        text = _ESCAPE.sub(r"\1", text[1:-1])
    canonical = PROPERTY_ALIASES.get(str(name), str(name))
    notices.extend(
        declaration_notices(canonical, text, _span(source, name, name), _span(source, value, value))
    )
    return Declaration(canonical, text, _span(source, name, value))


def _subtrees(tree: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in tree.children if not isinstance(child, str)]


def _tokens(tree: Tree[Token]) -> list[Token]:
    return [child for child in tree.children if isinstance(child, str)]


def _span(source: SourceText, first: Token, last: Token) -> Span:
    assert first.start_pos is not None
    assert last.end_pos is not None
    return source.span(first.start_pos, last.end_pos)
