"""interviewer="pause": a run is paused at its gates, is answered later, and is resumed; no gate is passed by accident."""

import threading

import pytest

from attractor_nb import Outcome, Pipeline, Run
from attractor_nb.decisions.log_history import open_questions
from attractor_nb.errors import NoSuchGate
from attractor_nb.interviewers import PausingInterviewer, RecordingInterviewer
from attractor_nb.runtime.parked_answers import record_answer
from attractor_nb.storage.log.event_log import read_log

LIMIT_SECONDS = 60
GATE = """digraph g {
    start [shape=Mdiamond] plan [prompt="Plan"] gate [shape=hexagon%s] done [shape=Msquare]
    start -> plan -> gate
    gate -> done [label="[A] Approve"]
    gate -> plan [label="[R] Revise"]
}"""
BRANCHES = """digraph g {
    start [shape=Mdiamond] fan [shape=component] join [shape=tripleoctagon] done [shape=Msquare]
    left [shape=hexagon] right [%s] last [type=work]
    start -> fan -> left -> join
    fan -> right -> last -> join -> done
}"""
INNER = "digraph c { start [shape=Mdiamond] ask [shape=hexagon] done [shape=Msquare] start -> ask -> done }"
OUTER = """digraph p {
    start [shape=Mdiamond] boss [%s=inner%s] done [shape=Msquare]
    start -> boss -> done
}"""


def waiting(run):
    return sorted(asked.stage for asked in open_questions(read_log(run.logs_root).events).values())


def paused(run):
    assert run.result(LIMIT_SECONDS).status == "paused"
    return waiting(run)


def answer(run, stage, choice):
    record_answer(run.logs_root, stage, choice, answered_by="a test")


@pytest.mark.parametrize(
    "interviewer",
    ["pause", PausingInterviewer(), RecordingInterviewer(PausingInterviewer())],
    ids=["its name", "an object", "recorded"],
)
def test_a_run_is_paused_at_its_gate_and_goes_on_with_the_answer(interviewer, tmp_path):
    run = Pipeline(GATE % "").run(interviewer=interviewer, logs_root=tmp_path / "run")
    assert paused(run) == ["gate"]
    assert (run.result().next_node, run.result().is_success) == ("gate", False)

    answer(run, "gate", "R")
    again = Run.load(tmp_path / "run").resume(interviewer="pause")
    assert paused(again) == ["gate"]
    assert again.result()["plan"].visits == 2

    answer(again, "gate", "A")
    last = Run.load(tmp_path / "run").resume(interviewer="pause").result(LIMIT_SECONDS)
    assert (last.status, last["plan"].visits) == ("success", 2)


@pytest.mark.parametrize("attributes", ["", ', human.default_choice="Approve"', ', human.timeout="1h"'])
def test_a_resume_without_an_answer_is_paused_again(attributes, tmp_path):
    run = Pipeline(GATE % attributes).run(interviewer="pause", logs_root=tmp_path / "run")
    assert paused(run) == ["gate"]
    again = Run.load(tmp_path / "run").resume(interviewer="pause")
    assert paused(again) == ["gate"]
    assert "done" not in again.result().completed_nodes


def test_work_beside_a_gate_is_brought_to_its_end_before_the_run_is_paused(tmp_path):
    is_asked, calls = threading.Event(), []

    def work(node, context, graph, logs_root):
        calls.append(node.id)
        return Outcome.success() if is_asked.wait(LIMIT_SECONDS) else Outcome.fail("the gate was not asked")

    pipeline = Pipeline(BRANCHES % "type=work", handlers={"work": work})
    seen = [lambda event: is_asked.set() if event.type == "InterviewStarted" else None]
    run = pipeline.run(interviewer="pause", logs_root=tmp_path / "run", observers=seen)
    assert paused(run) == ["left"]
    assert calls == ["right", "last"]
    answer(run, "left", "join")
    assert pipeline.resume(tmp_path / "run", interviewer="pause").result(LIMIT_SECONDS).status == "success"
    assert calls == ["right", "last"]


def test_gates_of_branches_are_answered_one_by_one(tmp_path):
    pipeline = Pipeline(BRANCHES % "shape=hexagon", handlers={"work": lambda *_: Outcome.success()})
    run = pipeline.run(interviewer="pause", logs_root=tmp_path / "run")
    assert paused(run) == ["left", "right"]
    answer(run, "right", "last")
    run = pipeline.resume(tmp_path / "run", interviewer="pause")
    assert paused(run) == ["left"]
    answer(run, "left", "join")
    assert pipeline.resume(tmp_path / "run", interviewer="pause").result(LIMIT_SECONDS).status == "success"


@pytest.mark.parametrize(
    "child", ["type=pipeline, pipeline.name", "shape=house, stack.child_pipeline"], ids=["sub-pipeline", "manager"]
)
def test_a_gate_of_a_child_run_pauses_the_run(child, tmp_path):
    pipeline = Pipeline(OUTER % (child, ""), pipelines={"inner": INNER})
    run = pipeline.run(interviewer="pause", logs_root=tmp_path / "run")
    assert paused(run) == ["boss/ask"]
    answer(run, "boss/ask", "done")
    assert pipeline.resume(tmp_path / "run", interviewer="pause").result(LIMIT_SECONDS).status == "success"


def test_gates_of_the_items_of_a_list_pause_the_run_together(tmp_path):
    of_each = ', for_each="item in names", max_parallel=2'
    pipeline = Pipeline(OUTER % ("type=pipeline, pipeline.name", of_each), pipelines={"inner": INNER})
    run = pipeline.run(interviewer="pause", logs_root=tmp_path / "run", params={"names": ["a", "b", "c"]})
    first = paused(run)
    assert len(first) == 2
    for stage in first:
        answer(run, stage, "done")
    run = pipeline.resume(tmp_path / "run", interviewer="pause")
    (last,) = paused(run)
    assert last not in first
    answer(run, last, "done")
    assert pipeline.resume(tmp_path / "run", interviewer="pause").result(LIMIT_SECONDS).status == "success"


def test_the_rows_of_a_map_are_paused_and_answered_in_their_directories(tmp_path):
    pipeline = Pipeline(GATE % "")
    result = pipeline.map([{}, {}], interviewer="pause", map_dir=tmp_path / "map", wait=True)
    assert (result.status, result.counts["interrupted"], result.reason) == (
        "interrupted",
        2,
        "2 of 2 rows can be resumed",
    )
    record_answer(result.run(0).logs_root, "gate", "A", answered_by="a test")
    result = pipeline.resume_map(tmp_path / "map", interviewer="pause").result(LIMIT_SECONDS)
    assert (result[0].status, result[1].status, result.status) == ("success", "interrupted", "interrupted")


def test_a_question_that_was_paused_is_answered_once_the_time_of_its_gate_is_over_by_its_rule(tmp_path):
    text = GATE % ', human.timeout="1ms", human.default_choice="Approve"'
    result = Pipeline(text).run(interviewer="pause", logs_root=tmp_path / "run").result(LIMIT_SECONDS)
    assert result.status == "success"
    with pytest.raises(NoSuchGate):
        record_answer(tmp_path / "run", "gate", "R", answered_by="a test")
