"""Fault 12: clocks that jump, machines that sleep, stages that hang: durations stay right, deadlines are kept."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from itertools import cycle

import pytest

from attractor_nb import Outcome, Pipeline, Run
from attractor_nb.engine.gates import Gates
from attractor_nb.errors import RunError
from attractor_nb.interviewers import DeferredInterviewer
from attractor_nb.model.events import InterviewTimeout, PipelineFailed, StageEnd, StageStarted
from attractor_nb.model.question import Option, Question
from attractor_nb.testing import ManualClock, SeededRandomness
from tests.waiting import is_alive

FRAME = "digraph demo {{ start [shape=Mdiamond]\n done [shape=Msquare]\n {body} }}"
DAY = 86_400.0
JUMPS = (3 * DAY, -5 * DAY, 40 * DAY, -90 * DAY)
GATE = 'g [shape=hexagon, human.timeout=60s] start -> g g -> done [label="[Y] Yes"]'
QUESTION = Question("Ship?", options=(Option("Y", "[Y] Yes"),), stage="g", id="g:1", timeout_seconds=60)


class PausedClock(ManualClock):
    """A clock on which nothing passes by itself: a sleep lasts until it is cancelled."""

    def __init__(self):
        super().__init__()
        self.now = 1_700_000_000.0

    def time(self):
        return self.now

    async def sleep(self, seconds):
        self.sleeps.append(seconds)
        await asyncio.get_running_loop().create_future()


@pytest.mark.protects(
    "attractor_nb/engine/attempts.py",
    "duration = setup.clock.monotonic() - began",
    instead="duration = self.clock.time() - 1_700_000_000.0",
)
@pytest.mark.protects(
    "attractor_nb/engine/time_limits.py",
    "return self.before + self.clock.monotonic() - self.started_at",
    instead="return self.before + self.clock.time() - 1_700_000_000.0",
)
def test_durations_are_right_while_the_wall_clock_jumps_by_days(tmp_path, figures):
    """Protected by measuring on the monotonic clock: on the wall clock the bound ends the run, or never would."""
    clock, jumps = ManualClock(), cycle(JUMPS)

    async def work(node, prompt, context):
        clock.jump(next(jumps))
        clock.advance(2)
        return Outcome.success()

    nodes = [f"n{number}" for number in range(20)]
    body = " ".join(nodes) + " start -> " + " -> ".join(nodes) + " -> done"
    pipeline = Pipeline(FRAME.format(body=body), backend=work)
    result = pipeline.run(
        wait=True, logs_root=tmp_path / "run", clock=clock, durability="fast", max_duration="41s", is_shown=False
    )
    assert (result.status, result.duration) == ("success", 40.0)
    ends = [event for event in Run.load(tmp_path / "run").events() if isinstance(event, StageEnd)]
    assert [event.duration for event in ends if event.name in nodes] == [2.0] * 20
    figures.record(
        12,
        "the wall clock jumps by up to 90 days, both ways, in each of 20 stages",
        "20 of 20 durations right; max_duration exact",
    )


@pytest.mark.protects(
    "attractor_nb/engine/gates.py",
    "return entry.waited + self._clock.monotonic() - entry.opened",
    instead="return self._clock.time() - entry.gate.since",
)
@pytest.mark.parametrize("jump", JUMPS)
def test_a_gate_keeps_its_time_while_the_wall_clock_jumps(jump):
    """Protected by the monotonic clock at gates: by the wall clock a person would have waited minus five days."""
    clock, events = ManualClock(), []

    class Jumping(DeferredInterviewer):
        async def ask(self, question):
            clock.advance(20)
            clock.jump(jump)
            return await super().ask(question)

    gates = Gates(Jumping(), events.append, clock)
    assert asyncio.run(gates.ask(QUESTION)).is_timeout
    assert clock.sleeps == [60]
    (ended,) = (event for event in events if isinstance(event, InterviewTimeout))
    assert ended.duration == 80


@pytest.mark.protects(
    "attractor_nb/engine/gates.py",
    "left = min(max(0.0, before.deadline - now), max(0.0, before.deadline - since))",
    instead="left = max(0.0, before.deadline - now)",
)
@pytest.mark.parametrize(("jump", "left"), [(-5 * DAY, 60.0), (0.0, 45.0), (3 * DAY, 0.0)])
def test_a_resumed_gate_never_gets_more_time_than_it_had(tmp_path, jump, left):
    """Protected by the least of both: set back by days, the wall clock would have given days more."""
    pipeline = Pipeline(FRAME.format(body=GATE), interviewer="deferred")
    clock = PausedClock()
    options = {"clock": clock, "durability": "fast", "randomness": SeededRandomness(), "is_shown": False}
    run = pipeline.run(logs_root=tmp_path / "run", **options)
    run.wait_for_gate("g", 60)
    run.cancel()
    run.result(60)
    clock.now += 15 + jump
    again = pipeline.resume(tmp_path / "run", **options)
    gate = again.wait_for_gate("g", 60)
    assert gate.deadline == clock.now + left
    again.answer("g", "Y")
    assert again.result(60).status == "success"
    assert clock.sleeps == [60.0, left]


HANGING_TOOL = (
    't [shape=parallelogram, tool_command="echo $$ > $ATTRACTOR_LOGS_ROOT/../shell; sleep 1000 & echo $!'
    ' > $ATTRACTOR_LOGS_ROOT/../child; touch $ATTRACTOR_LOGS_ROOT/../begun; wait"] start -> t -> done'
)


class ClockFrom(ManualClock):
    """A clock on which nothing passes before something has begun."""

    def __init__(self, has_begun):
        super().__init__()
        self.has_begun = has_begun

    async def sleep(self, seconds):
        while not self.has_begun():  # noqa: ASYNC110 - what another process does is no event
            await asyncio.sleep(0.01)
        await super().sleep(seconds)


@pytest.mark.protects(
    "attractor_nb/engine/attempts.py",
    "            if own is None and left is None:\n",
    instead="            if own is None:\n",
)
def test_max_duration_ends_a_command_that_hangs_and_its_children(tmp_path, figures):
    """Protected by the race of a handler against the run's end: without it a tool of no timeout runs for ever."""
    pipeline = Pipeline(FRAME.format(body=HANGING_TOOL))
    clock, began = ClockFrom((tmp_path / "begun").exists), time.monotonic()
    ended = pipeline.run(wait=True, logs_root=tmp_path / "run", max_duration="400ms", is_shown=False, clock=clock)
    seconds = time.monotonic() - began
    assert (ended.status, ended.bound, ended.next_node) == ("fail", "max_duration", "t")
    assert ended.reason.startswith("max_duration=400ms reached")
    assert ended.reason.endswith("s of running time, t was cut off in attempt 1")
    pids = [int((tmp_path / name).read_text()) for name in ("shell", "child")]
    assert not any(is_alive(pid) for pid in pids)
    figures.record(
        12, "a command hangs, and max_duration=400ms ends the run", f"ended after {seconds:.1f} s, no child left"
    )
    with pytest.raises(RunError, match="may have taken effect already"):
        pipeline.resume(tmp_path / "run", max_duration="1h")
    resumed = pipeline.resume(tmp_path / "run", max_duration="1h", on_interrupted="fail").result(60)
    assert resumed.reason.startswith("interrupted: it was cut off")


