"""``attractor-nb doctor``: what it says, its exit codes, and what it saves."""

import json
import re

import pytest

from attractor_nb import Pipeline, diagnose_run

SOURCE = """\
digraph Small {
    start [shape=Mdiamond]
    plan  [prompt="Plan"]
    tool  [shape=parallelogram, tool_command="echo done >> ran"]
    prove [prompt="Prove"]
    done  [shape=Msquare]
    start -> plan -> tool -> prove -> done
}
"""


@pytest.fixture
def run(tmp_path):
    """A run that was paused after its tool, with a checkpoint after each stage."""
    Pipeline(SOURCE).run(wait=True, logs_root=tmp_path / "run", stop_after=3, checkpoint_every_stage=True)
    return tmp_path / "run"


def damage(run, number):
    """Flip a bit in a line of the log."""
    path = run / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[number - 1] = bytes([lines[number - 1][0] ^ 1]) + lines[number - 1][1:]
    path.write_bytes(b"".join(lines))


def test_a_healthy_run_is_described_with_the_way_on(command, run):
    ended = command("doctor", "run")
    assert ended.code == 0
    assert ended.out.startswith("✓ healthy: run\n")
    assert "3 recorded, the last is tool" in ended.out
    assert re.search(r"next +prove", ended.out)
    assert "resume: attractor-nb resume run" in ended.out


def test_a_finished_run_needs_nothing(command, run):
    assert command("resume", "run", "--trust").code == 0
    ended = command("doctor", "run")
    assert (ended.code, "resume" in ended.out, "completed" in ended.out) == (0, False, True)


def test_a_torn_checkpoint_is_made_good_by_the_older_one(command, run):
    (run / "checkpoint.json").write_bytes(b"{")
    ended = command("doctor", "run")
    assert ended.code == 1
    assert "older generation used" in ended.out
    assert "resume: attractor-nb resume run" in ended.out


def test_a_damaged_log_is_saved_into_a_new_directory_that_goes_on(command, run):
    damage(run, 3)
    ended = command("doctor", "run")
    assert ended.code == 1
    assert "the record in line 3 (byte " in ended.out
    assert "save the intact parts: attractor-nb doctor run --salvage run-saved" in ended.out
    ended = command("doctor", "run", "--salvage", "run-saved")
    assert "saved to run-saved" in ended.out
    assert command("doctor", "run-saved").code == 0
    assert command("resume", "run-saved", "--trust").code == 0
    assert (run.parent / "ran").read_text() == "done\n"


def test_a_command_that_may_have_run_is_not_repeated_unasked(command, run):
    """The tool's record is lost, and the checkpoint with it: it is unknown whether it ran."""
    damage(run, 6)
    for path in run.glob("checkpoint*.json"):
        path.unlink()
    command("doctor", "run", "--salvage", "saved")
    assert diagnose_run("saved").cut_off == "tool"
    command("resume", "saved", "--trust")
    assert (run.parent / "ran").read_text() == "done\n"


def test_a_log_that_is_gone_leaves_the_checkpoint(command, run):
    (run / "events.jsonl").unlink()
    ended = command("doctor", "run", "--salvage", "saved")
    assert (ended.code, "missing" in ended.out) == (1, True)
    assert command("resume", "saved", "--trust").code == 0


def test_nothing_whole_is_code_2(command, run):
    for path in [run / "events.jsonl", *run.glob("checkpoint*.json")]:
        path.write_bytes(b"nothing")
    ended = command("doctor", "run")
    assert ended.code == 2
    assert "nothing can be saved" in ended.out


@pytest.mark.parametrize("place", ["nowhere", "."])
def test_a_place_without_a_run_is_refused_in_words(command, place, tmp_path):
    ended = command("doctor", place)
    assert ended.code == 2
    assert "run" in ended.err


def test_json_says_the_same(command, run):
    damage(run, 3)
    plain = json.loads(command("doctor", "run", "--json").out)
    assert (plain["verdict"], plain["is_resumable"], plain["can_be_salvaged"]) == ("damaged", False, True)
    assert plain["files"][0]["name"] == "events.jsonl"
    assert plain["files"][0]["state"] == "damaged"


def test_an_open_gate_is_said(run, tmp_path):
    gated = SOURCE.replace('[prompt="Prove"]', '[shape=hexagon, label="Good?"]')
    gated = re.sub(r"    tool .*\n", "", gated).replace("tool -> ", "")
    live = Pipeline(gated).run(logs_root=tmp_path / "gated", interviewer="deferred")
    live.wait_for_gate("prove", 60)
    found = diagnose_run(tmp_path / "gated")
    assert (found.open_gate, found.next_node, found.verdict) == ("prove", "prove", "healthy")
    assert found.owner["pid"]
    assert not found.is_resumable
    live.answer("prove", "done")
    assert live.result(60).status == "success"


