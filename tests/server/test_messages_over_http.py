"""Messages to running stages over HTTP: recorded before it is acknowledged, carried by prompts, refused in words."""

import subprocess
import sys

import pytest

from tests import warm

ELSEWHERE = """import sys
from attractor_nb import Pipeline
run = Pipeline(sys.argv[1]).run(logs_root=sys.argv[2], interviewer="deferred")
run.wait_for_gate("review", 60)
print("waits", flush=True)
print(run.result(60).status, flush=True)
"""


@pytest.fixture
def waiting(client, sources):
    run_id = client.submit(sources.gate)
    client.wait_for(run_id, "InterviewStarted")
    return run_id


def answer(client, run_id, choice):
    asked = client.get(f"/pipelines/{run_id}/questions").json()["questions"][-1]
    assert client.post(f"/pipelines/{run_id}/questions/{asked['id']}/answer", {"choice": choice}).status_code == 200


def test_a_message_is_durable_when_it_is_acknowledged_and_the_prompt_carries_it(client, waiting):
    reply = client.post(f"/pipelines/{waiting}/messages", {"text": "Use two nails", "node": "fix"})
    assert (reply.status_code, reply.json()) == (
        200,
        {
            "pipeline": waiting,
            "node": "fix",
            "stage": None,
            "reach": "attempt",
            "words": "queued for the next attempt of fix",
        },
    )
    given = client.wait_for(waiting, "InstructionGiven")["data"]
    assert (given["text"], given["given_by"], given["node"]) == ("Use two nails", "ada (api)", "fix")
    answer(client, waiting, "R")
    with client.stream(waiting) as events:
        next(one for one in events if one["data"].get("type") == "StageCompleted" and one["data"]["name"] == "fix")
    assert "Use two nails" in client.get(f"/pipelines/{waiting}/stages/fix").json()["prompt"]


def test_without_a_node_the_next_prompt_has_it_and_the_user_of_the_token_is_recorded(client, waiting):
    reply = client.post(f"/pipelines/{waiting}/messages", {"text": "Use two nails", "given_by": "ann (page)"})
    assert reply.json()["words"] == "queued for the next prompt"
    assert client.wait_for(waiting, "InstructionGiven")["data"]["given_by"] == "ada (page)"


@pytest.mark.parametrize(
    ("body", "status", "detail"),
    [
        pytest.param({"text": "x", "node": "fxi"}, 422, 'did you mean "fix"?', id="an unknown node"),
        pytest.param({"text": "x", "node": "review"}, 422, "review asks no model", id="a gate"),
        pytest.param({"text": "  "}, 422, "the instruction is empty", id="nothing"),
        pytest.param({"text": ""}, 422, "at least 1 character", id="no text"),
        pytest.param({"text": "x" * 20_001}, 422, "at most 20000 characters", id="too much"),
        pytest.param({}, 422, "text: Field required", id="no text at all"),
        pytest.param({"text": "x", "node": "fix>plan"}, 404, "fix has no child run yet", id="no child run"),
    ],
)
def test_what_cannot_be_told_is_refused_with_the_reason(client, waiting, body, status, detail):
    reply = client.post(f"/pipelines/{waiting}/messages", body)
    assert reply.status_code == status, reply.text
    assert detail in reply.json()["detail"]


def test_a_run_that_has_ended_is_told_nothing(client):
    run_id = client.submit()
    client.ended(run_id)
    reply = client.post(f"/pipelines/{run_id}/messages", {"text": "Use two nails"})
    assert (reply.status_code, reply.json()["type"]) == (409, "urn:attractor-nb:problem:run")
    assert "has ended" in reply.json()["detail"]


def test_there_must_be_a_run(client):
    assert client.post("/pipelines/nowhere/messages", {"text": "Use two nails"}).status_code == 404


def test_a_message_that_is_sent_again_with_its_key_is_told_once(client, waiting):
    key = {"Idempotency-Key": "message-1"}
    replies = [client.post(f"/pipelines/{waiting}/messages", {"text": "Once"}, headers=key) for _ in range(2)]
    assert [reply.status_code for reply in replies] == [200, 200]
    client.post(f"/pipelines/{waiting}/cancel")
    kinds = [one["data"].get("type") for one in client.events(waiting)]
    assert kinds.count("InstructionGiven") == 1


def test_a_stopped_run_has_it_when_it_goes_on(client, waiting):
    client.post(f"/pipelines/{waiting}/cancel")
    client.ended(waiting)
    reply = client.post(f"/pipelines/{waiting}/messages", {"text": "Use two nails", "node": "fix"})
    assert (reply.status_code, reply.json()["words"]) == (200, "queued for the next attempt of fix")
    assert client.get(f"/pipelines/{waiting}").json()["status"] == "interrupted"
    assert client.post(f"/pipelines/{waiting}/resume").status_code == 202


def test_a_run_of_another_process_is_told_through_it(client, root, sources):
    command = [sys.executable, "-c", ELSEWHERE, sources.gate, str(root / "elsewhere")]
    with warm.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "waits\n"
            reply = client.post("/pipelines/elsewhere/messages", {"text": "Use two nails", "node": "fix"})
            assert (reply.status_code, reply.json()["words"]) == (200, "queued for the next attempt of fix")
            answer(client, "elsewhere", "A")
            assert process.stdout.readline() == "success\n"
        finally:
            process.kill()
