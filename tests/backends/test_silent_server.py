"""A model server that hangs: each wait for it has an end, and the message says how to wait longer."""

import asyncio
import json
import socket

import pytest

from attractor_nb import LocalModelBackend
from attractor_nb.backends.local_model import complete_chat
from attractor_nb.errors import RetryableError

OK = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SHORT, LONG = 0.15, 30.0


def chunk(**event):
    data = b"data: " + json.dumps(event).encode() + b"\n\n"
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


WORD = chunk(choices=[{"delta": {"content": "word"}}])
END = chunk(choices=[{"delta": {}, "finish_reason": "stop"}]) + b"0\r\n\r\n"


async def asked(pieces, read_seconds, *, gap=0.0, hangs=False):
    """The result of a request to a server that sends these pieces with gaps, and then hangs or ends."""
    gone = asyncio.Event()

    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(gap)  # the silence is what is measured
        if hangs:
            await reader.read()  # it is told: the connection was closed
        writer.close()
        await writer.wait_closed()
        gone.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        return await complete_chat(f"http://{host}:{port}", {}, lambda _: None, read_seconds=read_seconds)
    finally:
        await asyncio.wait_for(gone.wait(), LONG)
        server.close()


@pytest.mark.parametrize(
    "pieces",
    [[], [b"HTTP/1.1 200 OK\r\n"], [OK], [OK, WORD], [OK, WORD[:9]], [b"HTTP/1.1 500 X\r\nContent-Length: 9\r\n\r\n"]],
    ids=["nothing", "half_a_head", "a_head", "a_word", "half_a_word", "half_a_page"],
)  # fmt: skip
def test_a_server_that_falls_silent_is_given_up(pieces):
    with pytest.raises(RetryableError, match=r"sent nothing for 0\.15 s") as caught:
        asyncio.run(asked(pieces, SHORT, hangs=True))
    assert "read_timeout_seconds" in caught.value.hint


def test_the_limit_counts_anew_from_each_byte():
    """It takes longer than the limit in all."""
    text = OK + WORD + END
    step = len(text) // 24
    pieces = [text[place : place + step] for place in range(0, len(text), step)]
    completion = asyncio.run(asked(pieces, 2.0, gap=0.12))
    assert completion.text == "word"


def test_a_server_that_takes_no_connection_is_given_up():
    with socket.socket() as server, socket.socket() as first, socket.socket() as second:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for other in (first, second):  # they fill the queue of those that wait to be taken
            other.setblocking(False)
            other.connect_ex(server.getsockname())
        host, port = server.getsockname()
        with pytest.raises(RetryableError, match=r"took no connection within 0\.15 s") as caught:
            asyncio.run(complete_chat(f"http://{host}:{port}", {}, print, connect_seconds=SHORT))
    assert "connect_timeout_seconds" in caught.value.hint


def test_the_backend_hands_its_limits_on(monkeypatch):
    from attractor_nb.backends import local_model

    given = {}

    async def complete(address, request, on_text, **limits):
        given.update(limits)
        raise RetryableError("enough")

    async def address(self):
        return "http://127.0.0.1:1"

    monkeypatch.setattr(local_model, "complete_chat", complete)
    monkeypatch.setattr(LocalModelBackend, "address", address)
    backend = LocalModelBackend(connect_timeout_seconds=3, read_timeout_seconds=4)
    from attractor_nb.context import Context
    from attractor_nb.model.graph import Node

    with pytest.raises(RetryableError, match="enough"):
        asyncio.run(backend.run(Node("a", {}), "Say it", Context()))
    assert given == {"connect_seconds": 3, "read_seconds": 4, "key": ""}
