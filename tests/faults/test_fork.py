"""A fork survives kills: there is none, or one that can be resumed; its parent is never touched."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = Path(__file__).with_name("workers") / "fork_worker.py"
SECONDS = 110
KILLS_AT_A_TIME = 12


def work(folder, kills=()):
    """What the worker says; ``kills`` are the operations to be killed at."""
    folder.mkdir()
    command = [sys.executable, str(WORKER), str(folder), *map(str, kills)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return json.loads(ended.stdout)


@pytest.mark.timeout(600)
@pytest.mark.protects(
    "attractor_nb/storage/brought_rows.py", "disk.make_directory(temporary, home.descriptor)"
)
def test_a_kill_at_any_operation_leaves_no_fork_or_one_that_can_be_resumed(tmp_path, campaign, figures):
    """Protected by: the directory of a fork is written under another name, and has its own when it is whole."""
    operations = work(tmp_path / "counted")["operations"]
    numbers = list(range(1, len(operations) + 1))
    named = operations.index(["rename", "whole"]) + 1
    chosen = sorted({named - 1, named, named + 1, *campaign.pick(numbers, sample=8)})
    found = {"nothing": 0, "runs": 0, "problems": []}
    for begin in range(0, len(chosen), KILLS_AT_A_TIME):
        told = work(tmp_path / f"killed-{begin}", chosen[begin : begin + KILLS_AT_A_TIME])
        for name in found:
            found[name] += told[name]
    assert found["problems"] == []
    assert found["nothing"] >= 2
    assert found["runs"] >= 1
    figures.record(
        0,
        "killed while forking a run",
        f"{len(chosen)} of {len(chosen)} kills: {found['nothing']} left no fork, {found['runs']} one that was"
        " resumed to the same end; the parent unchanged each time",
    )
