"""The next server of a root takes up the runs of a killed one (docs/server.md, "The end")."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import RunError, RunLocked
from attractor_nb.model.events import InterviewStarted, PipelineResumed, StageCompleted, StageStarted
from attractor_nb.server.event_channel import Recorded
from attractor_nb.server.recovery import Recovery, has_made_progress
from attractor_nb.server.replies import Problem, stopping
from attractor_nb.server.run_service import WAITS, RunService
from attractor_nb.storage.log.event_log import read_log
from attractor_nb.storage.log.lock import read_owner
from tests import warm
from tests.waiting import PATIENCE_SECONDS
from tests.waiting import wait_until as until

MAX_TRIES = 3

pytestmark = pytest.mark.timeout(300)  # several processes begin, one behind the other
WORKER = Path(__file__).parent / "workers" / "served.py"
TOKEN = "t" * 43


@pytest.fixture
def served(root, client):
    """Start servers that are processes of their own, and may be killed."""
    make = type(client)

    @contextmanager
    def start(at=root, **options):
        command = [sys.executable, str(WORKER), str(at), TOKEN, json.dumps(options)]
        with warm.Server(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
            url = server.stdout.readline().strip()
            assert url, server.stderr.read()
            found = make(urlsplit(url).port)
            found.process = server
            try:
                yield found
            finally:
                found.http.close()
                server.kill()

    return start


def kill(client):
    client.process.kill()
    client.process.wait(30)


def lines_of(client):
    return {line["id"]: line for line in client.get("/pipelines?limit=1000").json()["pipelines"]}


def waiting(client):
    """The questions that can be answered from here, by run."""
    found = client.get("/questions").json()["questions"]
    return {one["pipeline"]: one for one in found if one["is_answerable"]}


def here(client, ids):
    """The runs whose engines work in this server."""
    return [run_id for run_id in ids if client.get(f"/pipelines/{run_id}").json()["is_here"]]


def left_at_gates(served, sources, count=1, **more):
    """Runs whose server was killed while they waited."""
    with served() as client:
        ids = [client.submit(sources.gate, **more) for _ in range(count)]
        until(lambda: len(waiting(client)) == count)
        kill(client)
    return ids


def decided(client, run_id):
    return until(lambda: "about to be" not in (line := lines_of(client)[run_id])["note"] and line)


@pytest.mark.campaign
def test_fifty_runs_at_their_gates_go_on_by_themselves(served, sources, root):
    ids = left_at_gates(served, sources, 50, durability="fast")
    with served() as client:
        until(lambda: set(waiting(client)) == set(ids))
        lines = lines_of(client)
        assert {lines[run_id]["status"] for run_id in ids} == {"waiting"}
        assert all(
            "resumed automatically; the previous server was last seen" in lines[run_id]["note"] for run_id in ids
        )
        for run_id in ids:
            path = f"/pipelines/{run_id}/questions/review/answer"
            assert client.post(path, {"choice": "A"}).status_code == 200
        assert {client.ended(run_id)["outcome"] for run_id in ids} == {"success"}
        kill(client)
        assert client.process.stderr.read().count("resumed automatically; the previous server was last seen") == 50
    for run_id in ids:
        completed = [one.name for one in read_log(root / run_id).events if one.type == "StageCompleted"]
        assert completed == ["start", "review", "done"]


def test_requests_are_answered_while_runs_are_taken_up(served, serving, sources, root, monkeypatch):
    ids = left_at_gates(served, sources, 3)
    may_go_on, take_up = threading.Event(), RunService.take_up

    def taken_up(service, *args, **more):
        assert may_go_on.wait(PATIENCE_SECONDS)
        return take_up(service, *args, **more)

    monkeypatch.setattr(RunService, "take_up", taken_up)
    with serving(root) as client:
        assert all("about to be" in line["note"] for line in lines_of(client).values())
        may_go_on.set()
        until(lambda: set(waiting(client)) == set(ids))


@pytest.mark.kind("a restarted server")
def test_the_same_question_has_the_time_that_was_left(served, sources):
    source = sources.of(
        'review [shape=hexagon, label="Ship it?", human.timeout="600s", human.default_choice=done]\n'
        ' fix [prompt="Fix"]\n start -> review\n review -> done [label="[A] Approve"]\n'
        ' review -> fix [label="[R] Reject"]\n fix -> review'
    )
    with served() as client:
        run_id = client.submit(source)
        before = until(lambda: waiting(client).get(run_id))
        kill(client)
    with served() as client:
        after = until(lambda: waiting(client).get(run_id))
        assert (after["id"], after["deadline"]) == (before["id"], before["deadline"])


@pytest.mark.campaign
def test_a_stream_that_comes_back_early_goes_on_with_the_run(served, sources):
    [run_id] = left_at_gates(served, sources)
    with served() as client:
        events = []

        def listen():
            events.extend(client.events(run_id))

        thread = threading.Thread(target=listen)
        thread.start()
        until(lambda: waiting(client).get(run_id))
        client.post(f"/pipelines/{run_id}/questions/review/answer", {"choice": "A"})
        thread.join(30)
        kinds = [one["data"].get("type") for one in events if one["id"]]
        assert kinds[-1] == "PipelineCompleted"


@pytest.mark.campaign
def test_who_wants_no_recovery_has_none(served, sources):
    [run_id] = left_at_gates(served, sources)
    with served(recover=False) as client:
        time.sleep(0.5)
        line = lines_of(client)[run_id]
        assert (line["status"], line["note"]) == ("abandoned", "its process ended")
        kill(client)
    with served() as client:
        until(lambda: waiting(client).get(run_id))


@pytest.mark.campaign
def test_what_no_server_of_the_root_had_begun_is_left(served, root, tmp_path, sources):
    """A run of a program that was killed, a copy of a run, and a copy of a whole root."""
    import shutil

    [run_id] = left_at_gates(served, sources)
    shutil.copytree(root / run_id, root / f"{run_id}-copy")
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(root, elsewhere)
    with served(elsewhere) as client:
        time.sleep(0.5)
        assert {line["status"] for line in lines_of(client).values()} == {"abandoned"}
        assert not waiting(client)
    with served() as client:
        until(lambda: waiting(client).get(run_id))
        assert lines_of(client)[f"{run_id}-copy"]["status"] == "abandoned"


@pytest.mark.campaign
def test_what_another_program_went_on_with_is_that_programs(served, root, sources):
    [run_id] = left_at_gates(served, sources)
    program = (
        "import sys, os, signal\nfrom attractor_nb import Run\n"
        "run = Run.load(sys.argv[1]).resume(interviewer='deferred')\n"
        "import time\nwhile not run.gates: time.sleep(.01)\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(root / run_id)], check=False, capture_output=True)
    assert read_owner(root / run_id)["pid"] != os.getpid()
    with served() as client:
        line = decided(client, run_id)
        time.sleep(0.3)
        assert (line["status"], waiting(client)) == ("abandoned", {})


@pytest.mark.campaign
def test_what_was_stopped_or_has_ended_stays_so(served, sources):
    with served() as client:
        done = client.submit(sources.plain)
        client.ended(done)
        stopped = client.submit(sources.gate)
        until(lambda: waiting(client).get(stopped))
        client.post(f"/pipelines/{stopped}/cancel")
        client.ended(stopped)
        bounded = client.submit(sources.plain, max_steps=1)
        client.ended(bounded)
        before = {run_id: line["status"] for run_id, line in lines_of(client).items()}
        kill(client)
    with served() as client:
        time.sleep(0.5)
        assert {run_id: line["status"] for run_id, line in lines_of(client).items()} == before
        assert before[stopped] == "interrupted"


@pytest.mark.campaign
def test_a_run_whose_commands_nobody_trusts_any_more_is_left(served, sources, monkeypatch, tmp_path):
    source = sources.of(
        'review [shape=hexagon, label="Ship it?"]\n touch [shape=parallelogram, tool_command="true"]\n'
        ' start -> review\n review -> touch [label="[A] Approve"]\n review -> done [label="[R] Reject"]\n'
        " touch -> done"
    )
    with served() as client:
        refused = client.post("/pipelines", {"source": source}).json()
        run_id = client.submit(source, trust=refused["surface_hash"])
        until(lambda: waiting(client).get(run_id))
        kill(client)
    with served() as client:  # the answer of this user, of this place, holds
        until(lambda: waiting(client).get(run_id))
        kill(client)
    monkeypatch.setenv("ATTRACTOR_STATE_DIR", str(tmp_path / "another"))
    with served() as client:
        line = until(lambda: "not resumed automatically" in (line := lines_of(client)[run_id])["note"] and line)
        assert line["status"] == "abandoned"
        assert client.post(f"/pipelines/{run_id}/resume").status_code == 403
        assert client.post(f"/pipelines/{run_id}/resume", {"trust": refused["surface_hash"]}).status_code == 202


@pytest.mark.campaign
def test_a_run_that_kills_the_server_is_left_in_the_end_and_the_others_go_on(served, sources):
    source = sources.of(
        'wreck [shape=parallelogram, tool_command="kill -9 $PPID", idempotent=true]\n start -> wreck -> done'
    )
    with served() as client:
        innocent = client.submit(sources.gate)
        until(lambda: waiting(client).get(innocent))
        refused = client.post("/pipelines", {"source": source}).json()
        try:
            wreck = client.submit(source, trust=refused["surface_hash"])
        except Exception:  # noqa: BLE001 - whatever it is: the server is gone
            wreck = ""
        assert client.process.wait(30) == -signal.SIGKILL
    for _ in range(MAX_TRIES):
        with served() as client:
            assert client.process.wait(60) == -signal.SIGKILL
    with served() as client:
        until(lambda: waiting(client).get(innocent))
        [(left, line)] = [(run_id, line) for run_id, line in lines_of(client).items() if line["status"] == "abandoned"]
        assert left == (wreck or left)
        line = decided(client, left)
        assert f"{MAX_TRIES} times the server was lost" in line["note"]
        assert client.process.poll() is None


@pytest.mark.campaign
def test_a_run_at_its_gate_may_be_taken_up_any_number_of_times(served, sources):
    [run_id] = left_at_gates(served, sources)
    for _ in range(MAX_TRIES + 2):
        with served() as client:
            until(lambda client=client: waiting(client).get(run_id))
            kill(client)


@pytest.mark.campaign
def test_two_servers_take_up_each_run_once(served, sources, root):
    ids = left_at_gates(served, sources, 12, durability="fast")
    with ThreadPoolExecutor(2) as pool, served() as one, served() as other:
        found = list(
            pool.map(
                lambda client: until(
                    lambda: {i: x for i, x in lines_of(client).items() if x["is_live"]}.keys() >= set(ids)
                ),
                [one, other],
            )
        )
        assert found == [True, True]
        until(lambda: set(waiting(one)) == set(waiting(other)) == set(ids))
        assert sorted([*here(one, ids), *here(other, ids)]) == sorted(ids)
        for client in (one, other):
            for run_id in here(client, ids):
                path = f"/pipelines/{run_id}/questions/review/answer"
                assert client.post(path, {"choice": "A"}).status_code == 200
        assert {one.ended(run_id)["outcome"] for run_id in ids} == {"success"}
    for run_id in ids:
        events = read_log(root / run_id).events
        assert sum(isinstance(event, PipelineResumed) for event in events) == 1


@pytest.mark.campaign
def test_no_more_are_taken_up_than_there_is_room_for(served, sources):
    ids = left_at_gates(served, sources, 4)
    with served(max_runs=2) as client:
        first = until(lambda: len(found := waiting(client)) == 2 and found)
        time.sleep(1.5)
        assert waiting(client).keys() == first.keys()
        queued = next(run_id for run_id in ids if run_id not in first)
        assert "about to be resumed" in lines_of(client)[queued]["note"]
        assert client.post(f"/pipelines/{queued}/resume").status_code == 429
        for run_id in first:
            client.post(f"/pipelines/{run_id}/questions/review/answer", {"choice": "A"})
        until(lambda: set(waiting(client)) == set(ids) - set(first))


@pytest.mark.campaign
def test_a_person_goes_on_with_a_run_that_waits_for_its_turn(served, sources, monkeypatch, root, serving):
    from attractor_nb.server.recovery import Recovery

    [run_id] = left_at_gates(served, sources)
    monkeypatch.setattr(Recovery, "_begin", lambda self, ids: None)  # its turn never comes
    with serving(root) as client:
        assert "about to be" in lines_of(client)[run_id]["note"]
        assert client.post(f"/pipelines/{run_id}/resume").status_code == 202
        assert until(lambda: waiting(client).get(run_id))
        assert "about to be" not in lines_of(client)[run_id]["note"]


@pytest.mark.campaign
def test_who_asks_for_what_was_just_done_is_not_refused(served, sources):
    [run_id] = left_at_gates(served, sources)
    with served() as client:
        until(lambda: waiting(client).get(run_id))
        assert client.post(f"/pipelines/{run_id}/resume").status_code == 202
        again = client.post(f"/pipelines/{run_id}/resume")
        assert (again.status_code, again.json()["type"]) == (409, "urn:attractor-nb:problem:run")


def test_a_run_at_a_breakpoint_is_left_to_who_set_it(root, serving, sources):
    """The server has no debugger; who has one in the same process shows what a killed one leaves."""
    from attractor_nb.model.events import DebuggerStopped
    from attractor_nb.server.recovery import _why_not

    run = Pipeline(sources.plain).run(logs_root=root / "stopped", breakpoints=["plan"], wait=False, is_shown=False)
    until(lambda: run.stops)
    trail = [Recorded(f"0.{event.sequence}", event) for event in read_log(root / "stopped").events]
    assert any(isinstance(one.event, DebuggerStopped) for one in trail)
    assert "breakpoint" in _why_not(trail)
    run.cancel()


def trail_of(*events):
    return [Recorded(f"0.{number}", event) for number, event in enumerate(events, 1)]


def started(name, branch=""):
    return StageStarted(name=name, index=0, branch=branch)


def asked(name, branch=""):
    return InterviewStarted(question="?", stage=name, branch=branch)


def completed(name, branch=""):
    return StageCompleted(name=name, outcome=Outcome.success("ok"), branch=branch)


RESUMED = PipelineResumed(next_node="a")


@pytest.mark.parametrize(
    ("before", "behind", "expected"),
    [
        pytest.param([started("a")], [], False, id="nothing at all"),
        pytest.param([started("a")], [RESUMED, started("a")], False, id="begun again"),
        pytest.param([started("a")], [RESUMED, started("a"), completed("a"), started("b")], True, id="a result"),
        pytest.param([started("g")], [RESUMED, started("g"), asked("g")], True, id="at its gate"),
        pytest.param([started("g"), asked("g")], [RESUMED], False, id="the question of before"),
        pytest.param(
            [started("fan"), started("g", "fan/g"), started("a", "fan/a")],
            [RESUMED, started("fan"), started("g", "fan/g"), asked("g", "fan/g"), started("a", "fan/a")],
            False,
            id="at a gate beside a stage",
        ),
        pytest.param(
            [started("fan"), started("g", "fan/g")],
            [RESUMED, started("fan"), started("g", "fan/g"), asked("g", "fan/g")],
            True,
            id="at a gate in a branch",
        ),
    ],
)
def test_a_run_has_come_to_something_with_a_result_or_at_rest(before, behind, expected):
    trail = trail_of(*before, *behind)
    assert has_made_progress(trail, f"0.{len(before)}") is expected


# -- one decision by itself --------------------------------------------------------------------------


def recovery_of(root, *ids, **decisions):
    """A recovery that takes up these runs; what becomes of each is given, an exception or the words for it."""

    class Recovering(Recovery):
        def _decide(self, run_id):
            self.decided.append(run_id)
            found = decisions[run_id]
            if isinstance(found, Exception):
                raise found
            return found

    found = Recovering(RunService(root, 10))
    found.decided = []
    found._queue.extend(ids)
    found._service.words.update(dict.fromkeys(ids, WAITS))
    return found


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(RunLocked("another process runs it", owner={}), None, id="owned by another process"),
        pytest.param(RunError("its log is damaged"), "not resumed automatically: its log is damaged", id="damaged"),
        pytest.param(
            Problem(409, "locked", "Another process owns the run", "another server is starting or resuming it"),
            "not resumed automatically: another server is starting or resuming it",
            id="decided about elsewhere",
        ),
        pytest.param(ZeroDivisionError("of ours"), None, id="fault of ours"),
    ],
)
def test_a_run_that_cannot_be_taken_up_keeps_no_other_from_it(root, caplog, error, words):
    recovery = recovery_of(root, "a", "b", a=error, b="")
    recovery._work()
    assert recovery.decided == ["a", "b"]
    assert recovery._service.words == ({} if words is None else {"a": words})
    is_ours = isinstance(error, ZeroDivisionError)
    assert ("pipeline a is not resumed automatically" in caplog.text) == is_ours
    assert ("ZeroDivisionError: of ours" in caplog.text) == is_ours


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param(Problem(429, "too-many-runs", "Too many runs are active"), id="no room"),
        pytest.param(stopping(), id="the server ends"),
    ],
)
def test_a_run_without_room_is_tried_again_until_the_server_ends(root, caplog, refusal):
    recovery = recovery_of(root, "a", "b", a=refusal, b="")
    waits = []

    class Ending(threading.Event):
        def wait(self, timeout=None):
            waits.append(timeout)
            return len(waits) == 3

    recovery._is_ending = Ending()
    recovery._work()
    assert recovery.decided == ["a", "a", "a"]
    assert recovery._service.words == {"a": WAITS, "b": WAITS}
    assert "not taken up" not in caplog.text  # by this server; the next one decides


def test_a_thread_whose_last_run_another_one_took_ends(root):
    class Emptied(deque):
        def __bool__(self):  # as it was a moment ago
            return True

    recovery = recovery_of(root)
    recovery._queue = Emptied()
    recovery._work()
    assert recovery.decided == []


def test_a_note_of_a_run_that_cannot_be_read_keeps_no_other_run_waiting(root, caplog):
    (root / ".server/runs/a.json").mkdir(parents=True)
    service = RunService(root, 10)
    with service.started.noted("b"):
        pass
    recovery = Recovery(service)
    service.words.update(a=WAITS, b=WAITS)
    recovery._begin(["a", "b"])
    until(lambda: WAITS not in service.words.values())
    assert service.words == {
        "a": f"not resumed automatically: cannot read {root}/.server/runs/a.json: not a plain file"
    }
    assert service.started.read("b") is None  # its directory contains no run


@pytest.mark.parametrize("is_there", [True, False])
def test_a_note_of_a_run_that_is_gone_is_forgotten(root, is_there):
    service = RunService(root, 10)
    with service.started.noted("a"):
        pass
    if is_there:
        (root / "a").mkdir()
    service.words["a"] = WAITS
    assert Recovery(service)._is_decided("a")
    assert service.words == {}
    assert service.started.ids() == []
    assert list((root / ".server/runs").iterdir()) == []
