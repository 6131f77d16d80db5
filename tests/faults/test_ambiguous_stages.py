"""Part 8 of the promise: a command that was cut off is never run again unasked, and never asked about twice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb.model.events import InterviewCompleted, StageStarted
from attractor_nb.storage.log.event_log import read_log

WORKER = Path(__file__).parent / "workers" / "ambiguous_worker.py"
AGAIN, DONE, FAILED = "R", "D", "F"
AROUND_ANSWER = 4
"""Operations that make an answer durable, and those before anything is done with it: each is looked at."""
PATHS = {
    AGAIN: ["start", "deploy", "check", "done"],
    DONE: ["start", "deploy", "check", "done"],
    FAILED: ["start", "deploy", "mourn", "done"],
}


@pytest.fixture(scope="module")
def live():
    """Performs lives of a run, each a process of its own; see the worker."""
    worker = subprocess.Popen(
        [sys.executable, "-P", str(WORKER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH") or str(WORKER.parents[3])},
    )

    def perform(root, **job):
        worker.stdin.write(json.dumps({"root": str(root), **job}) + "\n")
        worker.stdin.flush()
        return json.loads(worker.stdout.readline())

    yield perform
    worker.stdin.close()
    worker.wait(60)
    worker.stdout.close()


@pytest.fixture(scope="module")
def cut(live, tmp_path_factory):
    """The directory of a run that was killed with SIGKILL in the middle of its command."""
    place = tmp_path_factory.mktemp("cut")
    ended = live(place / "run", is_new=True)
    assert ended["was_killed"]
    assert (place / "effects").read_text().split() == [key_of(place)]
    return place


def key_of(place):
    """The idempotency key of the visit that is cut off."""
    started = next(event for event in events_of(place) if isinstance(event, StageStarted))
    return f"{started.run_id}:deploy:1"


def events_of(place):
    return list(read_log(place / "run").events)


def copy_of(cut, place, *, is_calm=True):
    shutil.copytree(cut, place)
    (place / "asked").write_text("")
    if is_calm:
        (place / "calm").touch()
    return place / "run"


def asked(place):
    return (place / "asked").read_text().split()


def answers_of(place):
    """The durable answers, by the id of their question."""
    return {event.question_id: event.answer for event in events_of(place) if isinstance(event, InterviewCompleted)}


def runs_of(place):
    return (place / "effects").read_text().split()


@pytest.mark.protects(
    "attractor_nb/decisions/ambiguity.py",
    '    if state.on_interrupted != ASK:\n        return ""\n',
    instead='    if state.on_interrupted:\n        return ""\n',
)
@pytest.mark.parametrize(("answer", "runs"), [(AGAIN, 2), (DONE, 1), (FAILED, 1)])
def test_a_command_that_was_cut_off_is_run_again_only_when_a_person_says_so(live, cut, tmp_path, answer, runs):
    """Protected by the question that comes before the command: without it each resume repeats it."""
    root = copy_of(cut, tmp_path / "case")
    ended = live(root, answer=answer)
    assert (ended["status"], ended["path"]) == ("success", PATHS[answer])
    assert runs_of(root.parent) == [key_of(root.parent)] * runs
    assert asked(root.parent) == ["deploy:1.1"]
    assert "cut off" in ended["notes"]


@pytest.mark.protects(
    "attractor_nb/engine/gates.py",
    "if recorded := self._recorded.pop(question.id, None):",
    instead="if (recorded := None):",
)
@pytest.mark.timeout(1800)
@pytest.mark.campaign
def test_killed_between_question_answer_and_re_run_nobody_is_asked_twice(live, cut, tmp_path, campaign, figures):
    """Killed at each operation of the disk in the resume, then resumed: a durable answer is never asked for again.

    Protected by the answers that a log holds: without them the next resume asks anew, and may be told
    otherwise.
    """
    kills, most = 0, 0
    for answer in (AGAIN, DONE, FAILED):
        whole = live(copy_of(cut, tmp_path / f"whole{answer}"), answer=answer)
        every = 1 if answer == AGAIN else 3  # the two others are alike but for their word
        chosen = set(campaign.pick(range(1, whole["operations"] + 1, every), sample=4))
        chosen |= {whole["before_answer"] + step for step in range(1, 1 + AROUND_ANSWER)}
        for kill_at in sorted(chosen):
            place = tmp_path / f"{answer}{kill_at}"
            root = copy_of(cut, place)
            first = live(root, answer=answer, kill_at=kill_at)
            if not first["was_killed"]:  # checkpoints go by time: this resume had fewer operations
                assert first["operations"] < kill_at
                continue
            kills += 1
            durable, before = answers_of(place), asked(place)
            if not any(event.type == "PipelineCompleted" for event in events_of(place)):
                ended = live(root, answer=answer)
                assert (ended["status"], ended["path"]) == ("success", PATHS[answer])
            assert not durable.keys() & set(asked(place)[len(before) :]), (answer, kill_at)
            allowed = list(answers_of(place).values()).count(AGAIN)
            assert len(runs_of(place)) <= 1 + allowed, (answer, kill_at)
            assert set(runs_of(place)) == {key_of(place)}
            most = max(most, len(runs_of(place)))
    assert kills >= 10
    figures.record(
        0,
        "a command that was cut off: resumed, killed at each operation around question, answer and re-run",
        f"{kills} kills: no durable answer asked for again, no run of the command without a person's word"
        f" (at most {most}, one of them per kill), one idempotency key",
        kills=kills,
    )


@pytest.mark.protects(
    "attractor_nb/decisions/ambiguity.py", "options=(FAILED, DONE, AGAIN)", instead="options=(AGAIN, DONE, FAILED)"
)
def test_who_approves_the_first_choice_of_everything_records_a_failure(cut, tmp_path):
    """Protected by the order of the choices: with "run it again" first, --auto-approve repeats the command."""
    root = copy_of(cut, tmp_path / "case")
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "attractor_nb", "resume", str(root), "--auto-approve", "--trust", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH") or str(WORKER.parents[3])},
    )
    summary = json.loads(ended.stdout)
    assert [stage["id"] for stage in summary["stages"]] == PATHS[FAILED], ended.stderr
    assert "recorded as failed by auto-approve" in summary["stages"][1]["failure_reason"]
    assert len(runs_of(tmp_path / "case")) == 1


@pytest.mark.protects(
    "attractor_nb/runtime/resume.py", "if place.on_interrupted != ASK or has_interviewer(options):", instead="if True:"
)
def test_with_nobody_to_ask_nothing_is_run_and_nothing_written(cut, tmp_path):
    """Protected by the look for a user to ask before the run continues: without it the run waits, or fails."""
    root = copy_of(cut, tmp_path / "case")
    before = events_of(root.parent)
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "attractor_nb", "resume", str(root), "--trust"],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH") or str(WORKER.parents[3])},
    )
    assert ended.returncode == 2, ended.stderr
    assert "may have taken effect already" in ended.stderr
    assert "--on-interrupted rerun" in ended.stderr
    assert events_of(root.parent) == before
    assert len(runs_of(tmp_path / "case")) == 1
