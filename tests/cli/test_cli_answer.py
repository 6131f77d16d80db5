"""`answer` in a run directory: recorded, durable, first come; nothing is run."""

import json
import shutil
import threading
import time

import pytest
from pydantic import BaseModel

from attractor_nb import Pipeline, Run
from attractor_nb.account import signed_here
from attractor_nb.errors import AlreadyAnswered, NoSuchGate, RunLocked
from attractor_nb.model.events import InterviewStarted
from attractor_nb.runtime.parked_answers import find_question, record_answer


def types(logs_root):
    return [json.loads(line)["type"] for line in (logs_root / "events.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize("choice", ["A", "a", "approve", "done"], ids=["key", "small key", "label", "target"])
def test_the_answer_is_recorded_and_the_resume_goes_on_with_it(command, waiting, choice):
    before = types(waiting)
    ended = command("answer", waiting, "gate", choice)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines()[0] == "✓ gate: Approve"
    assert "resume the run with `attractor-nb resume out`" in ended.out
    assert types(waiting) == [*before, "InterviewCompleted"]

    resumed = command("resume", "out", "--gates", "refuse", "--json")
    summary = json.loads(resumed.out)
    assert (resumed.code, summary["status"]) == (0, "success")
    assert [stage["visits"] for stage in summary["stages"]] == [1, 1, 1, 1]


def test_another_way_is_taken_after_another_answer(command, waiting):
    command("answer", "out", "gate", "R")
    run = Run.load(waiting).resume(interviewer="auto")
    assert run.result(60).status == "success"
    assert run.result(60)["plan"].visits == 2


def test_the_record_says_who_answered_and_carries_the_run_s_id(command, waiting):
    command("answer", "out", "gate", "A")
    last = json.loads((waiting / "events.jsonl").read_bytes().splitlines()[-1])
    asked = next(
        json.loads(line) for line in (waiting / "events.jsonl").read_bytes().splitlines() if b"InterviewStarted" in line
    )
    assert (last["answered_by"], last["stage"], last["label"]) == (signed_here("command line"), "gate", "[A] Approve")
    assert (last["run_id"], last["question_id"]) == (asked["run_id"], asked["question_id"])


def test_the_first_answer_counts(command, waiting):
    assert command("answer", "out", "gate", "A").code == 0
    second = command("answer", "out", "gate", "R")
    assert second.code == 2
    assert f"gate `gate` has been answered already: [A] Approve, by {signed_here('command line')}" in second.err
    assert types(waiting).count("InterviewCompleted") == 1


def test_a_wrong_answer_is_refused_with_the_choices(command, waiting):
    before = (waiting / "events.jsonl").read_bytes()
    ended = command("answer", "out", "gate", "perhaps")
    assert ended.code == 2
    assert "Approve" in ended.err
    assert "Again" in ended.err
    assert (waiting / "events.jsonl").read_bytes() == before


def test_without_a_choice_nothing_is_chosen(command, waiting):
    assert command("answer", "out", "gate").code == 2
    assert "InterviewCompleted" not in types(waiting)


def test_a_gate_that_does_not_wait_is_named_with_those_that_do(command, waiting):
    ended = command("answer", "out", "review", "A", "--json")
    assert ended.code == 2
    error = json.loads(ended.out)["error"]
    assert error["type"] == "NoSuchGate"
    assert error["hint"] == "waiting: gate"


def test_a_gate_that_asks_in_several_branches_is_named_by_the_id_of_its_question():
    questions = [
        InterviewStarted(question="Good?", stage="gate", question_id=question_id, kind="choice", sequence=number)
        for number, question_id in enumerate(["gate@a", "gate@b"], 1)
    ]
    with pytest.raises(NoSuchGate, match="gate `gate` has 2 open questions") as caught:
        find_question(questions, "gate")
    assert caught.value.hint == "name one by its id: gate@a, gate@b"
    assert find_question(questions, "gate@b") is questions[1]


def test_json_says_how_the_run_goes_on(command, waiting):
    said = json.loads(command("answer", "out", "gate", "A", "--json").out)
    assert (said["gate"], said["label"], said["resume"]) == ("gate", "[A] Approve", "attractor-nb resume out")


def test_a_run_that_somebody_works_at_is_handed_the_answer(command, sources):
    run = Pipeline(sources / "review.dot").run(wait=False, logs_root=sources / "out")
    run.wait_for_gate("gate", 60)
    refused = command("answer", "out", "gate", "perhaps")
    assert (refused.code, "Approve" in refused.err) == (2, True)
    ended = command("answer", "out", "gate", "A")
    assert (ended.code, ended.out.splitlines()[0]) == (0, "✓ gate: Approve")
    assert ended.out.splitlines()[1].endswith("the process of the run receives it")
    assert run.result(60).status == "success"
    assert command("answer", "out", "gate", "A").code == 2


def test_a_form_is_filled_in_where_its_run_is_under_way(command, sources):
    class Verdict(BaseModel):
        score: int

    text = (sources / "review.dot").read_text().replace("shape=hexagon", 'shape=hexagon, human.form="Verdict"')
    run = Pipeline(text, schemas={"Verdict": Verdict}).run(wait=False, logs_root=sources / "out")
    run.wait_for_gate("gate", 60)
    refused = command("answer", "out", "gate", "A", "--field", "score=much")
    assert (refused.code, "score" in refused.err) == (2, True)
    assert command("answer", "out", "gate", "A", "--field", "score:=7").code == 0
    assert run.result(60).context["human.gate.form.score"] == 7


def test_a_run_that_takes_no_answer_from_here_is_named_with_its_process(command, sources, monkeypatch):
    run = Pipeline(sources / "review.dot").run(wait=False, logs_root=sources / "out")
    run.wait_for_gate("gate", 60)
    with monkeypatch.context() as patch:
        patch.setattr("socket.gethostname", lambda: "another-machine")
        ended = command("answer", "out", "gate", "A")
    assert ended.code == 2
    assert "answer it there" in ended.err
    assert run.gates, "it still waits"
    run.answer("gate", "A")
    run.result(60)


def test_a_run_that_has_ended_has_no_question(command, sources):
    command("run", "review.dot", "--auto-approve", "--logs-root", "out")
    ended = command("answer", "out", "gate", "A")
    assert ended.code == 2
    assert "no gate `gate` waits in this run" in ended.err


def test_free_text_is_an_answer(command, sources):
    text = (
        'digraph { start [shape=Mdiamond]; ask [shape=hexagon, label="What else?", human.type=freeform]\n'
        "done [shape=Msquare]; start -> ask -> done }"
    )
    run = Pipeline(text).run(wait=False, logs_root=sources / "out")
    run.wait_for_gate("ask", 60)
    run.cancel()
    run.result(60)
    ended = command("answer", "out", "ask", "--text", "a picture")
    assert (ended.code, ended.out.splitlines()[0]) == (0, "✓ ask: a picture")
    result = Run.load(sources / "out").resume(interviewer="refuse").result(60)
    assert (result.status, result.context["human.gate.text"]) == ("success", "a picture")


def test_a_gate_whose_time_is_over_takes_what_it_does_then(command, sources, monkeypatch):
    text = (sources / "review.dot").read_text().replace("shape=hexagon", 'shape=hexagon, human.timeout="1h"')
    run = Pipeline(text).run(wait=False, logs_root=sources / "out")
    run.wait_for_gate("gate", 60)
    run.cancel()
    run.result(60)
    late = time.time() + 3601
    monkeypatch.setattr("attractor_nb.runtime.parked_answers.SystemClock.time", staticmethod(lambda: late))
    ended = command("answer", "out", "gate", "A")
    assert ended.code == 2
    assert "the time of gate `gate` has run out" in ended.err
    assert "InterviewCompleted" not in types(sources / "out")


def test_a_gate_with_a_form_is_asked_by_the_run(command, sources):
    class Verdict(BaseModel):
        score: int

    text = (sources / "review.dot").read_text().replace("shape=hexagon", 'shape=hexagon, human.form="Verdict"')
    run = Pipeline(text, schemas={"Verdict": Verdict}).run(wait=False, logs_root=sources / "out")
    run.wait_for_gate("gate", 60)
    run.cancel()
    run.result(60)
    ended = command("answer", "out", "gate", "A", "--field", "score:=7")
    assert ended.code == 2
    assert "gate `gate` has a form, which" in ended.err


def test_fields_are_refused_where_there_is_no_form(command, waiting):
    ended = command("answer", "out", "gate", "A", "--field", "score:=7")
    assert ended.code == 2
    assert "the question has no form" in ended.err


def test_behind_a_restart_the_question_is_answered_where_the_run_stands(command, sources):
    text = (sources / "review.dot").read_text().replace('label="[R] Again"', 'label="[R] Again", loop_restart=true')
    run = Pipeline(text).run(wait=False, logs_root=sources / "out")
    run.wait_for_gate("gate", 60)
    run.answer("gate", "R")
    waiting = run.wait_for_gate("gate", 60)
    run.cancel()
    run.result(60)
    ended = command("answer", "out", waiting.id, "A")
    assert ended.code == 0
    assert types(sources / "out/restart-1")[-1] == "InterviewCompleted"
    assert command("resume", "out", "--gates", "refuse").code == 0


def test_of_many_who_answer_at_once_one_is_first(waiting):
    outcomes, start = [], threading.Barrier(6)

    def answer(choice):
        start.wait()
        while True:
            try:
                record_answer(waiting, "gate", choice, answered_by="a test")
            except RunLocked:
                continue
            except AlreadyAnswered:
                outcomes.append("late")
                return
            outcomes.append("taken")
            return

    threads = [threading.Thread(target=answer, args=("AR"[number % 2],)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["late"] * 5 + ["taken"]
    assert types(waiting).count("InterviewCompleted") == 1


def test_a_directory_that_is_no_run_is_not_answered(command, waiting):
    (waiting.parent / "empty").mkdir()
    assert "holds no run" in command("answer", "empty", "gate", "A").err
    assert "there is no run directory" in command("answer", "nowhere", "gate", "A").err


def test_a_run_that_was_killed_is_answered_like_one_that_was_stopped(command, waiting):
    copy = waiting.parent / "killed"
    shutil.copytree(waiting, copy)
    lines = (copy / "events.jsonl").read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if b"PipelineInterrupted" not in line]
    (copy / "events.jsonl").write_bytes(b"".join(kept))
    for name in ("manifest.json", "manifest.previous.json", "checkpoint.json", "checkpoint.previous.json"):
        (copy / name).unlink(missing_ok=True)
    assert command("answer", "killed", "gate", "A").code == 0
    assert command("resume", "killed", "--gates", "refuse").code == 0
