"""Collects the output of a stage on a worker for the report, and streams it in pieces."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Final

from attractor_nb.model.events import ModelCallEnded, StageOutput
from attractor_nb.workers.task import MAX_SAID_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from attractor_nb.model.events import Event

FLUSH_SECONDS: Final = 0.1
"""Output is passed on this often at most: a message for each word would cost more than the word."""


MAX_CALLS: Final = 1000
"""How many calls of models a report tells of."""


class Speech:
    """Collects output by channel, and calls of models. ``take`` may be called from any thread.

    Attributes:
        said: All output, by channel, once it has finished.
        calls: What was announced of calls of models.
    """

    def __init__(self, pass_on: Callable[[str, str], None]) -> None:
        """Take the way by which pieces leave; called in the loop that runs now."""
        self.said: dict[str, str] = {}
        self.calls: list[Mapping[str, Any]] = []
        self._pass_on = pass_on
        self._pieces: dict[str, list[str]] = {}
        self._sizes: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._timer: asyncio.TimerHandle | None = None

    def take(self, event: Event) -> None:
        """Take an event of the stage; only output and calls of models travel."""
        if isinstance(event, ModelCallEnded) and len(self.calls) < MAX_CALLS:
            self.calls.append(event.to_plain())
        if not isinstance(event, StageOutput):
            return
        if threading.get_ident() == self._thread:
            self._keep(event.channel, event.text)
        else:  # what a thread of a plain function says is here before its result is
            self._loop.call_soon_threadsafe(self._keep, event.channel, event.text)

    def _keep(self, channel: str, text: str) -> None:
        size = self._sizes.get(channel, 0)
        text = text[: MAX_SAID_CHARACTERS - size]
        if not text:
            return
        self._pieces.setdefault(channel, []).append(text)
        self._sizes[channel] = size + len(text)
        if self._timer is None:
            self._timer = self._loop.call_later(FLUSH_SECONDS, self._flush)

    def _flush(self) -> None:
        self._timer = None
        for channel, pieces in self._pieces.items():
            fresh = pieces[self._told.get(channel, 0) :]
            self._told[channel] = len(pieces)
            if fresh:
                self._pass_on(channel, "".join(fresh))

    def close(self) -> None:
        """Pass nothing on any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def finish(self) -> None:
        """Bind ``said``: all that was taken, by channel."""
        self.said = {channel: "".join(pieces) for channel, pieces in self._pieces.items()}
