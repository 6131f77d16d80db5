"""`$goal` in prompts becomes the graph's goal (spec 9.2, 4.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attractor_nb.model.graph import Graph

GOAL_VARIABLE = "$goal"


class VariableExpansion:
    """Replaces `$goal` in the prompt of each node.

    Plain replacement, not a template language: the goal's own text is not looked at again.
    """

    def apply(self, graph: Graph) -> Graph:
        """The graph with expanded prompts."""
        changed = [
            node.with_attrs({"prompt": node.prompt.replace(GOAL_VARIABLE, graph.goal)})
            for node in graph.nodes.values()
            if GOAL_VARIABLE in node.prompt
        ]
        return graph.with_nodes(changed) if changed else graph