def commands_of(text):
    """The commands that a text names after "go on" or "go back"."""
    return [line.partition(": ")[2].split() for line in text.splitlines() if "attractor-nb resume" in line]


FAILING = SOURCE.replace("echo done >> ran", "exit 3")


@pytest.mark.parametrize(
    ("source", "damaged", "is_ended"),
    [(SOURCE, "", True), (FAILING, "", True), (SOURCE, "log", False), (SOURCE, "source", True)],
    ids=["completed", "failed_for_good", "completed_and_torn", "completed_without_its_manifest"],
)
def test_what_is_named_after_a_salvage_is_what_the_saved_run_takes(command, tmp_path, source, damaged, is_ended):
    Pipeline(source).run(wait=True, logs_root=tmp_path / "run")
    if damaged == "log":
        lines = (tmp_path / "run/events.jsonl").read_bytes().splitlines()
        damage(tmp_path / "run", len(lines) - 3)
        (tmp_path / "run/checkpoint.json").unlink()
        (tmp_path / "run/checkpoint.previous.json").unlink(missing_ok=True)
    elif damaged:
        (tmp_path / "run/manifest.json").write_bytes(b"{")
        (tmp_path / "run/manifest.previous.json").write_bytes(b"{")
    before = command("doctor", "run")
    ended = command("doctor", "run", "--salvage", "new")
    (named,) = commands_of(ended.out)
    assert ("--from" in named) == is_ended
    arguments = [part.replace("NODE", "prove" if source is SOURCE else "tool") for part in named[1:]]
    resumed = command(*arguments, "--trust", "--on-interrupted", "rerun")
    assert resumed.code == (0 if source is SOURCE else 1), resumed.err
    assert "has ended" not in resumed.err
    assert "failed permanently" not in resumed.err
    assert all(("--from" in words) == is_ended for words in commands_of(before.out))


def test_the_list_of_runs_and_the_doctor_judge_a_damaged_run_alike(command, run, tmp_path):
    assert "paused" in command("runs", "--runs-dir", ".").out
    damage(run, 4)
    assert "damaged" in command("doctor", "run").out
    listed = command("runs", "--runs-dir", ".")
    assert "damaged" in listed.out
    assert "paused" not in listed.out


@pytest.mark.parametrize("is_finished", [True, False], ids=["completed", "paused"])
def test_a_run_whose_log_lost_its_end_is_damaged_for_all_who_look(command, run, is_finished):
    """The manifest knows more than the log, and no checkpoint is left that says it: a resume would run a
    recorded stage again."""
    if is_finished:
        assert command("resume", "run", "--trust").code == 0
    log = run / "events.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:4]))
    for path in run.glob("checkpoint*.json"):
        path.unlink()
    ran = (run / "tool/stdout.txt").read_bytes()
    found = diagnose_run(run)
    assert (found.status, found.verdict, found.is_resumable, found.has_ended) == (
        "damaged", "damaged", False, False,
    )  # fmt: skip
    assert re.search(r"ends with record 4, but manifest\.json knows \d+", command("doctor", "run").out)
    listed = command("runs", "--runs-dir", ".").out
    assert "damaged" in listed
    assert "success" not in listed
    refused = command("resume", "run", "--trust")
    assert refused.code != 0
    assert "manifest.json knows" in refused.err
    assert "doctor" in refused.err
    assert (run / "tool/stdout.txt").read_bytes() == ran
    assert command("doctor", "run", "--salvage", "new").code == 1
    assert "lost: records 5 to" in (run.parent / "new/events.jsonl").read_text()
    assert diagnose_run(run.parent / "new").verdict == "damaged"  # its checkpoints are still missing
    assert diagnose_run(run.parent / "new").is_resumable
    assert command("resume", "new", "--trust", "--on-interrupted", "rerun").code == 0


def test_a_file_is_looked_at_before_it_runs(command, tmp_path):
    (tmp_path / "small.dot").write_text(SOURCE)
    ended = command("doctor", "small.dot")
    assert ended.code == 0
    assert "Small is ready" in ended.out
    missing = command("doctor", "small.dot", "--backend", "llm", "--json")
    findings = json.loads(missing.out)["findings"]
    assert missing.code == 1
    assert {found["subject"] for found in findings if found["state"] == "error"} >= {"model of plan"}


def test_without_a_place_the_machine_is_looked_at(command):
    ended = command("doctor")
    assert ended.code == 0
    assert "this machine is ready" in ended.out


@pytest.mark.parametrize("arguments", [("run", "--online"), ("--salvage", "new"), ("run", "--backend", "llm")])
def test_options_of_the_other_kind_are_refused(command, run, arguments):
    assert command("doctor", *arguments).code == 2
