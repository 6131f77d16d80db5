"""``fork``: another way from before a visit, in a run of its own."""

import json
from pathlib import Path

import pytest

from attractor_nb import Pipeline, Run


@pytest.fixture
def finished(command, sources):
    """The directory of a run that has ended."""
    ran = command("run", "straight.dot", "--logs-root", "run", "--simulate")
    assert ran.code == 0
    return "run"


def test_a_fork_runs_in_a_directory_of_its_own(command, finished):
    Path("better.txt").write_text("Write it better")
    ran = command(
        *("fork", finished, "write", "--visit", "1", "--set", "tests:=3", "--prompt", "better.txt"),
        *("--logs-root", "fork", "--simulate", "--json"),
    )
    assert ran.code == 0
    assert json.loads(ran.out)["status"] == "success"
    fork = Run.load("fork")
    assert fork.result().context["tests"] == 3
    assert "Write it better" in fork["write"].prompt
    assert "Write it better" not in Run.load(finished)["write"].prompt


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("wrote",), 'did you mean "write"'),
        (("write", "--visit", "7"), "visits of write: 1"),
        (("write", "--set", "tests"), "--set 'tests' is not a key and a value"),
        (("write", "--set", "graph.goal=x"), "engine's own"),
        (("write", "--prompt", "nowhere.txt"), "nowhere.txt"),
        (("write", "--prompt", "latin.txt"), "latin.txt is not UTF-8 text (line 1)\n hint: save it as UTF-8"),
        (("start", "--prompt", "run/pipeline.dot"), "has no prompt"),
    ],
)
def test_what_cannot_be_forked_is_said_with_its_remedy(command, finished, options, message):
    Path("latin.txt").write_bytes(b"t\xe4glich")
    ran = command("fork", finished, *options, "--simulate")
    assert ran.code == 2
    assert message in ran.err
    assert sorted(path.name for path in Path().glob("2*")) == []


@pytest.fixture
def answered_by_a_function(sources):
    """The directory of a run that a user's function answered, and that was stopped at its gate."""
    run = Pipeline(Path("review.dot").read_text(), backend=lambda prompt: "real").run(
        logs_root="own", interviewer="deferred"
    )
    run.wait_for_gate()
    run.cancel()
    assert run.result(60).status == "interrupted"
    return "own"


@pytest.mark.parametrize(
    "arguments", [("resume", "own"), ("resume", "own", "--from", "start"), ("fork", "own", "start")]
)
def test_ruling_48_what_goes_on_is_not_simulated_unasked(command, answered_by_a_function, arguments):
    before = Path("own/manifest.json").read_bytes()
    ran = command(*arguments, "--auto-approve", "--trust")
    assert ran.code == 2
    assert "were answered by answered_by_a_function.<locals>.<lambda>, and no backend is given" in ran.err
    assert "--backend simulated" in ran.err
    assert Path("own/manifest.json").read_bytes() == before
    assert sorted(Path().glob("2*")) == []


def test_ruling_48_a_run_of_a_named_backend_goes_on_with_it(command, sources, monkeypatch):
    run = Pipeline(Path("review.dot").read_text(), backend="simulated").run(logs_root="own", interviewer="deferred")
    run.wait_for_gate()
    run.cancel()
    ran = command("resume", "own", "--auto-approve", "--trust")
    assert (ran.code, "responses are simulated" in ran.err) == (0, True)


def test_ruling_48_simulated_answers_are_requested(command, answered_by_a_function):
    ran = command("resume", "own", "--auto-approve", "--trust", "--backend", "simulated")
    assert ran.code == 0
    assert "simulated" in ran.out
