"""A request that is sent twice is done once (Idempotency-Key)."""

import errno
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from attractor_nb.errors import StorageError
from attractor_nb.server.replies import Problem, Reply
from attractor_nb.server.request_calls import Ledger
from attractor_nb.storage.files.disk import Disk

KEPT_SECONDS = 24 * 3600.0
MAX_KEPT_BYTES = 1024 * 1024


def test_a_source_that_is_posted_again_with_its_key_starts_one_run(client, sources):
    body, key = {"source": sources.plain}, {"Idempotency-Key": "submit-1"}
    first = client.post("/pipelines", body, headers=key)
    again = client.post("/pipelines", body, headers=key)
    assert first.json() == again.json()
    assert (first.status_code, again.status_code) == (201, 201)
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert client.get("/pipelines").json()["total"] == 1


def test_without_a_key_each_request_starts_a_run(client, sources):
    client.submit(sources.plain)
    client.submit(sources.plain)
    assert client.get("/pipelines").json()["total"] == 2


def test_a_key_of_another_request_is_refused(client, sources):
    key = {"Idempotency-Key": "k"}
    client.post("/pipelines", {"source": sources.plain}, headers=key)
    other = client.post("/pipelines", {"source": sources.gate}, headers=key)
    assert (other.status_code, other.json()["type"]) == (422, "urn:attractor-nb:problem:idempotency-key-reused")


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
def test_what_is_no_key_is_refused_and_nothing_is_started(client, sources, key):
    reply = client.post("/pipelines", {"source": sources.plain}, headers={"Idempotency-Key": key})
    assert reply.status_code == 400
    assert client.get("/pipelines").json()["total"] == 0


def test_a_refusal_is_not_kept_so_the_request_can_be_mended(client, sources):
    key = {"Idempotency-Key": "k"}
    assert client.post("/pipelines", {"source": sources.tool}, headers=key).status_code == 403
    assert client.post("/pipelines", {"source": sources.plain}, headers=key).status_code == 201


def test_two_keys_are_one_too_many(client, sources):
    reply = client.http.post(
        "/pipelines", json={"source": sources.plain}, headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    )
    problem = reply.json()
    assert (reply.status_code, problem["type"]) == (400, "urn:attractor-nb:problem:idempotency-key")
    assert problem["title"] == "The Idempotency-Key is given twice"
    assert client.get("/pipelines").json()["total"] == 0


def test_many_requests_of_one_key_at_once_start_one_run(client, sources):
    body, key = {"source": sources.plain}, {"Idempotency-Key": "k"}
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: client.post("/pipelines", body, headers=key), range(8)))
    statuses = {reply.status_code for reply in replies}
    assert 201 in statuses
    assert statuses <= {201, 409}
    assert len({reply.json()["id"] for reply in replies if reply.status_code == 201}) == 1
    assert client.get("/pipelines").json()["total"] == 1


def test_two_servers_of_one_root_know_the_same_keys(serving, root, sources):
    body, key = {"source": sources.plain}, {"Idempotency-Key": "k"}
    with serving(root) as one, serving(root) as other:
        first = one.post("/pipelines", body, headers=key).json()["id"]
        assert other.post("/pipelines", body, headers=key).json()["id"] == first


def test_a_server_that_dies_between_run_and_answer_has_started_one_run(serving, root, sources):
    """The key's record then: the run that was about to begin, and no answer."""
    body, key = {"source": sources.plain}, {"Idempotency-Key": "k"}
    with serving(root) as client:
        run_id = client.post("/pipelines", body, headers=key).json()["id"]
        client.ended(run_id)
    [record] = (root / ".server" / "keys").glob("*.json")
    kept = json.loads(record.read_bytes())
    record.write_text(json.dumps({"asked": kept["asked"], "run": run_id}), "utf-8")
    with serving(root) as client:
        again = client.post("/pipelines", body, headers=key)
        assert (again.status_code, again.json()["id"]) == (201, run_id)
        assert client.get("/pipelines").json()["total"] == 1


