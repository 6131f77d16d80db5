"""A map survives kills: what a row has recorded is not run again, and nothing is left half done."""

import sys

import pytest

WORKER = "map_worker.py"
KILLS_AT_A_TIME = 40


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.timeout(1800)
@pytest.mark.protects("attractor_nb/maps/row_run.py", "complete_end(pipeline, directory, options, seams)")
@pytest.mark.protects(
    "attractor_nb/maps/row_run.py",
    "if finished := _finished(pipeline, task, own, seams):",
    instead="if finished := None:",
)
@pytest.mark.campaign
def test_a_map_that_is_killed_at_any_operation_comes_to_the_same_end(ask_worker, tmp_path, campaign, figures):
    """Protected by: the end of a row is completed whose process was killed as it ended; a row that has ended
    is read."""
    counted = ask_worker(WORKER, folder=tmp_path / "counted")
    operations = counted["operations"]
    assert counted["statuses"] == ["success"] * 4
    ends = [number for number, entry in enumerate(operations, 1) if entry == ["rename", "manifest.json"]]
    chosen = sorted({*ends[-4:], *campaign.pick(range(1, len(operations) + 1, 8), sample=12)})
    problems, again, missed = [], 0, 0
    for begin in range(0, len(chosen), KILLS_AT_A_TIME):
        kills = chosen[begin : begin + KILLS_AT_A_TIME]
        told = ask_worker(WORKER, folder=tmp_path / f"killed-{begin}", kills=kills)
        problems += told["problems"]
        again += told["again"]
        missed += told["missed"]
    assert problems == []
    assert missed <= 1 + len(chosen) // 10, "rows side by side take turns by chance, but not so much"
    figures.record(
        0,
        "killed while mapping over four rows, two at a time",
        f"{len(chosen) - missed} of {len(chosen) - missed} kills at one of {len(operations)} operations: the same end, no recorded"
        f" stage run again, {again} executions repeated, never more than two a kill",
    )
