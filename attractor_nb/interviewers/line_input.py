"""Reads lines without blocking the event loop and without a thread that outlives the question.

A pipe or terminal is read when the loop reports input. A file is read at once, and a stream without a file
descriptor (a text in memory) is read directly.
"""

from __future__ import annotations

import asyncio
import codecs
import io
import os
from typing import TYPE_CHECKING

from attractor_nb.calling import call

if TYPE_CHECKING:
    from typing import TextIO

CHUNK_BYTES = 4096


class LineInput:
    """Reads lines of a stream, and buffers input after a line for the next one."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._buffer = ""
        self._is_at_end = False
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    async def read_line(self) -> str | None:
        """The next line without its end; None when there are no more. Can be cancelled."""
        try:
            descriptor = self._stream.fileno()
        except (AttributeError, io.UnsupportedOperation):
            line = self._stream.readline()
            return line.rstrip("\r\n") if line else None
        while "\n" not in self._buffer and not self._is_at_end:
            data = await self._read_available(descriptor)
            self._buffer += self._decoder.decode(data, final=not data)
            self._is_at_end = not data
        line, separator, self._buffer = self._buffer.partition("\n")
        return line.rstrip("\r") if line or separator else None

    async def _read_available(self, descriptor: int) -> bytes:
        loop = asyncio.get_running_loop()
        readable: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(descriptor, lambda: readable.done() or readable.set_result(None))
        except PermissionError:  # a plain file: always readable
            return os.read(descriptor, CHUNK_BYTES)
        except NotImplementedError:  # the loop of Windows knows sockets only
            return (await call(self._stream.readline)).encode()
        try:
            await readable
        finally:
            loop.remove_reader(descriptor)
        return os.read(descriptor, CHUNK_BYTES)
