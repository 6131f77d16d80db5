"""`$goal` in prompts becomes the graph's goal (spec 9.2, 4.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.model.vocabulary.variables import GOAL, settled

if TYPE_CHECKING:
    from attractor_nb.model.graph import Graph


class VariableExpansion:
    """Replaces `$goal` in the prompt of each node; a graph without a goal stays unchanged.

    Other variables get their values when a stage begins (ruling 34). Variables in the text of the goal are
    never replaced.
    """

    def apply(self, graph: Graph) -> Graph:
        """The graph with expanded prompts."""
        if not graph.goal:
            return graph
        changed = [
            node.with_attrs({"prompt": prompt})
            for node in graph.nodes.values()
            if "$" in node.prompt and (prompt := settled(node.prompt, GOAL, graph.goal)) != node.prompt
        ]
        return graph.with_nodes(changed) if changed else graph
