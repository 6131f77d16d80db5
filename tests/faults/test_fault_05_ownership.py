"""Fault 5: many processes resume one run; an owner freezes, is robbed, and thaws. One owner, always."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = Path(__file__).parent / "workers" / "owner_worker.py"
PATH = ["start", "write", "check", "write", "check", "done"]


@pytest.fixture
def work():
    """Runs the worker to its end; what it said, line by line."""

    def run(*arguments, lines=()):
        ended = subprocess.run(
            [sys.executable, WORKER, *map(str, arguments)],
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return [json.loads(line) for line in ended.stdout.splitlines()]

    return run


def first_of_log(operations):
    """Number of the operation after which the run has begun: the first write to its log."""
    return next(
        number for number, (kind, name) in enumerate(operations, 1) if (kind, name) == ("write", "events.jsonl")
    )


def decisive_operations(operations):
    """Operations at which one means of the fence is all there is: none of them may be left to chance."""
    numbered = list(enumerate(operations, 1))
    begun = first_of_log(operations)
    flushes = [number for number, (kind, _) in numbered if kind == "sync_data"]
    moves = [number for number, (kind, name) in numbered if (kind, name) == ("make_directory", "visits")]
    renames = [number for number, entry in numbered if entry == ("rename", "checkpoint.json") and number > begun]
    created = [
        max(earlier for earlier, (kind, _) in numbered if kind == "create" and earlier < number)
        for number in renames[1:2]
    ]  # thawed there it makes the temporary file anew
    moved = [number for number, (kind, _) in numbered for move in moves[-1:] if kind == "rename" and number > move]
    return {*flushes[len(flushes) // 2 :][:1], *created, *moved[:1]}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("kind", "durability"), [("loop", "full"), ("restart", "fast")])
@pytest.mark.protects(
    "attractor_nb/storage/log/event_log.py", "        disk.set_mode(descriptor, CLOSED_MODE)", instead="        pass"
)
@pytest.mark.protects(
    "attractor_nb/storage/log/event_log.py",
    '''        """Look, then rename; that the source is gone may be the new owner's sweep."""
        self.check()''',
    instead="",
)
@pytest.mark.protects(
    "attractor_nb/storage/stages/stage_directories.py", "if is_first and self._is_taken_over:", instead="if False:"
)
@pytest.mark.campaign
def test_an_owner_frozen_at_any_operation_is_robbed_and_loses_everywhere_when_it_thaws(
    work, campaign, figures, tmp_path, kind, durability
):
    """The owner looks at the fence on its log at each commit, and before each rename; a stage's directory is new."""
    counted = work("freeze", tmp_path / "counted", kind, durability, lines=[0])[0]
    numbers = range(first_of_log(counted["operations"]) + 1, len(counted["operations"]) + 1)
    operations = [tuple(operation) for operation in counted["operations"]]
    picked = campaign.pick(list(numbers)[:: 2 if campaign.is_full else 1], sample=3)
    chosen = sorted({*picked, *decisive_operations(operations)})
    found = work("freeze", tmp_path, kind, durability, lines=chosen)
    robbed = [facts for facts in found if "taker" in facts]
    assert len(found) == len(chosen)
    assert len(robbed) >= len(chosen) - 3  # the last operations may be past the last record
    for facts in robbed:
        taker = facts["taker"]
        where = (facts["number"], counted["operations"][facts["number"] - 1], facts)
        assert facts["late"] == [], where
        assert set(facts["thawed"]["told"]) <= set(facts["recorded"]), where
        if taker["ended"] == "RunError":  # its end was recorded when it was frozen: no takeover changes that
            assert "the run has completed" in taker["message"], where
            assert facts["thawed"]["ended"] == "success", where
            continue
        assert facts["changed"] == [], where
        assert facts["thawed"]["ended"] == "RunLocked", where
        assert f"taken over by process {facts['taker_pid']} " in facts["thawed"]["message"], where
        assert (taker["ended"], taker["answer"]) == ("success", 150_000), where
        if kind == "loop":
            assert taker["path"] == PATH, where
        if "locked_by" in taker:
            assert taker["locked_by"] == facts["owner"], where
            assert set(taker["status"]) <= {"running"}, where
        recorded = {tuple(map(str, commit)) for commit in taker["commits"]}
        assert not [effect for effect in facts["done"] if tuple(effect[:3]) in recorded], where
    lost = sum(facts["thawed"]["ended"] == "RunLocked" for facts in robbed)
    slowest = max(facts["taker"].get("refused_after", 0.0) for facts in robbed)
    figures.record(
        5,
        f"the owner frozen at an operation of its disk, robbed, thawed ({kind}, {durability})",
        f"{lost} of {lost} lost everywhere: no commit, no file changed, no stage begun; a resume "
        f"without take-over refused in {slowest:.2f} s at most",
    )


@pytest.mark.parametrize("kind", ["model", "tool", "gate"])
@pytest.mark.parametrize("how", ["frozen", "unlocked"])
@pytest.mark.protects(
    "attractor_nb/runtime/wired_run.py", "                    task.cancel()\n", instead="                    pass\n"
)
@pytest.mark.campaign
def test_an_owner_robbed_in_the_middle_of_a_stage_notices_by_itself_and_its_command_ends(
    work, figures, tmp_path, kind, how
):
    """A timer looks at the fence each second, and cancels the stage; nothing else would tell the owner."""
    (facts,) = work("stage", tmp_path, kind, how)
    taker = facts["taker"]
    assert taker["ended"] == "success", taker
    assert taker["path"] == ["start", "quick", "slow", "done"]
    assert taker.get("locked_by") == (facts["owner"] if how == "frozen" else None)
    assert facts["thawed"]["ended"] == "RunLocked"
    assert not facts["is_changed"]
    assert facts["commands_alive"] == []
    figures.record(
        5,
        f"the owner of a {kind} stage {how}, robbed" + (", thawed" if how == "frozen" else ""),
        f"it lost in {facts['seconds']:.2f} s, its command ended, nothing was changed",
    )


@pytest.mark.timeout(1800)
@pytest.mark.protects(
    "attractor_nb/storage/log/lock.py", "            self._lock.acquire(poll_interval=0.01)", instead="            pass"
)
@pytest.mark.campaign
def test_of_sixteen_processes_that_resume_one_run_one_gets_it_and_a_killed_owner_frees_it(
    work, campaign, figures, tmp_path
):
    """The kernel's lock decides, and dies with its owner.

    Who takes over from a frozen owner may be robbed itself by the next, at the last moment after it has recorded
    the end: then no process says that it succeeded, and the record does, once.
    """
    rounds = campaign.count(sample=2, full=12)
    *races, end = work("race", tmp_path, 16, rounds)
    times = []
    for number, facts in enumerate(races[:-1]):
        assert [word["word"] for word in facts["words"]] == ["locked"] * 15, facts
        assert {word["by"] for word in facts["words"]} == {facts["owner"]}
        times += [word["after"] for word in facts["words"]]
        nodes = [effect[1] for effect in facts["effects"]]
        assert nodes == ["quick", *["slow"] * (number + 2)]  # what is recorded never runs again
    last = [word["word"] for word in races[-1]["words"]]
    assert last.count("success") <= 1, last
    assert end["ends"] == ["PipelineCompleted"], (last, end)
    assert set(last) <= {"success", "locked", "lost", "too late"}, last
    assert end["thawed"]["word"] == "lost"
    figures.record(
        5,
        "16 processes resume one run at the same moment, its owner killed",
        f"{len(races) - 1} of {len(races) - 1} races: one owner, 15 told its process; nothing recorded ran again; "
        f"the slowest refusal took {max(times):.1f} s with 16 processes on two processors",
    )
    figures.record(5, "16 processes take one run over from a frozen owner", "one ended it, all others lost")
