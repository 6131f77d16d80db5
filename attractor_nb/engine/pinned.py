"""A handler for a stage whose outcome is given: nothing is executed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from attractor_nb.stage import current_stage

if TYPE_CHECKING:
    from pathlib import Path

    from attractor_nb.context import Context
    from attractor_nb.decisions.overrides import Pin
    from attractor_nb.model.graph import Graph, Node
    from attractor_nb.model.outcome import Outcome

PINNED: Final = "pinned, not executed"


class PinnedHandler:
    """Gives the pinned outcome, and leaves its response as a stage would."""

    writes_status = False

    def __init__(self, pin: Pin) -> None:
        self._pin = pin

    async def execute(self, node: Node, context: Context, graph: Graph, logs_root: Path) -> Outcome:  # noqa: ARG002 - the interface of all handlers
        """The outcome; its notes say that nothing was executed, and nothing was consumed."""
        outcome, response = self._pin
        if response:
            current_stage().files.write_text("response.md", response)
        notes = f"{PINNED}: {outcome.notes}" if outcome.notes else PINNED
        return replace(outcome, notes=notes, usage=None)
