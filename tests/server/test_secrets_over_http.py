"""A planted key comes out of no route, whatever a run did with it."""

import queue
import threading

import httpx
import pytest

from attractor_nb.server import serve, serving
from attractor_nb.server.operations import OPERATIONS

KEY = "sk-planted-0123456789abcdefghij"


@pytest.fixture
def _planted(monkeypatch):
    monkeypatch.setenv("PLANTED_API_KEY", KEY)


@pytest.mark.usefixtures("_planted")
def test_a_planted_key_is_in_no_answer_of_any_route(client, root, sources):
    source = sources.of(
        f'graph [goal="use {KEY}"]\n plan [prompt="Plan with {KEY}", label="{KEY}"]\n'
        f' review [shape=hexagon, label="Ship {KEY}?"]\n start -> plan -> review\n review -> done [label="[A] Go {KEY}"]'
    )
    run_id = client.submit(source, params={"big": f"{KEY} " * 10_000, "small": KEY})
    asked = client.wait_for(run_id, "InterviewStarted")["data"]["question_id"]
    artifacts = client.get(f"/pipelines/{run_id}/artifacts").json()["artifacts"]
    assert artifacts, "a large value was to be looked at, too"
    values = {"id": run_id, "qid:path": asked, "node": "plan", "name:path": "prompt.md", "artifact": artifacts[0]["id"]}
    checked = 0
    for answer in (False, True):
        if answer:
            client.post(f"/pipelines/{run_id}/questions/{asked}/answer", {"choice": "A"})
            assert KEY not in str(client.events(run_id))
        for operation in OPERATIONS:
            path = operation.path
            for name, value in values.items():
                path = path.replace(f"{{{name}}}", value)
            if operation.method != "GET" or operation.serve is None:
                continue
            forms = ["svg", "dot", "json", "mermaid"] if path.endswith("/graph") else [""]
            for form in forms:
                query = {"format": form} if form else {"node": "plan"} if path.endswith("/inspection") else {}
                reply = client.get(path, params=query)
                assert KEY not in reply.text, (operation.name, form)
                checked += reply.status_code == 200
    assert checked > 30
    for file in root.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file
    torn = source.replace(f'label="{KEY}"', f'label={KEY}" {KEY}')
    for path in ("/pipelines", "/validate"):
        assert KEY not in client.post(path, {"source": torn}).text
        assert KEY not in client.post(path, {"source": f"digraph {{ {source}"}).text
    assert KEY not in client.post("/validate", {"source": source}).text


@pytest.mark.parametrize("users", [(), ("ada", "grace")])
def test_the_servers_own_tokens_are_in_no_run(root, sources, monkeypatch, users):
    """A stage may come to print one: it is in the address that the server says when it is ready."""
    secret, processes, ready = "the-token-of-this-server-0123456789", [], queue.SimpleQueue()

    class Noted(serving.ServerProcess):
        def __init__(self, *given):
            super().__init__(*given)
            processes.append(self)

    monkeypatch.setattr(serving, "ServerProcess", Noted)
    given = {"port": 0, "token": secret, "users": users, "on_ready": ready.put}
    server = threading.Thread(target=serve, args=(root,), kwargs=given, daemon=True)
    server.start()
    urls = [ready.get(timeout=30).partition("/#token=") for _ in users or [""]]
    address, token = urls[0][0], urls[0][2]
    secrets = {secret, *(url[2] for url in urls)}
    assert len(secrets) == (3 if users else 1)
    source = sources.of(f'plan [prompt="Say {" ".join(secrets)}"]\n start -> plan -> done')
    try:
        with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=30) as http:
            run_id = http.post("/pipelines", json={"source": source}).json()["id"]
            events = http.get(f"/pipelines/{run_id}/events").text
            prompt = http.get(f"/pipelines/{run_id}/stages/plan").json()["prompt"]
    finally:
        processes[0].should_exit = True
        server.join(30)
    assert not server.is_alive()
    assert "PipelineCompleted" in events
    assert not [each for each in secrets if each in events]
    assert prompt.startswith(f"Say {' '.join(['[redacted]'] * len(secrets))}")
    files = [file for file in (root / run_id).rglob("*") if file.is_file()]
    assert files
    assert [file for file in files for each in secrets if each.encode() in file.read_bytes()] == []
