"""The output of a command: kept in part, spooled to a file, passed on as it arrives.

However much a command writes, memory and disk stay bounded; what is over the bounds is read and
dropped, so that the command never blocks.
"""

from __future__ import annotations

import asyncio
import codecs
from typing import TYPE_CHECKING, Self

from attractor_nb.redaction import StreamRedactor
from attractor_nb.storage.files.disk import storage_error, write_all

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attractor_nb.storage.files.disk import Disk

    OutputListener = Callable[[str, str], None]

MAX_KEPT_BYTES = 1024 * 1024
"""Of each output, in memory: its first and its last half."""
MAX_SPOOLED_BYTES = 64 * 1024 * 1024
"""Of each output, on disk and to the listener."""


class Channel(asyncio.Protocol):
    """What takes one output of a command.

    Attributes:
        failed: Done when it can take no more: the command is then ended.
        ended: Done when the last writer has closed the pipe, or we have.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the pipe."""
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the interface of asyncio
        """The last writer closed the pipe, or we did."""
        if not self.ended.done():
            self.ended.set_result(None)

    def close(self) -> None:
        """Close the pipe."""
        if self._transport is not None:
            self._transport.close()


class OutputChannel(Channel):
    """One output of a command: kept in part, spooled, and passed on as it arrives."""

    def __init__(self, name: str, directory: Path | None, listener: OutputListener | None, disk: Disk) -> None:
        super().__init__()
        self._name = name
        self._path = None if directory is None else directory / f"{name}.txt"
        self._listener = listener
        self._redactor = StreamRedactor()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._disk = disk
        self._file = -1
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            try:
                parent = self._disk.open_directory(self._path.parent)
                try:
                    self._file = self._disk.open_update(self._path.name, parent)
                finally:
                    self._disk.close(parent)
                self._disk.truncate(self._file, 0)
            except OSError as error:
                self.__exit__()
                raise storage_error(error, "write", self._path) from error
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        if self._failure is None and (rest := self._redactor.finish()):
            self._take(rest.encode("latin-1"))
        if self._file >= 0:
            self._disk.close(self._file)
            self._file = -1

    def data_received(self, data: bytes) -> None:
        """Take a piece of output; a failure here ends the command."""
        if self._failure is None:
            # Bytes as Latin-1 come back as they were, whatever the command's encoding is.
            self._take(self._redactor.feed(data.decode("latin-1")).encode("latin-1"))

    def _take(self, data: bytes) -> None:
        self._keep(data)
        room = MAX_SPOOLED_BYTES - self._size
        self._size += len(data)
        piece = data[: max(room, 0)]
        try:
            if piece and self._file >= 0:
                self._spool(piece)
            if piece and self._listener is not None and (text := self._decoder.decode(piece)):
                self._listener(self._name, text)
        except Exception as error:  # noqa: BLE001 - kept, and raised where the command is awaited
            self._failure = error
            if not self.failed.done():
                self.failed.set_result(None)

    def _keep(self, data: bytes) -> None:
        half = MAX_KEPT_BYTES // 2
        if room := half - len(self._head):
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * half:
            del self._tail[:-half]

    def _spool(self, piece: bytes) -> None:
        assert self._path is not None, "only a channel with a path has a file"
        try:
            write_all(self._disk, self._file, piece)
        except OSError as error:
            raise storage_error(error, "write", self._path) from error

    def text(self) -> str:
        """The output as far as it was kept."""
        tail = bytes(self._tail[-(MAX_KEPT_BYTES // 2) :])
        left_out = self._size - len(self._head) - len(tail)
        gap = f"\n[… {left_out} bytes left out …]\n" if left_out else ""
        if not left_out:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        return self._head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")

    def raise_failure(self) -> None:
        """Raise what went wrong while output was taken."""
        if self._failure is not None:
            raise self._failure
