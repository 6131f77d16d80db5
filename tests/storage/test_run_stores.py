"""The promises of every store (``protocols.RunStore``), and those of the directory store alone."""

import contextlib
import errno
import subprocess
import sys

import pytest

from attractor_nb.context import Context
from attractor_nb.errors import CheckpointCorrupt, OptionError, RunError, RunNotFound, StorageError
from attractor_nb.protocols import RunStore
from attractor_nb.storage.memory_store import MemoryRunStore
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stored_run import read_run
from tests.disks.faulty_disk import FaultyDisk

MAX_KEPT_BYTES = 16 * 1024 * 1024


class TestEveryStore:
    @pytest.fixture(params=["full", "fast", "memory"])
    def store(self, request, create, clock):
        if request.param != "memory":
            yield create(durability=request.param)
            return
        store = MemoryRunStore(clock=clock, manifest={"run_id": "abcdefgh"})
        yield store
        store.close()

    def test_it_has_the_form_of_a_run_store(self, store):
        seam: RunStore = store
        assert seam.logs_root.is_absolute()
        assert seam.artifact_count == 0

    def test_it_takes_events_in_order(self, store, event_of):
        for number in range(1, 20):
            store.append(event_of(number), is_synced=number % 2 == 0)
        assert store.sequence == 19
        kept = () if isinstance(store, MemoryRunStore) else tuple(range(1, 20))
        assert tuple(event.sequence for event in store.read_events()) == kept

    def test_files_of_a_stage_are_written_appended_and_read(self, store):
        files = store.open_stage("plan", 1, 1)
        assert files.read_text("prompt.md") is None
        files.append_text("response.md", "a")
        files.append_text("response.md", "b")
        files.write_text("prompt.md", "old")
        files.write_text("prompt.md", "new")
        assert (files.read_text("prompt.md"), files.read_text("response.md")) == ("new", "ab")

    @pytest.mark.parametrize("is_directory_used", [False, True])
    def test_a_file_is_created_once_whoever_was_first(self, store, is_directory_used):
        files = store.open_stage("plan", 1, 1)
        assert not is_directory_used or files.directory.is_dir()
        assert files.create_deferred("status.json", lambda: "first")
        assert not files.create_deferred("status.json", lambda: "second")
        assert files.read_text("status.json") == "first"
        files.write_text("status.json", "third")
        assert not files.create_deferred("status.json", lambda: "fourth")
        assert files.read_text("status.json") == "third"

    def test_what_others_created_stays_as_it_is(self, store):
        files = store.open_stage("plan", 1, 1)
        for kind in ("status.json", "dir", "link"):
            place = files.directory / kind
            if kind == "dir":
                place.mkdir()
            elif kind == "link":
                place.symlink_to("nowhere")
            else:
                place.write_text("theirs")
            assert not files.create_deferred(kind, lambda: "ours")
        assert files.read_text("status.json") == "theirs"
        assert not (files.directory / "nowhere").exists()

    def test_a_new_attempt_begins_without_files(self, store):
        store.open_stage("plan", 1, 1).write_text("status.json", "{}")
        assert store.open_stage("plan", 1, 2).read_text("status.json") is None

    def test_what_others_write_into_the_directory_of_a_stage_is_read(self, store):
        files = store.open_stage("plan", 1, 1)
        files.write_text("prompt.md", "asked")
        assert (files.directory / "prompt.md").read_text() == "asked"
        (files.directory / "status.json").write_text("{}")
        assert files.read_text("status.json") == "{}"
        files.append_text("prompt.md", " again")
        files.write_text("more.md", "x")
        assert (files.directory / "prompt.md").read_text() == "asked again"
        assert store.open_stage("plan", 1, 2).directory == files.directory
        assert not (files.directory / "status.json").exists()

    def test_a_hostile_node_id_stays_inside(self, store):
        assert store.open_stage("../../x", 1, 1).directory.parent == store.logs_root

    def test_large_values_of_a_context_read_back(self, store):
        context = Context({"big": "x" * 200_000}, store=store.values)
        assert context.get("big") == "x" * 200_000
        assert store.artifact_count == 1

    def test_checkpoints_and_manifest_are_taken(self, store, checkpoint):
        store.is_checkpoint_due()
        store.save_checkpoint(checkpoint, is_forced=True)
        store.save_manifest({"status": "completed"})
        assert store.manifest["status"] == "completed"

    def test_a_restart_is_a_fresh_store_inside_the_first_run(self, store):
        store.open_stage("plan", 1, 1).write_text("prompt.md", "x")
        fresh = store.make_restart(1, "ijklmnop")
        assert fresh.logs_root == store.logs_root / "restart-1"
        assert fresh.open_stage("plan", 1, 1).read_text("prompt.md") is None
        assert fresh.manifest["run_id"] == "ijklmnop"
        fresh.close()

    def test_a_second_close_changes_nothing(self, store):
        store.close()
        files = {path: path.is_dir() or path.read_bytes() for path in store.logs_root.rglob("*")}
        store.close()
        assert {path: path.is_dir() or path.read_bytes() for path in store.logs_root.rglob("*")} == files


