"""A server is killed and started again; two serve one root (RELIABILITY; part 6 of issue 7)."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from attractor_nb.account import account_name
from attractor_nb.extras import install_command
from attractor_nb.server.answers import run_answers
from attractor_nb.server.run_service import RunService
from attractor_nb.storage import run_index
from attractor_nb.storage.log.event_log import EVENT_LOG_NAME, read_log
from attractor_nb.storage.log.lock import is_owned
from tests import warm

pytestmark = pytest.mark.timeout(300)  # several processes begin, one behind the other
WORKER = Path(__file__).parent / "workers" / "served.py"
TOKEN = "t" * 43


@contextmanager
def process(root, make, **options):
    """A server in a process of its own, and its client."""
    command = [sys.executable, str(WORKER), str(root), TOKEN, json.dumps(options)]
    with warm.Server(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().strip()
            assert url, server.stderr.read()
            yield server, make(urlsplit(url).port), url
        finally:
            server.kill()


@pytest.fixture
def client_of(client):
    """A client for another port."""
    made = []

    def make(port):
        made.append(type(client)(port))
        return made[-1]

    yield make
    for one in made:
        one.http.close()


@pytest.mark.kind("a killed server")
def test_a_killed_server_loses_nothing(root, client_of, sources):
    with process(root, client_of) as (server, client, _):
        done = client.submit(sources.plain)
        client.ended(done)
        waiting = client.submit(sources.gate)
        client.wait_for(waiting, "InterviewStarted")
        server.kill()
        server.wait(30)
    with process(root, client_of, recover=False) as (_, client, _):
        lines = {line["id"]: line for line in client.get("/pipelines").json()["pipelines"]}
        assert lines[done]["status"] == "completed"
        assert (lines[waiting]["status"], lines[waiting]["is_resumable"]) == ("abandoned", True)
        [asked] = client.get(f"/pipelines/{waiting}/questions").json()["questions"]
        assert (asked["stage"], asked["is_answerable"]) == ("review", False)
        assert client.get("/rows?with_questions=true").json()["questions"] == [asked]
        early = client.post(f"/pipelines/{waiting}/questions/review/answer", {"choice": "A"})
        assert (early.status_code, "resume" in early.json()["hint"]) == (404, True)
        before = [one["id"] for one in client.events(waiting) if one["id"]]
        assert client.post(f"/pipelines/{waiting}/resume").status_code == 202
        with client.stream(waiting, before[-1]) as found:
            assert next(one for one in found if one["data"].get("type") == "InterviewStarted")
        [again] = client.get("/rows?with_questions=true").json()["questions"]
        assert (again["id"], again["is_answerable"]) == (asked["id"], True)
        assert client.post(f"/pipelines/{waiting}/questions/review/answer", {"choice": "A"}).status_code == 200
        assert client.ended(waiting)["outcome"] == "success"
        assert client.get("/rows?with_questions=true").json()["questions"] == []
        kinds = [
            one["data"].get("name") for one in client.events(waiting) if one["data"].get("type") == "StageCompleted"
        ]
        assert kinds == ["start", "review", "done"]


@pytest.mark.campaign
def test_what_lies_still_is_read_once_for_its_questions(root, client_of, sources, monkeypatch):
    with process(root, client_of) as (_, client, _):
        client.wait_for(client.submit(sources.gate), "InterviewStarted")
    monkeypatch.setattr(run_index, "SETTLED_NS", 0)  # no process writes any more
    service, read = RunService(root, 1), []
    monkeypatch.setattr(run_answers, "read_log", lambda place: read.append(place) or read_log(place))
    for _ in range(3):
        [asked] = run_answers.all_questions(service, service.summaries()).questions
        assert (asked.stage, asked.is_answerable) == ("review", False)
    assert len(read) == 1
    with (Path(read[0]) / EVENT_LOG_NAME).open("ab") as log:
        log.write(b"{")  # a record that was begun
    assert run_answers.all_questions(service, service.summaries()).questions == [asked]
    assert len(read) == 2


@pytest.mark.campaign
def test_a_stream_goes_on_over_servers_that_are_killed(root, client_of, sources):
    """Killed in the rush, right behind an answer, and at a question: one consumer has the log, whole and once."""
    names = [f"n{i}" for i in range(12)]
    body = "\n".join(f'{name} [prompt="{name}"]' for name in names)
    gates = 'one [shape=hexagon, label="One?"]\n two [shape=hexagon, label="Two?"]'
    chain = " -> ".join(["start", *names[:4], "one", *names[4:8], "two", *names[8:], "done"])
    had, run_id = [], ""
    for place in ("rush", "answered", "asked", ""):
        with process(root, client_of, recover=False) as (server, client, _):
            if run_id:
                assert client.get(f"/pipelines/{run_id}").json()["status"] == "abandoned"
                assert client.post(f"/pipelines/{run_id}/resume").status_code == 202
            else:
                run_id = client.submit(sources.of(f"{body}\n{gates}\n{chain}"))
            is_asked_here, answered = False, []
            with client.stream(run_id, had[-1]["id"] if had else "") as found:
                for one in found:
                    if one["id"]:
                        had.append(one)
                    is_asked_here |= one["data"].get("type") in {"PipelineStarted", "PipelineResumed"}
                    asked = one["data"].get("stage", "") if one["data"].get("type") == "InterviewStarted" else ""
                    if (place == "rush" and len(had) == 7) or (place == "asked" and asked == "two"):
                        break
                    if asked:
                        answer = {"choice": names[4] if asked == "one" else names[8]}
                        path = f"/pipelines/{run_id}/questions/{one['data']['question_id']}/answer"
                        # What the dead server asked is in the log, too: that question may not be open again yet.
                        status = client.post(path, answer).status_code
                        assert status == 200 or (status in {404, 409} and (asked in answered or not is_asked_here))
                        answered += [asked] if status == 200 else []
                        if place == "answered" and status == 200:
                            break
                if place:
                    server.kill()
                    server.wait(30)
    events = read_log(root / run_id).events
    assert [one["id"] for one in had] == [f"0.{event.sequence}" for event in events]
    assert had[-1]["data"]["type"] == "PipelineCompleted"
    completed = [event.name for event in events if event.type == "StageCompleted"]
    assert sorted(completed) == sorted(["start", *names, "one", "two", "done"])
    assert [event.stage for event in events if event.type == "InterviewCompleted"] == ["one", "two"]


@pytest.mark.campaign
def test_a_server_that_is_told_to_end_leaves_runs_that_go_on(root, client_of, sources):
    with process(root, client_of) as (server, client, _):
        run_id = client.submit(sources.gate)
        client.wait_for(run_id, "InterviewStarted")
        server.send_signal(signal.SIGINT)
        assert server.wait(30) == 0
        assert server.stderr.read() == ""
    assert not is_owned(root / run_id)
    with process(root, client_of) as (_, client, _):
        status = client.get(f"/pipelines/{run_id}").json()
        assert (status["status"], status["is_resumable"]) == ("interrupted", True)


@pytest.mark.campaign
def test_a_stream_that_is_open_does_not_keep_a_server_from_ending(root, client_of, sources):
    with process(root, client_of) as (server, client, _):
        run_id = client.submit(sources.gate)
        with client.stream(run_id) as found:
            next(found)
            server.send_signal(signal.SIGTERM)
            list(found)
        assert server.wait(30) == 0


@pytest.mark.campaign
def test_two_servers_on_one_root_do_not_fight(root, client_of, sources, serving):
    with serving(root) as one, process(root, client_of) as (_, other, _):
        run_id = one.submit(sources.gate)
        one.wait_for(run_id, "InterviewStarted")
        seen = other.get(f"/pipelines/{run_id}").json()
        assert (seen["is_live"], seen["is_here"], seen["is_resumable"]) == (True, False, False)
        [asked] = other.get(f"/pipelines/{run_id}/questions").json()["questions"]
        assert (asked["is_answerable"], asked["how"]) == (True, "")
        for path in (f"/pipelines/{run_id}/cancel", f"/pipelines/{run_id}/resume"):
            refused = other.post(path, {})
            assert refused.status_code == 409, (path, refused.text)
            assert refused.json()["type"] == "urn:attractor-nb:problem:locked"
            assert refused.json()["owner"]["pid"] == os.getpid()
        assert one.get(f"/pipelines/{run_id}").json()["status"] == "waiting"
        one.post(f"/pipelines/{run_id}/questions/review/answer", {"choice": "A"})
        assert other.ended(run_id)["outcome"] == "success"


@pytest.mark.campaign
def test_a_question_of_another_process_is_answered_in_place(root, client_of, sources, serving):
    with serving(root) as one, process(root, client_of) as (_, other, _):
        run_id = one.submit(sources.gate)
        one.wait_for(run_id, "InterviewStarted")
        [asked] = other.get("/rows?with_questions=true").json()["questions"]
        assert (asked["pipeline"], asked["is_answerable"]) == (run_id, True)
        place = f"/pipelines/{run_id}/questions/{asked['id']}/answer"
        refused = other.post(place, {"choice": "perhaps"})
        assert (refused.status_code, refused.json()["type"]) == (422, "urn:attractor-nb:problem:answer-refused")
        assert one.get(f"/pipelines/{run_id}").json()["status"] == "waiting"
        taken = other.post(place, {"choice": "A", "answered_by": "ann"})
        assert (taken.status_code, taken.json()["status"]) == (200, "accepted")
        assert one.ended(run_id)["outcome"] == "success"
        late = other.post(place, {"choice": "A"})
        assert (late.status_code, f"by {account_name()} (ann)" in late.text) == (409, True)
        completed = [one["data"] for one in other.events(run_id) if one["data"].get("type") == "InterviewCompleted"]
        assert [event["answered_by"] for event in completed] == [f"{account_name()} (ann)"]


def test_of_many_resumes_at_once_one_goes_on(client, serving, root, sources):
    from concurrent.futures import ThreadPoolExecutor

    run_id = client.submit(sources.gate)
    client.wait_for(run_id, "InterviewStarted")
    client.post(f"/pipelines/{run_id}/cancel")
    client.ended(run_id)
    with serving(root) as other, ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda one: one.post(f"/pipelines/{run_id}/resume").status_code, [client, other] * 3))
    assert sorted(replies) == [202, 409, 409, 409, 409, 409]


@pytest.mark.campaign
def test_the_address_has_the_token_where_browsers_keep_it_to_themselves(root, client_of):
    with process(root, client_of) as (_, client, url):
        parts = urlsplit(url)
        assert (parts.hostname, parts.fragment, parts.query) == ("127.0.0.1", f"token={TOKEN}", "")
        assert client.get("/pipelines").status_code == 200
        assert httpx.get(f"http://127.0.0.1:{parts.port}/pipelines").status_code == 401


def test_a_port_that_is_taken_is_said(root, client):
    from attractor_nb.errors import OptionError
    from attractor_nb.server import serve

    with pytest.raises(OptionError, match=f"cannot listen on 127.0.0.1:{client.port}"):
        serve(root, port=client.port)


def test_a_module_of_our_own_that_is_missing_is_not_blamed_on_the_extra(root, monkeypatch):
    from attractor_nb.server import serve

    monkeypatch.delitem(sys.modules, "attractor_nb.server.serving", raising=False)
    monkeypatch.setitem(sys.modules, "attractor_nb.server.asgi_app", None)
    with pytest.raises(ModuleNotFoundError, match=r"attractor_nb\.server\.asgi_app"):
        serve(root)


def test_what_is_missing_is_said(root, monkeypatch):
    from attractor_nb.errors import OptionError
    from attractor_nb.server import serve

    monkeypatch.delitem(sys.modules, "attractor_nb.server.serving", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(OptionError, match="needs uvicorn") as refused:
        serve(root)
    assert install_command("server") in refused.value.hint
