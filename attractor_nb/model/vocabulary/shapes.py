"""The handler type of each shape (spec 2.8, appendix B; ruling 6)."""

from __future__ import annotations

from typing import Final

HUMAN_TYPE: Final = "wait.human"
CONDITIONAL_TYPE: Final = "conditional"
SHAPE_TO_TYPE: Final = {
    "Mdiamond": "start",
    "Msquare": "exit",
    "box": "codergen",
    "hexagon": HUMAN_TYPE,
    "diamond": CONDITIONAL_TYPE,
    "component": "parallel",
    "tripleoctagon": "parallel.fan_in",
    "parallelogram": "tool",
    "house": "stack.manager_loop",
}
"""The canonical mapping of spec 2.8."""

PIPELINE_TYPE: Final = "pipeline"
MANAGER_TYPE: Final = "stack.manager_loop"
MANAGER_CONDITIONS: Final = ("manager.stop_condition", "manager.guard", "manager.escalate")
"""Attributes of managers that are conditions."""
CHILD_TYPES: Final = frozenset({PIPELINE_TYPE, MANAGER_TYPE})
"""The handler types whose nodes run another pipeline (spec 4.11, 9.4)."""
CHILD_RUN_TYPES: Final = CHILD_TYPES | {"for_each"}
"""The same, and what executes a node with `for_each` (``repetition.FOR_EACH_TYPE``)."""
BUILT_IN_TYPES: Final = frozenset({*SHAPE_TO_TYPE.values(), PIPELINE_TYPE})
"""The handler types of spec 2.8, and the one of a sub-pipeline node, which has no shape of its own."""
FUNCTION_TYPE: Final = "function"
"""The handler type of a node that names a registered function. No built-in one: the caller brings the function."""

SHAPE_ALIASES: Final = {"circle": "Mdiamond", "doublecircle": "Msquare"}
"""Shapes that are read as another one, with a WARNING, where no node has that one (rulings 6, 6a)."""

DEFAULT_SHAPE: Final = "box"
DEFAULT_TYPE: Final = "codergen"


def type_of_shape(shape: str) -> str:
    """The handler type of a shape; that of an unknown shape is codergen (ruling 6).

    >>> type_of_shape("hexagon"), type_of_shape("star")
    ('wait.human', 'codergen')
    """
    return SHAPE_TO_TYPE.get(shape, DEFAULT_TYPE)


def child_attributes(handler_type: str) -> tuple[tuple[str, str], int]:
    """The attributes by which a node of a child type names its child: the file's, then the registered name's.

    Returns:
        Both, and where they are allowed: 1 for the node alone, 2 for node and graph.
    """
    if handler_type == PIPELINE_TYPE:
        return ("pipeline.dotfile", "pipeline.name"), 1
    return ("stack.child_dotfile", "stack.child_pipeline"), 2
