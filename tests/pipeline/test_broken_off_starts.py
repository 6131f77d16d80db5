"""A start that is broken off gives up its directory: a resume in the same process would find it locked."""

import asyncio
import importlib
import json
import logging
import signal
import threading

import pytest

from attractor_nb import FunctionBackend, Pipeline
from attractor_nb.errors import RunInterrupted
from attractor_nb.runtime.handles.handle import Handle, HandleJob, HostedTask, RunStopped, live_jobs, new_job
from attractor_nb.storage.log.lock import is_owned
from attractor_nb.testing import ScriptedBackend

ONE_STAGE = "digraph one { start [shape=Mdiamond] work done [shape=Msquare] start -> work -> done }"
NESTED = """digraph top { start [shape=Mdiamond] sub [type=pipeline, pipeline.name=one] done [shape=Msquare]
    start -> sub -> done }"""


class BrokenOff(BaseException):
    """Stands for an interrupt that comes within one call."""


def one_stage(**options):
    return Pipeline(ONE_STAGE, **{"backend": ScriptedBackend({}), **options})


def stopped_run(place):
    return one_stage().run(logs_root=place, stop_after=1, wait=True)


def ended_map(place):
    return one_stage().map([{}], map_dir=place, wait=True)


def legacy_run(place):
    place.mkdir()
    (place / "checkpoint.json").write_text(
        json.dumps({"current_node": "work", "completed_nodes": ["start"], "context": {}, "timestamp": 1.0})
    )


@pytest.fixture
def broken(monkeypatch):
    """Break every call of a function off."""

    def replace(name):
        def break_off(*_, **__):
            raise BrokenOff

        monkeypatch.setattr(f"attractor_nb.{name}", break_off)

    return replace


@pytest.mark.parametrize(
    ("before", "start", "where"),
    [
        pytest.param(None, lambda place: one_stage().run(logs_root=place), "runtime.begin.mirror_graph", id="begin"),
        pytest.param(None, lambda place: one_stage().run(logs_root=place), "runtime.launch.new_job", id="launch"),
        pytest.param(
            stopped_run, lambda place: one_stage().resume(place), "runtime.launch.new_job", id="launch of a resume"
        ),
        pytest.param(None, lambda place: one_stage().map([{}], map_dir=place), "maps.map_launch.new_job", id="map"),
        pytest.param(
            ended_map,
            lambda place: one_stage().resume_map(place),
            "storage.map_directory.MapDirectory.save",
            id="resume of a map",
        ),
    ],
)
def test_a_start_that_is_broken_off_gives_its_directory_up(tmp_path, broken, before, start, where):
    place = tmp_path / "place"
    if before is not None:
        before(place)
    broken(where)
    with pytest.raises(BrokenOff) as told:
        start(place)
    assert told.value.__traceback__ is not None, "what the start had made is still alive"
    assert (place / "owner.json").exists()
    assert not is_owned(place)


def test_a_resume_of_the_older_layout_that_is_broken_off_gives_its_new_directory_up(tmp_path, broken):
    legacy_run(tmp_path / "old")
    broken("runtime.stored_state._place_legacy")
    with pytest.raises(BrokenOff) as told:
        one_stage().resume(tmp_path / "old", runs_dir=tmp_path / "runs")
    assert told.value.__traceback__ is not None, "what the start had made is still alive"
    [place] = (tmp_path / "runs").glob("[!.]*")
    assert not is_owned(place)


def test_a_row_that_is_broken_off_before_it_begins_gives_its_directory_up(tmp_path, broken):
    broken("maps.row_run.wire")
    with pytest.raises(BrokenOff) as told:
        one_stage().map([{}], map_dir=tmp_path / "map", wait=True)
    assert told.value.__traceback__ is not None, "what the start had made is still alive"
    assert (tmp_path / "map/row-00000/owner.json").exists()
    assert not is_owned(tmp_path / "map/row-00000")
    assert not is_owned(tmp_path / "map")


def test_a_fault_of_a_plug_is_its_rows_failure_without_secrets_and_the_log_has_its_traceback(
    tmp_path, monkeypatch, caplog
):
    def fail(*_, **__):
        raise ZeroDivisionError("with key-0123456789")

    monkeypatch.setattr("attractor_nb.maps.row_run.wire", fail)
    with caplog.at_level(logging.ERROR):
        [row] = one_stage().map([{}], map_dir=tmp_path / "map", wait=True, secrets=["key-0123456789"])
    assert (row.status, row.reason) == ("fail", "ZeroDivisionError: with [redacted]")
    assert "row 0 of a map cannot be run" in caplog.text
    assert "ZeroDivisionError: with [redacted]" in caplog.text
    assert not is_owned(tmp_path / "map/row-00000")


