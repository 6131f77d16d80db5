"""Work that is raced against time, and what is left of it when the race is stopped."""

import asyncio
import gc

import pytest

from attractor_nb.engine.time_limits import RunningTime, TimeIsOver, race
from attractor_nb.testing import ManualClock


def test_work_that_fails_just_when_the_run_is_stopped_is_no_traceback_for_the_user():
    complaints = []

    async def stopped():
        asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told["message"]))
        begun, failing = asyncio.Event(), asyncio.Event()

        async def work():
            begun.set()
            await failing.wait()
            racing.cancel()
            raise ValueError("a mistake in a handler")

        class PatientClock(ManualClock):
            async def sleep(self, seconds):
                await asyncio.Event().wait()

        racing = asyncio.create_task(race(PatientClock(), work(), 60))
        await begun.wait()
        failing.set()
        with pytest.raises(asyncio.CancelledError):
            await racing
        gc.collect()

    asyncio.run(stopped())
    gc.collect()
    assert complaints == []


class PushedClock(ManualClock):
    """A clock whose sleeps end when the test moves it on."""

    def __init__(self):
        super().__init__()
        self._moved = asyncio.Event()

    async def sleep(self, seconds):
        end = self.monotonic() + seconds
        while self.monotonic() < end:
            await self._moved.wait()

    async def push(self, seconds):
        """Let time pass, and those who wait for it see that."""
        self.advance(seconds)
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        for _ in range(5):
            await asyncio.sleep(0)


def test_no_running_time_goes_by_while_somebody_holds_it():
    async def held():
        clock = PushedClock()
        time = RunningTime(clock, before=1.0, bound=100.0, started_at=clock.monotonic())
        await clock.push(2.0)
        time.hold()
        time.hold()
        await clock.push(1000.0)
        assert (time.elapsed_seconds, time.left_seconds) == (3.0, 97.0)
        time.release()
        await clock.push(1000.0)
        assert time.elapsed_seconds == 3.0, "two held it, and one let go"
        time.release()
        await clock.push(4.0)
        assert (time.elapsed_seconds, time.paused_seconds) == (7.0, 2000.0)

    asyncio.run(held())


def test_a_race_against_running_time_is_not_lost_while_it_is_held():
    async def raced():
        clock = PushedClock()
        time = RunningTime(clock, before=0.0, bound=None, started_at=clock.monotonic())
        never = asyncio.Event()
        racing = asyncio.create_task(race(time, never.wait(), 10.0))
        await clock.push(0.0)  # it begins
        await clock.push(9.0)
        time.hold()
        await clock.push(3600.0)
        assert not racing.done(), "what it stood counted against it"
        time.release()
        await clock.push(0.5)
        assert not racing.done()
        await clock.push(0.5)
        await clock.push(0.1)
        with pytest.raises(TimeIsOver):
            await racing

    asyncio.run(raced())