def hangs_in_a_model(tmp_path):
    async def work(node, prompt, context):
        if (tmp_path / "mended").exists():
            return "done"
        return await asyncio.get_running_loop().create_future()

    return Pipeline(FRAME.format(body="a start -> a -> done"), backend=work), "a was cut off in attempt 1"


def hangs_in_a_function(tmp_path):
    """A plain function cannot be cancelled: it is left behind."""
    freed = threading.Event()

    def work(node, prompt, context):
        if not (tmp_path / "mended").exists():
            freed.wait(1000)
        return "done"

    pipeline = Pipeline(FRAME.format(body="a start -> a -> done"), backend=work)
    pipeline.on_event(lambda event: freed.set() if isinstance(event, PipelineFailed) else None)
    return pipeline, "a was cut off in attempt 1"


def ignores_its_cancellation(tmp_path):
    async def work(node, prompt, context):
        if (tmp_path / "mended").exists():
            return "done"
        future = asyncio.get_running_loop().create_future()
        for _ in range(3):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait_for(asyncio.shield(future), 0.6)
        return "too late"

    return Pipeline(FRAME.format(body="a start -> a -> done"), backend=work), "a was cut off in attempt 1"


def waits_for_a_retry(tmp_path):
    async def work(node, prompt, context):
        return "done" if (tmp_path / "mended").exists() else Outcome.retry("busy")

    body = "a [max_retries=5, retry_policy=patient] start -> a -> done"
    return Pipeline(FRAME.format(body=body), backend=work), "before attempt 2 of a"


