"""``fork``: another way from before a visit, in a run of its own."""

import json
from pathlib import Path

import pytest

from attractor_nb import Run


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
        (("start", "--prompt", "run/pipeline.dot"), "has no prompt"),
    ],
)
def test_what_cannot_be_forked_is_said_with_its_remedy(command, finished, options, message):
    ran = command("fork", finished, *options, "--simulate")
    assert ran.code == 2
    assert message in ran.err
    assert sorted(path.name for path in Path().glob("2*")) == []
