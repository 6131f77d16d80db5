"""Answers at gates survive a crash, keep their type and are refused with an error of the package."""

import asyncio
import json
import threading

import pytest

from attractor_nb.errors import AnswerRefused
from attractor_nb.interviewers import QueueInterviewer
from attractor_nb.interviewers.sequential import SequentialInterviewer
from attractor_nb.pipeline.pipeline import Pipeline

LIMIT_SECONDS = 20
GATE = """digraph g {
    start [shape=Mdiamond] gate [shape=hexagon] yes no done [shape=Msquare]
    start -> gate
    gate -> yes [label="[Y] Yes"]
    gate -> no [label="[N] No"]
    yes -> done
    no -> done
}"""
WORDS = """digraph g {
    start [shape=Mdiamond] gate [shape=hexagon, human.type="freeform"] done [shape=Msquare]
    start -> gate -> done
}"""


def cut_log(logs_root, event_type, count=1):
    """Leave a run as a crash just after the ``count``-th event of a type would."""
    path = logs_root / "events.jsonl"
    kept = []
    for line in path.read_bytes().splitlines(keepends=True):
        kept.append(line)
        plain = json.loads(line)
        if plain["type"] == event_type and "gate" in {plain.get("name"), plain.get("stage")}:
            count -= 1
            if not count:
                break
    assert not count
    path.write_bytes(b"".join(kept))
    for stale in (*logs_root.glob("checkpoint*"), *logs_root.glob("manifest*")):
        stale.unlink()


def test_ruling_23_a_durable_answer_survives_a_crash_and_a_crash_of_the_resume(tmp_path):
    pipeline = Pipeline(GATE)
    root = tmp_path / "run"
    pipeline.run(wait=True, logs_root=root, interviewer=QueueInterviewer(["N"]))
    cut_log(root, "InterviewCompleted")
    pipeline.resume(root, interviewer="refuse").result(LIMIT_SECONDS)
    cut_log(root, "StageStarted", count=2)
    result = pipeline.resume(root, interviewer="refuse").result(LIMIT_SECONDS)
    assert result.status == "success"
    assert "no" in result.completed_nodes


@pytest.mark.parametrize("word", ["timeout", "skipped"])
def test_a_free_text_that_reads_like_a_timeout_is_the_same_text_after_a_resume(word, tmp_path):
    pipeline = Pipeline(WORDS)
    root = tmp_path / "run"
    run = pipeline.run(logs_root=root)
    run.wait_for_gate("gate", LIMIT_SECONDS)
    run.answer("gate", text=word)
    live = run.result(LIMIT_SECONDS)
    cut_log(root, "InterviewCompleted")
    resumed = pipeline.resume(root, interviewer="refuse").result(LIMIT_SECONDS)
    assert live.context["human.gate.text"] == resumed.context["human.gate.text"] == word


ARGUMENTS = {
    "gate-number": ((5,), {}),
    "gate-none": ((None,), {}),
    "gate-list": (([],), {}),
    "choice-number": (("gate", 5), {}),
    "choice-none": (("gate", None), {}),
    "choice-true": (("gate", True), {}),
    "choice-list": (("gate", ["Y"]), {}),
    "text-number": (("gate", "Y"), {"text": 5}),
    "who": (("gate", "Y"), {"answered_by": object()}),
}


@pytest.mark.parametrize(("arguments", "named"), ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_an_answer_of_another_type_is_refused_and_the_gate_still_waits(arguments, named, tmp_path):
    run = Pipeline(GATE).run(logs_root=tmp_path / "run")
    run.wait_for_gate("gate", LIMIT_SECONDS)
    with pytest.raises(AnswerRefused, match="must be text, not a"):
        run.answer(*arguments, **named)
    run.answer("gate", "Y")
    assert run.result(LIMIT_SECONDS).status == "success"


def test_an_interviewer_that_does_not_stop_does_not_hold_up_an_answered_gate(tmp_path):
    released = threading.Event()

    class Stubborn(SequentialInterviewer):
        async def ask(self, question):
            while not released.is_set():
                try:
                    await asyncio.sleep(0.05)
                except asyncio.CancelledError:
                    continue

    run = Pipeline(GATE).run(logs_root=tmp_path / "run", interviewer=Stubborn())
    run.wait_for_gate("gate", LIMIT_SECONDS)
    run.answer("gate", "Y")
    try:
        assert run.result(LIMIT_SECONDS).status == "success"
    finally:
        released.set()
