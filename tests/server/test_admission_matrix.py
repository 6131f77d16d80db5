"""Every route with everything that must keep a request out. The table of routes is the server's own."""

import json
import socket
from contextlib import nullcontext
from hmac import compare_digest

import pytest

from attractor_nb import account
from attractor_nb.errors import OptionError
from attractor_nb.server import guard
from attractor_nb.server.guard import holder, stranger
from attractor_nb.server.operations import OPERATIONS
from attractor_nb.server.page import PAGE_PATHS
from attractor_nb.server.server_settings import check_bind, checked_prefix, checked_token, hosts_of, tokens_of

ROUTES = sorted({(operation.method, operation.path) for operation in OPERATIONS} | {("GET", "/openapi.json")})
PUBLIC = frozenset(("GET", path) for path in PAGE_PATHS)
"""The page and what it is made of: a browser that comes there for the first time can show no token."""
TOKEN = "t" * 43


def path_of(template, run_id):
    parts = {"id": run_id, "qid:path": "review:1", "node": "plan", "name:path": "prompt.md", "artifact": "x"}
    for name, value in parts.items():
        template = template.replace(f"{{{name}}}", value)
    return template


def test_the_matrix_has_every_route_of_the_application(client):
    served = {(method, route.path) for route in client.server.app._app.routes for method in route.methods}
    assert served == set(ROUTES) | PUBLIC
    assert len(ROUTES) == len(OPERATIONS) + 1


@pytest.fixture
def target(client, root, sources):
    """A server with a run that waits at a gate; whatever a test sends to it, nothing comes of it."""
    run_id = client.submit(sources.gate)
    client.wait_for(run_id, "InterviewStarted")
    before = standing(client, root, run_id)
    yield client, run_id
    assert standing(client, root, run_id) == before


def standing(client, root, run_id):
    """All that a request could have changed: runs, logs, questions, keys, streams, tickets."""
    while client.server.state.streams.open_count:  # the server has yet to see that a stream was left
        client.get("/openapi.json")
    logs = {str(log): log.read_bytes() for log in root.rglob("events.jsonl")}
    questions = client.get("/questions").json()
    state = client.server.state
    names = sorted(place.name for place in root.iterdir())
    return names, logs, questions, len(state.tickets._open), len(state.service.live_runs())


def raw(port, method, path, headers, body=b"{}"):
    """One request exactly as it is written; the status and the head of the answer."""
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers), "Connection: close"]
    if method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + (body if method == "POST" else b""))
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
            if b"\r\n\r\n" in answer and b"event-stream" in answer:
                break
    head = answer.partition(b"\r\n\r\n")[0].decode("latin-1")
    return int(head.split(" ")[1]), head.lower(), answer.partition(b"\r\n\r\n")[2]


