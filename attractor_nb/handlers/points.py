"""Nodes that do nothing themselves: the start, the exit, the diamond (spec 4.3, 4.4, 4.7; ruling 16)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.model.outcome import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node


class StartHandler:
    """Does nothing, successfully."""

    writes_status = False

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """SUCCESS."""
        return Outcome.success()


class ExitHandler:
    """Does nothing, successfully."""

    writes_status = False

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """SUCCESS."""
        return Outcome.success()


class ConditionalHandler:
    """Does nothing: routing belongs to the traversal, which is deterministic and can be inspected."""

    writes_status = False

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """SUCCESS."""
        return Outcome.success(f"Conditional node evaluated: {node.id}")