def test_a_fork_that_a_dead_server_had_begun_is_not_begun_again(serving, root, sources):
    body, key = {"node": "plan"}, {"Idempotency-Key": "k"}
    with serving(root) as client:
        run_id = client.submit(sources.plain)
        client.ended(run_id)
        fork = client.post(f"/pipelines/{run_id}/fork", body, headers=key).json()["id"]
        client.ended(fork)
    [record] = (root / ".server" / "keys").glob("*.json")
    kept = json.loads(record.read_bytes())
    record.write_text(json.dumps({"asked": kept["asked"], "run": fork}), "utf-8")
    with serving(root) as client:
        again = client.post(f"/pipelines/{run_id}/fork", body, headers=key)
        assert (again.status_code, again.json()["id"]) == (201, fork)
        assert client.get("/pipelines").json()["total"] == 2


def test_a_refusal_does_not_forget_the_run_that_an_earlier_try_began(root):
    """The server died between run and answer; the next one refuses first, and must know the run all the same."""
    ledger, seen = Ledger(root), []

    def dies(claim):
        claim.note("run-1")
        raise KeyboardInterrupt

    def refuses(claim):
        seen.append(claim.run_id)
        raise Problem(429, "too-many-runs", "Too many runs are active")

    with pytest.raises(KeyboardInterrupt):
        ledger.once("k", b"a", dies)
    for _ in range(2):
        with pytest.raises(Problem, match="Too many runs"):
            ledger.once("k", b"a", refuses)
    assert seen == ["run-1", "run-1"]


def test_an_answer_that_is_too_long_to_be_kept_is_found_again(root):
    ledger, long = Ledger(root), "x" * (MAX_KEPT_BYTES + 1)
    assert [len(ledger.once("k", b"a", lambda claim: Reply(long)).content) for _ in range(2)] == [len(long)] * 2


def test_a_ticket_is_no_answer_to_keep(client, root, sources):
    run_id = client.submit(sources.plain)
    key = {"Idempotency-Key": "k"}
    tickets = {client.post(f"/pipelines/{run_id}/events/ticket", headers=key).json()["ticket"] for _ in range(2)}
    assert len(tickets) == 2
    assert not (root / ".server/keys").exists()


def test_a_key_is_kept_out_while_its_request_works(root):
    ledger, begun, goes_on = Ledger(root), threading.Event(), threading.Event()

    def serve(claim):
        begun.set()
        goes_on.wait(30)
        return Reply({})

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ledger.once, "k", b"a", serve)
        assert begun.wait(30)
        with pytest.raises(Problem) as refused:
            Ledger(root).once("k", b"a", serve)
        goes_on.set()
        assert first.result(30).status == 200
    assert refused.value.status == 409


def test_a_record_that_is_no_json_counts_for_none(root):
    ledger, served = Ledger(root), []
    ledger.once("k", b"a", lambda claim: Reply({}))
    [record] = (root / ".server/keys").glob("*.json")
    record.write_text('{"asked": ')
    for _ in range(2):
        ledger.once("k", b"a", lambda claim: served.append(claim.run_id) or Reply({}))
    assert served == [""]


def test_a_run_that_cannot_be_recorded_for_its_key_is_not_begun(root, monkeypatch):
    def refuse(disk, name, parent=None):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    begun = []

    def serve(claim):
        claim.note("run-1")
        begun.append("run-1")
        return Reply({})

    with monkeypatch.context() as patched:
        patched.setattr(Disk, "open_directory", refuse)
        with pytest.raises(StorageError, match=r"cannot open .*\.server/keys: too many open files"):
            Ledger(root).once("k", b"a", serve)
    assert not begun
    assert Ledger(root).once("k", b"a", serve).status == 200


def test_a_lock_of_a_key_that_cannot_be_made_is_said(root):
    ledger = Ledger(root)
    ledger.once("k", b"a", lambda claim: Reply({}))
    [lock] = (root / ".server/keys").glob("*.lock")
    lock.unlink()
    lock.mkdir()
    with pytest.raises(StorageError, match=r"cannot lock .*\.lock: is a directory"):
        ledger.once("k", b"a", lambda claim: Reply({}))


def test_a_fault_of_the_system_while_a_request_is_served_is_no_fault_of_its_lock(root):
    def serve(claim):
        raise TimeoutError("the backend")

    for _ in range(2):
        with pytest.raises(TimeoutError, match="the backend"):
            Ledger(root).once("k", b"a", serve)


def test_old_keys_are_forgotten(root, monkeypatch):
    import time

    Ledger(root).once("k", b"a", lambda claim: Reply({}))
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + KEPT_SECONDS + 60)
    Ledger(root).once("other", b"a", lambda claim: Reply({}))
    assert len(list((root / ".server" / "keys").glob("*.json"))) == 1