def good(port):
    return {"Host": f"127.0.0.1:{port}", "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}


WRONGS = {
    "no token": lambda head, port: {**head, "Authorization": None},
    "empty token": lambda head, port: {**head, "Authorization": "Bearer "},
    "wrong token": lambda head, port: {**head, "Authorization": "Bearer " + "u" * 43},
    "token cut": lambda head, port: {**head, "Authorization": "Bearer " + TOKEN[:-1]},
    "token as basic": lambda head, port: {**head, "Authorization": f"Basic {TOKEN}"},
    "foreign host": lambda head, port: {**head, "Host": "evil.example"},
    "foreign host, our port": lambda head, port: {**head, "Host": f"evil.example:{port}"},
    "other port": lambda head, port: {**head, "Host": "127.0.0.1:1"},
    "no host": lambda head, port: {**head, "Host": None},
    "foreign origin": lambda head, port: {**head, "Origin": "https://evil.example"},
    "null origin": lambda head, port: {**head, "Origin": "null"},
    "origin of another port": lambda head, port: {**head, "Origin": "http://127.0.0.1:1"},
    "cross-site": lambda head, port: {**head, "Sec-Fetch-Site": "cross-site"},
    "same-site": lambda head, port: {**head, "Sec-Fetch-Site": "same-site"},
}


def wanted(wrong):
    if "token" in wrong:
        return {401}
    return {400, 403} if "host" in wrong or wrong == "other port" else {403}


@pytest.mark.parametrize("wrong", WRONGS)
def test_every_route_refuses(target, wrong):
    client, run_id = target
    for method, template in sorted({*ROUTES, *PUBLIC}):
        head = WRONGS[wrong](good(client.port), client.port)
        headers = [(name, value) for name, value in head.items() if value is not None]
        status, answer, body = raw(client.port, method, path_of(template, run_id), headers)
        is_open = "token" in wrong and (method, template) in PUBLIC
        assert status in ({200} if is_open else wanted(wrong)), (method, template, status)
        if not is_open and (status != 400 or b"{" in body):
            assert "application/problem+json" in answer
        assert "access-control-allow" not in answer


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE", "PROPFIND"])
def test_every_route_refuses_other_methods(target, method):
    client, run_id = target
    known = sorted({*ROUTES, *PUBLIC})
    for _, template in known:
        status, answer, _ = raw(client.port, method, path_of(template, run_id), good(client.port).items())
        assert status == 405, (method, template, status)
        allowed = {one for one, path in known if path == template}
        [told] = [line.partition(":")[2] for line in answer.splitlines() if line.startswith("allow:")]
        assert {one.strip().upper() for one in told.split(",")} == allowed


def test_every_route_refuses_the_other_one_of_get_and_post(target):
    client, run_id = target
    known = {*ROUTES, *PUBLIC}
    for method, template in sorted(known):
        other = "GET" if method == "POST" else "POST"
        if (other, template) in known:
            continue
        status, _, _ = raw(client.port, other, path_of(template, run_id), good(client.port).items())
        assert status == 405, (other, template, status)


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/jsonp",
        "application/json, text/plain",
        "application/json; charset=utf-16",
    ],
)
def test_every_write_refuses_other_content_types(target, kind):
    client, run_id = target
    for method, template in ROUTES:
        if method != "POST":
            continue
        head = {**good(client.port), "Content-Type": kind}
        headers = [(name, value) for name, value in head.items() if value is not None]
        status, answer, _ = raw(client.port, method, path_of(template, run_id), headers)
        assert status == 415, (template, kind, status)
        assert "application/problem+json" in answer


@pytest.mark.parametrize("ticket", ["none", "of another run", "used", "twice", "in a header"])
def test_every_route_refuses_tickets_that_are_not_its_own(target, ticket):
    """A ticket opens the stream of its run, once; the stream alone is tried with one that was good."""
    client, run_id = target
    tickets = client.server.state.tickets
    path = f"/pipelines/{run_id}/events"
    for method, template in ROUTES:
        given = tickets.issue("/pipelines/other/events" if ticket == "of another run" else path)
        if ticket == "used" or not template.endswith("/events"):
            tickets.redeem(given, path)
        query = {"none": "ticket=", "twice": f"ticket={given}&ticket={given}", "in a header": ""}.get(
            ticket, f"ticket={given}"
        )
        head = {**good(client.port), "Authorization": f"Bearer {given}" if ticket == "in a header" else None}
        headers = [(name, value) for name, value in head.items() if value is not None]
        status, _, _ = raw(client.port, method, f"{path_of(template, run_id)}?{query}", headers)
        assert status == 401, (method, template, status)
        tickets.redeem(given, path)


def test_every_answer_keeps_browsers_from_showing_it_to_others(target):
    client, run_id = target
    for method, template in ROUTES:
        for head in (good(client.port), {"Host": "evil.example"}):
            body = b"not json"
            _, answer, _ = raw(client.port, method, path_of(template, run_id), head.items(), body)
            for header in (
                "x-content-type-options: nosniff",
                "referrer-policy: no-referrer",
                "content-security-policy: default-src 'none'",
                "cache-control: no-store",
                "x-frame-options: deny",
            ):
                assert header in answer, (method, template, header)
            assert "access-control-allow" not in answer


