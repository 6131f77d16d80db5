"""A stage that was cut off and may have taken effect (RELIABILITY, "The promise")."""

import asyncio
import json

import pytest

from attractor_nb import Outcome, Run, current_stage
from attractor_nb.decisions.ambiguity import AGAIN, DONE, FAILED
from attractor_nb.decisions.run_state import InFlight, RunState
from attractor_nb.errors import RunError, StorageError
from attractor_nb.interviewers import AutoApproveInterviewer, RecordingInterviewer, RefusingInterviewer
from attractor_nb.model.events import (
    InterviewCompleted,
    InterviewStarted,
    PipelineResumed,
    StageEnd,
    StageFailed,
    StageRetrying,
    StageStarted,
)
from attractor_nb.model.question import Answer, AnswerValue
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.testing import FakeProcesses, ManualClock

TOOL = 't [shape=parallelogram, tool_command="deploy --now"{more}] start -> t -> done t -> m [condition="outcome=fail"] m -> done'


def in_flight(node_id="t", *, is_started=True):
    flight = InFlight(node_id, 1, 1, 0, is_started=is_started)
    return RunState(node_id, completed=["start"], in_flight=flight, on_interrupted="ask")


@pytest.mark.parametrize(
    ("option", "tries", "path"),
    [(FAILED, ["m", "done"], "m done"), (DONE, ["done"], "t done"), (AGAIN, ["t", "done"], "t done")],
    ids=["failed", "done", "again"],
)
def test_a_person_decides_about_a_command_that_was_cut_off(replay, option, tries, path):
    answer = Answer(option.key, selected_option=option, answered_by="widget")
    found = replay(f"m {TOOL.format(more='')}", state=in_flight(), answer=answer)
    assert [node for node, _, _ in found.tries] == tries
    assert " ".join(found.path[-2:]) == path
    (question,) = found.questions
    assert question.text == "Stage t was cut off and may have taken effect already."
    assert [option.label for option in question.options] == [
        "[F] Record it as failed",
        "[D] It has taken effect: continue as success",
        "[R] Run it again",
    ]
    assert "deploy --now" in question.metadata["detail"]
    assert [effect.outcome.status.value for effect in found.recorded] == (
        {FAILED: ["fail"], DONE: ["success"], AGAIN: []}[option]
    )


def test_a_passed_over_question_is_no_success_and_no_second_run(replay):
    found = replay(f"m {TOOL.format(more='')}", state=in_flight(), answer=Answer(AnswerValue.SKIPPED))
    assert [node for node, _, _ in found.tries] == ["m", "done"]
    assert "the question was skipped" in found.of(StageFailed)[0].error


def test_an_attempt_that_ended_before_the_stop_is_not_asked_about(replay):
    """Cut off in the wait between two attempts: its attempt is recorded, so nothing is ambiguous."""
    found = replay(f"m {TOOL.format(more='')}", state=in_flight(is_started=False))
    assert (found.questions, found.tries[0]) == ([], ("t", 1, 2))


@pytest.fixture
def cut(make, tmp_path):
    """A pipeline and a run of it whose log ends with the intent of a stage, as a power loss leaves it."""

    def build(more="", body=TOOL, node_id="t", **options):
        pipeline = make(f"m {body.format(more=more)}", **options)
        root = tmp_path / "run"
        pipeline.run(wait=True, logs_root=root, stop_after=1)
        store = DirectoryRunStore.open(root, durability="fast", clock=ManualClock())
        started = StageStarted(
            sequence=store.read_events()[-1].sequence + 1, run_id=Run.load(root).id, name=node_id, index=2
        )
        store.append(started, is_synced=True)
        store.close()
        return pipeline, root

    return build


def events(root, kind):
    return [event for event in Run.load(root).events() if isinstance(event, kind)]


def test_the_question_is_answered_by_run_answer_as_any_other(cut):
    pipeline, root = cut()
    processes = FakeProcesses()
    run = pipeline.resume(root, interviewer="deferred", processes=processes)
    gate = run.wait_for_gate("t", 60)
    assert (gate.id, run.status) == ("t:1.1", "waiting")
    run.answer("t", "Run it again", answered_by="ann")
    result = run.result(60)
    assert (result.status, len(processes.commands)) == ("success", 1)
    assert processes.commands[0].env["ATTRACTOR_IDEMPOTENCY_KEY"] == f"{result.run_id}:t:1"
    status = json.loads((root / "t" / "status.json").read_text())
    assert status["notes"].endswith("; it was cut off, and run again by ann")
    assert status["attempt"] == 2
    (resumed,) = events(root, PipelineResumed)
    assert (resumed.interrupted_node, resumed.on_interrupted) == ("t", "ask")
    assert resumed.description == "resumed at t, which was cut off and is asked about"


@pytest.mark.parametrize(("word", "status"), [("F", "fail"), ("D", "success")])
def test_what_was_decided_is_in_the_stages_own_status(cut, word, status):
    pipeline, root = cut()
    processes = FakeProcesses()
    pipeline.resume(root, interviewer=lambda question: word, processes=processes).result(60)
    written = json.loads((root / "t" / "status.json").read_text())
    assert (written["outcome"], written["attempt"], processes.commands) == (status, 1, [])
    assert "by callback" in written["notes"] + written.get("failure_reason", "")
    (answered,) = events(root, InterviewCompleted)
    assert (answered.stage, answered.answer) == ("t", word)