def waits_for_a_person(tmp_path):
    def person(question):
        if (tmp_path / "mended").exists():
            return "Y"
        return asyncio.get_running_loop().create_future()

    async def ask(question):
        answer = person(question)
        return answer if isinstance(answer, str) else await answer

    return Pipeline(FRAME.format(body=GATE), interviewer=ask), "g was cut off in attempt 1"


HANGS = [hangs_in_a_model, hangs_in_a_function, ignores_its_cancellation, waits_for_a_retry, waits_for_a_person]


@pytest.mark.protects(
    "attractor_nb/engine/attempts.py", "            return _CUT_OFF\n", instead="            return Outcome.success()\n"
)
@pytest.mark.parametrize("hang", HANGS, ids=lambda hang: hang.__name__)
def test_max_duration_ends_whatever_hangs_and_the_run_goes_on_with_more(tmp_path, hang):
    """Protected by the end at the bound: an attempt that was cut off is no result, and no wait outlasts the run."""
    pipeline, where = hang(tmp_path)
    options = {"durability": "fast", "is_shown": False}
    ended = pipeline.run(wait=True, logs_root=tmp_path / "run", max_duration="300ms", clock=ManualClock(), **options)
    assert (ended.status, ended.bound) == ("fail", "max_duration")
    assert where in ended.reason
    assert ended.completed_nodes == ("start",)
    (tmp_path / "mended").touch()
    result = pipeline.resume(tmp_path / "run", max_duration="1h", **options).result(60)
    assert (result.status, result.completed_nodes) == ("success", ("start", ended.next_node, "done"))
    attempts = [event.attempt for event in Run.load(tmp_path / "run").events() if isinstance(event, StageStarted)]
    assert attempts == [1, 1, 2, 1]


@pytest.mark.protects(
    "attractor_nb/engine/attempts.py",
    "        if left is not None and left <= seconds:\n",
    instead="        if left is not None and left <= -1.0:\n",
)
def test_a_wait_for_a_retry_is_no_longer_than_the_run_may_be(tmp_path):
    """Protected by the shorter of both waits: without it the run sleeps on beyond its own end."""
    clock = ManualClock()

    async def busy(node, prompt, context):
        clock.advance(0.25)
        return Outcome.retry("busy")

    body = "a [max_retries=9, retry_policy=patient] start -> a -> done"
    pipeline = Pipeline(FRAME.format(body=body), backend=busy)
    ended = pipeline.run(
        wait=True,
        logs_root=tmp_path / "run",
        clock=clock,
        randomness=SeededRandomness(),
        max_duration="1s",
        is_shown=False,
    )
    assert (ended.bound, ended.duration, clock.sleeps[-1]) == ("max_duration", 1.0, 0.75)
    assert (
        ended.reason
        == "max_duration=1s reached: 1.0 s of running time, before attempt 2 of a; the last failure: a: busy"
    )
