"""The marks of a result, folded from the log (ruling 48)."""

import pytest

from attractor_nb.decisions.log_folds import marks_of
from attractor_nb.model.checkpoint import SurvivingTotals
from attractor_nb.model.events import (
    ChildEnded,
    DebuggerChanged,
    PipelineResumed,
    PipelineStarted,
    StageCompleted,
    StageFailed,
    StageStarted,
)
from attractor_nb.model.outcome import Outcome, ResultMarks, StageStatus

FAIL = Outcome(StageStatus.FAIL, failure_reason="no")


def started(answers="", backend="simulated", **more):
    return PipelineStarted(answers=answers, backend=backend, **more)


def resumed(answers):
    return PipelineResumed(answers=answers, backend=answers)


def done(name="a", branch=""):
    return StageCompleted(name=name, outcome=Outcome.success(), branch=branch)


def silent():
    return StageStarted(name="gate", handler_type="wait.human")


def failed(*, will_retry):
    return StageFailed(name="a", outcome=FAIL, will_retry=will_retry)


def change(kind, node="a"):
    return DebuggerChanged(change=kind, node=node)


CASES = {
    "nobody is asked": ([started(), done()], ""),
    "a backend answers": ([started("real", "llm"), done()], ""),
    "nobody answers": ([started("simulated"), done()], "simulated"),
    "nobody has answered yet": ([started("simulated"), silent(), done("gate")], "simulated"),
    "an attempt that is tried again": ([started("real"), done(), resumed("simulated"), failed(will_retry=True)], ""),
    "a simulation in which nobody asked": (
        [started("real"), done(), resumed("simulated"), silent(), done("gate")],
        "partly simulated",
    ),
    "a gate is no answer": ([started("real"), silent(), done("gate"), resumed("simulated"), done()], "simulated"),
    "a failure counts": ([started("simulated"), failed(will_retry=False)], "simulated"),
    "simulated from a resume on": ([started("real"), done(), resumed("simulated"), done()], "partly simulated"),
    "simulated until a resume": ([started("simulated"), done(), resumed("real"), done()], "partly simulated"),
    "a session that committed nothing": ([started("real"), done(), resumed("simulated"), resumed("real"), done()], ""),
    "a simulated child of a real run": (
        [started("real"), done(), ChildEnded(name="house", marks=ResultMarks("simulated"))],
        "partly simulated",
    ),
    "a simulated child of a run that asks nobody": (
        [started(), ChildEnded(marks=ResultMarks("simulated"))],
        "simulated",
    ),
    "a pinned node of a child": (
        [started("real"), ChildEnded(name="house", marks=ResultMarks("real", stand_ins={"gate": "pinned"}))],
        "pinned: house>gate",
    ),
    "a pin that was not reached": ([started("real"), change("pin", "b"), done("a")], ""),
    "a pinned node": ([started("real"), change("pin"), done("a")], "pinned: a"),
    "a node executed again without its pin": (
        [started("real"), change("pin"), done("a"), change("unpin"), done("a")],
        "",
    ),
    "a pin in one branch of two": (
        [started("real"), change("pin"), done("a", "one"), change("unpin"), done("a", "two")],
        "pinned: a",
    ),
    "mocked": ([started("real"), change("mock"), done("a")], "mocked: a"),
    "a mock ends with its process": ([started("real"), change("mock"), resumed("real"), done("a")], ""),
    "a pin holds in a resumed run": ([started("real"), change("pin"), resumed("real"), done("a")], "pinned: a"),
    "set by hand": ([started("real"), change("outcome"), done("a"), done("b")], "set by hand: a"),
    "what a restart continues": (
        [started("real", carried=SurvivingTotals(marks=ResultMarks("simulated", stand_ins={"b": "pinned"}))), done()],
        "partly simulated; pinned: b",
    ),
}


@pytest.mark.parametrize(("events", "words"), CASES.values(), ids=CASES)
def test_ruling_48_a_result_is_marked_by_what_counts_in_it(events, words):
    assert marks_of(events).marks.words == words


def test_ruling_48_both_backends_are_kept_in_order_of_use():
    events = [started("real", "llm"), done(), resumed("simulated"), done(), done()]
    assert marks_of(events).marks.backends == ["llm", "simulated"]


def test_the_entries_of_a_manifest_are_read_back():
    marks = ResultMarks("partly simulated", ["llm", "simulated"], {"check": "pinned"})
    assert ResultMarks.of_facts(marks.to_facts()) == marks
    assert marks.to_facts()["is_simulated"] is True