def test_two_hosts_are_one_too_many(target):
    client, _ = target
    port = client.port
    headers = [("Host", f"127.0.0.1:{port}"), ("Host", "evil.example"), ("Authorization", f"Bearer {TOKEN}")]
    status, _, _ = raw(port, "GET", "/pipelines", headers)
    assert status == 400


def test_a_page_of_our_own_may_ask(target):
    client, _ = target
    own = {**good(client.port), "Origin": f"http://127.0.0.1:{client.port}", "Sec-Fetch-Site": "same-origin"}
    assert raw(client.port, "GET", "/pipelines", own.items())[0] == 200


def test_a_body_over_the_limit_is_refused_with_and_without_its_length(serving, root):
    with serving(root, max_body_bytes=1000) as client:
        assert client.post("/validate", {"source": "x" * 2000}).status_code == 413

        def pieces():
            for _ in range(20):
                yield b"x" * 100

        reply = client.http.post("/validate", content=pieces(), headers={"Content-Type": "application/json"})
        assert reply.status_code == 413


def test_who_sends_far_too_much_is_told_so_and_not_just_hung_up_on(client):
    for _ in range(5):
        assert client.post("/validate", {"source": "x" * 6_000_000}).status_code == 413
    assert client.get("/pipelines").status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[" * 5000, 400),
        (b'{"source": NaN}', 400),
        (b'{"source": "a", "source": "b"}', 400),
        (b"\xff", 400),
        (b"[]", 422),
        (b"{}", 422),
        (b'{"source": 1}', 422),
        (b'{"source": "digraph {}", "trust_me": true}', 422),
        (b'{"source": "digraph {}", "trust": true}', 422),
        (b'{"source": "digraph {}", "trust": "*"}', 422),
        (b'{"source": "digraph {}", "backend": "mine"}', 422),
        (b'{"source": "digraph {}", "logs_root": "/tmp/x"}', 422),
    ],
)
def test_what_a_body_may_not_say_is_refused(client, body, status):
    reply = client.http.post("/pipelines", content=body, headers={"Content-Type": "application/json"})
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"


def test_commands_of_a_posted_source_need_their_hash(client, root, sources, tmp_path):
    refused = client.post("/pipelines", {"source": sources.tool})
    assert (refused.status_code, refused.json()["type"]) == (403, "urn:attractor-nb:problem:untrusted-source")
    assert "touch made" in refused.json()["detail"]
    assert [path for path in root.rglob("*") if path.is_file()] == []
    other = client.post("/pipelines", {"source": sources.tool, "trust": "0" * 64})
    assert other.status_code == 403
    digest = refused.json()["surface_hash"]
    run_id = client.submit(sources.tool, trust=digest)
    assert client.ended(run_id)["outcome"] == "success"
    changed = client.post("/pipelines", {"source": sources.tool.replace("made", "other"), "trust": digest})
    assert changed.status_code == 403


def test_an_allowed_hash_is_allowed(client, sources, monkeypatch):
    digest = client.post("/pipelines", {"source": sources.tool}).json()["surface_hash"]
    monkeypatch.setenv("ATTRACTOR_TRUST", digest)
    assert client.ended(client.submit(sources.tool))["outcome"] == "success"


def test_the_token_is_in_no_answer_and_no_file(client, root, sources):
    run_id = client.submit(sources.plain)
    client.ended(run_id)
    for method, template in ROUTES:
        _, head, body = raw(client.port, method, path_of(template, run_id), good(client.port).items())
        assert TOKEN.encode() not in body
        assert TOKEN not in head
    for file in root.rglob("*"):
        assert not file.is_file() or TOKEN.encode() not in file.read_bytes()


def test_hosts_and_tokens_are_compared_whole():
    hosts = hosts_of("127.0.0.1", 80)
    assert "localhost" in hosts
    assert "localhost:80" in hosts
    assert stranger([(b"host", b"LOCALHOST:80")], hosts) is None
    assert stranger([(b"host", b"localhost.evil.example")], hosts) is not None
    tokens = {"ada": "abc", "": "xyz"}
    assert holder([(b"authorization", b"bearer abc")], tokens) == "ada"
    assert holder([(b"authorization", b"Bearer xyz")], tokens) == ""
    assert holder([(b"authorization", b"Bearer abc"), (b"authorization", b"Bearer abc")], tokens) is None
    assert holder([(b"authorization", "Bearer \xe4".encode("latin-1"))], tokens) is None


