"""The client: what it sends, what it makes of refusals, and how it takes up a stream that broke."""

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from attractor_nb.cli.remote_runs.remote import follow_events, read_messages, status_at_rest
from attractor_nb.cli.remote_runs.server_client import Client, ServerAddress, read_address, read_run_address
from attractor_nb.errors import (
    AlreadyAnswered,
    NoSuchGate,
    OptionError,
    RunError,
    RunNotFound,
    SourceError,
    UntrustedSource,
)
from attractor_nb.model.events import PipelineCompleted, PipelineStarted, StageStarted

TOKEN = "t" * 20


@pytest.fixture
def client(stub):
    return Client(ServerAddress(stub.url, TOKEN))


@pytest.mark.parametrize(
    ("given", "url", "token", "run_id"),
    [
        ("http://127.0.0.1:8765", "http://127.0.0.1:8765", "", ""),
        ("http://127.0.0.1:8765/?token=abc", "http://127.0.0.1:8765", "abc", ""),
        ("http://127.0.0.1:8765/#token=abc", "http://127.0.0.1:8765", "abc", ""),
        ("https://host/lab/proxy/8765/?token=abc", "https://host/lab/proxy/8765", "abc", ""),
        ("http://[::1]:80/pipelines/r-1/events", "http://[::1]:80", "", "r-1"),
        ("http://h/p/pipelines/r-1?token=abc", "http://h/p", "abc", "r-1"),
    ],
)
def test_an_address_is_read_as_it_was_printed(given, url, token, run_id):
    assert read_address(given) == ServerAddress(url, token, run_id)


def test_a_token_of_its_own_goes_before_that_of_the_url():
    assert read_address("http://h/?token=abc", "xyz").token == "xyz"


@pytest.mark.parametrize(
    "given",
    ["", "localhost:8765", "ftp://h/", "file:///etc/passwd", "http://", "http://h:port/", "http://h:0/", "http://[::1"],
)
def test_what_is_no_address_is_refused(given):
    with pytest.raises(OptionError, match="is not the address of a server"):
        read_address(given)


@pytest.mark.parametrize(
    ("place", "server", "words"),
    [
        ("", "http://h", "no run is given"),
        ("http://h/", None, "no run is given"),
        ("http://h/pipelines/r", "http://h", "already"),
    ],
    ids=["no id", "no id in the URL", "two servers"],
)
def test_a_run_is_named_once(place, server, words):
    with pytest.raises(OptionError, match=words):
        read_run_address(place, server)


def test_a_run_is_named_by_its_url_or_by_its_id_and_a_server():
    assert read_run_address("r1", "http://h/p") == ServerAddress("http://h/p", "", "r1")
    assert read_run_address("http://h/p/pipelines/r1", None) == ServerAddress("http://h/p", "", "r1")


@pytest.mark.parametrize("token", ["a b", "a\r\nX-Evil: 1", "täglich"])
def test_a_token_that_would_break_a_header_is_refused(token):
    with pytest.raises(OptionError, match="token"):
        read_address("http://h/", token)


def test_the_token_and_an_idempotency_key_are_sent(client, stub):
    stub.says("POST", "/pipelines", {"id": "r1"})
    assert client.post(body={"source": "digraph { }"}) == {"id": "r1"}
    client.post(body={})
    first, second = stub.asked
    assert first.headers["Authorization"] == f"Bearer {TOKEN}"
    assert first.headers["Content-Type"] == "application/json"
    assert len({first.headers["Idempotency-Key"], second.headers["Idempotency-Key"]}) == 2


def test_names_are_escaped_in_paths(client, stub):
    stub.says("GET", "/pipelines/a%2Fb%3Fc", {})
    assert client.get("a/b?c") == {}


def test_no_redirect_is_followed_with_the_token(client, stub):
    stub.says("GET", "/pipelines", "", status=302, headers={"Location": f"{stub.url}/elsewhere"})
    stub.says("GET", "/elsewhere", {})
    with pytest.raises(RunError, match=r"not a server of attractor-nb \(302\)"):
        client.get()
    assert [asked.path for asked in stub.asked] == ["/pipelines"]


