"""Which shape means which handler type (spec 2.8, appendix B; ruling 6)."""

from __future__ import annotations

from typing import Final

SHAPE_TO_TYPE: Final = {
    "Mdiamond": "start",
    "Msquare": "exit",
    "box": "codergen",
    "hexagon": "wait.human",
    "diamond": "conditional",
    "component": "parallel",
    "tripleoctagon": "parallel.fan_in",
    "parallelogram": "tool",
    "house": "stack.manager_loop",
}
"""The canonical mapping of spec 2.8."""

SHAPE_ALIASES: Final = {"circle": "Mdiamond", "doublecircle": "Msquare"}
"""Shapes found in the wild that are read as another one, with a WARNING (ruling 6)."""

DEFAULT_SHAPE: Final = "box"
DEFAULT_TYPE: Final = "codergen"


def type_of_shape(shape: str) -> str:
    """The handler type a shape stands for; an unknown shape stands for codergen (ruling 6).

    >>> type_of_shape("hexagon"), type_of_shape("circle"), type_of_shape("star")
    ('wait.human', 'start', 'codergen')
    """
    return SHAPE_TO_TYPE.get(SHAPE_ALIASES.get(shape, shape), DEFAULT_TYPE)
