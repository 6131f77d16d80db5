"""A machine that sleeps: the deadlines of gates do not move with it (ruling 23)."""

import asyncio
import time

import pytest

from attractor_nb.engine.gates import Gates
from attractor_nb.engine.time_limits import SystemClock, wait_out
from attractor_nb.interviewers import DeferredInterviewer
from attractor_nb.model.question import Option, Question
from attractor_nb.testing import ManualClock

SLICE_SECONDS = 5.0

DAY = 86_400.0
QUESTION = Question("Ship?", options=(Option("Y", "[Y] Yes"),), stage="g", id="g:1", timeout_seconds=60)


class Laptop(ManualClock):
    """A machine that is closed for a day during the nth wait.

    Attributes:
        awake: Seconds for which timers ran.
    """

    def __init__(self, closed_at):
        super().__init__()
        self.awake = 0.0
        self._closed_at = closed_at

    async def _pause(self, seconds):
        self.sleeps.append(seconds)
        self.awake += seconds
        self.advance(seconds + (DAY if len(self.sleeps) == self._closed_at else 0.0))
        await asyncio.sleep(0)

    async def wait_out(self, seconds):
        await wait_out(seconds, self.monotonic, self._pause)


@pytest.mark.parametrize(("closed_at", "awake"), [(1, 5.0), (3, 15.0), (99, 60.0)])
def test_ruling_23_a_gate_whose_time_ran_out_while_the_machine_slept_ends_when_it_wakes(closed_at, awake):
    laptop = Laptop(closed_at)
    gates = Gates(DeferredInterviewer(), lambda event: None, laptop)
    assert asyncio.run(gates.ask(QUESTION)).is_timeout
    assert laptop.awake == awake
    assert max(laptop.sleeps) <= SLICE_SECONDS


def test_the_last_slice_is_no_longer_than_what_is_left():
    laptop = Laptop(99)
    asyncio.run(laptop.wait_out(12.5))
    assert laptop.sleeps == [5.0, 5.0, 2.5]


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="only Linux has this clock")
def test_the_clock_of_this_machine_counts_its_sleep(monkeypatch):
    asked = []

    def read(clock):
        asked.append(clock)
        return float(len(asked))

    monkeypatch.setattr(time, "clock_gettime", read)
    asyncio.run(SystemClock().wait_out(0.5))
    assert asked == [time.CLOCK_BOOTTIME] * 2