def test_a_proxy_is_not_asked_for_what_is_on_this_machine(client, stub, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    stub.says("GET", "/pipelines", {})
    assert Client(ServerAddress(stub.url)).get() == {}


@pytest.fixture
def _no_proxies(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.usefixtures("_no_proxies")
@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("HTTPS_PROXY", "socks5://proxy:1080", "is socks5://proxy:1080, a SOCKS proxy"),
        ("https_proxy", "http://proxy:port", "is http://proxy:port, which is not an address"),
        ("SSL_CERT_FILE", "/nowhere/ca.pem", "names /nowhere/ca.pem, which is not a file"),
        ("no_proxy", "::1,[::1", "has the entry '[::1', which is no host"),
    ],
)
def test_a_variable_that_keeps_requests_from_leaving_is_named(name, value, says, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv(name, value)
    with pytest.raises(OptionError) as caught:
        Client(ServerAddress("https://runs.example.org", TOKEN))
    assert f"the environment variable {name} {says}" in caught.value.message
    assert caught.value.hint


@pytest.mark.usefixtures("_no_proxies")
def test_a_proxy_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with pytest.raises(OptionError, match=r"http://runs\.example\.org \(through the proxy that http_proxy names\): "):
        Client(ServerAddress("http://runs.example.org", TOKEN)).get()


def problem(kind, **more):
    return {"type": f"urn:attractor-nb:problem:{kind}", "title": "A title", "detail": "what is wrong", **more}


@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (409, "already-answered", AlreadyAnswered),
        (404, "no-such-question", NoSuchGate),
        (404, "no-such-pipeline", RunNotFound),
        (403, "untrusted-source", UntrustedSource),
        (429, "too-many-runs", RunError),
    ],
)
def test_a_problem_is_the_error_that_it_is_here(client, stub, status, kind, error):
    stub.says("GET", "/pipelines", problem(kind, hint="do this"), status=status, kind="application/problem+json")
    with pytest.raises(error) as caught:
        client.get()
    assert (caught.value.message, caught.value.hint) == ("what is wrong", "do this")


def test_what_lint_says_of_a_source_is_shown_whole(client, stub):
    report = "error: no start\n --> a.dot:1:1"
    found = {"diagnostics": [{"report": report}]}
    first, second = problem("invalid-pipeline", **found), problem("invalid-pipeline", **found, more_diagnostics=1200)
    stub.says("POST", "/pipelines", first, second, status=422)
    with pytest.raises(RunError) as caught:
        client.post(body={})
    assert caught.value.message == report
    with pytest.raises(RunError) as caught:
        client.post(body={})
    assert caught.value.message == f"{report}\n\nand 1,200 more findings"
    stub.says("POST", "/pipelines/r/fork", problem("source", report="DotSyntaxError: here"), status=422)
    with pytest.raises(SourceError, match="DotSyntaxError: here"):
        client.post("r", "fork", body={})


def test_what_a_server_says_moves_no_cursor(client, stub):
    text = "wiped\x1b[2J \u202etxt.exe"
    stub.says("GET", "/pipelines", problem("locked", title=text, detail=text, hint=text), status=409)
    with pytest.raises(RunError) as caught:
        client.get()
    assert "\x1b" not in str(caught.value)
    assert "\u202e" not in str(caught.value)


def test_a_wrong_token_is_said_with_where_the_right_one_is(client, stub):
    stub.says("GET", "/pipelines", problem("unauthorised"), status=401)
    with pytest.raises(OptionError, match="refused the token") as caught:
        client.get()
    assert "ATTRACTOR_TOKEN" in caught.value.hint


@pytest.mark.parametrize("status", [200, 404, 500])
def test_what_is_no_server_of_ours_is_said_to_be_none(client, stub, status):
    stub.says("GET", "/pipelines", "<html>router</html>", status=status, kind="text/html")
    with pytest.raises(RunError, match="not a server of attractor-nb"):
        client.get()


def test_an_answer_without_end_is_not_read_for_ever(client, stub, monkeypatch):
    monkeypatch.setattr("attractor_nb.cli.remote_runs.server_client.MAX_ANSWER_BYTES", 1_000)
    stub.says("GET", "/pipelines", "[" + " " * 998 + "]")
    assert client.get() == []
    stub.says("GET", "/pipelines/r", "[" + " " * 999 + "]")
    with pytest.raises(RunError, match="exceeds 1,000 bytes"):
        client.get("r")


@pytest.fixture
def answering():
    """A server that answers the one request with these bytes, and hangs up; its client."""
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:

        def answer(content):
            connection, _ = listening.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(content)

        def served(content):
            pool.submit(answer, content)
            return Client(ServerAddress(f"http://127.0.0.1:{listening.getsockname()[1]}", TOKEN))

        yield served


