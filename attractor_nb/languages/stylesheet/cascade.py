"""What a stylesheet means for one node: which declarations win (spec 8.3, ruling 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.languages.stylesheet.syntax import PROPERTIES, SelectorKind

if TYPE_CHECKING:
    from attractor_nb.languages.stylesheet.syntax import Declaration, Selector, Stylesheet
    from attractor_nb.model.graph import Node


def resolve_properties(stylesheet: Stylesheet, node: Node) -> dict[str, str]:
    """The properties that the stylesheet gives a node, whatever the node says itself.

    ``*`` ranks below a shape, a shape below a class, a class below an id; at equal rank the later
    rule wins. Unknown properties are left out.
    """
    return {name: won.value for name, (_, won) in winning_declarations(stylesheet, node).items()}


def winning_declarations(stylesheet: Stylesheet, node: Node) -> dict[str, tuple[Selector, Declaration]]:
    """By property: the declaration that gives it to a node, and the selector that brought it."""
    positions = stylesheet.positions
    matching = (
        *positions.get((SelectorKind.EVERY, ""), ()),
        *positions.get((SelectorKind.SHAPE, node.shape), ()),
        *sorted(place for name in node.classes for place in positions.get((SelectorKind.CLASS, name), ())),
        *positions.get((SelectorKind.ID, node.id), ()),
    )
    rules = [stylesheet.rules[position] for position in matching]
    return {
        declaration.name: (rule.selector, declaration)
        for rule in rules
        for declaration in rule.declarations
        if declaration.name in PROPERTIES
    }
