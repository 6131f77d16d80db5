"""No model: each stage gets a fixed text (spec 4.5). What runs when nothing is configured."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from attractor_nb.model.outcome import Outcome
from attractor_nb.stage import stream_output

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from attractor_nb.context import Context
    from attractor_nb.model.graph import Node


class SimulatedBackend:
    """Answers every prompt with ``[Simulated] Response for stage: <id>``.

    Args:
        delay_seconds: How long each response takes, word by word, so that a demonstration can be
            followed.
        sleep: How it waits.
    """

    takes_attachments: Final = True
    """What a stage attaches is in ``current_stage().attachments``."""

    def __init__(
        self, *, delay_seconds: float = 0.0, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self._delay_seconds = delay_seconds
        self._sleep = sleep

    async def run(self, node: Node, prompt: str, context: Context) -> str | Outcome:  # noqa: ARG002 - the interface of all backends
        """The fixed text, with a verdict of success where the node asks for one.

        A node with a ``response_schema`` gets an outcome that says that nothing was checked: no text
        satisfies every schema.
        """
        if node.get("response_schema", str, ""):
            return Outcome.success(f"[Simulated] {node.id}: no response, so response_schema was not checked")
        text = f"[Simulated] Response for stage: {node.id}"
        if node.get("verdict", str, "") == "json":
            text += '\n\n```json\n{"outcome": "success", "notes": "simulated"}\n```'
        await self._stream(text)
        return text

    def call_inputs(self, node: Node, context: Context) -> Mapping[str, Any]:  # noqa: ARG002 - the interface of all backends
        """Its name and the stage's, which are all that its answer depends on."""
        return {"backend": "simulated", "stage": node.id}

    async def _stream(self, text: str) -> None:
        if not self._delay_seconds:
            stream_output(text)
            return
        words = text.split(" ")
        for position, word in enumerate(words):
            await self._sleep(self._delay_seconds / len(words))
            stream_output(word if position == 0 else f" {word}")

    def __repr__(self) -> str:
        return f"SimulatedBackend(delay_seconds={self._delay_seconds})"
