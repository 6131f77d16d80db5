"""What can be wrong with a child pipeline that a graph names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChildProblem:
    """Why a child pipeline cannot run.

    Attributes:
        node_id: The node that names it.
        attribute: The attribute that names it, or empty when none does.
        is_of_graph: The attribute stands on the graph and not on the node.
        message: What is wrong.
        remedy: How to mend it.
        lacks_handler: It can be read, and a node of it has no handler here.
    """

    node_id: str
    attribute: str
    message: str
    remedy: str
    is_of_graph: bool = False
    lacks_handler: bool = False
