"""The least HTTP that the load needs, on bare sockets: whoever measures must not be what is slow.

``Caller`` keeps a connection for requests with short answers. ``Connection`` is one event stream.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from typing import Any

IDLE_SECONDS = 2.0
"""A connection that was left alone for so long is made anew: the server closes those that idle."""
_MESSAGE_END = re.compile(rb"\r?\n\r?\n")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


class Caller:
    """Requests one after the other."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used = 0.0

    async def post(self, path: str, plain: Any) -> tuple[int, Any]:
        """Status and body of the answer."""
        body = json.dumps(plain).encode()
        head = (
            f"POST {path} HTTP/1.1\r\n{self._head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        if time.monotonic() - self._used > IDLE_SECONDS:
            self.close()
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(head.encode() + body)
        answer = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(answer)
        content = await reader.readexactly(int(length[1])) if length else b"null"
        self._used = time.monotonic()
        return int(answer.split(b" ", 2)[1]), json.loads(content)

    def close(self) -> None:
        """Give the connection back."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


class Connection(asyncio.Protocol):
    """One event stream, until it ends or is dropped.

    Attributes:
        status: Status of the answer; 0 before it has come.
        opened: When the answer began.
        begun: Done when the answer has begun, or will not.
        over: Done when the connection has ended.
    """

    def __init__(self, request: bytes, on_message: Callable[[Connection, str, str, bytes], None]) -> None:
        """Make it for a request.

        Args:
            request: What is sent.
            on_message: Told the connection, and name, id and data of each message.
        """
        loop = asyncio.get_running_loop()
        self._request = request
        self._on_message = on_message
        self._transport: asyncio.Transport | None = None
        self._raw = b""
        self._text = b""
        self._is_chunked = False
        self._is_dropped = False
        self.status = 0
        self.opened = 0.0
        self.begun: asyncio.Future[None] = loop.create_future()
        self.over: asyncio.Future[None] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def drop(self, *, is_rude: bool) -> None:
        """Hang up in the middle, with or without a word; what has come and was not looked at is lost."""
        self._is_dropped = True
        if self._transport is not None:
            (self._transport.abort if is_rude else self._transport.close)()

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        if self._is_dropped:
            return
        self._raw += data
        if not self.status and not self._take_head():
            return
        if self._is_chunked:
            self._take_chunks()
            self._take_messages()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell who waits; how it ended is seen by what has come."""
        for future in (self.begun, self.over):
            if not future.done():
                future.set_result(None)

    def _take_head(self) -> bool:
        head, end, rest = self._raw.partition(b"\r\n\r\n")
        if not end:
            return False
        self.status = int(head.split(b" ", 2)[1])
        self.opened = time.time()
        self._raw = rest
        self._is_chunked = self.status == 200 and bool(_CHUNKED.search(head))
        self.begun.set_result(None)
        if not self._is_chunked and self._transport is not None:
            self._transport.close()  # a refusal, or nothing to come: the status says it all
        return True

    def _take_chunks(self) -> None:
        raw, at = self._raw, 0
        while (line := raw.find(b"\r\n", at)) >= 0:
            size = int(raw[at:line], 16)
            end = line + 2 + size
            if len(raw) < end + 2:
                break
            self._text += raw[line + 2 : end]
            at = end + 2
            if size == 0 and self._transport is not None:
                self._transport.close()
        self._raw = raw[at:]

    def _take_messages(self) -> None:
        *whole, self._text = _MESSAGE_END.split(self._text)
        for message in whole:
            if self._is_dropped:
                return
            name = event_id = ""
            data = b""
            for line in message.splitlines():
                field, _, value = line.partition(b":")
                value = value.removeprefix(b" ")
                if field == b"data":
                    data = value
                elif field == b"id":
                    event_id = value.decode()
                elif field == b"event":
                    name = value.decode()
            if data:
                self._on_message(self, name, event_id, data)
