"""Ends of runs: what is kept, released and shown, and the callers that can wait for it."""

import asyncio
import tempfile
import threading

import pytest

from attractor_nb.context import Context
from attractor_nb.errors import OptionError, RunError
from attractor_nb.model.outcome import Outcome, StageStatus, Usage
from attractor_nb.pipeline.pipeline import Pipeline
from attractor_nb.pipeline.run import Run
from attractor_nb.pipeline.spec_names import run_pipeline
from attractor_nb.runtime.handles.handle import HandleJob, HostedTask
from attractor_nb.runtime.handles.run_result import FollowedRun

LIMIT_SECONDS = 60
SOURCE = """digraph g {
    start [shape=Mdiamond] work [type=custom] done [shape=Msquare]
    start -> work -> done
}"""


def pipeline_with(handler=lambda *_: Outcome.success(), source=SOURCE, **options):
    return Pipeline(source, handlers={"custom": handler}, **options)


class Backend:
    """A backend with a lifetime that can be watched."""

    def __init__(self, *, fault=None, closing=None):
        self.fault, self.closing = fault, closing
        self.opened = self.closed = 0

    def run(self, node, prompt, context):
        return "text"

    async def open(self):
        self.opened += 1
        if self.fault:
            raise self.fault

    async def close(self):
        self.closed += 1
        if self.closing:
            self.closing.set()
            await asyncio.get_running_loop().create_future()


def test_a_run_that_ends_in_a_timeout_error_of_its_own_can_be_waited_for(tmp_path):
    loop = asyncio.new_event_loop()
    job = HostedTask(loop)
    job.future.set_exception(TimeoutError("no answer"))
    work = HandleJob("run r")
    run = Run(pipeline_with(), "r", tmp_path, lambda node_id, name: None, work=work, followed=FollowedRun())
    work.job = job
    loop.close()
    with pytest.raises(TimeoutError, match="no answer"):
        run.result(LIMIT_SECONDS)


def test_a_call_into_a_loop_that_was_closed_says_that_the_run_has_ended():
    loop = asyncio.new_event_loop()
    loop.close()
    with pytest.raises(RunError, match="run r has ended"):
        HostedTask(loop, "run r").call(list)


def test_what_a_called_function_raises_itself_is_not_taken_for_the_end_of_the_run():
    async def use():
        HostedTask(asyncio.get_running_loop(), "run r").call(fail)

    def fail():
        raise RuntimeError("its own")

    with pytest.raises(RuntimeError, match="its own"):
        asyncio.run(use())


def test_a_stop_while_the_backend_closes_leaves_result_and_directory_whole(tmp_path):
    closing = threading.Event()
    run = pipeline_with(backend=Backend(closing=closing)).run(logs_root=tmp_path / "run")
    assert closing.wait(LIMIT_SECONDS)
    run.cancel()
    assert run.result(LIMIT_SECONDS).status == "success"
    with pytest.raises(RunError, match="has completed"):
        run.resume(backend="simulated")


def test_a_backend_that_was_opened_is_closed_once_even_when_opening_failed(tmp_path):
    backend = Backend(fault=OptionError("broken"))
    with pytest.raises(OptionError, match="broken"):
        pipeline_with(backend=backend).run(logs_root=tmp_path / "run").result(LIMIT_SECONDS)
    assert (backend.opened, backend.closed) == (1, 1)


def test_waiting_in_the_very_loop_that_runs_the_run_is_refused_with_the_remedy(tmp_path):
    async def use():
        run = pipeline_with().run(host="kernel", logs_root=tmp_path / "run")
        with pytest.raises(RunError, match="would stop it"):
            run.result()
        return await run

    assert asyncio.run(use()).status == "success"


def test_a_run_shows_the_graph_that_runs_whatever_is_registered_meanwhile(tmp_path):
    class Rename:
        def apply(self, graph):
            return graph.with_nodes([graph.nodes["work"].with_attrs({"label": "another"})])

    pipeline = pipeline_with()
    run = pipeline.run(logs_root=tmp_path / "run")
    pipeline.register_transform(Rename())
    assert run.result(LIMIT_SECONDS).graph.nodes["work"].label == "work"


LOOP = """digraph g {
    start [shape=Mdiamond] work [type=custom] done [shape=Msquare]
    start -> work
    work -> done [condition="context.is_enough=true"]
    work -> work [condition="context.is_enough!=true", loop_restart=true]
}"""


def test_ruling_18_a_token_bound_counts_over_restarts(tmp_path):
    def spend(*_):
        return Outcome(StageStatus.SUCCESS, usage=Usage(input_tokens=10, calls=1))

    result = pipeline_with(spend, LOOP).run(wait=True, logs_root=tmp_path / "run", max_tokens_total=25)
    assert result.status == "fail"
    assert "max_tokens_total=25 reached" in result.reason
    assert result.usage.total_tokens == 30


def test_run_pipeline_takes_a_context_again_that_an_earlier_run_has_filled():
    context = Context({"ticket": "42"})
    first = run_pipeline(
        SOURCE.replace("{", '{ goal="one"', 1).replace("[type=custom]", ""), context, durability="none"
    )
    second = run_pipeline(
        SOURCE.replace("{", '{ goal="two"', 1).replace("[type=custom]", ""), context, durability="none"
    )
    assert (first.status, second.status) == ("success", "success")
    assert second.context["graph.goal"] == context["graph.goal"] == "two"
    assert second.context["ticket"] == "42"


def test_a_run_that_stores_nothing_still_shows_what_its_commands_left(make, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    command = "echo hi; cd $ATTRACTOR_STAGE_DIR; echo kept > own.txt; mkdir d; ln -s own.txt link"
    result = make(f't [shape=parallelogram, tool_command="{command}"] start -> t -> done').run(
        wait=True, durability="none"
    )
    assert result.status == "success"
    assert (result["t"].files("own.txt"), result["t"].files("status.json") is None) == ("kept\n", False)
    assert result["t"].files("link") is None
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_stores_nothing_leaves_nothing_when_its_commands_restart(make, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rounds = [1, 2, 3]
    pipeline = make(
        't [shape=parallelogram, tool_command="true"] a start -> a -> t\n'
        't -> a [condition="context.round!=3", loop_restart=true] t -> done [condition="context.round=3"]',
        backend=lambda node, prompt, context: Outcome.success(context_updates={"round": rounds.pop(0)}),
    )
    result = pipeline.run(wait=True, durability="none")
    assert (result.status, rounds, list(tmp_path.iterdir())) == ("success", [], [])
