"""Interviews on record and replayed (spec 6.4)."""

import asyncio
import errno
import json

import pytest

from attractor_nb.decisions.replays.recorded_answers import question_inputs
from attractor_nb.errors import OptionError, StorageError, TerminalError
from attractor_nb.interviewers import AutoApproveInterviewer, QueueInterviewer, RecordingInterviewer, ReplayInterviewer
from attractor_nb.model.calls.call_content import CallInputs, CallSite, RecordedCall
from attractor_nb.model.question import Answer, Option, Question
from attractor_nb.storage.cassette_file import Cassette, write_cassette
from attractor_nb.storage.files.disk import Disk
from attractor_nb.testing import ScriptedInterviewer, verify_interviewer
from attractor_nb.testing.conformance import QUESTIONS

CHOICE = QUESTIONS[0]


def test_it_keeps_the_interviewer_contract_and_every_pair():
    recording = RecordingInterviewer(AutoApproveInterviewer())
    asyncio.run(verify_interviewer(recording))
    assert [question for question, _ in recording.recordings] == [*QUESTIONS, *QUESTIONS]


def test_news_pass_through():
    inner = ScriptedInterviewer({})
    asyncio.run(RecordingInterviewer(inner).inform("done", "plan"))
    assert inner.messages == [("done", "plan")]


def test_a_saved_interview_is_replayed_answer_by_answer(tmp_path):
    recording = RecordingInterviewer(AutoApproveInterviewer())
    given = asyncio.run(verify_interviewer(recording))
    recording.save(tmp_path / "interview.json")
    replayed = asyncio.run(verify_interviewer(ReplayInterviewer.load(tmp_path / "interview.json")))
    assert [(answer.value, answer.selected_options, answer.text) for answer in replayed] == [
        (answer.value, answer.selected_options, answer.text) for answer in given
    ]
    assert {answer.answered_by for answer in replayed} == {"replay"}


def test_each_stage_has_its_answers_in_order_whatever_the_order_of_stages():
    other = Question("Sure?", options=CHOICE.options, stage="other")
    replay = ReplayInterviewer([(CHOICE, Answer("A")), (other, Answer("R")), (CHOICE, Answer("R"))])
    answers = asyncio.run(replay.ask_multiple([other, CHOICE, CHOICE]))
    assert [answer.value for answer in answers] == ["R", "A", "R"]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (
            Question("Changed?", options=CHOICE.options, stage="choice"),
            "the question of 'choice' is not the recorded one",
        ),
        (Question(CHOICE.text, options=(Option("A", "Abort"),), stage="choice"), "the question of 'choice' is not"),
        (Question("New?", stage="new"), "no recorded answer is left for 'new'"),
    ],
    ids=["other-text", "other-options", "never-recorded"],
)
def test_a_question_that_was_not_recorded_is_an_error_and_never_a_guess(question, message):
    with pytest.raises(TerminalError, match=message):
        asyncio.run(ReplayInterviewer([(CHOICE, Answer("A"))]).ask(question))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"attractor_cassette": 1}',
        '{"attractor_cassette": 1, "calls": [{"call": "question"}]}',
        '{"a": 1, "a": 2}',
    ],
    ids=["empty", "broken", "list", "other", "no-calls", "incomplete", "twice"],
)
def test_a_file_that_is_no_cassette_is_refused(tmp_path, text):
    path = tmp_path / "interview.json"
    path.write_text(text)
    with pytest.raises(OptionError, match="is not a cassette that can be read"):
        ReplayInterviewer.load(path)
    with pytest.raises(OptionError, match="is not a cassette that can be read"):
        RecordingInterviewer(QueueInterviewer()).save(path)
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("inputs", "answer"),
    [({}, {"selected": "A"}), ({"type": "dance"}, {"value": "A"}), ({"text": None}, {"value": 3})],
    ids=["no-value", "no-type", "no-text"],
)
def test_an_incomplete_question_or_answer_is_refused_with_what_helps(tmp_path, inputs, answer):
    asked = question_inputs(CHOICE)
    values = CallInputs(asked.kind, asked.node_id, {**asked.values, **inputs})
    write_cassette(Disk(), tmp_path / "c.json", Cassette("", (RecordedCall(CallSite("choice"), values, answer),)))
    with pytest.raises(OptionError, match=r"c\.json holds an incomplete question or answer") as caught:
        ReplayInterviewer.load(tmp_path / "c.json")
    assert caught.value.hint == "record the interview again"


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(OptionError, match=r"cannot read .*nowhere\.json"):
        ReplayInterviewer.load(tmp_path / "nowhere.json")


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot"):
        RecordingInterviewer(QueueInterviewer()).save(tmp_path / "file" / "interview.json")


def test_a_disk_that_is_full_leaves_the_old_interview(tmp_path, monkeypatch):
    path = tmp_path / "interview.json"
    recording = RecordingInterviewer(QueueInterviewer(["A"]))
    asyncio.run(recording.ask(CHOICE))
    recording.save(path)
    before = path.read_bytes()
    monkeypatch.setattr("attractor_nb.storage.files.disk.Disk.write", _full)
    with pytest.raises(StorageError, match="cannot write"):
        recording.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["interview.json"]


def _full(disk, descriptor, data):
    raise OSError(errno.ENOSPC, "no space left on device")


def test_a_saved_interview_can_be_read_by_people(tmp_path):
    recording = RecordingInterviewer(QueueInterviewer(["A"]))
    asyncio.run(recording.ask(CHOICE))
    recording.save(tmp_path / "interview.json")
    saved = json.loads((tmp_path / "interview.json").read_text())
    assert saved["calls"][0]["inputs"]["text"] == "Which?"
    assert saved["calls"][0]["answer"]["value"] == "A"
