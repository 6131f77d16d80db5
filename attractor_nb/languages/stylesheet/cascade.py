"""What a stylesheet means for one node: which declarations win (spec 8.3, ruling 10)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from attractor_nb.languages.stylesheet.syntax import PROPERTIES, SelectorKind, Stylesheet

if TYPE_CHECKING:
    from attractor_nb.languages.stylesheet.syntax import StyleRule
    from attractor_nb.model.graph import Node

_Ranked = tuple[int, int, "StyleRule"]


def resolve_properties(stylesheet: Stylesheet, node: Node) -> dict[str, str]:
    """The properties that the stylesheet gives a node, whatever the node says itself.

    ``*`` ranks below a shape, a shape below a class, a class below an id; at equal rank the later
    rule wins. Unknown properties are left out.
    """
    index = _index(stylesheet)
    matching = list(index.get((SelectorKind.EVERY, ""), ()))
    matching += index.get((SelectorKind.SHAPE, node.shape), ())
    for name in node.classes:
        matching += index.get((SelectorKind.CLASS, name), ())
    matching += index.get((SelectorKind.ID, node.id), ())
    matching.sort(key=lambda ranked: ranked[:2])
    return {
        declaration.name: declaration.value
        for _, _, rule in matching
        for declaration in rule.declarations
        if declaration.name in PROPERTIES
    }


@lru_cache(maxsize=16)
def _index(stylesheet: Stylesheet) -> dict[tuple[SelectorKind, str], tuple[_Ranked, ...]]:
    """Rules by what they select, each with its specificity and position."""
    index: dict[tuple[SelectorKind, str], tuple[_Ranked, ...]] = {}
    for position, rule in enumerate(stylesheet.rules):
        key = (rule.selector.kind, rule.selector.name)
        index[key] = (*index.get(key, ()), (int(rule.selector.kind), position, rule))
    return index
