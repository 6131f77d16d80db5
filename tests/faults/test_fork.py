"""A fork survives kills: there is none, or one that can be resumed; its parent is never touched."""

import pytest

WORKER = "fork_worker.py"
KILLS_AT_A_TIME = 12


@pytest.mark.timeout(1800)
@pytest.mark.protects("attractor_nb/storage/map_directory.py", "disk.make_directory(temporary, home.descriptor)")
@pytest.mark.campaign
def test_a_kill_at_any_operation_leaves_no_fork_or_one_that_can_be_resumed(ask_worker, tmp_path, campaign, figures):
    """Protected by: the directory of a fork is written under another name, and has its own when it is whole."""
    operations = ask_worker(WORKER, folder=tmp_path / "counted")["operations"]
    numbers = list(range(1, len(operations) + 1))
    named = operations.index(["rename", "whole"]) + 1
    chosen = sorted({named - 1, named, named + 1, *campaign.pick(numbers, sample=8)})
    found = {"nothing": 0, "runs": 0, "missed": 0, "problems": []}
    for begin in range(0, len(chosen), KILLS_AT_A_TIME):
        kills = chosen[begin : begin + KILLS_AT_A_TIME]
        told = ask_worker(WORKER, folder=tmp_path / f"killed-{begin}", kills=kills)
        for name in found:
            found[name] += told[name]
    assert found["problems"] == []
    # How many times a late checkpoint is written varies from run to run, and with it the number of operations.
    assert found["missed"] <= max(1, len(chosen) // 10)
    kills = len(chosen) - found["missed"]
    assert found["nothing"] >= 2
    assert found["runs"] >= 1
    figures.record(
        0,
        "killed while forking a run",
        f"{kills} of {kills} kills: {found['nothing']} left no fork, {found['runs']} one that was"
        " resumed to the same end; the parent unchanged each time",
    )
