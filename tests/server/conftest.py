"""A real server on a port of its own, and a client that reads streams as a browser does."""

import contextlib
import json
import socket
import threading

import httpx
import pytest

from attractor_nb.server.asgi_app import Server
from attractor_nb.server.server_settings import ServerSettings, hosts_of
from attractor_nb.server.serving import ServerProcess, listen

collect_ignore = ["workers", "api_fuzz.py", "api_fuzz_stock.py"]  # programs of their own
TOKEN = "t" * 43
USER = "ada"
FRAME = "digraph demo {{ start [shape=Mdiamond]\n done [shape=Msquare]\n {body} }}"
PLAIN = FRAME.format(body='plan [prompt="Plan it"]\n start -> plan -> done')
GATE = FRAME.format(
    body='review [shape=hexagon, label="Ship it?"]\n fix [prompt="Fix it"]\n'
    ' start -> review\n review -> done [label="[A] Approve"]\n review -> fix [label="[R] Reject"]\n fix -> review'
)
TOOL = FRAME.format(body='touch [shape=parallelogram, tool_command="touch made"]\n start -> touch -> done')


class Client:
    """Requests with the token, and event streams as lists of messages."""

    def __init__(self, port, prefix=""):
        self.base = f"http://127.0.0.1:{port}{prefix}"
        self.http = httpx.Client(base_url=self.base, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)

    def get(self, path, **more):
        return self.http.get(path, **more)

    def post(self, path, plain=None, **more):
        return self.http.post(path, json={} if plain is None else plain, **more)

    def submit(self, source=PLAIN, **more):
        reply = self.post("/pipelines", {"source": source, **more})
        assert reply.status_code == 201, reply.text
        return reply.json()["id"]

    @contextlib.contextmanager
    def stream(self, run_id, last_id="", **more):
        headers = {"Last-Event-ID": last_id} if last_id else {}
        with self.http.stream("GET", f"/pipelines/{run_id}/events", headers=headers, **more) as response:
            response.raise_for_status()
            yield messages(response)

    def events(self, run_id, last_id=""):
        """All messages until the stream ends."""
        with self.stream(run_id, last_id) as found:
            return list(found)

    def wait_for(self, run_id, kind):
        """Read the stream until an event of that type is there, and return it."""
        with self.stream(run_id) as found:
            return next(one for one in found if one["data"].get("type") == kind)

    def ended(self, run_id):
        """Wait until the run has ended, and return its status; a slow client is let go, and connects again."""
        self.events(run_id)
        while (status := self.get(f"/pipelines/{run_id}").json())["status"] == "running":
            self.events(run_id)
        return status


def messages(response):
    """The messages of a stream, with the rules of the HTML standard."""
    message = {}
    for line in response.iter_lines():
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if "data" in message:
                yield {"id": "", "event": "message", **message, "data": json.loads(message["data"])}
            message = {}
        elif name in {"id", "event"}:
            message[name] = value
        elif name == "data":
            message["data"] = message.get("data", "") + value


@contextlib.contextmanager
def running(root, *, send_buffer_bytes=0, **settings):
    """A server in a thread, and its client."""
    listening = listen("127.0.0.1", 0)
    if send_buffer_bytes:  # its connections have the same
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
    port = listening.getsockname()[1]
    chosen = {"root": root, "tokens": {USER: TOKEN}, "hosts": hosts_of("127.0.0.1", port), **settings}
    server, ready = Server(ServerSettings(**chosen), version="0"), threading.Event()
    process = ServerProcess(server, ready.set)
    thread = threading.Thread(target=process.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    assert ready.wait(30), "the server did not start"
    client = Client(port, chosen.get("prefix", ""))
    client.server, client.port = server, port
    try:
        yield client
    finally:
        client.http.close()
        process.should_exit = True
        thread.join(30)
        listening.close()
        assert not thread.is_alive()


@pytest.fixture
def root(tmp_path):
    place = tmp_path / "runs"
    place.mkdir()
    return place


@pytest.fixture
def client(root):
    with running(root) as found:
        yield found


@pytest.fixture(scope="session")
def serving():
    """Start further servers: ``with serving(root, max_runs=1) as client``."""
    return running


class Sources:
    """Small pipelines."""

    plain, gate, tool = PLAIN, GATE, TOOL

    @staticmethod
    def of(body):
        return FRAME.format(body=body)


@pytest.fixture
def sources():
    return Sources