def test_a_connection_that_is_closed_without_an_answer_is_no_server(answering):
    with pytest.raises(OptionError, match=r"no server answers at .*: remote end closed connection") as caught:
        answering(b"").get()
    assert "attractor-nb serve" in caught.value.hint


@pytest.mark.parametrize(
    "content",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n{}",
    ],
    ids=["with a length", "in chunks"],
)
def test_an_answer_that_breaks_off_says_so_and_where_to_see_what_was_done(answering, content):
    client = answering(content)
    with pytest.raises(RunError) as caught:
        client.get_text("r", "graph", query="format=dot")
    url = client.address.url
    assert caught.value.message == f"the answer of {url} is incomplete: the connection was closed"
    assert caught.value.hint == f"`attractor-nb runs --server {url}` shows whether the server has acted"


def test_a_server_that_falls_silent_during_its_answer_is_said_to(stub, monkeypatch):
    def silent(self, size):
        raise TimeoutError("timed out")

    stub.says("GET", "/pipelines", {})
    monkeypatch.setattr("http.client.HTTPResponse.read", silent)
    with pytest.raises(RunError, match="is incomplete: timed out"):
        Client(ServerAddress(stub.url)).get()


def test_where_nobody_listens_the_remedy_is_named(stub):
    stub.server_close()
    with pytest.raises(OptionError, match="no server answers") as caught:
        Client(ServerAddress(stub.url)).get()
    assert "attractor-nb serve" in caught.value.hint


# -- streams -------------------------------------------------------------------------------------------


def frame(number, event):
    import json

    return f"id: 0.{number}\ndata: {json.dumps(event.to_plain())}\n\n"


EVENTS = [
    PipelineStarted(name="p", id="r"),
    StageStarted(name="a", index=0),
    PipelineCompleted(duration=1.0, artifact_count=0),
]
FRAMES = [frame(number, event) for number, event in enumerate(EVENTS, 1)]
END = 'event: end\ndata: {"status": "completed"}\n\n'
STREAM = "/pipelines/r/events"


def test_a_stream_is_read_to_its_end(client, stub):
    stub.says("GET", STREAM, ": hello\n\nretry: 1000\n\n" + "".join(FRAMES) + END, kind="text/event-stream")
    assert [event.type for event in follow_events(client, "r")] == [
        "PipelineStarted",
        "StageStarted",
        "PipelineCompleted",
    ]
    assert stub.asked[0].headers["Accept"] == "text/event-stream"


@pytest.mark.parametrize("cut", ["", "id: 0.2\ndata: {", "event: gap\ndata: {}\n\n"], ids=["between", "within", "gap"])
def test_a_broken_stream_is_taken_up_behind_the_last_whole_event(client, stub, cut):
    waited, told = [], []
    stub.says("GET", STREAM, FRAMES[0] + cut, FRAMES[1] + FRAMES[2] + END, kind="text/event-stream")
    found = list(follow_events(client, "r", wait=waited.append, tell=told.append))
    assert [event.type for event in found] == [event.type for event in EVENTS]
    assert [asked.headers.get("Last-Event-ID") for asked in stub.asked] == [None, "0.1"]
    assert waited == [0.25]
    assert told == ["", "the event stream broke; trying again", ""]


def test_a_stream_with_nothing_left_ends(client, stub):
    stub.says("GET", STREAM, "".join(FRAMES), kind="text/event-stream")
    stub.answers["GET", STREAM].append((204, "text/plain", {}, b""))
    assert len(list(follow_events(client, "r", wait=lambda _: None))) == 3


def test_a_stream_that_never_brings_anything_is_given_up(client, stub):
    waited = []
    stub.says("GET", STREAM, FRAMES[0], ": nothing\n\n", kind="text/event-stream")
    with pytest.raises(RunError, match="keeps ending"):
        list(follow_events(client, "r", wait=waited.append))
    assert waited == [0.25 * 2**number for number in range(6)]


def test_an_event_of_a_newer_server_is_passed_on_as_it_is(client, stub):
    stub.says("GET", STREAM, 'id: 0.9\ndata: {"type": "Sung"}\n\n' + FRAMES[2] + END, kind="text/event-stream")
    assert [event.type for event in follow_events(client, "r")] == ["Sung", "PipelineCompleted"]


def test_a_run_is_at_rest_when_nobody_works_at_it_any_more(client, stub):
    waited = []
    stub.says("GET", "/pipelines/r", {"status": "completed", "is_live": True}, {"status": "completed"})
    assert status_at_rest(client, "r", wait=waited.append) == {"status": "completed"}
    assert waited == [0.02]


