"""The program that serves a local model. It is run by its path and imports nothing of the package.

A separate process, because starting the engine blocks every thread of its process, and because a
process can be ended at any moment. It says its address and its key on one line and then serves until it is ended.

A guard is in front of the engine (ruling 43), because the engine answers some paths to everybody, under any name
and to any web page: a request needs the key, a name of this machine as its ``Host``, and no ``Origin``, which
only a page in a browser has. The engine's own port asks for another key, which no other process knows.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import importlib
import secrets
import sys
from http import HTTPStatus
from typing import Any, Final

HOST: Final = "127.0.0.1"
_MAX_HEAD_BYTES: Final = 64 * 1024
_HEAD_SECONDS: Final = 30.0
_CHUNK_BYTES: Final = 64 * 1024
_REPLACED: Final = frozenset({b"host", b"authorization", b"connection"})


def serve(model_path: str, context_tokens: int, threads: int) -> None:
    """Serve a GGUF file, with a context window of that many tokens, until the process is ended.

    With 0 threads the engine chooses how many it takes.
    """
    engine: Any = importlib.import_module("xllamacpp")  # untyped
    inner_key = secrets.token_urlsafe(32)
    parameters = engine.CommonParams()
    parameters.model.path = model_path
    parameters.model_alias = {"local"}
    parameters.n_ctx = context_tokens
    parameters.n_parallel = 1
    parameters.api_keys = [inner_key]
    parameters.endpoint_slots = False  # which would show the prompts
    if threads:
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = threads
    parameters.verbosity = -1
    server = engine.Server(parameters)
    port = int(server.listening_address.rpartition(":")[2])
    # Its own threads serve; the server is not taken apart, which can take long.
    asyncio.run(guard(port, inner_key))


async def guard(engine_port: int, engine_key: str) -> None:
    """Guard the engine until cancelled, and publish the address and the key."""
    key = secrets.token_urlsafe(32)
    door = Doorkeeper(engine_port, engine_key, key)
    server = await asyncio.start_server(door.take, HOST, 0, limit=_MAX_HEAD_BYTES)
    door.port = server.sockets[0].getsockname()[1]
    sys.stdout.write(f"http://{HOST}:{door.port} {key}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


class Doorkeeper:
    """Hands on what has the key and comes from no web page; one request a connection.

    Args:
        engine_port: Where the engine listens.
        engine_key: The key that the engine asks for.
        key: The key that the guard asks for.
    """

    def __init__(self, engine_port: int, engine_key: str, key: str) -> None:
        self._engine_port = engine_port
        self._engine_key = engine_key
        self._key = key
        self.port = 0

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a connection, and close it at the end of its request."""
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _HEAD_SECONDS)
            first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
            fields = [
                (name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)
            ]
            if (status := self.refusal(fields)) is not None:
                await _refuse(writer, status)
                return
            kept = [line for line in lines if line.partition(b":")[0].strip().lower() not in _REPLACED]
            own = [
                f"Host: {HOST}:{self._engine_port}",
                f"Authorization: Bearer {self._engine_key}",
                "Connection: close",
            ]
            request = b"\r\n".join([first, *kept, *(line.encode() for line in own), b"", b""])
            await self._hand_on(request, reader, writer)
        except (OSError, EOFError, ValueError, TimeoutError, asyncio.LimitOverrunError):
            pass  # it has gone away, or is no request
        finally:
            await _close(writer)

    def refusal(self, fields: list[tuple[bytes, bytes]]) -> HTTPStatus | None:
        """The status that refuses a request, by the names and values of its head. None for a request that passes."""
        names = [value for name, value in fields if name == b"host"]
        if names not in ([f"{host}:{self.port}".encode()] for host in (HOST, "localhost")):
            return HTTPStatus.FORBIDDEN
        if any(name == b"origin" for name, _ in fields):
            return HTTPStatus.FORBIDDEN
        keys = [value for name, value in fields if name == b"authorization"]
        is_known = len(keys) == 1 and hmac.compare_digest(keys[0], f"Bearer {self._key}".encode())
        return None if is_known else HTTPStatus.UNAUTHORIZED

    async def _hand_on(self, request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry bytes both ways until one side ends: who goes away ends the generation, too."""
        from_engine, to_engine = await asyncio.open_connection(HOST, self._engine_port)
        try:
            to_engine.write(request)
            ways = [
                asyncio.ensure_future(_carry(reader, to_engine)),
                asyncio.ensure_future(_carry(from_engine, writer)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        finally:
            await _close(to_engine)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK_BYTES):
        writer.write(data)
        await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def _refuse(writer: asyncio.StreamWriter, status: HTTPStatus) -> None:
    body = b'{"error": {"message": "%s"}}' % status.phrase.encode()
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
    writer.write(head.encode() + b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
    with contextlib.suppress(OSError):
        await writer.drain()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
