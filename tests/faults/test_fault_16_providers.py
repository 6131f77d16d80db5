"""Fault 16: whatever a provider answers, or does not, is classed; a part of an answer is never one."""

import asyncio
import itertools
import json
import time

import pytest

from attractor_nb.backends.local_model import complete_chat
from attractor_nb.errors import RetryableError, TerminalError

STREAM = "attractor_nb/backends/local_model.py"
BUSY, REFUSED = RetryableError, TerminalError
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(**plain):
    return chunk(b"data: " + json.dumps(plain).encode() + b"\n\n")


def text(words):
    return event(choices=[{"delta": {"content": words}}])


def page(status, body=b'{"error": {"message": "no"}}'):
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


END = event(choices=[{"delta": {}, "finish_reason": "stop"}]) + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
ANSWERS = {
    # name: what is sent before the connection ends, what becomes of it
    **{f"status {code}": (page(code), BUSY) for code in (408, 409, 425, 429, 500, 502, 503, 504, 529)},
    **{f"status {code}": (page(code), REFUSED) for code in (400, 401, 403, 404, 413, 422)},
    "503 without JSON": (page(503, b"<html>busy</html>"), BUSY),
    "401 without JSON": (page(401, b"<html>who</html>"), REFUSED),
    "error that is a text": (page(400, b'{"error": "bad"}'), REFUSED),
    "nothing": (b"", BUSY),
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n", BUSY),
    "a cut head": (b"HTTP/1.1 200 OK\r\nTransfer-Enc", BUSY),
    "no number as status": (b"HTTP/1.1 abc\r\n\r\n", BUSY),
    "wrong content type": (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<hi>", BUSY),
    "an empty stream": (OK + b"0\r\n\r\n", BUSY),
    "a stream without an end": (OK + text("half"), BUSY),
    "a stream that is over before its end": (OK + text("half") + b"0\r\n\r\n", BUSY),
    "done before its end": (OK + text("half") + chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n", BUSY),
    "a cut chunk": (OK + b"ff\r\ndata: {", BUSY),
    "no number as chunk size": (OK + b"zz\r\n", BUSY),
    "a negative chunk": (OK + b"-5\r\n", BUSY),
    "malformed JSON": (OK + chunk(b"data: {not json}\n\n") + END, BUSY),
    "an event that is a list": (OK + chunk(b"data: []\n\n") + END, BUSY),
    "choices that are a number": (OK + event(choices=3) + END, BUSY),
    "a choice that is a text": (OK + event(choices=["x"]) + END, BUSY),
    "a delta that is null": (OK + event(choices=[{"delta": None}]) + END, None),
    "content that is a number": (OK + event(choices=[{"delta": {"content": 5}}]) + END, BUSY),
    "usage that is a text": (OK + event(usage="much", choices=[]) + END, BUSY),
    "an error within the stream": (OK + text("half") + event(error={"message": "gone"}) + END, BUSY),
    "deep JSON": (OK + chunk(b"data: " + b"[" * 200_000 + b"\n\n") + END, BUSY),
}
ENDLESS = {
    "endless head": itertools.chain([b"HTTP/1.1 200 OK\r\n"], itertools.repeat(b"x: " + b"y" * 60_000 + b"\r\n")),
    "endless status line": itertools.repeat(b"H" * 65_536),
    "endless page": itertools.chain([b"HTTP/1.1 500 X\r\nContent-Length: 99999999999\r\n\r\n"], itertools.repeat(b"x" * 65_536)),
    "one endless chunk": itertools.chain([OK + b"ffffffffff\r\n"], itertools.repeat(b"x" * 65_536)),
    "one endless line": itertools.chain([OK], itertools.repeat(chunk(b"x" * 65_536))),
    "endless text": itertools.chain([OK], itertools.repeat(text("x" * 60_000))),
}  # fmt: skip


async def answered(pieces):
    """Ask a server that sends these pieces; what came of it, and how many bytes it got rid of."""
    sent = 0

    async def serve(reader, writer):
        nonlocal sent
        try:
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                writer.write(piece)
                sent += len(piece)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        return await asyncio.wait_for(complete_chat(f"http://{host}:{port}", {}, lambda _: None), 60), sent
    except (RetryableError, TerminalError) as error:
        return error, sent
    finally:
        server.close()


@pytest.mark.protects(STREAM, '        raise EOFError("the answer has no end")', instead="        pass")
@pytest.mark.kind("a provider")
def test_each_answer_is_classed_and_a_part_is_never_a_success(figures):
    """Protected by: an answer without its end is none."""
    wrong = {}
    for name, (data, kind) in ANSWERS.items():
        try:
            came, _ = asyncio.run(answered([data]))
        except Exception as error:  # noqa: BLE001 - what is not classed is what the test looks for
            came = error
        if type(came) is not kind and not (kind is None and type(came).__name__ == "Completion"):
            wrong[name] = repr(came)[:120]
    assert not wrong, json.dumps(wrong, indent=1)
    figures.record(
        16, "answers of a hostile provider", f"{len(ANSWERS)} of {len(ANSWERS)} classed; no part was a success"
    )


@pytest.mark.protects(STREAM, "MAX_ANSWER_BYTES = 16 << 20", instead="MAX_ANSWER_BYTES = 128 << 20")
@pytest.mark.timeout(100)
def test_no_answer_is_read_without_bound(figures):
    """Protected by: the bytes of an answer are counted."""
    began = time.monotonic()
    most = 0
    for name, pieces in ENDLESS.items():
        came, sent = asyncio.run(answered(pieces))
        assert type(came) is RetryableError, name
        most = max(most, sent)
    assert most < 64_000_000
    figures.record(
        16,
        "answers without an end",
        f"{len(ENDLESS)} of {len(ENDLESS)} given up after at most {most / 1e6:.0f} MB"
        f" ({time.monotonic() - began:.1f} s in all)",
    )
