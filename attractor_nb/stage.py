"""The scope of the stage that is being executed: its files, its key, its voice.

The spec gives a handler four things (node, context, graph, logs_root) and a backend three. Whoever
needs more about the attempt that is under way asks ``current_stage()``; the engine sets it around
each attempt, in threads too.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from attractor_nb.model.events import StageOutput
from attractor_nb.redaction import StreamRedactor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attractor_nb.model.events import Event


class StageFiles(Protocol):
    """The directory of a stage, holding the files of its latest visit (spec 5.6; ruling 28)."""

    @property
    def directory(self) -> Path:
        """The stage's directory; made when first asked for."""
        ...

    def write_text(self, name: str, text: str) -> None:
        """Write a file of the stage, whole or not at all."""
        ...

    def create_deferred(self, name: str, compose: Callable[[], str]) -> bool:
        """Write the text that ``compose`` gives into a new file; whether it is: there may be one already.

        What stays in memory composes it when it is read.
        """
        ...

    def append_text(self, name: str, text: str) -> None:
        """Add to a file of the stage, such as a response that is still arriving."""
        ...

    def read_text(self, name: str) -> str | None:
        """The text of a file of the stage; None when there is none."""
        ...

    def rename(self, name: str, new_name: str) -> None:
        """Give a file of the stage another name, whatever kind of file it is."""
        ...


@dataclass(slots=True)
class StageScope:
    """What an attempt can know and do.

    Attributes:
        run_id: The run.
        node_id: The node.
        visit: Ordinal of the visit, from 1.
        attempt: Ordinal of the try within the visit, from 1.
        logs_root: The run directory.
        files: The stage's files.
        announce: Announce an event: ``announce(StageOutput(name=…, text=…))``.
        fidelity: Resolved fidelity mode (spec 5.4).
        thread: Thread key under ``full`` fidelity, else empty.
        preamble: Context carried into the prompt under the other modes, possibly empty.
        index: Ordinal of the stage in the run.
    """

    run_id: str
    node_id: str
    visit: int
    attempt: int
    logs_root: Path
    files: StageFiles
    announce: Callable[[Event], None]
    fidelity: str = ""
    thread: str = ""
    preamble: str = ""
    index: int = field(default=0)
    _streams: dict[str, StreamRedactor] | None = field(default=None, repr=False)

    @property
    def idempotency_key(self) -> str:
        """``run:node:visit``, the same over re-runs of a visit.

        Neither a restart nor a rewind uses the number of a visit again (``RunState.numbers``), so no key
        ever stands for two executions.
        """
        return f"{self.run_id}:{self.node_id}:{self.visit}"

    def stream(self, text: str, channel: str = "response") -> None:
        """Announce a piece of the stage's output as it arrives."""
        if self._streams is None:
            self._streams = {}
        stream = self._streams.setdefault(channel, StreamRedactor())
        self._announce_output(stream.feed(text), channel)

    def end_streams(self) -> None:
        """Give out what may have been the beginning of a secret and was none. For the engine alone."""
        for channel, stream in (self._streams or {}).items():
            self._announce_output(stream.finish(), channel)

    def _announce_output(self, text: str, channel: str) -> None:
        if not text:
            return
        self.announce(
            StageOutput(
                name=self.node_id,
                index=self.index,
                visit=self.visit,
                attempt=self.attempt,
                text=text,
                channel=channel,
            )
        )


_CURRENT: ContextVar[StageScope] = ContextVar("attractor_stage")


def current_stage() -> StageScope:
    """The scope of the attempt under way.

    Raises:
        LookupError: No stage is being executed here.
    """
    return _CURRENT.get()


def stream_output(text: str, channel: str = "response") -> None:
    """``current_stage().stream(…)`` where a stage is being executed, else nothing.

    For backends, which may also be called outside a run.
    """
    scope = _CURRENT.get(None)
    if scope is not None:
        scope.stream(text, channel)


def enter_stage(scope: StageScope) -> None:
    """Make a scope the current one for this task and whatever it starts. For the engine alone."""
    _CURRENT.set(scope)
