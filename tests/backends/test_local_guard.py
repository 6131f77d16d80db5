"""Ruling 43: the local model's server answers only who has its key, under this machine's name, and no web page."""

import asyncio
import contextlib
import json
import sys
import urllib.error
import urllib.request

import pytest

from attractor_nb.backends import LocalModelBackend
from attractor_nb.backends.local_model import _Server
from attractor_nb.backends.local_server import Doorkeeper, guard
from attractor_nb.errors import TerminalError
from attractor_nb.testing import FakeProcesses

ANSWER = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"


async def closed(writer):
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


class Engine:
    """Stands for the engine: keeps what it is sent, and answers it."""

    def __init__(self, answer=ANSWER):
        self.answer = answer
        self.sent = []
        self.is_left = asyncio.Event()

    async def take(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0)
        self.sent.append(head + await reader.readexactly(length))
        writer.write(self.answer)
        await writer.drain()
        if not self.answer:
            await reader.read()
            self.is_left.set()
        await closed(writer)


def talk(*requests, answer=ANSWER):
    """The guard's answer to each request, and the requests that reached the engine."""

    async def asked():
        engine = Engine(answer)
        inner = await asyncio.start_server(engine.take, "127.0.0.1", 0)
        door = Doorkeeper(inner.sockets[0].getsockname()[1], "inner", "outer")
        outer = await asyncio.start_server(door.take, "127.0.0.1", 0)
        door.port = outer.sockets[0].getsockname()[1]
        answers = []
        async with inner, outer:
            for request in requests:
                reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
                writer.write(request.replace("PORT", str(door.port)).encode())
                answers.append(await asyncio.wait_for(reader.read(), 60))
                await closed(writer)
        return answers, engine.sent

    return asyncio.run(asked())


OPEN = {"Host": "127.0.0.1:PORT", "Authorization": "Bearer outer"}


def request(first="GET /slots HTTP/1.1", body="", **changes):
    fields = {**OPEN, **{name.replace("_", "-"): value for name, value in changes.items()}}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value is not None)
    return f"{first}\r\n{head}\r\n{body}"


def test_a_request_with_the_key_reaches_the_engine_whole_and_under_the_engines_own_key():
    long = "x" * 300_000
    (answer,), (sent,) = talk(request("POST /v1/chat/completions HTTP/1.1", long, Content_Length=str(len(long))))
    assert answer == ANSWER
    head, _, body = sent.partition(b"\r\n\r\n")
    assert body.decode() == long
    assert (b"Bearer inner" in head, b"outer" in head) == (True, False)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer inner"}, 401),
        ({"Authorization": "Bearer oute\u00e9"}, 401),
        ({"Host": None}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Host": "evil.example:PORT"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"host": "evil.example"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:PORT"}, 403),
        ({"Origin": "null"}, 403),
    ],
    ids=str,
)
@pytest.mark.parametrize("path", ["/slots", "/health", "/v1/models"])
def test_what_lacks_the_key_or_comes_from_elsewhere_reaches_nothing(changes, status, path):
    (answer,), sent = talk(request(f"GET {path} HTTP/1.1", **changes))
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"access-control" not in answer.lower()
    assert sent == []


@pytest.mark.parametrize("text", ["", "GET", "x" * 70_000 + "\r\n\r\n"], ids=["nothing", "a word", "too long"])
def test_what_is_no_request_is_hung_up_on(text):
    async def asked():
        door = Doorkeeper(1, "inner", "outer")
        server = await asyncio.start_server(door.take, "127.0.0.1", 0, limit=64 * 1024)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(text.encode())
            writer.write_eof()
            try:
                return await asyncio.wait_for(reader.read(), 60)
            except ConnectionResetError:  # it left without reading the rest
                return b""
            finally:
                await closed(writer)

    assert asyncio.run(asked()) == b""


def test_who_goes_away_ends_the_generation():
    async def leave():
        engine = Engine(b"")
        inner = await asyncio.start_server(engine.take, "127.0.0.1", 0)
        door = Doorkeeper(inner.sockets[0].getsockname()[1], "inner", "outer")
        outer = await asyncio.start_server(door.take, "127.0.0.1", 0)
        door.port = outer.sockets[0].getsockname()[1]
        async with inner, outer:
            _, writer = await asyncio.open_connection("127.0.0.1", door.port)
            writer.write(request().replace("PORT", str(door.port)).encode())
            await writer.drain()
            await closed(writer)
            return await asyncio.wait_for(engine.is_left.wait(), 60)

    assert asyncio.run(leave())


class Said:
    """Stands for stdout: waits for a line."""

    def __init__(self):
        self.text = ""
        self.is_said = asyncio.Event()

    def write(self, text):
        self.text += text

    def flush(self):
        self.is_said.set()


def test_each_start_has_a_key_of_its_own(monkeypatch):
    async def said():
        out = Said()
        monkeypatch.setattr(sys, "stdout", out)
        work = asyncio.create_task(guard(1, "inner"))
        await asyncio.wait_for(out.is_said.wait(), 60)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        return out.text

    keys = {asyncio.run(said()).split()[1] for _ in range(2)}
    assert len(keys) == 2
    assert all(len(key) >= 43 for key in keys)


def test_the_backend_reads_address_and_key():
    class Says(FakeProcesses):
        async def run(self, command, **options):
            options["on_output"]("stdout", "http://127.0.0.1:9 the-key\n")
            await asyncio.Event().wait()

    async def read():
        server = _Server(["serve"], Says())
        address = await server.address(60)
        await server.stop()
        return address, server.key

    assert asyncio.run(read()) == ("http://127.0.0.1:9", "the-key")
    assert LocalModelBackend().key == ""


@pytest.mark.real_llm
@pytest.mark.timeout(600)
def test_the_real_server_shows_no_prompt_to_a_web_page():
    def get(url, **headers):
        try:
            with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    async def look():
        backend = LocalModelBackend()
        await backend.open()
        try:
            address, key = await backend.address(), f"Bearer {backend.key}"
            found = [
                await asyncio.to_thread(get, f"{address}{path}", **headers)
                for path, headers in (
                    ("/v1/models", {"Authorization": key}),
                    ("/v1/models", {}),
                    ("/v1/models", {"Authorization": key, "Host": "evil.example"}),
                    ("/v1/models", {"Authorization": key, "Origin": "http://evil.example"}),
                    ("/slots", {"Authorization": key}),
                )
            ]
        finally:
            await backend.close()
        return found

    models, *others, slots = asyncio.run(look())
    assert json.loads(models[1])["data"][0]["id"] == "local"
    assert [status for status, _ in others] == [401, 403, 403]
    assert slots[0] >= 400


def test_a_key_that_is_refused_is_terminal():
    from attractor_nb.backends.local_model import complete_chat

    async def asked():
        door = Doorkeeper(1, "inner", "outer")
        server = await asyncio.start_server(door.take, "127.0.0.1", 0)
        door.port = server.sockets[0].getsockname()[1]
        async with server:
            await complete_chat(f"http://127.0.0.1:{door.port}", {}, print, key="another")

    with pytest.raises(TerminalError, match=r"refused the request \(401\): Unauthorized"):
        asyncio.run(asked())
