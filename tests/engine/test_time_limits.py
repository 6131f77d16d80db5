"""Work that is raced against time, and what is left of it when the race is stopped."""

import asyncio
import gc

import pytest

from attractor_nb.engine.time_limits import race
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
