"""Section 11.8 of the specification, row by row."""

import asyncio
import io
import os

import pytest

from attractor_nb import (
    Answer,
    AnswerValue,
    AutoApproveInterviewer,
    CallbackInterviewer,
    ConsoleInterviewer,
    Option,
    Question,
    QuestionType,
    QueueInterviewer,
    RecordingInterviewer,
)

CHOICE = Question("Which?", options=(Option("A", "Approve"), Option("R", "Reject")), stage="gate")


def ask(interviewer, question=CHOICE):
    return asyncio.run(interviewer.ask(question))


def test_11_8_an_interviewer_turns_a_question_into_an_answer():
    answer = ask(AutoApproveInterviewer())
    assert isinstance(answer, Answer)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("SINGLE_SELECT", QuestionType.MULTIPLE_CHOICE),
        ("MULTI_SELECT", QuestionType.MULTI_SELECT),
        ("FREE_TEXT", QuestionType.FREEFORM),
        ("CONFIRM", QuestionType.CONFIRMATION),
    ],
)
def test_11_8_the_question_types_exist_under_their_names(name, kind):
    assert QuestionType[name] is kind


def test_11_8_auto_approve_selects_the_first_option():
    assert ask(AutoApproveInterviewer()).selected_option == Option("A", "Approve")
    assert ask(AutoApproveInterviewer(), Question("Sure?", QuestionType.CONFIRM)).value == AnswerValue.YES


def test_11_8_the_console_prompts_and_reads(tmp_path):
    reading, writing = os.pipe()
    os.write(writing, b"R\n")
    os.close(writing)
    shown = io.StringIO()
    with os.fdopen(reading) as stdin:
        answer = ask(ConsoleInterviewer(stdin, shown))
    assert answer.selected_option == Option("R", "Reject")
    assert "Which?" in shown.getvalue()


def test_11_8_a_callback_is_asked():
    assert ask(CallbackInterviewer(lambda question: question.options[1])).value == "R"


def test_11_8_a_queue_gives_its_answers_and_then_skips():
    queue = QueueInterviewer(["R"])
    assert ask(queue).value == "R"
    assert ask(queue).is_skipped


def test_11_8_a_recorder_keeps_question_and_answer():
    recorder = RecordingInterviewer(QueueInterviewer(["A"]))
    answer = ask(recorder)
    assert [(pair[0], pair[1]) for pair in recorder.recordings] == [(CHOICE, answer)]