def test_who_was_asked_and_stopped_is_asked_again_and_who_answered_is_not(cut):
    pipeline, root = cut()
    run = pipeline.resume(root, interviewer="deferred")
    run.wait_for_gate("t", 60)
    run.cancel()
    assert run.result(60).status == "interrupted"
    again = pipeline.resume(root, interviewer="deferred")
    assert again.wait_for_gate("t", 60).id == "t:1.1"
    again.answer("t", "D")
    assert again.result(60).status == "success"
    assert len(events(root, InterviewStarted)) == 2


@pytest.mark.parametrize(
    "options",
    [{}, {"interviewer": "refuse"}, {"interviewer": RecordingInterviewer(RefusingInterviewer())}],
    ids=["nobody_named", "refusing", "wrapped"],
)
def test_with_nobody_to_ask_the_run_is_not_touched(cut, options):
    pipeline, root = cut()
    before = list(Run.load(root).events())
    with pytest.raises(RunError, match="may have taken effect already") as caught:
        pipeline.resume(root, **options)
    assert 'on_interrupted="rerun"' in caught.value.hint
    assert list(Run.load(root).events()) == before


def test_an_interviewer_that_breaks_down_leaves_the_question_open(cut):
    pipeline, root = cut()

    def broken(question):
        raise ConnectionError("chat is down")

    result = pipeline.resume(root, interviewer=broken).result(60)
    assert result.status == "fail"
    assert "no one could be asked about it: ConnectionError: chat is down" in result.reason
    assert pipeline.resume(root, interviewer=lambda question: "D").result(60).status == "success"


def test_auto_approval_never_repeats_a_command(cut):
    pipeline, root = cut()
    processes = FakeProcesses()
    result = pipeline.resume(root, interviewer=AutoApproveInterviewer(), processes=processes).result(60)
    assert processes.commands == []
    assert "recorded as failed by auto-approve" in result["t"].outcome.failure_reason


def test_a_gate_that_was_cut_off_puts_its_own_question_only(cut):
    body = 'g [shape=hexagon] start -> g g -> done [label="[Y] Yes"{more}] m -> done g -> m [label="[N] No"]'
    pipeline, root = cut(body=body, node_id="g")
    asked = []

    def person(question):
        asked.append(question.id)
        return "Y"

    assert pipeline.resume(root, interviewer=person, on_interrupted="ask").result(60).status == "success"
    assert asked == ["g:1"]


def test_a_model_stage_is_run_again_under_its_key_and_the_log_says_so(cut):
    keys = []

    def work(node, prompt, context):
        keys.append(current_stage().idempotency_key)
        return Outcome.success() if len(keys) > 1 else Outcome.retry("busy")

    pipeline, root = cut(body="a [max_retries=2{more}] start -> a -> m -> done", node_id="a", backend=work)
    result = pipeline.resume(root, backend=work, clock=ManualClock()).result(60)
    assert result.status == "success"
    assert keys[:2] == [f"{result.run_id}:a:1"] * 2
    (resumed,) = events(root, PipelineResumed)
    assert resumed.description == "resumed at a, which was cut off and is run again"
    assert [event.attempt for event in events(root, StageStarted) if event.name == "a"] == [1, 2, 3]


def test_a_stop_in_the_wait_between_two_attempts_leaves_nothing_ambiguous(make, tmp_path):
    """The wait never ends by itself; the run is stopped in it, and a command of the stage is not asked about."""
    processes = FakeProcesses([ConnectionError("busy")])
    pipeline = make('t [shape=parallelogram, max_retries=3, tool_command="x"] start -> t -> done')
    clock = _StandingClock()
    run = pipeline.run(logs_root=tmp_path / "run", processes=processes, clock=clock)
    for event in run.events():
        if isinstance(event, StageRetrying):
            run.cancel()
    assert run.result(60).status == "interrupted"
    resumed = pipeline.resume(tmp_path / "run", processes=FakeProcesses())
    assert resumed.result(60).status == "success"
    assert [event.attempt for event in events(tmp_path / "run", StageEnd) if event.name == "t"] == [1, 2]


class _StandingClock(ManualClock):
    async def sleep(self, seconds):
        await asyncio.get_running_loop().create_future()


def test_a_question_about_a_cut_off_stage_waits_no_longer_than_the_run_may_take(cut):
    pipeline, root = cut()
    processes = FakeProcesses()
    given = {"clock": ManualClock(), "max_duration": "5s", "processes": processes}
    result = pipeline.resume(root, interviewer="deferred", **given).result(60)
    assert (result.status, processes.commands) == ("fail", [])
    assert "max_duration" in result.reason
    assert events(root, StageEnd)[-1].name == "start", "nothing was decided"
    result = pipeline.resume(root, interviewer=lambda question: "D", max_duration="1h").result(60)
    assert result.status == "success", result.reason


def test_what_the_runs_own_disk_refuses_while_a_person_is_asked_stops_the_run_and_decides_nothing(cut):
    pipeline, root = cut()

    def refuse(question):
        raise StorageError("no space left", path=str(root / "events.jsonl"))

    with pytest.raises(StorageError, match="no space left"):
        pipeline.resume(root, interviewer=refuse).result(60)
    assert events(root, StageEnd)[-1].name == "start"
    assert pipeline.resume(root, interviewer=lambda question: "D").result(60).status == "success"
