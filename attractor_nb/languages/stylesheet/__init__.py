"""Model stylesheets: CSS-like rules that give nodes their model (spec 8).

A stranger to the other two languages; it knows nodes only as something with a shape, classes and an id.
"""

from attractor_nb.languages.stylesheet.parser import (
    NOTICE_RULES,
    PROPERTIES,
    PROPERTY_ALIASES,
    Declaration,
    Selector,
    SelectorKind,
    StyleRule,
    Stylesheet,
    parse_stylesheet,
    resolve_properties,
    winning_declarations,
)

__all__ = [
    "NOTICE_RULES",
    "PROPERTIES",
    "PROPERTY_ALIASES",
    "Declaration",
    "Selector",
    "SelectorKind",
    "StyleRule",
    "Stylesheet",
    "parse_stylesheet",
    "resolve_properties",
    "winning_declarations",
]
