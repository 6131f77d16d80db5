"""The way to an MCP server that is a command of the graph: a message a line over stdin and stdout."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.model.surrogates import whole
from attractor_nb.processes.talk import talk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from attractor_nb.model.allowed_tools import ServerDeclaration
    from attractor_nb.processes.talk import Talk

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""Of one message of a server; one that writes more without a line's end is dead to us."""
_MAX_LINE_SHOWN: Final = 600
_LAST_LINES: Final = 5
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""What escapes half a character; two of them may be a whole one."""


class StdioConnection:
    """A server as a process of its own, which ends with the connection."""

    def __init__(self, declared: ServerDeclaration, directory: Path | None) -> None:
        """Start nothing yet.

        Args:
            declared: Its command, and the variables that it gets.
            directory: Where it works.
        """
        self._declared = declared
        self._directory = directory
        self._talk: Talk | None = None
        self._lines: _Lines | None = None

    @property
    def hint(self) -> str:
        """What to try where it does not start."""
        return f"try its command in a terminal: {self._declared.command}"

    @property
    def way(self) -> str:
        """The same: it has no address."""
        return self.hint

    @property
    def ending(self) -> str:
        """How it ended."""
        code = None if self._talk is None else self._talk.exit_code
        return "ended" if code is None else f"ended with exit code {code}"

    def last_words(self) -> str:
        """The end of its stderr, or what it printed to stdout that was no message."""
        if self._talk is None or self._lines is None:
            return ""
        return self._talk.last_words() or self._lines.last_words()

    def has_expired(self, error: Any) -> bool:  # noqa: ARG002 - a process has no session to forget
        """Whether a call was not made because the server has forgotten the session: never."""
        return False

    @asynccontextmanager
    async def connect(self, ended: Callable[[], None]) -> AsyncGenerator[tuple[Any, Any]]:
        """Start it, and end it with the block: the streams for what it says, and for what it is told.

        Args:
            ended: Called when it has ended by itself.
        """
        import anyio  # noqa: PLC0415 - slow to import, for graphs with servers alone
        from mcp.shared.message import SessionMessage  # noqa: PLC0415 - as above

        incoming, read = anyio.create_memory_object_stream[Any](math.inf)
        write, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        lines = self._lines = _Lines(incoming)
        variables = {name: os.environ[name] for name in self._declared.variables if name in os.environ}

        def stopped(_: object) -> None:  # whoever waits for an answer is told
            ended()
            incoming.close()

        async with talk(self._declared.command, lines.take, cwd=self._directory, env=variables) as talking:
            self._talk = talking
            talking.ended.add_done_callback(stopped)
            speaking = asyncio.ensure_future(_speak(outgoing, talking))
            try:
                yield read, write
            finally:
                speaking.cancel()
                for stream in (incoming, read, write, outgoing):
                    stream.close()


class _Lines:
    """Messages out of what a server writes, a line each; what is none is passed on as what it is."""

    def __init__(self, incoming: Any) -> None:
        self._incoming = incoming
        self._rest = bytearray()
        self._others: deque[bytes] = deque(maxlen=_LAST_LINES)

    def last_words(self) -> str:
        """The last lines that were no message: some programs print there why they end."""
        rest = (*self._others, bytes(self._rest[:_MAX_LINE_SHOWN]))
        return "\n".join(text for line in rest if (text := line.decode("utf-8", "replace").strip()))

    def take(self, data: bytes) -> None:
        """Take the next piece; a message that nobody waits for any more is dropped."""
        from anyio import BrokenResourceError, ClosedResourceError  # noqa: PLC0415 - loaded by now
        from mcp.shared.message import SessionMessage  # noqa: PLC0415 - as above
        from mcp_types import jsonrpc_message_adapter  # noqa: PLC0415 - as above

        self._rest += data
        if b"\n" not in data:
            del self._rest[MAX_MESSAGE_BYTES:]
            return
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest[:MAX_MESSAGE_BYTES])
        for line in lines:
            try:
                message = SessionMessage(jsonrpc_message_adapter.validate_json(_readable(line), by_name=False))
            except ValueError:
                self._others.append(line[:_MAX_LINE_SHOWN])
                continue  # a server that prints what is no message
            try:
                self._incoming.send_nowait(message)
            except (BrokenResourceError, ClosedResourceError):
                return


def _readable(line: bytes) -> bytes:
    """A message with half a character in it, which nothing reads, without the half."""
    if not _HALF.search(line):
        return line
    try:
        return whole(json.dumps(json.loads(line), ensure_ascii=False)).encode()
    except (ValueError, RecursionError):
        return line


async def _speak(outgoing: Any, talking: Talk) -> None:
    """Write what the session says."""
    try:
        async for message in outgoing:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            await talking.write(text.encode() + b"\n")
    except OSError:
        return  # it reads no more; that it has ended is told by its stdout
