"""A client that asks for too much receives an answer, also while it is sending: no limit breaks a connection."""

import asyncio
import json
import socket
import threading
import time

import pytest
from starlette.requests import Request

from attractor_nb.server import serving as wire
from attractor_nb.server.replies import Problem
from attractor_nb.server.request_calls import read_body
from attractor_nb.server.server_settings import ServerSettings
from tests.waiting import wait_until

TOKEN = "t" * 43
MEGABYTE = 1024 * 1024
HEAD = f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"


class Broken(Exception):
    """A connection ended while its request was being sent."""


def talk(port, head, body=()):
    """Send a request, all of it before anything is read; what came back."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as wire_end:
        try:
            wire_end.sendall(f"{head}\r\n".encode().replace(b"HOST", f"127.0.0.1:{port}".encode()))
            for piece in body:
                wire_end.sendall(piece)
        except OSError as error:
            raise Broken from error
        found = b""
        while piece := wire_end.recv(65536):
            found += piece
        return found


def read_answer(found):
    """Status, headers and problem of an answer."""
    head, _, body = found.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(first.split()[1]), headers, json.loads(body)


def check_problem(found, status, kind):
    got, headers, problem = read_answer(found)
    assert (got, problem["status"], problem["type"]) == (status, status, f"urn:attractor-nb:problem:{kind}")
    assert headers["content-type"] == "application/problem+json"
    assert (headers["connection"], headers["x-content-type-options"]) == ("close", "nosniff")
    assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("megabytes", [2, 40])
def test_a_body_that_is_too_long_by_its_length_is_refused_to_who_sends_it_all(client, megabytes):
    head = f"POST /validate HTTP/1.1\r\nHost: HOST\r\n{HEAD}Content-Length: {megabytes * MEGABYTE}\r\n"
    found = talk(client.port, head, [b" " * MEGABYTE] * megabytes)
    check_problem(found, 413, "too-large")
    assert client.get("/pipelines").status_code == 200


@pytest.mark.parametrize("megabytes", [2, 40])
def test_a_body_in_chunks_that_is_too_long_is_refused_to_who_sends_it_all(client, megabytes):
    head = f"POST /validate HTTP/1.1\r\nHost: HOST\r\n{HEAD}Transfer-Encoding: chunked\r\n"
    chunk = b"%x\r\n%b\r\n" % (MEGABYTE, b" " * MEGABYTE)
    check_problem(talk(client.port, head, [*[chunk] * megabytes, b"0\r\n\r\n"]), 413, "too-large")


def test_who_asks_before_sending_is_told_before(client):
    head = f"POST /validate HTTP/1.1\r\nHost: HOST\r\n{HEAD}Content-Length: {9 * MEGABYTE}\r\nExpect: 100-continue\r\n"
    check_problem(talk(client.port, head), 413, "too-large")  # and not 100 Continue


def test_who_asks_before_sending_what_fits_is_told_to_send(client):
    head = f"POST /validate HTTP/1.1\r\nHost: HOST\r\n{HEAD}Content-Length: 2\r\nExpect: 100-continue\r\n"
    found = talk(client.port, f"{head}Connection: close\r\n", [b"{}"])
    assert found.startswith(b"HTTP/1.1 100 ")
    assert b"HTTP/1.1 422 " in found


@pytest.mark.parametrize("is_chunked", [False, True])
def test_httpx_reads_why(client, is_chunked):
    def pieces():
        for _ in range(30):
            yield b" " * MEGABYTE

    content = pieces() if is_chunked else b" " * (30 * MEGABYTE)
    headers = {"Content-Type": "application/json"}
    for _ in range(3):
        reply = client.http.post("/validate", content=content, headers=headers)
        content = pieces() if is_chunked else content
        assert (reply.status_code, reply.json()["type"]) == (413, "urn:attractor-nb:problem:too-large")
        assert client.get("/pipelines").status_code == 200


@pytest.mark.parametrize(
    ("request_line", "head", "status"),
    [
        ("POST /validate", "Content-Type: application/json\r\n", 401),
        ("POST /nowhere", HEAD, 404),
        ("POST /validate", f"Authorization: Bearer {TOKEN}\r\nContent-Type: text/plain\r\n", 415),
        ("DELETE /pipelines", HEAD, 405),
    ],
)
def test_who_is_refused_for_something_else_hears_it_with_a_long_body(client, request_line, head, status):
    whole = f"{request_line} HTTP/1.1\r\nHost: HOST\r\n{head}Connection: close\r\nContent-Length: {40 * MEGABYTE}\r\n"
    got, _, problem = read_answer(talk(client.port, whole, [b" " * MEGABYTE] * 40))
    assert (got, problem["status"]) == (status, status)


def test_an_endless_body_ends_the_connection(client, monkeypatch):
    monkeypatch.setattr(wire, "MOST_BYTES", 4 * MEGABYTE)
    for end in ("Connection: close\r\n", ""):
        head = f"POST /validate HTTP/1.1\r\nHost: HOST\r\n{end}Transfer-Encoding: chunked\r\n"
        chunk = b"%x\r\n%b\r\n" % (MEGABYTE, b" " * MEGABYTE)
        with pytest.raises(Broken):
            talk(client.port, head, [chunk] * 200)
    assert client.get("/pipelines").status_code == 200


def test_who_neither_goes_on_nor_leaves_is_left(client, monkeypatch):
    monkeypatch.setattr(wire, "SILENT_SECONDS", 0.2)
    head = f"POST /validate HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n{HEAD}Content-Length: {9 * MEGABYTE}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", client.port), timeout=30) as wire_end:
        wire_end.sendall(head.encode())
        while wire_end.recv(65536):
            pass
        assert wait_until(lambda: _is_broken(wire_end), "the end of the connection")


def _is_broken(wire_end):
    """True if nothing receives what is still sent."""
    try:
        wire_end.sendall(b" ")
    except OSError:
        return True
    return False


def test_a_head_that_is_too_long_is_refused_in_words(client):
    head = f"GET /pipelines HTTP/1.1\r\nHost: HOST\r\n{HEAD}X-Long: {'x' * MEGABYTE}\r\n"
    check_problem(talk(client.port, head), 431, "head-too-large")
    head = f"GET /{'x' * MEGABYTE} HTTP/1.1\r\nHost: HOST\r\n{HEAD}"
    check_problem(talk(client.port, head), 431, "head-too-large")
    head = f"GET /pipelines HTTP/1.1\r\nHost: HOST\r\n{HEAD}" + "".join(f"X-{n}: {n}\r\n" for n in range(60_000))
    check_problem(talk(client.port, head), 431, "head-too-large")


def test_what_is_no_http_is_refused_in_words(client, caplog):
    check_problem(talk(client.port, "Hello\r\n"), 400, "http")
    head = f"POST /validate HTTP/1.1\r\nHost: HOST\r\n{HEAD}Transfer-Encoding: chunked\r\n"
    check_problem(talk(client.port, head, [b"no chunk\r\n"]), 400, "http")
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_what_breaks_off_an_answer_under_way_is_no_fault_of_ours(client, sources, caplog):
    run_id = client.submit(sources.gate)
    head = f"GET /pipelines/{run_id}/events HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\n{HEAD}Transfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection(("127.0.0.1", client.port), timeout=30) as wire_end:
        wire_end.sendall(head.encode())
        assert wire_end.recv(65536).startswith(b"HTTP/1.1 200 ")
        wire_end.sendall(b"no chunk\r\n")
        while wire_end.recv(65536):
            pass
    assert client.get("/pipelines").status_code == 200
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_json_that_is_too_deep_is_refused_in_words(client, opening):
    for depth in (101, 100_000):
        reply = client.http.post("/validate", content=opening * depth, headers={"Content-Type": "application/json"})
        assert (reply.status_code, reply.json()["type"]) == (400, "urn:attractor-nb:problem:json")


def test_a_body_that_does_not_arrive_is_not_waited_for(root):
    async def receive():
        if not pieces:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": pieces.pop(), "more_body": True}

    pieces = [b"{"]
    settings = ServerSettings(root=root, tokens={"ada": TOKEN}, hosts=frozenset(), body_seconds=0.01)
    scope = {"type": "http", "method": "POST", "headers": [(b"content-type", b"application/json")]}
    with pytest.raises(Problem, match="The body did not arrive in time") as refused:
        asyncio.run(asyncio.wait_for(read_body(Request(scope, receive), settings), 60))
    assert (refused.value.status, refused.value.kind) == (408, "timeout")
    assert not pieces


def test_a_fault_of_ours_is_logged_and_tells_the_client_nothing_of_it(client, monkeypatch, caplog):
    def fail():
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(client.server.state.service, "summaries", fail)
    reply = client.get("/pipelines")
    assert (reply.status_code, reply.json()["type"]) == (500, "urn:attractor-nb:problem:internal")
    assert "of ours" not in reply.text
    assert "GET /pipelines" in caplog.text
    assert "ZeroDivisionError: of ours" in caplog.text
    monkeypatch.undo()
    assert client.get("/pipelines").status_code == 200


def test_too_many_runs_and_streams_are_refused_in_words(root, serving, sources):
    with serving(root, max_runs=1, max_streams=1) as client:
        run_id = client.submit(sources.gate)
        refused = client.post("/pipelines", {"source": sources.plain})
        assert (refused.status_code, refused.json()["type"]) == (429, "urn:attractor-nb:problem:too-many-runs")
        assert refused.headers["retry-after"]
        with client.stream(run_id):
            refused = client.get(f"/pipelines/{run_id}/events")
            kind = "urn:attractor-nb:problem:too-many-streams"
            assert (refused.status_code, refused.json()["type"]) == (429, kind)


def test_a_server_ends_while_somebody_goes_on_sending(root, serving):
    with serving(root) as client:
        sender = threading.Thread(target=lambda: _send_for_ever(client.port), daemon=True)
        sender.start()
        time.sleep(0.3)
    sender.join(30)
    assert not sender.is_alive()


def _send_for_ever(port):
    head = f"POST /validate HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{HEAD}Content-Length: {900 * MEGABYTE}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=30) as wire_end:
        try:
            wire_end.sendall(head.encode())
            while True:
                wire_end.sendall(b" ")
                time.sleep(0.05)
        except OSError:
            return