def test_a_run_that_never_rests_is_not_waited_for_for_ever(client, stub):
    waited = []
    stub.says("GET", "/pipelines/r", {"status": "completed", "is_live": True})
    assert status_at_rest(client, "r", wait=waited.append)["is_live"]
    assert sum(waited) < 4


def test_a_fault_of_the_server_is_said(client, stub):
    stub.says("GET", STREAM, FRAMES[0] + 'event: fault\ndata: {"detail": "the log is damaged"}\n\n')
    with pytest.raises(RunError, match="the log is damaged"):
        list(follow_events(client, "r"))


@pytest.mark.parametrize("data", ["{", "[]", "{}"], ids=["cut", "no object", "no words"])
def test_a_fault_without_words_is_said_to_have_none(client, stub, data):
    stub.says("GET", STREAM, f"{FRAMES[0]}event: fault\ndata: {data}\n\n")
    with pytest.raises(RunError, match="cannot read run r any more: no reason given"):
        list(follow_events(client, "r"))


@pytest.mark.parametrize(
    "data",
    ["{", "[]", "{}", '{"type": 3}', '{"type": "StageStarted", "index": "x"}', "[" * 100_000],
    ids=["cut", "no object", "no type", "a number as type", "a wrong field", "too deep"],
)
def test_a_message_that_is_no_event_is_passed_over(client, stub, data):
    stub.says("GET", STREAM, f"{FRAMES[0]}id: 0.9\ndata: {data}\n\n{FRAMES[2]}{END}", kind="text/event-stream")
    assert [event.type for event in follow_events(client, "r")] == ["PipelineStarted", "PipelineCompleted"]


class Line:
    """A client whose connections bring what a test gives: lines, then an error if one is among them."""

    def __init__(self, *connections):
        self.connections = list(connections)
        self.last_ids = []

    def url_of(self, run_id):
        return f"http://127.0.0.1/pipelines/{run_id}"

    @contextlib.contextmanager
    def stream(self, run_id, _events, *, last_id=""):
        self.last_ids.append(last_id)
        brought = self.connections.pop(0) if len(self.connections) > 1 else self.connections[0]
        if isinstance(brought, Exception):
            raise brought
        yield Answer(brought)


class Answer:
    """The lines of a connection."""

    status = 200

    def __init__(self, brought):
        self.brought = brought

    def __iter__(self):
        for each in self.brought:
            if isinstance(each, Exception):
                raise each
            yield from each.encode().splitlines(keepends=True)


GONE = OptionError("no server answers at http://127.0.0.1", hint="start it")


def test_a_connection_that_breaks_is_taken_up_also_when_the_server_is_away_for_a_while():
    client, waited = Line([FRAMES[0], TimeoutError("timed out")], GONE, [FRAMES[1], FRAMES[2], END]), []
    found = list(follow_events(client, "r", wait=waited.append))
    assert [event.type for event in found] == [event.type for event in EVENTS]
    assert client.last_ids == ["", "0.1", "0.1"]
    assert waited == [0.25, 0.5]


@pytest.mark.parametrize(
    ("problem", "kind", "words"),
    [
        ([TimeoutError("timed out")], RunError, "the stream of run r broke: timed out"),
        (GONE, OptionError, "no server answers at http://127.0.0.1"),
    ],
    ids=["broken", "gone"],
)
def test_of_a_stream_that_is_given_up_the_last_problem_is_said(problem, kind, words):
    client, waited = Line([FRAMES[0]], problem), []
    with pytest.raises(kind, match=words):
        list(follow_events(client, "r", wait=waited.append))
    assert len(waited) == 6


def test_where_nobody_was_there_in_the_first_place_nothing_is_tried_again():
    with pytest.raises(OptionError, match="no server answers"):
        list(follow_events(Line(GONE), "r", wait=lambda _: pytest.fail("tried again")))


def test_a_run_that_is_not_there_is_not_asked_for_again(client, stub):
    stub.says("GET", STREAM, problem("no-such-pipeline"), status=404)
    with pytest.raises(RunNotFound):
        list(follow_events(client, "r", wait=lambda _: pytest.fail("asked again")))


def test_lines_may_end_in_any_way_and_data_may_have_several():
    lines = [b"data: {\r\n", b'data:"a": 1}\r\n', b"id: 7\r\n", b"\r\n", b"data: unfinished\n"]
    (message,) = read_messages(lines)
    assert (message.id, message.data) == ("7", ["{", '"a": 1}'])
