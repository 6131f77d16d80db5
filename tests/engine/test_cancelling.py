"""Stopping a run: at every kind of stage, at any moment; what is committed stays (RELIABILITY)."""

import asyncio
import threading

import pytest

from attractor_nb import Outcome, Pipeline, load_checkpoint
from attractor_nb.errors import RunInterrupted
from attractor_nb.interviewers import DeferredInterviewer
from attractor_nb.model.events import PipelineInterrupted

NODE = "a [{attrs}] start -> a -> done"


class BoundReached:
    """Tells a test that a stage is under way, and lets it end."""

    def __init__(self):
        self.begun, self.release = threading.Event(), threading.Event()

    def plain(self, *args):
        self.begun.set()
        self.release.wait(30)
        return Outcome.success()

    async def coroutine(self, *args):
        self.begun.set()
        await asyncio.Event().wait()

    async def swallowing(self, *args):
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return Outcome.success()


def stop_at(pipeline, begun, **options):
    run = pipeline.run(**{"durability": "fast", **options})
    assert begun.wait(60)
    run.cancel()
    return run, run.result(60)


@pytest.mark.parametrize("more", ["", ", timeout=60s"], ids=["no_limit", "with_limit"])
@pytest.mark.parametrize("kind", ["plain", "coroutine", "swallowing"])
def test_a_run_is_stopped_in_a_handler(make, kind, more):
    reached = BoundReached()
    pipeline = make(NODE.format(attrs=f'type="own"{more}'), handlers={"own": getattr(reached, kind)})
    run, result = stop_at(pipeline, reached.begun)
    reached.release.set()
    assert (result.status, result.reason, result.next_node) == ("interrupted", "cancelled", "a")
    assert result.completed_nodes == ("start",)
    assert run.status == "interrupted"


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
def test_a_run_is_stopped_in_a_model_call(make, kind):
    reached = BoundReached()
    _, result = stop_at(make(NODE.format(attrs=""), backend=getattr(reached, kind)), reached.begun)
    reached.release.set()
    assert (result.status, result.next_node) == ("interrupted", "a")


@pytest.mark.parametrize("is_inner_asked", [True, False], ids=["interviewer", "deferred"])
def test_a_run_is_stopped_at_a_gate(make, is_inner_asked):
    reached = BoundReached()

    class Asking(DeferredInterviewer):
        async def ask(self, question):
            await reached.coroutine()

    run = make("g [shape=hexagon] start -> g -> done", interviewer=Asking() if is_inner_asked else "deferred").run(
        durability="fast"
    )
    run.wait_for_gate("g", 60)
    run.cancel()
    assert run.result(60).status == "interrupted"
    assert run.gates == ()


def test_a_run_is_stopped_in_a_tool_and_the_command_is_ended(make, tmp_path):
    command = f"echo $$ > {tmp_path}/pid; sleep 60"
    run = make(NODE.format(attrs=f'shape=parallelogram, tool_command="{command}"')).run(durability="fast")
    feed = run.events()
    next(event for event in feed if type(event).__name__ == "StageStarted" and event.name == "a")
    run.cancel()
    assert run.result(60).status == "interrupted"


def test_a_run_is_stopped_between_two_attempts(make):
    class Waiting:
        def __init__(self):
            self.begun = threading.Event()

        time = staticmethod(lambda: 0.0)
        monotonic = staticmethod(lambda: 0.0)

        async def sleep(self, seconds):
            self.begun.set()
            await asyncio.Event().wait()

    clock = Waiting()
    pipeline = make(NODE.format(attrs="max_retries=3"), {"a": Outcome.retry("busy")})
    _, result = stop_at(pipeline, clock.begun, clock=clock)
    assert (result.status, result.next_node) == ("interrupted", "a")


def test_a_run_is_stopped_while_its_backend_starts(make):
    reached = BoundReached()

    class Slow:
        async def open(self):
            await reached.coroutine()

        async def close(self):
            closed.append(True)

        async def run(self, node, prompt, context):
            return "never"

    closed = []
    pipeline = make(NODE.format(attrs=""), backend=Slow())
    run, result = stop_at(pipeline, reached.begun)
    assert (result.status, result.completed_nodes, closed) == ("interrupted", (), [True])
    assert pipeline.resume(run, backend="simulated").result(60).status == "success"


