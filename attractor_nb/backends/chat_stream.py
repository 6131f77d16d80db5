"""A streamed chat completion over plain HTTP on loopback, in the wire form of OpenAI.

The few lines of HTTP/1.1 that one known server needs, on asyncio's own streams: cancelling closes
the connection, and by that ends the generation. It knows nothing of nodes or runs.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from attractor_nb.errors import RetryableError, TerminalError
from attractor_nb.model.outcome import Usage
from attractor_nb.model.surrogates import whole

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

CHAT_PATH = "/v1/chat/completions"
DATA_PREFIX = b"data: "
LINE_LIMIT_BYTES = 1 << 20
MAX_ANSWER_BYTES = 16 << 20
"""Of a whole answer, its wrapping included: no server is read for ever."""
MAX_HEADERS = 100
CONNECT_SECONDS = 10.0
READ_SECONDS = 300.0
"""A small model on a busy machine may think for minutes about a long prompt before its first word."""
TRANSIENT = frozenset({408, 409, 425, 429})
"""Refusals that may pass (Appendix D); every 5xx may too."""


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished completion.

    Attributes:
        text: All of its text.
        is_truncated: It ended at the token limit.
        usage: What it consumed.
    """

    text: str
    is_truncated: bool
    usage: Usage


async def complete_chat(
    address: str,
    request: Mapping[str, Any],
    on_text: Callable[[str], None],
    *,
    connect_seconds: float = CONNECT_SECONDS,
    read_seconds: float = READ_SECONDS,
) -> Completion:
    """Post a chat completion request and read its stream to the end.

    Args:
        address: Base URL of the server, such as ``http://127.0.0.1:8080``.
        request: The body, without the fields about streaming.
        on_text: Given each piece of text as it arrives.
        connect_seconds: How long the connection may take.
        read_seconds: How long nothing may arrive: counted anew from each byte.

    Raises:
        RetryableError: The server is gone, busy or silent, or broke off: a part of an answer is no answer.
        TerminalError: The server refuses the request.
    """
    body = {**request, "stream": True, "stream_options": {"include_usage": True}}
    try:
        async with (
            _connected(address, connect_seconds) as (reader, writer),
            _not_silent(reader, read_seconds),
        ):
            await _post(reader, writer, address, body)
            return await _read_stream(reader, on_text)
    except (OSError, EOFError, ValueError, TypeError, AttributeError, RecursionError) as error:
        # The last three: valid JSON of another shape, or so deep that it cannot be read.
        raise RetryableError(f"the model server broke off: {error or type(error).__name__}") from error


async def _read_stream(reader: asyncio.StreamReader, on_text: Callable[[str], None]) -> Completion:
    parts: list[str] = []
    finish_reason, usage = "", Usage(calls=1)
    async for event in _events(reader):
        if "error" in event:
            raise _refusal(event, 500)
        if counted := event.get("usage"):
            usage = Usage(counted.get("prompt_tokens", 0), counted.get("completion_tokens", 0), 0.0, 1)
        for choice in event.get("choices", ()):
            finish_reason = choice.get("finish_reason") or finish_reason
            delta: dict[str, Any] = choice.get("delta") or {}
            if text := delta.get("content"):
                if not isinstance(text, str):
                    raise ValueError("its content is not text")
                parts.append(text)
                on_text(text)
    if not finish_reason:
        raise EOFError("the answer has no end")
    return Completion(whole("".join(parts)), finish_reason == "length", usage)


async def _events(reader: asyncio.StreamReader) -> AsyncIterator[dict[str, Any]]:
    async for line in _lines(reader):
        if line.startswith(DATA_PREFIX):
            data = line[len(DATA_PREFIX) :].strip()
            if data == b"[DONE]":
                return
            yield json.loads(data)


