"""Notes on events for later stages (spec 5.4)."""

import pytest

from attractor_nb.decisions.notes import OBSERVED, Note, note_of, with_note
from attractor_nb.model.events import (
    GoalGateUnsatisfied,
    InterviewCompleted,
    InterviewTimeout,
    RunWarning,
    StageCompleted,
    StageFailed,
    StageRetrying,
    StageStarted,
    ToolCallEnded,
)
from attractor_nb.model.outcome import Outcome

MAX_CHARACTERS = 400
MAX_NOTES = 40

FAIL = Outcome.fail("red")
TOLD = {
    "a failure": (
        StageFailed(name="test", outcome=FAIL, error="tests are\nred"),
        ("failure", "test failed: tests are red"),
    ),
    "an attempt": (
        StageFailed(name="test", outcome=FAIL, attempt=2, error="red", will_retry=True),
        ("retry", "test, attempt 2 failed: red"),
    ),
    "a failure without a reason": (StageFailed(name="test", outcome=FAIL), ("failure", "test failed")),
    "an answer": (
        InterviewCompleted(question="?", answer="Y", duration=3.5, stage="ok", label="Yes", answered_by="ann"),
        ("answer", "ok was answered: Yes"),
    ),
    "a text": (
        InterviewCompleted(question="?", answer="", duration=3.5, stage="ok", text="use tabs"),
        ("answer", "ok was answered: use tabs"),
    ),
    "no answer": (InterviewTimeout(question="?", stage="ok", duration=60), ("answer", "ok got no answer in time")),
    "a way back": (
        GoalGateUnsatisfied(gate="test", target="plan", redirects=1),
        ("way back", "goal gate `test` was not satisfied: back to plan"),
    ),
    "a tool call": (
        ToolCallEnded(name="code", tool="write", arguments={"path": "a.py", "text": "x" * 99}, result="1 line"),
        ("tool call", f'code: write(path="a.py", text="{"x" * 58}…): 1 line'),
    ),
    "a tool that failed": (
        ToolCallEnded(name="code", tool="run", arguments={"command": "make"}, error="exit code 2"),
        ("tool call", 'code: run(command="make") failed: exit code 2'),
    ),
    "a tool that was skipped": (
        ToolCallEnded(name="code", tool="run", skipped="pre-hook: exit code 1"),
        ("tool call", "code: run() was skipped: pre-hook: exit code 1"),
    ),
    "a success": (StageCompleted(name="test", outcome=Outcome.success()), None),
    "a beginning": (StageStarted(name="test"), None),
    "what was told as an attempt": (StageRetrying(name="test", delay=1.0), None),
    "a warning to people": (RunWarning(message="no price is known"), None),
}


@pytest.mark.parametrize(("event", "expected"), TOLD.values(), ids=TOLD)
def test_what_is_told_of_an_event(event, expected):
    assert note_of(event) == (None if expected is None else Note(*expected))


def test_a_line_has_a_length():
    note = note_of(StageFailed(name="test", outcome=FAIL, error="long " * 10_000))
    assert len(note.text) == MAX_CHARACTERS
    assert note.text.endswith("…")


def test_the_newest_are_kept():
    notes = ()
    for number in range(MAX_NOTES + 5):
        notes = with_note(notes, StageFailed(name=f"n{number}", outcome=FAIL))
    assert len(notes) == MAX_NOTES
    assert (notes[0].text, notes[-1].text) == ("n5 failed", f"n{MAX_NOTES + 4} failed")
    assert with_note(notes, StageStarted(name="x")) is notes


def test_what_is_heard_in_the_stream_is_told():
    heard = {type(event) for event, expected in TOLD.values() if expected is not None} & set(OBSERVED)
    assert heard == set(OBSERVED)
