"""The texts of a node as a stage begins with them: each variable has its value (ruling 34)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attractor_nb.model.vocabulary.variables import RENDERED_ATTRIBUTES, lookup_in, rendered

if TYPE_CHECKING:
    from collections.abc import Callable

    from attractor_nb.model.graph import Graph, Node


def rendered_node(node: Node, graph: Graph, get: Callable[[str, Any], Any]) -> Node:
    """A node with the values of the variables in what models and people read of it.

    Args:
        node: The node as the graph has it.
        graph: Its graph, which has the goal.
        get: Gives a value of the context by its key, or what it is given as a default.
    """
    changes: dict[str, str] = {}
    for name in RENDERED_ATTRIBUTES:
        text = node.attrs.get(name)
        if isinstance(text, str) and "$" in text:
            changes[name] = rendered(text, lookup_in(graph.goal, get))
    return node.with_attrs(changes) if changes else node
