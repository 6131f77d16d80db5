"""No run can end or block the one engine thread of a process."""

import asyncio

import pytest

from attractor_nb.model.outcome import Outcome
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.runtime.handles.handle import new_job

SOURCE = """digraph g {
    start [shape=Mdiamond] work [type=custom] done [shape=Msquare]
    start -> work -> done
}"""
LIMIT_SECONDS = 60


def pipeline_with(handler, source=SOURCE, **options):
    return Pipeline(source, handlers={"custom": handler}, **options)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_engine_thread_survives_a_coroutine_that_exits_the_program():
    async def leave():
        raise SystemExit(2)

    async def answer():
        return 42

    first, second = new_job("thread", "the first"), new_job("thread", "the second")
    first.start(leave)
    with pytest.raises(SystemExit):
        first.future.result(LIMIT_SECONDS)
    second.start(answer)
    assert second.future.result(LIMIT_SECONDS) == 42


def test_a_run_cancelled_at_once_gives_its_directory_up_and_can_be_resumed(tmp_path):
    pipeline = pipeline_with(lambda *_: Outcome.success())
    for number in range(5):
        run = pipeline.run(logs_root=tmp_path / str(number))
        run.cancel()
        assert run.result(LIMIT_SECONDS).status == "interrupted"
        assert run.resume().result(LIMIT_SECONDS).status == "success"


def test_cancelling_a_run_whose_loop_has_ended_does_nothing(tmp_path):
    async def use():
        run = pipeline_with(lambda *_: Outcome.success()).run(host="kernel", logs_root=tmp_path / "run")
        await run
        return run

    run = asyncio.run(use())
    run.cancel()
    assert run.status == "completed"
