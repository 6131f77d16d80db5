"""The end of a pipeline (spec 4.4). The goal gates were checked before, by the traversal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attractor_nb.model.outcome import Outcome

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Graph, Node


class ExitHandler:
    """Does nothing, successfully."""

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """SUCCESS."""
        return Outcome.success()
