"""`tell`: what a person tells the model of a running stage, from another process and in a run that stands still."""

import json
import subprocess
import sys

import pytest

from attractor_nb import Pipeline, Run
from attractor_nb.account import signed_here
from attractor_nb.model.events import InstructionGiven
from attractor_nb.storage.stored_run import read_run
from attractor_nb.testing import ScriptedBackend
from tests import warm

OWNER = """import sys, pathlib
from attractor_nb import Pipeline
from attractor_nb.stage import current_stage

class Backend:
    def run(self, node, prompt, context):
        print(node.id, "Use two nails" in prompt, flush=True)
        if node.id == "plan":
            sys.stdin.readline()
        return "done"

TEXT = '''digraph g { start [shape=Mdiamond] plan [prompt="Plan it"] build [prompt="Build it"] done [shape=Msquare]
    check [shape=parallelogram, tool_command="true"] start -> plan -> build -> check -> done }'''
run = Pipeline(TEXT).run(logs_root=sys.argv[1], backend=Backend(), trust=True)
print(run.result(60).status, flush=True)
"""


@pytest.fixture
def owner(sources):
    """A process whose run has its stage ``plan`` under way."""
    command = [sys.executable, "-c", OWNER, str(sources / "out")]
    with warm.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "plan False\n"
            yield process
        finally:
            process.kill()


def go_on(owner):
    owner.stdin.write("\n")
    owner.stdin.flush()
    return [owner.stdout.readline().strip() for _ in range(2)]


def test_the_process_of_the_run_is_handed_the_message(command, sources, owner):
    ended = command("tell", "out", "--node", "build", "Use two nails")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "✓ queued for the next attempt of build",
        "  recorded in out; the process of the run receives it",
    ]
    assert go_on(owner) == ["build True", "success"]
    [given] = read_run(sources / "out").events.select(InstructionGiven)
    assert (given.given_by, given.node, given.stage) == (signed_here("command line"), "build", "")


def test_json_says_how_it_reaches_a_model(command, sources, owner):
    ended = command("tell", "out", "-", "--json", stdin=b"Use two nails\n")
    assert json.loads(ended.out) == {
        "text": "Use two nails\n",
        "node": None,
        "stage": "plan",
        "reach": "prompt",
        "words": "queued for the next prompt",
        "logs_root": "out",
        "resume": None,
    }
    assert go_on(owner) == ["build True", "success"]


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        ("biuld", "no node 'biuld'; did you mean \"build\"?"),
        ("check", "check asks no model"),
        ("plan>a", "no child run"),
    ],
)
def test_what_the_process_of_the_run_refuses_is_refused_in_its_words(command, owner, node, problem):
    ended = command("tell", "out", "--node", node, "Use two nails")
    assert ended.code == 2
    assert problem in ended.err
    assert go_on(owner) == ["build False", "success"]


def test_a_stopped_run_has_it_when_it_goes_on(command, waiting):
    ended = command("tell", "out", "--node", "plan", "Use two nails")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "✓ queued for the next attempt of plan",
        "  recorded in out; resume the run with `attractor-nb resume out`",
    ]
    command("answer", "out", "gate", "R")
    backend = ScriptedBackend()
    run = Run.load(waiting).resume(interviewer="auto", backend=backend)
    assert run.result(60).status == "success"
    assert ["Use two nails" in call.prompt for call in backend.calls] == [True]


def test_a_message_behind_a_restart_is_recorded_where_the_run_stands(command, sources):
    text = (sources / "review.dot").read_text().replace('label="[R] Again"', 'label="[R] Again", loop_restart=true')
    run = Pipeline(text).run(wait=False, logs_root=sources / "out")
    run.wait_for_gate("gate", 60)
    run.answer("gate", "R")
    run.wait_for_gate("gate", 60)
    run.cancel()
    run.result(60)
    assert command("tell", "out", "Use two nails").code == 0
    assert read_run(run.logs_root).events.select(InstructionGiven)
    assert run.logs_root != sources / "out"


def test_a_run_that_takes_nothing_from_here_is_named_with_its_process(command, sources, owner, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("socket.gethostname", lambda: "another-machine")
        ended = command("tell", "out", "Use two nails")
    assert ended.code == 2
    assert "takes no message from here" in ended.err
    assert "tell it there" in ended.err
    assert go_on(owner) == ["build False", "success"]


def test_a_run_that_has_ended_is_told_nothing(command, sources):
    command("run", "review.dot", "--auto-approve", "--logs-root", "out")
    ended = command("tell", "out", "Use two nails")
    assert ended.code == 2
    assert "has ended (it completed)" in ended.err


def test_there_must_be_a_run(command, sources):
    ended = command("tell", "nowhere", "Use two nails")
    assert ended.code == 2
    assert "no run directory" in ended.err


def test_a_run_on_a_server_is_told_there(command, sources, stub):
    words = "queued for the next attempt of plan"
    taken = {"pipeline": "r1", "node": "plan", "stage": None, "reach": "attempt", "words": words}
    stub.says("POST", "/pipelines/r1/messages", taken)
    ended = command("tell", "r1", "--node", "plan", "Use two nails", "--server", stub.url)
    assert (ended.code, ended.out, ended.err) == (0, f"✓ {words}\n", "")
    told = json.loads(command("tell", "r1", "Use two nails", "--server", stub.url, "--json").out)
    assert told == {
        "text": "Use two nails",
        **{name: taken[name] for name in ("node", "stage", "reach", "words")},
        "id": "r1",
        "url": f"{stub.url}/pipelines/r1",
    }
    first, second = (request.body for request in stub.asked)
    assert first == {"text": "Use two nails", "node": "plan", "given_by": "command line"}
    assert second == {"text": "Use two nails", "given_by": "command line"}
