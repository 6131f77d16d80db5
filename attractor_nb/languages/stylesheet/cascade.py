"""What a stylesheet means for one node: which declarations win (spec 8.3, ruling 10)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from attractor_nb.languages.stylesheet.syntax import PROPERTIES, SelectorKind, Stylesheet

if TYPE_CHECKING:
    from attractor_nb.languages.stylesheet.syntax import Declaration, Selector
    from attractor_nb.model.graph import Node

_Ranked = tuple[int, int]
"""Specificity and position of a rule."""


def resolve_properties(stylesheet: Stylesheet, node: Node) -> dict[str, str]:
    """The properties that the stylesheet gives a node, whatever the node says itself.

    ``*`` ranks below a shape, a shape below a class, a class below an id; at equal rank the later
    rule wins. Unknown properties are left out.
    """
    return {name: won.value for name, (_, won) in winning_declarations(stylesheet, node).items()}


def winning_declarations(stylesheet: Stylesheet, node: Node) -> dict[str, tuple[Selector, Declaration]]:
    """By property: the declaration that gives it to a node, and the selector that brought it."""
    index = _index(stylesheet)
    matching = list(index.get((SelectorKind.EVERY, ""), ()))
    matching += index.get((SelectorKind.SHAPE, node.shape), ())
    for name in node.classes:
        matching += index.get((SelectorKind.CLASS, name), ())
    matching += index.get((SelectorKind.ID, node.id), ())
    rules = [stylesheet.rules[position] for _, position in sorted(matching)]
    return {
        declaration.name: (rule.selector, declaration)
        for rule in rules
        for declaration in rule.declarations
        if declaration.name in PROPERTIES
    }


@lru_cache(maxsize=16)
def _index(stylesheet: Stylesheet) -> dict[tuple[SelectorKind, str], tuple[_Ranked, ...]]:
    """Where rules are, by what they select; not the rules: equal ones may stand elsewhere."""
    index: dict[tuple[SelectorKind, str], tuple[_Ranked, ...]] = {}
    for position, rule in enumerate(stylesheet.rules):
        key = (rule.selector.kind, rule.selector.name)
        index[key] = (*index.get(key, ()), (int(rule.selector.kind), position))
    return index
