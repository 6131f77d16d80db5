"""Places where waiting for a gate would never end say so (NOTEBOOK)."""

import asyncio
import threading

import pytest

from attractor_nb.errors import GateWouldBlock
from attractor_nb.interviewers import RecordingInterviewer
from attractor_nb.interviewers.unattended import DeferredInterviewer, SequentialInterviewer
from attractor_nb.model.question import Answer
from attractor_nb.runtime.handles.presenters import can_be_clicked, check_wait, register_presenter

GATE = 'g [shape=hexagon] start -> g g -> done [label="[Y] Yes"]'


def refuse(gates, *, is_blocking):
    if gates:
        raise GateWouldBlock("waiting here would block" if is_blocking else "awaiting here would block")


@pytest.fixture
def waiting_rule():
    """A place where no user can answer while a cell waits."""
    remove = register_presenter(lambda run: None, refuse)
    yield
    remove()


@pytest.mark.usefixtures("waiting_rule")
def test_a_blocking_wait_at_a_gate_is_refused_and_the_gate_stays_open(make):
    run = make(GATE).run(durability="none")
    run.wait_for_gate("g", 60)
    with pytest.raises(GateWouldBlock, match="waiting here"):
        run.result(60)
    run.answer("g", "Y")
    assert run.result(60).status == "success"


@pytest.mark.usefixtures("waiting_rule")
def test_an_await_at_a_gate_is_refused_too(make):
    async def main():
        run = make(GATE).run(durability="none")
        await asyncio.to_thread(run.wait_for_gate, "g", 60)
        try:
            with pytest.raises(GateWouldBlock, match="awaiting here"):
                await run
        finally:
            run.answer("g", "Y")
        return await run

    assert asyncio.run(main()).status == "success"


@pytest.mark.usefixtures("waiting_rule")
@pytest.mark.parametrize("is_recorded", [False, True])
def test_a_gate_that_the_runs_own_interviewer_is_being_asked_about_is_waited_for(make, is_recorded):
    """The answer comes by itself, however long it takes: no click is needed."""
    asked = threading.Event()

    class Slow(SequentialInterviewer):
        async def ask(self, question):
            await asyncio.to_thread(asked.wait, 60)
            return Answer(value="Y")

    interviewer = RecordingInterviewer(Slow()) if is_recorded else Slow()
    run = make(GATE).run(durability="none", interviewer=interviewer)
    run.wait_for_gate("g", 60)
    with pytest.raises(TimeoutError):
        run.result(0.05)
    asked.set()
    assert run.result(60).status == "success"


@pytest.mark.usefixtures("waiting_rule")
def test_a_gate_that_is_left_to_others_is_refused_through_a_recording_too(make):
    run = make(GATE).run(durability="none", interviewer=RecordingInterviewer(DeferredInterviewer()))
    run.wait_for_gate("g", 60)
    with pytest.raises(GateWouldBlock, match="waiting here"):
        run.result(60)
    run.answer("g", "Y")
    assert run.result(60).status == "success"


def test_the_rules_of_a_presenter_go_with_it():
    """A rule that is left behind would refuse waits, or allow clicks, for a presenter that is gone."""

    def refuse_all(gates, *, is_blocking):
        raise GateWouldBlock("never")

    remove = register_presenter(lambda run: None, refuse_all, lambda *, is_blocking: not is_blocking)
    with pytest.raises(GateWouldBlock):
        check_wait([], is_blocking=True)
    assert [can_be_clicked(is_blocking=each) for each in (True, False)] == [False, True]
    for _ in range(2):  # the second time there is nothing to take away
        remove()
        check_wait([], is_blocking=True)
        assert not can_be_clicked(is_blocking=False)
