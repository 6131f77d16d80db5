"""Calls within an attempt: of a model, and of the tools that it asked for (spec 4.5, 9.7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from attractor_nb.model.events.stages import StageSignal
from attractor_nb.model.outcome import Usage
from attractor_nb.model.record import always, no_values


class ModelCallEnded(StageSignal, kw_only=True):
    """A model was asked once, and answered or failed."""

    model: str = ""  #: Who was asked, with the provider before it: ``openai:gpt-5.2``.
    duration: float = always(0.0)  #: Seconds from the request to the end of the answer.
    usage: Usage | None = None  #: What it consumed; None when nobody said.
    #: Why the answer ended: ``stop``, ``length``, ``tool_call``, ``content_filter``; empty when the call failed.
    finish: str = ""
    error: str = ""  #: Why it failed, or empty.
    #: The kind of failure in a word of few: the HTTP status (``429``), ``timeout``, or the name of an exception's
    #: class; empty when it did not fail.
    error_type: str = ""
    thread: str = ""  #: The conversation that it went on with, or empty.
    #: The model as its server names it in the answer: ``gpt-5.2-2026-05-01``; empty when it does not.
    answered_by: str = ""

    @property
    def description(self) -> str:
        """One line for people."""
        if self.error:
            return f"{self.name}: {self.model} failed: {self.error}"
        tokens = f", {self.usage.total_tokens} tokens" if self.usage else ""
        return f"{self.name}: {self.model} answered in {self.duration:.1f} s{tokens}"


class ModelCallWaiting(StageSignal, kw_only=True):
    """A request waits until the rates of its provider allow it; announced when that takes over a second."""

    model: str = ""  #: Who will be asked, with the provider before it.
    seconds: float = always(0.0)  #: How long it waits at least.
    rates: str = ""  #: The bounds, in words: ``60 requests a minute``.

    @property
    def description(self) -> str:
        """One line for people."""
        return f"{self.name}: waits about {self.seconds:.0f} s for {self.model} ({self.rates})"


class ToolCallEnded(StageSignal, kw_only=True):
    """A tool that a model asked for was called, or skipped by a hook (spec 9.7)."""

    tool: str = ""  #: Its name.
    call_id: str = ""  #: The model's name of the call.
    #: What it was called with; long texts are cut off.
    arguments: Mapping[str, Any] = msgspec.field(default_factory=no_values)
    duration: float = always(0.0)  #: Seconds, hooks included.
    result: str = ""  #: The beginning of what the model was told.
    error: str = ""  #: Why it failed, or empty.
    skipped: str = ""  #: Why the pre-hook skipped it, or empty.
    #: What the hooks came to, oldest first: ``pre`` or ``post``, the exit code, and the end of what they wrote to
    #: stderr.
    hooks: tuple[tuple[str, int, str], ...] = ()

    @property
    def description(self) -> str:
        """One line for people."""
        if self.skipped:
            return f"{self.name}: {self.tool} was skipped: {self.skipped}"
        return f"{self.name}: {self.tool} failed: {self.error}" if self.error else f"{self.name}: {self.tool}"
