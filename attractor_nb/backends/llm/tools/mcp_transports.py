"""Transports to an MCP server: over the streams of a process, or over HTTP."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import time
from collections import deque
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx2
import msgspec

from attractor_nb.backends.llm.clients import UnusableNetwork, http_client
from attractor_nb.errors import TerminalError
from attractor_nb.model.allowed_tools import ServerDeclaration, header_variables, read_headers
from attractor_nb.model.bounded_json import read_bounded_json
from attractor_nb.model.texts import whole
from attractor_nb.network import is_local, proxy_variables
from attractor_nb.processes.local import Talk, talk
from attractor_nb.redaction import learn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from pathlib import Path


# The way to an MCP server that is a command of the graph: a message a line over stdin and stdout.

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""Of one message of a server; one that writes more without a line's end is dead to us."""
_MAX_LINE_SHOWN: Final = 600
_LAST_LINES: Final = 5
_HALF: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""Escape of half a character; two of them may be a whole one."""


class StdioConnection:
    """A server as a separate process, which ends with the connection."""

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
        """The remedy if the server does not start."""
        return f"try its command in a terminal: {self._declared.command}"

    @property
    def way(self) -> str:
        """The same: it has no address."""
        return self.hint

    @property
    def ending(self) -> str:
        """The end of the connection, in words."""
        code = None if self._talk is None else self._talk.exit_code
        return "ended" if code is None else f"ended with exit code {code}"

    def last_words(self) -> str:
        """The end of its stderr, or what it printed to stdout that was no message."""
        if self._talk is None or self._lines is None:
            return ""
        return self._talk.last_words() or self._lines.last_words()

    def has_expired(self, error: Any) -> bool:  # noqa: ARG002 - a process has no session to forget
        """True if a call was not made because the server has forgotten the session: never."""
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

        def stopped(_: object) -> None:  # callers that wait for an answer are notified
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
        """Take the next piece; a message that is not waited for any more is dropped."""
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


# Streamable HTTP: the transport to an MCP server with an address (specification of 2025-03-26 and later).
#
# The ``mcp`` package sends and reads the messages. This part adds headers with the values of the named environment
# variables, bypasses proxies for a server on this machine, turns a refusal into an error in the server's own words,
# and bounds the reading of an answer.

CONNECT_SECONDS: Final = 15.0
END_SECONDS: Final = 2.0
"""Time limit for the end of a session; the server also ends it without a request."""
LEAST_PAUSE_SECONDS: Final = 0.5
"""Shortest pause between two requests for one stream of events."""
MOST_PAUSE_SECONDS: Final = 8.0
"""The same at most, beside what the server asks for; a stream that lasted longer did not end at once."""
_MESSAGE: Final = re.compile(rb"data: ?\{")
_MAX_REFUSAL_BYTES: Final = 64 * 1024
_MAX_WORDS: Final = 600
_SESSION: Final = "mcp-session-id"
_EXPIRED: Final = "is_expired"
_REFUSAL: Final = -32000
"""The code of an error that is a status of HTTP; servers are free to choose it."""


class HttpConnection:
    """A server at an address; what is opened here is a session of it."""

    def __init__(self, declared: ServerDeclaration) -> None:
        """Ask nothing yet."""
        self._declared = declared

    @property
    def hint(self) -> str:
        """The remedy if the server does not answer as an MCP server."""
        declared = self._declared
        names = ", ".join(header_variables(declared.headers))
        key = f"what {names} holds" if names else f'whether it needs mcp.{declared.name}.headers="Authorization: …"'
        return f"check its address, {declared.url}, and {key}{self._proxy_words()}"

    @property
    def way(self) -> str:
        """The remedy if the server does not answer."""
        return f"check its address, {self._declared.url}, and whether it runs there{self._proxy_words()}"

    def _proxy_words(self) -> str:
        url = self._declared.url
        proxies = [] if is_local(url) else proxy_variables(os.environ, (urlsplit(url).scheme, "all"))
        return f"; requests go through the proxy that {proxies[0][0]} names" if proxies else ""

    @property
    def ending(self) -> str:
        """The end of the connection, in words."""
        return "closed the connection"

    def last_words(self) -> str:
        """Nothing: what it says is in its answers."""
        return ""

    def has_expired(self, error: Any) -> bool:
        """True if a call was not made because the server has forgotten the session."""
        return isinstance(error.data, dict) and cast("dict[str, Any]", error.data).get(_EXPIRED) is True

    @asynccontextmanager
    async def connect(self, ended: Callable[[], None]) -> AsyncGenerator[tuple[Any, Any]]:  # noqa: ARG002 - it has no process to end
        """Open connections, and end its session with the block: the streams for what it says, and is told."""
        from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415 - slow to import

        url = self._declared.url
        headers = filled_headers(self._declared)
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=None)  # how long an answer may take is decided above
        try:
            client = http_client(timeout, is_here=is_local(url), is_encrypted=not url.startswith("http://"))
        except UnusableNetwork as unusable:
            raise TerminalError(unusable.fault.message, hint=unusable.fault.hint) from None
        client.headers.update({**headers, "Accept-Encoding": "identity"})
        polls = _Polls(self._declared.timeout_seconds)
        client.event_hooks["request"] += [_in_time, polls.space]
        client.event_hooks["response"] += [_checked, polls.watch]
        async with (
            client,
            streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
        ):
            yield streams


def filled_headers(declared: ServerDeclaration) -> dict[str, str]:
    """The headers that a server gets, with the values of their variables, which are secrets from now on."""
    where = f"mcp.{declared.name}.headers"
    try:
        written = read_headers(declared.headers)
    except ValueError as error:
        raise TerminalError(f"{where} {error}", hint="Authorization: Bearer $FILES_TOKEN") from None
    found: dict[str, str] = {}
    for header in written:
        value = os.environ.get(header.variable, "").strip()
        if not value:
            raise TerminalError(
                f"it needs the environment variable {header.variable}, which is not set",
                hint=f"{where} names it; set it before the run",
            )
        if not (value.isascii() and value.isprintable()):
            raise TerminalError(
                f"the environment variable {header.variable} holds a character that no header of HTTP can have",
                hint="a key is one line of ASCII letters, digits and signs",
            )
        learn([value])
        found[header.name] = f"{header.before}{value}{header.after}"
    return found


async def _in_time(request: httpx2.Request) -> None:
    """Have the end of a session not wait for a server that hangs."""
    if request.method == "DELETE":
        request.extensions["timeout"] = httpx2.Timeout(END_SECONDS).as_dict()


async def _checked(response: httpx2.Response) -> None:
    """Have a refusal be an error of MCP, and an answer end that is longer than any may be."""
    if response.request.method != "POST":
        return
    if response.headers.get("content-encoding", "identity").lower() != "identity":  # what it becomes has no bound
        raise httpx2.StreamError("the answer is compressed, which was not asked for")
    if response.status_code >= HTTPStatus.BAD_REQUEST:
        response.stream = _Refusal(response, response.stream)
        response.headers["content-type"] = "application/json"
        response.headers.pop("content-length", None)
    elif response.headers.get("content-type", "").lower().startswith("application/json"):
        response.stream = _Bounded(response.stream)


class _Poll(msgspec.Struct):
    """The requests of one reader for one stream of events."""

    since: float = math.inf  #: When the first of those was due that brought nothing.
    due: float = 0.0  #: When the next may be sent.
    pause: float = LEAST_PAUSE_SECONDS  #: Pause before the next one.

    def begin_anew(self) -> None:
        """Count what came before no more."""
        self.since, self.pause = math.inf, LEAST_PAUSE_SECONDS


class _Polls:
    """Spaces the requests for streams of events.

    A server ends a stream and says with ``retry`` when it is to be asked again: with 0 it would be asked without
    pause. Each stream that ends at once without a message doubles the pause.
    """

    def __init__(self, bound_seconds: float) -> None:
        """Begin with no stream.

        Args:
            bound_seconds: For how long streams may end at once without a message.
        """
        self._bound = bound_seconds
        self._by_reader: WeakKeyDictionary[asyncio.Task[Any], _Poll] = WeakKeyDictionary()

    async def space(self, request: httpx2.Request) -> None:
        """Wait until the request may be sent."""
        reader = asyncio.current_task()
        if request.method != "GET" or reader is None:
            return
        poll, now = self._by_reader.setdefault(reader, _Poll()), time.monotonic()
        if now - poll.since > self._bound:
            raise httpx2.StreamError(f"the server ended each stream at once, for {self._bound:g} s")
        poll.since = min(poll.since, now)
        wait = max(0.0, poll.due - now)
        poll.due = now + wait + poll.pause
        poll.pause = min(2 * poll.pause, MOST_PAUSE_SECONDS)
        await asyncio.sleep(wait)

    async def watch(self, response: httpx2.Response) -> None:
        """Note whether the stream brings a message, or lasts."""
        reader = asyncio.current_task()
        if response.request.method == "GET" and reader is not None and reader in self._by_reader:
            response.stream = _Watched(response.stream, self._by_reader[reader])


class _Watched(httpx2.AsyncByteStream):
    """A stream of events that begins its poll anew with a message, or when it lasted."""

    def __init__(self, stream: Any, poll: _Poll) -> None:
        self._stream = stream
        self._poll = poll

    async def __aiter__(self) -> AsyncIterator[bytes]:
        began, tail = time.monotonic(), b""
        async for chunk in self._stream:
            if _MESSAGE.search(tail + chunk):
                self._poll.begin_anew()
            tail = chunk[-len(b"data: ") :]
            yield chunk
        if time.monotonic() - began > MOST_PAUSE_SECONDS:
            self._poll.begin_anew()

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Bounded(httpx2.AsyncByteStream):
    """A stream of bytes that breaks off when there are too many."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_MESSAGE_BYTES
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise httpx2.StreamError(f"the answer is over {MAX_MESSAGE_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Refusal(httpx2.AsyncByteStream):
    """An error of JSON-RPC in place of a refusal of HTTP: its status, and the server's own words."""

    def __init__(self, response: httpx2.Response, stream: Any) -> None:
        self._stream = stream
        self._status = response.status_code
        self._has_session = _SESSION in response.request.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        body = bytearray()
        async for chunk in self._stream:
            body += chunk
            if len(body) > _MAX_REFUSAL_BYTES:
                break
        yield json.dumps({"jsonrpc": "2.0", "id": None, "error": self._error(bytes(body))}).encode()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _error(self, body: bytes) -> dict[str, Any]:
        try:
            phrase = HTTPStatus(self._status).phrase
        except ValueError:
            phrase = ""
        words = _own_words(body)
        text = f"answered {self._status} {phrase}".rstrip() + (f": {words}" if words else "")
        is_expired = self._has_session and self._status == HTTPStatus.NOT_FOUND
        return {"code": _REFUSAL, "message": text, "data": {_EXPIRED: is_expired}}


def _own_words(body: bytes) -> str:
    """The message of a refusal: that of its JSON, or its text; empty for an HTML page."""
    text = body.decode("utf-8", "replace").strip()
    try:
        said: Any = read_bounded_json(text)
    except ValueError:
        return "" if text.startswith("<") else " ".join(text[:_MAX_WORDS].split())
    for name in ("error", "message", "error_description", "detail"):
        if isinstance(said, dict) and name in said:
            said = cast("dict[str, Any]", said)[name]
    return " ".join(str(cast("object", said))[:_MAX_WORDS].split()) if said else ""
