"""The questions of a log that wait for an answer: a table."""

import pytest

from attractor_nb.decisions.log_history import open_questions
from attractor_nb.model.events import (
    InterviewCompleted,
    InterviewStarted,
    InterviewTimeout,
    PipelineRewound,
    StageCompleted,
    StageStarted,
)
from attractor_nb.model.outcome import Outcome


def asked(question_id, branch=""):
    return InterviewStarted(question_id=question_id, stage="gate", branch=branch)


def answered(question_id, branch=""):
    return InterviewCompleted(question_id=question_id, stage="gate", branch=branch, duration=0.0)


def ended(name, branch=""):
    return StageCompleted(name=name, branch=branch, outcome=Outcome.success())


@pytest.mark.parametrize(
    ("events", "waiting"),
    [
        pytest.param([], [], id="an empty log"),
        pytest.param([asked("gate#1")], ["gate#1"], id="one that nobody answered"),
        pytest.param([asked("gate#1"), answered("gate#1")], [], id="one with its answer"),
        pytest.param([asked("gate#1"), answered("gate#1"), asked("gate#1")], ["gate#1"], id="one asked again"),
        pytest.param([asked("a#1"), asked("b#1"), answered("a#1")], ["b#1"], id="one of two"),
        pytest.param([asked("gate#1"), ended("gate")], [], id="one whose stage has ended"),
        pytest.param(
            [asked("gate#1"), InterviewTimeout(question_id="gate#1", stage="gate", duration=1.0)],
            [],
            id="one whose time ran out",
        ),
        pytest.param([asked("a#1", "fan/a"), ended("fan")], [], id="one in a fan-out that has ended"),
        pytest.param([asked("gate#1"), StageStarted(name="gate")], ["gate#1"], id="one whose stage began again"),
        pytest.param(
            [asked("a#1", "fan/a"), asked("b#1", "fan/b"), ended("a", "fan/a")], ["b#1"], id="one of two branches"
        ),
        pytest.param(
            [
                ended("plan"),
                asked("gate#1"),
                PipelineRewound(node="gate", visit=1, to_sequence=1, stages=0, carried={}),
            ],
            [],
            id="one set aside",
        ),
    ],
)
def test_a_question_is_open_until_its_answer_or_the_end_of_its_stage(events, waiting):
    for sequence, event in enumerate(events, start=1):
        event.sequence = sequence
    assert list(open_questions(events)) == waiting
