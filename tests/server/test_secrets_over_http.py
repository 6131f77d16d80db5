"""A planted key comes out of no route, whatever a run did with it."""

import pytest

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