async def _lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    rest, left = b"", MAX_ANSWER_BYTES
    async for chunk in _chunks(reader):
        left -= len(chunk)
        if left < 0 or len(rest) > LINE_LIMIT_BYTES:
            raise ValueError(f"the answer or a line of it is over {MAX_ANSWER_BYTES} bytes")
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The chunks of a body in chunked transfer coding."""
    while size := int(await reader.readline() or b"0", 16):
        if not 0 < size <= MAX_ANSWER_BYTES:
            raise ValueError(f"a piece of {size} bytes")
        yield await reader.readexactly(size)
        await reader.readline()


class _Reader(asyncio.StreamReader):
    """A reader that tells when bytes arrive.

    Attributes:
        on_bytes: What it tells.
    """

    on_bytes: Callable[[], object] | None = None

    def feed_data(self, data: Any) -> None:
        """Take bytes from the connection."""
        super().feed_data(data)
        if self.on_bytes is not None:
            self.on_bytes()


@asynccontextmanager
async def _connected(address: str, seconds: float) -> AsyncGenerator[tuple[_Reader, asyncio.StreamWriter]]:
    """A connection, closed at the end."""
    url, loop = urlsplit(address), asyncio.get_running_loop()
    reader = _Reader(limit=LINE_LIMIT_BYTES, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    try:
        async with asyncio.timeout(seconds):
            transport, _ = await loop.create_connection(lambda: protocol, url.hostname or "", url.port or 80)
    except TimeoutError:
        raise RetryableError(
            f"the model server at {address} took no connection within {seconds:g} s",
            hint="try again; LocalModelBackend(connect_timeout_seconds=…) waits longer",
        ) from None
    try:
        yield reader, asyncio.StreamWriter(transport, protocol, reader, loop)
    finally:
        transport.close()


@asynccontextmanager
async def _not_silent(reader: _Reader, seconds: float) -> AsyncGenerator[None]:
    """End what is done here when nothing has arrived for so long."""
    loop = asyncio.get_running_loop()

    def heard() -> None:
        if not silence.expired():
            silence.reschedule(loop.time() + seconds)

    try:
        async with asyncio.timeout(seconds) as silence:
            reader.on_bytes = heard
            try:
                yield
            finally:
                reader.on_bytes = None
    except TimeoutError:
        raise RetryableError(
            f"the model server sent nothing for {seconds:g} s",
            hint="shorten the prompt, or wait longer: LocalModelBackend(read_timeout_seconds=…)",
        ) from None


async def _post(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str, body: Mapping[str, Any]
) -> None:
    """Post a JSON body and read on until the streamed answer begins."""
    data = json.dumps(body).encode()
    head = (
        f"POST {CHAT_PATH} HTTP/1.1\r\nHost: {urlsplit(address).netloc}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode() + data)
    await writer.drain()
    status, headers = await _read_head(reader)
    if status != 200 or headers.get("transfer-encoding") != "chunked":
        answer = await _read_page(reader, headers)
        if status == 200:
            raise ValueError("it answered with no stream")
        raise _refusal(answer, status)


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    version, _, rest = (await reader.readline()).partition(b" ")
    if not version.startswith(b"HTTP/"):
        raise EOFError("no answer")
    status = int(rest[:3])
    headers: dict[str, str] = {}
    for _ in range(MAX_HEADERS):
        line = (await reader.readline()).strip()
        if not line:
            return status, headers
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip().lower()
    raise ValueError("too many headers")


async def _read_page(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> Any:
    """The JSON of an answer that is no stream; None when there is none: its status says enough."""
    size = int(headers.get("content-length", "0"))
    if size > LINE_LIMIT_BYTES:
        return None
    try:
        return json.loads(await reader.readexactly(size))
    except (EOFError, ValueError, RecursionError):
        return None


def _refusal(answer: Any, status: int) -> Exception:
    found = cast("dict[str, Any]", answer).get("error") if isinstance(answer, dict) else None
    error = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    message = str(error.get("message", "no reason given"))
    if error.get("type") == "exceed_context_size_error":
        return TerminalError(
            f"the prompt does not fit the local model: {message}",
            hint="shorten the prompt, set fidelity=truncate, or give the backend more context_tokens",
        )
    if status >= 500 or status in TRANSIENT:
        return RetryableError(f"the model server answered {status}: {message}")
    return TerminalError(f"the model server refused the request ({status}): {message}")