def test_a_rushing_run_can_be_stopped(dot):
    pipeline = Pipeline(
        dot('a start -> a -> a a -> done [condition="outcome=fail"]'), severity={"unbounded_cycle": "info"}
    )
    run = pipeline.run(durability="none", max_steps=10**9)
    run.cancel()
    assert run.result(60).status == "interrupted"


def test_a_run_that_is_stopped_at_once_frees_its_directory(make):
    async def main():
        run = make(NODE.format(attrs="")).run(durability="fast", host="kernel")
        run.cancel()
        await _ended(run)
        return run

    run = asyncio.run(main())
    assert run.resume().result(60).status == "success"


def test_a_resumed_run_that_is_stopped_at_once_loses_no_stage(make, tmp_path):
    """The stage it was about to run is not recorded as failed by the stop."""

    async def answer(prompt):
        await asyncio.sleep(0)
        return "done"

    pipeline = make(NODE.format(attrs=""), backend=answer)
    pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=1)

    async def main():
        run = pipeline.resume(tmp_path / "run", host="kernel")
        run.cancel()
        await _ended(run)
        assert run.status == "interrupted"

    asyncio.run(main())
    assert pipeline.resume(tmp_path / "run").result(60).status == "success"


def test_a_stop_before_the_engine_has_begun_fails_no_stage(make, tmp_path):
    """The engine is busy elsewhere, so that start and stop of the resumed run reach it together."""
    free, busy = threading.Event(), threading.Event()

    async def block(prompt):
        busy.set()
        free.wait(60)
        return "done"

    async def answer(prompt):
        await asyncio.sleep(0)
        return "done"

    pipeline = make(NODE.format(attrs=""), backend=answer)
    pipeline.run(wait=True, logs_root=tmp_path / "run", stop_after=1)
    blocking = make(NODE.format(attrs=""), backend=block).run(durability="none")
    assert busy.wait(60)
    run = pipeline.resume(tmp_path / "run")
    run.cancel()
    free.set()
    assert blocking.result(60).status == "success"
    assert run.result(60).status == "interrupted"
    assert run.resume().result(60).status == "success"


async def _ended(run):
    try:
        await run
    except RunInterrupted:
        return


def test_the_stop_is_recorded_and_the_run_goes_on_from_there(make):
    reached = BoundReached()
    pipeline = make(NODE.format(attrs=""), backend=reached.coroutine)
    run, result = stop_at(pipeline, reached.begun)
    assert [event.reason for event in run.events() if isinstance(event, PipelineInterrupted)] == ["cancelled"]
    assert load_checkpoint(result.logs_root).next_node == "a"
    resumed = run.resume(backend="simulated").result(60)
    assert resumed.completed_nodes == ("start", "a", "done")


def test_stopping_a_run_that_has_ended_does_nothing(make):
    run = make("start -> done").run(durability="none")
    result = run.result(60)
    run.cancel()
    assert run.result(60) is result


def test_cancelling_the_await_stops_the_run(make):
    reached = BoundReached()

    async def main():
        run = make(NODE.format(attrs=""), backend=reached.coroutine).run(durability="fast", host="kernel")
        waiting = asyncio.ensure_future(_ended(run))
        await asyncio.to_thread(reached.begun.wait, 60)
        waiting.cancel()
        await asyncio.wait({waiting})
        return run

    assert asyncio.run(main()).status == "interrupted"


def test_a_backend_that_cannot_close_does_not_take_the_result_away(make, caplog):
    class Broken:
        async def open(self):
            pass

        async def close(self):
            raise OSError("stuck")

        async def run(self, node, prompt, context):
            return "fine"

    assert make(NODE.format(attrs=""), backend=Broken()).run(wait=True, durability="none").status == "success"
    assert "a backend did not close" in caplog.text
