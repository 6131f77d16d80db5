"""Takes what an agent writes while it works: text, calls of tools and its log go where they belong."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

from attractor_nb.backends.agents.agent_events import AgentEvent, TextWritten, plain_text
from attractor_nb.backends.agents.answer_grace import ANSWER_GRACE_SECONDS, WORK_GRACE_SECONDS
from attractor_nb.backends.agents.transcript import ToolCall, Transcript
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.events import ModelCallEnded, ToolCallEnded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from attractor_nb.backends.agents.dialect import Dialect
    from attractor_nb.model.outcome import Usage
    from attractor_nb.stage import StageScope

LOG_NAME: Final = "agent.jsonl"
MAX_LOG_BYTES: Final = 1_000_000
"""Of what an agent writes, in its log; the rest is left out, and a last line says so. Recordings take no
larger file."""
_PIECES: Final = ('{"type":"stream_event"', '{"type": "stream_event"')
_MAX_UNLOGGED_CHARACTERS: Final = 100_000
MAX_TOOL_EVENTS: Final = 1000
"""How many calls of tools an attempt announces; the log has all."""

MAX_LINE_CHARACTERS: Final = 4 * 1024 * 1024
"""A longer line is dropped: no answer is that long, and it would be kept in memory."""


class Listener:
    """Listens to one call of an agent."""

    def __init__(self, dialect: Dialect, scope: StageScope | None, now: Callable[[], float]) -> None:
        """Begin to listen.

        Args:
            dialect: What the lines mean.
            scope: The stage's; None outside a run, where nobody is told.
            now: A clock, in seconds.
        """
        self.transcript = Transcript()
        self._lines = ObjectLines()
        self._dialect = dialect
        self._scope = scope
        self._now = now
        self._began = now()
        self._room = MAX_LOG_BYTES
        self._announced = 0
        self._has_output = False
        self._unlogged = ""
        self.moved = asyncio.Event()
        """Set whenever what it says changes how long it may go on (``answer_grace``)."""

    @property
    def grace_seconds(self) -> float | None:
        """How long the agent may go on; None while it has not said its last word."""
        if not self.transcript.is_over:
            return None
        return WORK_GRACE_SECONDS if self.transcript.is_waiting else ANSWER_GRACE_SECONDS

    @property
    def dropped_lines(self) -> int:
        """Lines that were too long to be read."""
        return self._lines.dropped

    def no_end(self) -> str:
        """What is wrong with an agent that ended well and did not say how it went."""
        if self.transcript.is_empty:
            what = f"ended with exit code 0 and said nothing that {self._dialect.title} is known to say"
        else:
            what = "ended with exit code 0 and no word on how it went: its output is cut off"
        dropped = f"; {self.dropped_lines} lines were too long to be read" if self.dropped_lines else ""
        return f"{self._dialect.name} {what}{dropped}"

    def take(self, channel: str, text: str) -> None:
        """Take a piece of output (``processes.output.OutputListener``)."""
        if channel != "stdout":
            if self._scope is not None:
                self._scope.stream(plain_text(text), channel)
            return
        self._log(text)
        for line in self._lines.feed(text):
            self._take_line(line)

    def finish(self) -> None:
        """Nothing more comes: read the last line, and give up calls of tools that have not ended."""
        for line in self._lines.finish():
            self._take_line(line)
        self._log("", is_last=True)
        for call in self.transcript.open_calls():
            self._announce_tool(call)

    def announce_call(self, *, usage: Usage | None, finish: str = "", error: str = "", model: str = "") -> None:
        """Announce the call itself, with what it came to."""
        if self._scope is None:
            return
        self._scope.announce(
            ModelCallEnded(
                **self._facts(self._scope),
                model=f"{self._dialect.name}:{self.transcript.model or model}".removesuffix(":"),
                duration=self._now() - self._began,
                usage=usage,
                finish=finish,
                error=error,
                thread=self._scope.thread,
            )
        )

    def _take_line(self, line: Mapping[str, Any]) -> None:
        for event in self._dialect.read(line):
            self._tell(event)

    def _tell(self, event: AgentEvent) -> None:
        if isinstance(event, TextWritten):
            self._stream(event)
        was_over = self.transcript.is_over
        if (call := self.transcript.take(event, self._now())) is not None:
            self._announce_tool(call)
        if was_over or self.transcript.is_over:
            self.moved.set()

    def _stream(self, written: TextWritten) -> None:
        if self._scope is None:
            return
        is_next = self._has_output and not self.transcript.goes_on(written)
        self._has_output = True
        text = self.transcript.news(written)
        self._scope.stream(f"\n\n{text}" if is_next else text)

    def _announce_tool(self, call: ToolCall) -> None:
        self._announced += 1
        if self._scope is None or self._announced > MAX_TOOL_EVENTS:
            return
        self._scope.announce(
            ToolCallEnded(
                **self._facts(self._scope),
                tool=call.call.tool,
                call_id=call.call.call_id,
                arguments=call.arguments,
                duration=self._now() - call.began,
                result=call.result,
                error=call.error,
            )
        )

    def _log(self, text: str, *, is_last: bool = False) -> None:
        """Keep whole lines, without pieces of messages: these come whole, and would leave no room."""
        if self._scope is None or self._room <= 0:
            return
        *lines, self._unlogged = (self._unlogged + text).split("\n")
        text = "".join(f"{line}\n" for line in lines if not line.startswith(_PIECES))
        if is_last or len(self._unlogged) > _MAX_UNLOGGED_CHARACTERS:
            text, self._unlogged = text + self._unlogged, ""
        if not text:
            return
        data = text.encode("utf-8", "backslashreplace")
        piece, self._room = data[: self._room].decode("utf-8", "ignore"), self._room - len(data)
        if self._room <= 0:
            piece += f'\n{{"left_out": "what {self._dialect.name} wrote after this"}}\n'
        self._scope.files.append_text(LOG_NAME, piece)

    @staticmethod
    def _facts(scope: StageScope) -> dict[str, Any]:
        return {"name": scope.node_id, "index": scope.index, "visit": scope.visit, "attempt": scope.attempt}


class ObjectLines:
    r"""Takes a stream in pieces and gives the objects in it.

    What is not an object (a warning, a progress bar, half a line at the end) is passed over.

    >>> lines = ObjectLines()
    >>> list(lines.feed('{"type": "a"}\nhm\n{"ty')), list(lines.feed('pe": "b"}\n'))
    ([{'type': 'a'}], [{'type': 'b'}])
    """

    def __init__(self, *, max_characters: int = MAX_LINE_CHARACTERS) -> None:
        """Begin.

        Args:
            max_characters: How long a line may be.
        """
        self._max_characters = max_characters
        self._pending: list[str] = []
        self._length = 0
        self.dropped = 0
        """How many lines were too long."""

    def feed(self, text: str) -> Iterator[Mapping[str, Any]]:
        """Take the next piece; the objects that are whole by now."""
        *lines, rest = text.split("\n")
        for line in lines:
            self._add(line)
            yield from self.finish()
        self._add(rest)

    def finish(self) -> Iterator[Mapping[str, Any]]:
        """The object in what is left, if it is one: the last line of a stream need not be ended."""
        line, self._pending = "".join(self._pending), []
        if self._length > self._max_characters:
            self.dropped += 1
            line = ""
        self._length = 0
        if (found := _object(line)) is not None:
            yield found

    def _add(self, piece: str) -> None:
        self._length += len(piece)
        if self._length > self._max_characters:
            self._pending = []
        elif piece:
            self._pending.append(piece)


def _object(line: str) -> Mapping[str, Any] | None:
    """The object of a line; None for a line without one, and for one that says a key twice (ruling 47)."""
    line = plain_text(line).strip()
    if not line.startswith("{"):
        return None
    sizes = (0, 0)

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal sizes
        found = dict(pairs)
        sizes = len(pairs), len(found)  # the whole object is made last
        return found

    try:
        value: Any = read_bounded_json(line, object_pairs_hook=made)
    except ValueError:
        return None
    is_clear = isinstance(value, dict) and sizes[0] == sizes[1]
    return cast("Mapping[str, Any]", value) if is_clear else None