def test_a_child_that_cannot_be_announced_gives_its_directory_up_and_fails_its_stage(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("nothing can be said")

    monkeypatch.setattr("attractor_nb.runtime.child_runs.announce_start", fail)
    pipeline = Pipeline(NESTED, pipelines={"one": one_stage()}, backend=ScriptedBackend({}))
    result = pipeline.run(logs_root=tmp_path / "run", wait=True)
    assert (result.status, result.reason) == ("fail", "ZeroDivisionError: nothing can be said")
    [owner] = (tmp_path / "run/children").rglob("owner.json")
    assert not is_owned(owner.parent)


# -- an interrupt before anybody has the handle ------------------------------------------------------------


@pytest.fixture
def pressed(monkeypatch):
    """Press Ctrl-C before a function is called."""

    def replace(name):
        module, _, attribute = f"attractor_nb.{name}".rpartition(".")
        inner = getattr(importlib.import_module(module), attribute)

        def interrupted(*given, **named):
            signal.raise_signal(signal.SIGINT)
            return inner(*given, **named)

        monkeypatch.setattr(f"{module}.{attribute}", interrupted)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield replace
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("before", "start", "during", "message", "hint"),
    [
        pytest.param(
            None,
            lambda place: one_stage().run(logs_root=place),
            "runtime.launch.wire",
            "stopped before it began; no stage of it was run",
            "start it anew",
            id="run",
        ),
        pytest.param(
            stopped_run,
            lambda place: one_stage().resume(place),
            "runtime.launch.wire",
            "stopped before it was resumed",
            "resume it again",
            id="resume",
        ),
        pytest.param(
            None,
            lambda place: one_stage().map([{}], map_dir=place),
            "maps.map_launch.new_job",
            "the map was stopped before it began",
            "resume_map",
            id="map",
        ),
    ],
)
def test_an_interrupt_before_the_start_says_how_to_go_on_and_leaves_nothing_owned(
    tmp_path, pressed, before, start, during, message, hint
):
    place = tmp_path / "place"
    if before is not None:
        before(place)
    pressed(during)
    with pytest.raises(RunInterrupted, match=message) as told:
        start(place)
    assert hint in told.value.hint
    assert not is_owned(place)
    assert not live_jobs()


@pytest.fixture
def waited_for(monkeypatch):
    """Do something once while a handle waits for its work, which ends only when it is told to stop."""
    reached = threading.Event()

    async def work(node, prompt, context):
        reached.set()
        await asyncio.Event().wait()

    def begin(act):
        done = []

        def look(gates, *, is_blocking):
            if reached.is_set() and not done:
                done.append(is_blocking)
                act()

        monkeypatch.setattr("attractor_nb.runtime.handles.handle.check_wait", look)
        monkeypatch.setattr("attractor_nb.runtime.handles.handle.SLICE_SECONDS", 0.01)
        return one_stage(backend=FunctionBackend(work)).run(durability="none", is_shown=False)

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield begin
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_of_a_wait_stops_the_run_and_says_how_to_go_on(waited_for):
    run = waited_for(lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(RunInterrupted, match="was stopped") as told:
        run.result(60)
    assert "resume" in told.value.hint
    assert run.result(60).status == "interrupted"


def test_an_interrupt_by_a_handler_of_the_programs_own_stops_the_run_too(waited_for):
    def press():
        raise KeyboardInterrupt

    run = waited_for(press)
    signal.signal(signal.SIGINT, lambda number, frame: press())
    with pytest.raises(RunInterrupted, match="was stopped"):
        run.result(60)
    assert run.is_done
    assert run.result(60).status == "interrupted"


def test_an_interrupt_of_an_await_in_a_loop_that_leaves_it_to_python_stops_the_run(waited_for):
    run = waited_for(lambda: signal.raise_signal(signal.SIGINT))
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(RunInterrupted, match="was stopped") as told:
            loop.run_until_complete(_awaited(run))
    finally:
        loop.close()
    assert not isinstance(told.value, RunStopped), "nobody has cancelled the await"
    assert run.result(60).status == "interrupted"


async def _awaited(run):
    return await run


def test_an_interrupt_in_the_moment_in_which_the_handle_is_given_stops_the_run(monkeypatch, waited_for):
    start = HostedTask.start

    def started(job, work):
        start(job, work)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(HostedTask, "start", started)
    with pytest.raises(RunInterrupted, match="was stopped"):
        waited_for(list)
    assert not live_jobs()


@pytest.mark.parametrize("wait", [Handle.result, Handle._stop_for_nobody], ids=["result", "nobody"])
def test_a_handle_on_work_that_was_given_up_before_it_began_says_so(wait):
    """A widget may have the handle of a map whose start is broken off behind it."""
    work = HandleJob("the map")
    handle = Handle(work)
    work.job = new_job("thread", "a map")
    work.job.future.cancel()
    work.job.future.set_running_or_notify_cancel()
    with pytest.raises(RunInterrupted, match="the map was stopped before it began"):
        wait(handle)