def test_a_memory_run_leaves_nothing_on_disk(clock):
    store = MemoryRunStore(clock=clock)
    store.open_stage("plan", 1, 1).write_text("prompt.md", "x")
    assert not store.logs_root.exists()
    assert store.open_stage("tool", 1, 1).directory.is_dir()
    store.close()
    assert not store.logs_root.exists()


def test_a_memory_run_that_was_closed_makes_no_directory(clock):
    store = MemoryRunStore(clock=clock)
    files = store.open_stage("plan", 1, 1)
    store.close()
    with pytest.raises(StorageError, match="is closed"):
        _ = files.directory


def test_a_memory_run_forgets_the_files_of_its_oldest_stages(clock):
    store = MemoryRunStore(clock=clock)
    stages = [store.open_stage("plan", visit, 1) for visit in (1, 2, 3)]
    for files in stages:
        files.write_text("response.md", "x" * (MAX_KEPT_BYTES * 2 // 5))
    assert [files.read_text("response.md") is None for files in stages] == [True, False, False]
    store.open_stage("plan", 4, 1).write_text("response.md", "x" * (MAX_KEPT_BYTES + 1))
    assert [files.read_text("response.md") is None for files in stages] == [True, True, True]
    store.close()


def test_a_memory_run_without_a_place_for_directories_is_a_storage_error(clock, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    store = MemoryRunStore(clock=clock)
    with pytest.raises(StorageError, match="cannot make directory"):
        _ = store.open_stage("plan", 1, 1).directory
    store.close()


def test_spec_5_6_a_fresh_run_directory_has_source_manifest_and_log(create):
    store = create("a/b/run")
    assert {entry.name for entry in store.logs_root.iterdir()} == {
        "events.jsonl", "manifest.json", "owner.json", "owner.lock", "pipeline.dot",
    }  # fmt: skip
    assert (store.logs_root / "pipeline.dot").read_text() == "digraph {}"
    assert store.logs_root.stat().st_mode & 0o777 == 0o700


def test_an_empty_directory_can_become_a_run_and_a_run_cannot_become_another(create, tmp_path, event_of):
    (tmp_path / "run").mkdir()
    store = create("run")
    store.append(event_of(1), is_synced=True)
    store.close()
    with pytest.raises(StorageError, match="holds a run already"):
        create("run")


def test_another_engines_checkpoint_is_not_overwritten(create, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/checkpoint.json").write_text("{}")
    with pytest.raises(StorageError, match="holds a run already"):
        create("run")


@pytest.mark.parametrize("way", ["create", "reopen"])
def test_an_unknown_durability_is_refused(request, way, tmp_path):
    with pytest.raises(OptionError, match="durability 'none' is not known"):
        request.getfixturevalue(way)(tmp_path / "run", durability="none")


def test_what_is_no_run_cannot_be_taken_over(reopen, tmp_path):
    with pytest.raises(RunNotFound, match="there is no run directory"):
        reopen(tmp_path / "none")
    with pytest.raises(RunNotFound, match=r"has no events\.jsonl"):
        reopen(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot open"):
        reopen(tmp_path / "file")


def test_temporary_files_of_a_killed_owner_are_swept(create, reopen):
    store = create()
    store.close()
    (store.logs_root / ".attractor-tmp-old").write_text("")
    reopen(store.logs_root)
    assert not (store.logs_root / ".attractor-tmp-old").exists()


def test_a_damaged_log_is_not_taken_over_and_not_changed(create, reopen, event_of):
    store = create()
    for number in (1, 2, 3):
        store.append(event_of(number), is_synced=True)
    store.close()
    place = store.logs_root / "events.jsonl"
    damaged = place.read_bytes().replace(b'"sequence":2', b'"sequence":3', 1)
    place.write_bytes(damaged)
    with pytest.raises(CheckpointCorrupt):
        reopen(store.logs_root)
    assert place.read_bytes() == damaged


def test_a_lost_manifest_is_written_anew(create, reopen, event_of):
    store = create()
    store.append(event_of(1), is_synced=True)
    store.close()
    (store.logs_root / "manifest.json").unlink()
    reopen(store.logs_root)
    assert read_run(store.logs_root).manifest["pipeline_name"] == "review"


def test_a_manifest_that_cannot_be_written_anew_is_a_storage_error(create, reopen, event_of):
    store = create()
    store.append(event_of(1), is_synced=True)
    store.close()
    (store.logs_root / "manifest.json").unlink()
    counted = FaultyDisk()
    reopen(store.logs_root, disk=counted).close()
    (store.logs_root / "manifest.json").unlink()
    with pytest.raises(StorageError):
        reopen(store.logs_root, disk=FaultyDisk(fail_at=len(counted.operations)))
    reopen(store.logs_root)


def test_ruling_21_restarts_lie_in_the_first_run_and_are_linked_both_ways(create, reopen, event_of):
    first = create()
    first.append(event_of(1), is_synced=True)
    second = first.make_restart(1, "bbbbbbbb")
    second.append(event_of(1), is_synced=True)
    first.close()
    third = second.make_restart(2, "cccccccc")
    assert third.logs_root == first.logs_root / "restart-2"
    assert (first.manifest["restarted_as"], second.manifest["restart_of"]) == ("restart-1", "..")
    assert (second.manifest["restarted_as"], third.manifest["restart_of"]) == ("../restart-2", "../restart-1")
    assert third.manifest["status"] == "running"
    assert (third.logs_root / "pipeline.dot").read_text() == "digraph {}"
    second.close()
    third.close()
    fourth = reopen(third.logs_root).make_restart(3, "dddddddd")
    assert fourth.logs_root == first.logs_root / "restart-3"
    fourth.close()


def test_a_restart_that_never_began_does_not_stand_in_the_way(create):
    store = create()
    (store.logs_root / "restart-1").mkdir()
    (store.logs_root / "restart-1/old").write_text("")
    (store.logs_root / "restart-1/owner.lock").write_text("")
    store.make_restart(1, "bbbbbbbb").close()
    store.make_restart(1, "cccccccc").close()
    assert (store.logs_root / "restart-1-leftover-1/old").exists()
    assert (store.logs_root / "restart-1-leftover-2/events.jsonl").exists()


def test_a_leftover_of_a_restart_that_cannot_be_renamed_stays_where_it_is(create):
    disk = FaultyDisk()
    store = create(disk=disk)
    (store.logs_root / "restart-1").mkdir()
    (store.logs_root / "restart-1/old").write_text("old")
    (store.logs_root / "restart-1/owner.lock").write_text("")
    disk._fail_at = len(disk.operations) + 2
    with pytest.raises(StorageError, match=r"cannot rename .*/restart-1: input/output error"):
        store.make_restart(1, "bbbbbbbb")
    assert disk.operations[-1] == ("rename", "restart-1-leftover-1")
    assert (store.logs_root / "restart-1/old").read_text() == "old"


def test_ruling_37_what_no_run_wrote_is_not_renamed_for_a_restart(create):
    store = create()
    (store.logs_root / "restart-1").mkdir()
    (store.logs_root / "restart-1/mine.txt").write_text("mine")
    with pytest.raises(StorageError, match="is in the place of a restart"):
        store.make_restart(1, "bbbbbbbb")
    assert (store.logs_root / "restart-1/mine.txt").read_text() == "mine"


def test_ruling_37_a_directory_that_holds_anything_else_is_refused_before_the_first_byte(create, tmp_path):
    mine = {"src/main.py": "code", "manifest.json": '{"name": "my extension"}', "pipeline.dot": "digraph {}"}
    for name, text in mine.items():
        (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / name).write_text(text)
    with pytest.raises(
        StorageError, match=r"contains files that no run wrote: manifest.json, pipeline.dot and src"
    ) as caught:
        create()
    assert "empty or not there yet" in caught.value.hint
    found = {str(path.relative_to(tmp_path / "run")) for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert found == set(mine)
    assert all((tmp_path / "run" / name).read_text() == text for name, text in mine.items())


def test_ruling_37_an_empty_directory_and_a_beginning_that_was_cut_off_are_free(create, tmp_path):
    (tmp_path / "run").mkdir()
    create().close()
    store = create()  # the one before never wrote a record
    assert (store.logs_root, store.sequence) == (tmp_path / "run", 0)
    store.close()


def test_ruling_37_a_log_that_cannot_be_read_is_not_taken_for_a_beginning_that_was_cut_off(create, tmp_path):
    create().close()
    (tmp_path / "run/events.jsonl").unlink()
    (tmp_path / "run/events.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="holds a run"):
        create()
    assert not (tmp_path / "elsewhere").exists()


def test_a_restart_whose_link_cannot_be_written_is_not_owned(create, reopen):
    disk = FaultyDisk()
    store = create(disk=disk)
    store.make_restart(1, "bbbbbbbb").close()
    count = len(disk.operations)
    store.make_restart(2, "cccccccc").close()
    operations = len(disk.operations) - count
    disk._fail_at = len(disk.operations) + operations
    with pytest.raises(StorageError):
        store.make_restart(3, "dddddddd")
    reopen(store.logs_root / "restart-3")


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
def test_fault_3_a_fault_at_any_operation_is_typed_and_leaves_a_run_that_reads_and_resumes(
    tmp_path, clock, event_of, checkpoint, error
):
    def live(disk, path):
        store = DirectoryRunStore.create(
            path, durability="full", source_text="digraph {}", manifest={"run_id": "abcdefgh"}, clock=clock, disk=disk
        )
        try:
            for number in range(1, 6):
                acknowledged.append(0)
                store.append(event_of(number), is_synced=True)
                acknowledged[-1] = number
                store.open_stage("plan", number, 1).write_text("status.json", "{}")
                store.values.externalize("big", ["x" * 200_000])
                store.save_checkpoint({**checkpoint, "logs": [str(number)]}, is_forced=True)
        finally:
            store.close()

    acknowledged = []
    counted = FaultyDisk()
    live(counted, tmp_path / "counted")
    for number in range(1, len(counted.operations) + 1):
        path = tmp_path / str(number)
        acknowledged = []
        with contextlib.suppress(StorageError):
            live(FaultyDisk(fail_at=number, error=error), path)
        if not (path / "events.jsonl").exists():
            continue
        again = DirectoryRunStore.open(path, durability="full", clock=clock)
        again.close()
        run = read_run(path)
        known = max([0, *acknowledged])
        assert run.events == tuple(event_of(sequence) for sequence in range(1, len(run.events) + 1))
        assert known <= len(run.events) <= known + 1
        if run.checkpoint:
            assert run.checkpoint["logs"] == [str(run.checkpoint["log_sequence"])]


KILLED = """
import sys
from pathlib import Path
from attractor_nb.engine.time_limits import SystemClock
from attractor_nb.model.events import PipelineStarted, StageStarted
from attractor_nb.storage.run_store import DirectoryRunStore
from tests.disks.faulty_disk import FaultyDisk

base, first, last = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
import os
for number in range(first, last):
    if os.fork() == 0:
        path = base / str(number)
        disk = FaultyDisk(kill_at=number)
        store = DirectoryRunStore.create(
            path, durability="fast", source_text="digraph {}", manifest={"run_id": "a"}, clock=SystemClock(), disk=disk
        )
        seen = os.open(base / f"{number}.seen", os.O_WRONLY | os.O_CREAT)
        for sequence in range(1, 5):
            event = PipelineStarted if sequence == 1 else StageStarted
            extra = {"id": "a"} if sequence == 1 else {"visit": sequence}
            store.append(event(sequence=sequence, name="plan", **extra), is_synced=True)
            os.write(seen, b".")
            store.open_stage("plan", sequence, 1).write_text("status.json", str(sequence))
            store.save_checkpoint(
                {"current_node": "", "completed_nodes": [], "context": {}, "logs": [str(sequence)]}, is_forced=True
            )
        os._exit(7)
    _, status = os.wait()
    if os.waitstatus_to_exitcode(status) == 7:
        break
"""


def test_fault_1_killed_at_any_operation_a_run_reads_and_resumes_with_all_that_was_acknowledged(tmp_path, reopen):
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), "1", "200"], check=True)
    killed = sorted((path for path in tmp_path.iterdir() if path.is_dir()), key=lambda path: int(path.name))
    assert 30 < len(killed) < 199
    for path in killed:
        if not (path / "events.jsonl").exists():
            continue
        reopen(path).close()
        run = read_run(path)
        seen = tmp_path / f"{path.name}.seen"
        known = len(seen.read_bytes()) if seen.exists() else 0
        assert known <= len(run.events) <= known + 1
        assert run.problems == ()
        if run.checkpoint:
            assert run.checkpoint["logs"] == [str(run.checkpoint["log_sequence"])]
        for status in path.glob("plan/**/status.json"):
            assert status.read_text()


@pytest.mark.parametrize("text", ['{"goal": 1}\n', '{"goal": 1}\n{"goal": 2}\n', "kick-off", ""])
def test_ruling_37_somebody_elses_events_are_looked_at_before_anything_is_written(reopen, tmp_path, text):
    (tmp_path / "games").mkdir()
    (tmp_path / "games/events.jsonl").write_text(text)
    with pytest.raises(RunError):
        reopen(tmp_path / "games")
    assert [(path.name, path.read_text()) for path in (tmp_path / "games").iterdir()] == [("events.jsonl", text)]
