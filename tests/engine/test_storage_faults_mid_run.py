"""A disk that says no in the middle of a run: StorageError, nothing committed lost, and it can go on."""

import asyncio
import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb import Pipeline, Run, runs
from attractor_nb.errors import RunError, RunLocked, RunNotFound, StorageError
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.log.event_log import CLOSED_MODE
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.testing import ManualClock, ScriptedBackend
from tests.disks.faulty_disk import FaultyDisk

SOURCE = "digraph g { start [shape=Mdiamond] done [shape=Msquare] a b start -> a -> b -> done }"
PATH = ("start", "a", "b", "done")


def operations_of_a_run(tmp_path):
    disk = FaultyDisk()
    Pipeline(SOURCE).run(wait=True, logs_root=tmp_path / "counted", durability="fast", disk=disk)
    return len(disk.operations)


def gone_on(pipeline, root):
    """The result of the run: of a resume, or the recorded one when its end was recorded before the fault."""
    if Run.load(root).status == "completed":
        return Run.load(root).result()
    try:
        return pipeline.resume(root).result(60)
    except RunNotFound:  # the fault came before the first record: there is nothing to go on with
        return pipeline.run(wait=True, logs_root=root)


@pytest.mark.parametrize("share", [0.2, 0.35, 0.5, 0.65, 0.8, 0.95])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
def test_a_fault_in_mid_run_is_a_storage_error_and_the_run_can_go_on(tmp_path, share, error):
    count = operations_of_a_run(tmp_path)
    disk = FaultyDisk(fail_at=max(1, int(count * share)), error=error, lasts=10**6)
    backend = ScriptedBackend()
    pipeline = Pipeline(SOURCE, backend=backend)
    with pytest.raises(StorageError) as caught:
        pipeline.run(wait=True, logs_root=tmp_path / "run", durability="fast", disk=disk)
    assert caught.value.hint
    committed = tuple(Run.load(tmp_path / "run").result().completed_nodes)
    assert committed == PATH[: len(committed)]
    result = gone_on(pipeline, tmp_path / "run")
    assert (result.status, result.completed_nodes) == ("success", PATH)


@pytest.mark.parametrize("at", range(1, 40))
def test_a_full_disk_promises_a_resume_only_where_the_log_has_a_record(tmp_path, at):
    disk = FaultyDisk(fail_at=at, error=errno.ENOSPC, lasts=10**6)
    root, pipeline = tmp_path / "run", Pipeline(SOURCE)
    with pytest.raises(StorageError) as caught:
        pipeline.run(wait=True, logs_root=root, durability="fast", disk=disk)
    if "can then be resumed" in caught.value.hint:
        assert pipeline.resume(root).result(60).status == "success"
        return
    assert "then start the run anew, for nothing of it was recorded" in caught.value.hint
    with pytest.raises(RunNotFound):
        pipeline.resume(root, disk=FaultyDisk(fail_at=1, error=errno.ENOSPC, lasts=10**6))
    assert pipeline.run(wait=True, logs_root=root, durability="fast").status == "success"


