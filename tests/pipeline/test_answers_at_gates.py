"""Answers at gates survive a crash, keep their type and are refused with an error of the package."""

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading

import pytest

from attractor_nb import Answer as GateAnswer
from attractor_nb import AnswerValue, Option, Run, StageStatus, gates, runs
from attractor_nb.errors import AlreadyAnswered, AnswerRefused, NoSuchGate, RunLocked, StorageError
from attractor_nb.interviewers import QueueInterviewer
from attractor_nb.interviewers.unattended import SequentialInterviewer
from attractor_nb.model.events import InterviewCompleted
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.runtime.answers_from_elsewhere import deliver_answer
from attractor_nb.server.answers.run_answers import all_questions, take_answer
from attractor_nb.server.requests import Answer
from attractor_nb.server.run_service import RunService
from attractor_nb.storage.answer_box import AnswerReply
from attractor_nb.storage.stored_run import read_run
from attractor_nb.studio.history import waiting_gates
from tests import warm

LIMIT_SECONDS = 60
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


class Saying(SequentialInterviewer):
    """Gives one answer to each question.

    Attributes:
        refusals: What it was told of its answers.
    """

    def __init__(self, answer):
        self.given, self.refusals = answer, []

    async def ask(self, question):
        return self.given

    async def inform(self, message, stage):
        self.refusals.append(message)


STATUSES = ["timeout", "skipped", StageStatus.SKIPPED, "success", StageStatus.FAIL, "cancelled"]
WITH_DEFAULT = GATE.replace("shape=hexagon", 'shape=hexagon, human.default_choice="Y"')


@pytest.mark.parametrize("status", STATUSES, ids=repr)
def test_ruling_23_a_status_as_a_text_is_no_timeout_and_no_skip_and_takes_no_default(status):
    interviewer = Saying(GateAnswer(status))
    result = Pipeline(WITH_DEFAULT).run(wait=True, interviewer=interviewer, durability="none")
    assert result.status == "fail"
    assert "answers that match no choice" in result.reason
    assert f'"{status}" is not one of the choices' in interviewer.refusals[0]
    assert not {"yes", "no"} & {*result.completed_nodes}


@pytest.mark.parametrize("status", ["timeout", "skipped"])
def test_ruling_23_a_status_as_a_text_chooses_the_option_that_is_called_so(status):
    source = GATE.replace("[N] No", status)
    result = Pipeline(source).run(wait=True, interviewer=Saying(GateAnswer(status)), durability="none")
    assert (result.status, result.context["human.gate.label"]) == ("success", status)


@pytest.mark.parametrize("status", ["timeout", "skipped"])
def test_ruling_23_a_status_as_a_text_answers_a_question_in_words(status):
    result = Pipeline(WORDS).run(wait=True, interviewer=Saying(GateAnswer(status)), durability="none")
    assert (result.status, result.context["human.gate.text"]) == ("success", status)


def test_ruling_23_a_timeout_and_a_skip_of_an_interviewer_count_when_it_says_so(tmp_path):
    timed_out = Pipeline(WITH_DEFAULT).run(
        wait=True, interviewer=Saying(GateAnswer(AnswerValue.TIMEOUT)), durability="none"
    )
    assert timed_out.context["human.gate.label"] == "[Y] Yes"
    skip = Saying(GateAnswer(AnswerValue.SKIPPED))
    skipped = Pipeline(GATE).run(wait=True, interviewer=skip, logs_root=tmp_path / "run")
    assert (skipped.status, "human skipped interaction" in skipped.reason) == ("fail", True)
    cut_log(tmp_path / "run", "InterviewCompleted")
    again = Pipeline(GATE).resume(tmp_path / "run", interviewer="refuse").result(LIMIT_SECONDS)
    assert (again.status, "human skipped interaction" in again.reason) == ("fail", True)