def test_each_token_is_compared_in_constant_time_also_after_one_that_fits(monkeypatch):
    compared = []

    def compare(one, other):
        compared.append((one, other))
        return compare_digest(one, other)

    monkeypatch.setattr(guard.hmac, "compare_digest", compare)
    tokens = {"ada": "abc", "grace": "xyz", "": "rst"}
    for shown, user in (("abc", "ada"), ("rst", ""), ("abd", None), ("", None)):
        compared.clear()
        assert holder([(b"authorization", f"Bearer {shown}".encode())], tokens) == user
        assert compared == [(shown.encode(), token.encode()) for token in tokens.values()]


def test_the_token_of_a_user_is_made_from_the_secret_and_the_same_at_each_start():
    secret = "a-long-random-secret"
    tokens = tokens_of(["ada", "grace"], secret)
    assert tokens == tokens_of(["ada", "grace"], secret)
    assert tokens["grace"] == tokens_of(["grace"], secret)["grace"]
    assert len({*tokens.values(), *tokens_of(["ada"], "another-random-secret").values(), secret}) == 4
    assert tokens_of(["ada"], None) != tokens_of(["ada"], None)
    assert all(checked_token(token) == token for token in tokens.values())


def test_the_token_of_a_server_without_users_belongs_to_its_account(monkeypatch):
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    assert tokens_of([], "t" * 43) == {"ada": "t" * 43}
    monkeypatch.delenv("JUPYTERHUB_USER")
    monkeypatch.setattr(account.getpass, "getuser", lambda: (_ for _ in ()).throw(OSError()))
    assert tokens_of([], "t" * 43) == {"": "t" * 43}


@pytest.mark.parametrize(
    ("users", "words"),
    [
        ([""], "user '' is not a name"),
        (["ada "], "user 'ada ' is not a name"),
        (["ada\n"], "is not a name"),
        (["ada (page)"], "is not a name"),
        (["a" * 65], "is not a name"),
        (["ada", "ada"], "a user is named twice"),
    ],
)
def test_a_user_needs_a_name(users, words):
    with pytest.raises(OptionError) as refused:
        tokens_of(users, None)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [
        *((host, True) for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8")),
        *((host, False) for host in ("0.0.0.0", "192.168.1.4", "example.org", "::")),
    ],
)
def test_an_address_other_than_loopback_needs_permission(host, is_loopback):
    with nullcontext() if is_loopback else pytest.raises(OptionError, match="other machines"):
        check_bind(host, is_remote_allowed=False)
    check_bind(host, is_remote_allowed=True)


@pytest.mark.parametrize(
    ("host", "outward", "name"),
    [("0.0.0.0", "192.0.2.7", "192.0.2.7:8765"), ("::", "2001:db8::7", "[2001:db8::7]:8765")],
)
def test_a_server_that_listens_everywhere_takes_the_address_of_its_machine(monkeypatch, host, outward, name):
    from attractor_nb.server import server_settings

    monkeypatch.setattr(server_settings, "outward_address", lambda given: outward if given == host else "")
    assert hosts_of(host, 8765) - hosts_of("127.0.0.1", 8765) == {name}
    monkeypatch.setattr(server_settings, "outward_address", lambda given: "")
    assert hosts_of(host, 8765) == hosts_of("127.0.0.1", 8765)


def test_tokens_and_prefixes_are_checked():
    assert len(checked_token(None)) >= 43
    assert checked_prefix("/a/b/") == "/a/b"
    for token in ("", "short", "has blanks in it, and is long"):
        with pytest.raises(OptionError):
            checked_token(token)
    for prefix in ("a", "/a b", "/../x"):
        with pytest.raises(OptionError):
            checked_prefix(prefix)


def test_problems_are_documents(client):
    reply = client.get("/pipelines/none")
    problem = json.loads(reply.text)
    assert set(problem) >= {"type", "title", "status", "detail"}