@pytest.mark.parametrize("at", range(8))
def test_one_fault_that_passes_never_makes_a_wrong_end(tmp_path, at):
    count = operations_of_a_run(tmp_path)
    disk = FaultyDisk(fail_at=max(4, count * (at + 1) // 9), error=errno.EIO)
    pipeline = Pipeline(SOURCE)
    try:
        result = pipeline.run(wait=True, logs_root=tmp_path / "run", durability="fast", disk=disk)
    except StorageError:
        if not (tmp_path / "run" / "events.jsonl").exists():
            return
        result = gone_on(pipeline, tmp_path / "run")
    assert (result.status, result.completed_nodes) == ("success", PATH)


def test_the_awaiting_caller_gets_the_storage_error_too(tmp_path):
    count = operations_of_a_run(tmp_path)
    disk = FaultyDisk(fail_at=count // 2, error=errno.ENOSPC, lasts=10**6)
    with pytest.raises(StorageError, match="no space left"):
        asyncio.run(Pipeline(SOURCE).run_async(logs_root=tmp_path / "run", disk=disk))


def test_two_owners_are_refused_in_one_process(make, tmp_path):
    pipeline = make('g [shape=hexagon] start -> g g -> done [label="[Y] Yes"]', interviewer="deferred")
    run = pipeline.run(logs_root=tmp_path / "run")
    run.wait_for_gate("g", 60)
    with pytest.raises(RunLocked):
        pipeline.resume(tmp_path / "run")
    run.answer("g", "Y")
    assert run.result(60).status == "success"


def test_two_owners_are_refused_across_processes(make, tmp_path):
    pipeline = make('g [shape=hexagon] start -> g g -> done [label="[Y] Yes"]', interviewer="deferred")
    run = pipeline.run(logs_root=tmp_path / "run")
    run.wait_for_gate("g", 60)
    program = (
        "import sys; from attractor_nb import load_pipeline; from attractor_nb.errors import RunLocked\n"
        "try: load_pipeline(sys.argv[1]).resume(sys.argv[1], backend='simulated')\n"
        "except RunLocked as error: print(error.owner['pid'])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=60,
        env=_environment(),
    )
    run.answer("g", "Y")
    run.result(60)
    assert told.stdout.strip() == str(os.getpid()), told.stderr


def _environment():
    return {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


def test_a_directory_that_holds_a_run_is_not_taken_for_another(make, tmp_path):
    pipeline = make("start -> done")
    pipeline.run(wait=True, logs_root=tmp_path / "run")
    before = (tmp_path / "run/events.jsonl").read_bytes()
    with pytest.raises(StorageError, match="holds a run already"):
        pipeline.run(wait=True, logs_root=tmp_path / "run")
    assert (tmp_path / "run/events.jsonl").read_bytes() == before


def test_an_end_that_never_reached_the_manifest_is_told_by_the_log_and_mended(make, tmp_path):
    pipeline = make("start -> done")
    pipeline.run(wait=True, logs_root=tmp_path / "base" / "run")
    manifest = tmp_path / "base" / "run" / "manifest.json"
    store = DirectoryRunStore.open(manifest.parent, durability="fast", clock=ManualClock())
    store.save_manifest({"status": "running", "end_time": None})
    store.close()
    assert Run.load(manifest.parent).status == "completed"
    with pytest.raises(RunError, match="has completed"):
        pipeline.resume(manifest.parent)
    assert [run.status for run in runs(tmp_path / "base")] == ["completed"]


class TakenOverAtTheIntent(Disk):
    """Another owner closes the log just when the intent of stage ``a`` was written."""

    def write(self, descriptor, data):
        written = super().write(descriptor, data)
        if b'"type":"StageStarted"' in data and b'"name":"a"' in data:
            os.fchmod(descriptor, CLOSED_MODE)
        return written


@pytest.mark.parametrize("on_interrupted", ["rerun", "fail"])
def test_a_run_that_was_taken_over_when_it_said_its_intent_executes_nothing(tmp_path, on_interrupted):
    backend = ScriptedBackend()
    source = SOURCE.replace(" a b ", f' a [on_interrupted="{on_interrupted}"] b ')
    with pytest.raises(RunLocked, match="taken over"):
        Pipeline(source, backend=backend).run(
            wait=True, logs_root=tmp_path / "run", durability="fast", disk=TakenOverAtTheIntent()
        )
    assert backend.calls == []
    assert not (tmp_path / "run/a/status.json").exists()


class AgentAtTheLastMoment(Disk):
    """An agent writes its status.json just when ours is about to be created."""

    def create(self, name, parent):
        if name == "status.json":
            with open(name, "x", opener=lambda path, flags: os.open(path, flags, dir_fd=parent)) as file:
                file.write('{"outcome": "partial_success", "notes": "by the agent"}')
        return super().create(name, parent)


def test_ruling_27_a_status_that_an_agent_writes_at_the_last_moment_counts(tmp_path):
    pipeline = Pipeline(SOURCE, backend=ScriptedBackend())
    run = pipeline.run(wait=True, logs_root=tmp_path / "run", durability="fast", disk=AgentAtTheLastMoment())
    assert run["a"].outcome.notes == "by the agent"
    assert "by the agent" in (tmp_path / "run/a/status.json").read_text()