@pytest.mark.parametrize("value", [AnswerValue.TIMEOUT, AnswerValue.SKIPPED], ids=repr)
def test_ruling_44_a_replay_knows_a_timeout_and_a_skip_from_a_text(value, tmp_path):
    how = {"wait": True, "durability": "none", "cassette": tmp_path / "answers.json"}
    ends = [
        Pipeline(GATE).run(**how, cassette_mode=mode, interviewer=Saying(GateAnswer(value))).reason
        for mode in ("record", "replay")
    ]
    assert ends[0] == ends[1] != ""


MALFORMED = {
    "a number": GateAnswer(3),
    "nothing": GateAnswer(None),
    "true": GateAnswer(True),
    "a list": GateAnswer(["Y"]),
    "a number as text": GateAnswer("Y", text=3),
    "a word as option": GateAnswer(selected_option="Y"),
    "a number as key": GateAnswer(selected_option=Option(1, "Yes")),
    "a word as options": GateAnswer(selected_options="Y"),
    "a form that is a list": GateAnswer("Y", form=[1]),
    "somebody": GateAnswer("Y", answered_by=object()),
}


@pytest.mark.parametrize("answer", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("source", [WITH_DEFAULT, WORDS], ids=["choices", "words"])
def test_ruling_44_an_answer_of_the_wrong_types_fails_its_gate_and_says_why(answer, source):
    result = Pipeline(source).run(wait=True, interviewer=Saying(answer), durability="none")
    assert result.status == "fail"
    assert "the interviewer answered gate `gate` with an Answer whose " in result.reason
    assert " of type " in result.reason


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


OWNER = """import sys
from attractor_nb import Pipeline
run = Pipeline(sys.argv[1]).run(logs_root=sys.argv[2], interviewer="deferred")
run.wait_for_gate("gate", 60)
for choice in sys.argv[3:]:
    run.answer("gate", choice)
    run.wait_for_gate("gate", 60)
print("waits", flush=True)
print(run.result(60).status, flush=True)
"""


RESTARTING = GATE.replace("done\n}", 'done\n    gate -> gate [label="[R] Again", loop_restart=true]\n}')


@pytest.fixture
def owner(request, tmp_path):
    """A process whose run waits at its gate: the first time, or behind a restart."""
    choices = getattr(request, "param", ())
    command = [sys.executable, "-c", OWNER, RESTARTING, str(tmp_path / "runs/one"), *choices]
    with warm.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "waits\n"
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("owner", [(), ("R",)], ids=["at first", "behind a restart"], indirect=True)
def test_a_run_that_waits_in_another_process_is_listed_so_and_looked_at_once(owner, tmp_path, monkeypatch):
    [row] = runs(tmp_path / "runs")
    assert (row.status, row.owner["pid"]) == ("waiting", owner.pid)
    assert "? waiting" in str(row)
    monkeypatch.setattr("attractor_nb.storage.stored_run.current_status", lambda *_: pytest.fail("the list knows"))
    [asked] = gates(tmp_path / "runs")
    service = RunService(tmp_path / "runs", max_runs=1)
    [question] = all_questions(service, service.summaries()).questions
    assert (question.id, question.is_answerable) == (asked.event.question_id, True)
    take_answer(service, "one", question.id, Answer(choice="N"))
    assert owner.stdout.readline() == "success\n"


@pytest.mark.parametrize("owner", [(), ("R",)], ids=["at first", "behind a restart"], indirect=True)
def test_a_question_of_another_process_is_answered_from_the_inbox(owner, tmp_path):
    inbox = gates(tmp_path / "runs")
    [asked] = inbox
    assert f"hands the answer to process {owner.pid} on " in asked.how
    with pytest.raises(AnswerRefused, match="perhaps"):
        inbox.answer("gate", "perhaps")
    given = inbox.answer("g/gate", "N")
    assert (given.id, given.stage, given.question.text) == (asked.event.question_id, "gate", asked.event.question)
    assert owner.stdout.readline() == "success\n"
    with pytest.raises((AlreadyAnswered, RunLocked, NoSuchGate)):
        asked.answer("Y")
    [*_, log] = (path.read_text() for path in sorted((tmp_path / "runs/one").rglob("events.jsonl")))
    assert log.count("InterviewCompleted") == 1
    assert "[N] No" in log


def test_an_answer_to_a_process_that_stands_still_is_withdrawn(owner, tmp_path):
    [asked] = gates(tmp_path / "runs")
    owner.send_signal(signal.SIGSTOP)
    with pytest.raises(RunLocked, match="takes no answer from here"):
        deliver_answer(
            asked.logs_root, asked.event.question_id, "N", owner=asked.owner, answered_by="call", patience=0.3
        )
    owner.send_signal(signal.SIGCONT)
    asked.answer("Y")
    assert owner.stdout.readline() == "success\n"
    assert (tmp_path / "runs/one/events.jsonl").read_text().count("InterviewCompleted") == 1
    assert Run.load(tmp_path / "runs/one").result().context["human.gate.selected"] == "Y"


def test_a_state_directory_that_cannot_be_read_is_told_of_once_and_the_run_goes_on(tmp_path, monkeypatch, caplog):
    looked = threading.Semaphore(0)

    def refuse(*_):
        looked.release()
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("attractor_nb.storage.answer_box.AnswerBox.claimed", refuse)
    run = Pipeline(GATE).run(logs_root=tmp_path / "run", interviewer="deferred", is_shown=False)
    run.wait_for_gate("gate", LIMIT_SECONDS)
    for _ in range(3):
        assert looked.acquire(timeout=LIMIT_SECONDS)
    run.answer("gate", "Y")
    assert run.result(LIMIT_SECONDS).status == "success"
    assert [record.message for record in caplog.records if "other processes" in record.message] == [
        "answers of other processes cannot be read: [Errno 13] Permission denied"
    ]


@pytest.mark.parametrize(
    ("told", "kind"),
    [("AlreadyAnswered", AlreadyAnswered), ("NoSuchGate", NoSuchGate), ("RunLocked", StorageError), ("", None)],
)
def test_what_the_other_process_says_of_an_answer_is_raised_here_in_its_words(tmp_path, monkeypatch, told, kind):
    result = Pipeline(GATE).run(logs_root=tmp_path / "run", interviewer=QueueInterviewer(["Y"]), wait=True)
    question = next(event.question_id for event in read_run(result.logs_root).events.select(InterviewCompleted))
    reply = AnswerReply(error=told, message="so it is", hint="look there")
    monkeypatch.setattr("attractor_nb.storage.answer_box.AnswerBox.hand_in", lambda *_: reply)
    given = {"owner": {"host": socket.gethostname(), "pid": 1}, "answered_by": "call"}
    if kind is None:
        assert deliver_answer(result.logs_root, question, "Y", **given).question_id == question
        return
    with pytest.raises(kind, match="so it is") as raised:
        deliver_answer(result.logs_root, question, "Y", **given)
    assert raised.value.hint == "look there"


LOOP = """digraph L { start [shape=Mdiamond]
    draft [prompt="Write. Feedback: ${human.gate.text:default none}"] review [shape=hexagon, label="Content?"]
    done [shape=Msquare] start -> draft -> review
    review -> done [label="[Y] Yes"]; review -> draft [label="[F] Again"] }"""


def test_an_answer_without_text_leaves_no_text_of_the_answer_before():
    prompts = []
    answers = [GateAnswer("F", text="shorter"), GateAnswer("F"), GateAnswer("Y")]
    result = Pipeline(LOOP, backend=lambda prompt: prompts.append(prompt) or "draft").run(
        wait=True, durability="none", interviewer=QueueInterviewer(answers)
    )
    assert [prompt.split("Feedback: ")[-1] for prompt in prompts] == ["none", "shorter", "none"]
    assert "shorter" not in prompts[-1]
    assert (result.context["human.gate.text"], result.context["human.gate.selected"]) == ("", "Y")


def test_free_text_that_chooses_no_edge_leaves_no_choice_of_the_gate_before():
    source = """digraph L { start [shape=Mdiamond] first [shape=hexagon] second [shape=hexagon, human.type=freeform]
        a [prompt=a] b [prompt=b] done [shape=Msquare] start -> first -> second [label="[G] Go"]
        second -> a [label="A"]; second -> b [label="B"]; a -> done; b -> done }"""
    result = Pipeline(source).run(
        wait=True, durability="none", interviewer=QueueInterviewer([GateAnswer("G"), GateAnswer(text="neither")])
    )
    assert [result.context[f"human.gate.{key}"] for key in ("selected", "label", "text")] == ["", "", "neither"]


ONE_GATE = """digraph L { start [shape=Mdiamond] gate [shape=hexagon] yes [prompt=y] no [prompt=n] done [shape=Msquare]
    start -> gate; gate -> yes [label="[Y] Yes"]; gate -> no [label="[N] No"]; yes -> done; no -> done }"""


def test_a_gate_that_was_answered_by_a_click_is_returned_with_its_answer():
    run = Pipeline(ONE_GATE).run(durability="none", interviewer="deferred")
    other = threading.Thread(target=lambda: run._gates.answer("gate", "Y", text="fine", answered_by="widget"))
    run.wait_for_gate()
    other.start()
    other.join()
    assert run.result().status == "success"
    for _ in range(2):  # the cell may be run again
        gate = run.wait_for_gate("gate")
        assert (gate.stage, gate.answer.value, gate.answer.text, gate.answer.answered_by) == (
            "gate",
            "Y",
            "fine",
            "widget",
        )
    with pytest.raises(AlreadyAnswered, match=r"\[Y\] Yes, by widget"):
        run.answer("gate", "N")
    with pytest.raises(NoSuchGate):
        run.wait_for_gate("other")


def test_the_next_question_of_an_answered_gate_is_waited_for():
    run = Pipeline(LOOP, backend=lambda prompt: "draft").run(durability="none", interviewer="deferred")
    first = run.wait_for_gate("review", timeout=60)
    answered = run.answer("review", "F")
    assert (answered.id, answered.answer.value, first.answer) == (first.id, "F", None)
    second = run.wait_for_gate("review", timeout=60)
    assert (second.id != first.id, second.answer) == (True, None)
    run.answer("review", "Y")
    assert run.wait_for_gate("review", timeout=60).answer.value == "Y"
    assert run.result().status == "success"


def test_a_label_goes_before_a_target_of_the_same_name():
    source = ONE_GATE.replace('yes [label="[Y] Yes"]', 'yes [label="no"]').replace(
        'no [label="[N] No"]', 'no [label="yes"]'
    )
    run = Pipeline(source).run(durability="none", interviewer="deferred")
    run.wait_for_gate("gate", timeout=60)
    run.answer("gate", "no")
    assert run.result().completed_nodes == ("start", "gate", "yes", "done")


def test_a_run_that_cannot_be_read_is_named_beside_the_questions_of_the_others(tmp_path, monkeypatch):
    for name in ("one", "two"):
        Pipeline(GATE).run(wait=True, logs_root=tmp_path / name, interviewer="auto")
        cut_log(tmp_path / name, "InterviewStarted")

    def read(root):
        if root.name == "one":
            raise StorageError(f"cannot read {root}: Input/output error")
        return read_log(root)

    read_log = waiting_gates.read_log
    monkeypatch.setattr(waiting_gates, "read_log", read)
    inbox = gates(tmp_path)
    assert [asked.logs_root.name for asked in inbox] == ["two"]
    assert [note.partition(": ")[0] for note in inbox.notes] == ["one cannot be read"]
    assert "one cannot be read" in str(inbox)
