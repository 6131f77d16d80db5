"""An owner who lost the run writes nothing more, wherever it was; the new one stands alone."""

import inspect
import os

import psutil
import pytest
from filelock import FileLock

from attractor_nb.errors import RunLocked, StorageError
from attractor_nb.model.events import PipelineCompleted, PipelineRestarted, RunWarning, StageStarted
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.log.event_lines import decode_line, encode_event, scan_lines, token_of
from attractor_nb.storage.log.event_log import FencedDisk
from attractor_nb.storage.log.lock import is_owned, read_owner
from attractor_nb.storage.manifest_file import read_last_event
from attractor_nb.storage.run_index import list_runs
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stored_run import read_run
from tests.disks.faulty_disk import FaultyDisk


@pytest.fixture
def take_over(clock):
    """Take a run from a store that still has it; closed at the end of the test."""
    stores = []

    def take(path, **options):
        store = DirectoryRunStore.open(path, durability="fast", clock=clock, take_over=True, **options)
        stores.append(store)
        return store

    yield take
    for store in stores:
        store.close()


def names_in(directory):
    return sorted(entry.name for entry in directory.iterdir())


@pytest.fixture
def begun(create, event_of):
    """A store whose log has one record."""

    def make(name="run"):
        store = create(name)
        store.append(event_of(1), is_synced=True)
        return store

    return make


def test_the_old_owner_is_told_who_has_the_run_and_nothing_of_it_counts(begun, take_over, event_of):
    old = begun()
    new = take_over(old.logs_root)
    with pytest.raises(RunLocked, match=rf"taken over by process {os.getpid()} .*\(owner 2\).* was owner 1"):
        old.append(event_of(2), is_synced=True)
    with pytest.raises(RunLocked):
        old.append(event_of(2), is_synced=False)
    new.append(event_of(2), is_synced=True)
    assert read_run(old.logs_root).events == (event_of(1), event_of(2))


def test_a_commit_of_before_the_take_over_is_in_the_new_log(begun, take_over, event_of):
    old = begun()
    old.append(event_of(2), is_synced=True)
    assert take_over(old.logs_root).read_events() == (event_of(1), event_of(2))


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(lambda store: store.save_manifest({"status": "failed"}), id="manifest"),
        pytest.param(lambda store: store.save_checkpoint({"current_node": ""}, is_forced=True), id="checkpoint"),
        pytest.param(lambda store: store.open_stage("plan", 2, 1), id="stage"),
        pytest.param(lambda store: store.values.externalize("big", "x" * 200_000), id="artifact"),
        pytest.param(lambda store: store.make_restart(1, "b"), id="restart"),
        pytest.param(lambda store: store.check_owner(), id="check"),
    ],
)
def test_the_old_owner_changes_nothing(begun, take_over, act):
    old = begun()
    take_over(old.logs_root)
    before = {path: path.read_bytes() for path in old.logs_root.rglob("*") if path.is_file()}
    with pytest.raises(RunLocked):
        act(old)
    old.close()
    assert {path: path.read_bytes() for path in old.logs_root.rglob("*") if path.is_file()} == before


def test_files_of_a_stage_that_the_old_owner_holds_open_are_evidence_and_not_the_new_ones(begun, take_over, event_of):
    old = begun()
    old.append(event_of(2), is_synced=True)
    files = old.open_stage("plan", 1, 1)
    files.write_text("prompt.md", "old")
    held = os.open(files.directory, os.O_RDONLY)
    new = take_over(old.logs_root).open_stage("plan", 1, 1)
    with pytest.raises(RunLocked):
        files.write_text("status.json", "{}")
    with pytest.raises(RunLocked):
        files.create_deferred("status.json", lambda: "{}")
    with pytest.raises(RunLocked):
        files.append_text("prompt.md", "more")
    os.close(os.open("planted.txt", os.O_CREAT | os.O_WRONLY, dir_fd=held))  # as a command of the old one may
    os.close(held)
    assert names_in(new.directory) == ["visits"]
    assert names_in(new.directory / "visits" / "1.1") == ["planted.txt", "prompt.md"]


def test_a_temporary_file_of_the_old_owner_in_a_stage_is_swept(begun, take_over):
    old = begun()
    place = old.open_stage("plan", 1, 1).directory / ".attractor-tmp-x"
    place.write_text("half")
    take_over(old.logs_root)
    assert not place.exists()


def test_each_owner_has_a_token_one_higher_and_its_records_carry_it(begun, reopen, take_over, event_of):
    store = begun()
    root = store.logs_root
    assert read_owner(root)["token"] == 1
    store.close()
    second = reopen(root)
    second.append(event_of(2), is_synced=True)
    take_over(root).append(event_of(3), is_synced=True)
    lines = (root / "events.jsonl").read_bytes().splitlines()
    assert [token_of(line) for line in lines] == [1, 2, 3]
    assert read_owner(root)["token"] == 3


def test_a_lost_owner_file_does_not_bring_an_old_token_back(begun, reopen, event_of):
    store = begun()
    for number in (2, 3):
        store.close()
        (store.logs_root / "owner.json").unlink()
        store = reopen(store.logs_root)
        store.append(event_of(number), is_synced=True)
        assert read_owner(store.logs_root)["token"] == number


def test_a_removed_lock_file_makes_no_second_owner(begun, reopen, event_of):
    old = begun()
    (old.logs_root / "owner.lock").unlink()
    new = reopen(old.logs_root)
    with pytest.raises(RunLocked):
        old.append(event_of(2), is_synced=True)
    new.append(event_of(2), is_synced=True)


def test_without_a_frozen_owner_a_take_over_is_a_resume_and_the_log_stays_the_same_file(begun, take_over):
    store = begun()
    store.close()
    before = (store.logs_root / "events.jsonl").stat().st_ino
    take_over(store.logs_root)
    assert (store.logs_root / "events.jsonl").stat().st_ino == before


def test_a_take_over_that_died_between_lock_and_fence_is_finished_by_the_next_owner(begun, reopen, event_of):
    old = begun()
    log = old.logs_root / "events.jsonl"
    log.chmod(0o400)
    (old.logs_root / "owner.lock").unlink()
    new = reopen(old.logs_root)
    new.append(event_of(2), is_synced=True)
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_second_take_over_at_the_same_moment_is_refused_or_the_first_loses(begun, take_over, event_of):
    old = begun()
    first = take_over(old.logs_root)
    second = take_over(old.logs_root)
    with pytest.raises(RunLocked, match="was owner 2"):
        first.append(event_of(2), is_synced=True)
    second.append(event_of(2), is_synced=True)


def test_a_record_of_an_owner_who_had_lost_is_never_believed(begun, event_of):
    lines = [encode_event(event_of(1)), encode_event(event_of(2), 3), encode_event(event_of(3), 2)]
    found = scan_lines(b"".join([*lines, encode_event(event_of(3), 3)]), path="events.jsonl")
    assert (len(found.events), found.token, found.rejected) == (3, 3, 1)
    store = begun()
    store.close()
    log = store.logs_root / "events.jsonl"
    log.write_bytes(b"".join(lines))
    assert read_run(log.parent).problems == ("events.jsonl has 1 record of an owner that had lost the run; ignored",)
    assert read_last_event(log.parent) == event_of(2)


@pytest.mark.parametrize("token", [1, 2, 10, 123_456_789])
def test_the_token_of_a_record_is_sealed(event_of, token):
    line = encode_event(event_of(1), token)[:-1]
    assert (token_of(line), decode_line(line)) == (token, event_of(1))
    for place in range(len(line)):
        damaged = bytearray(line)
        damaged[place] ^= 0x01
        assert token_of(bytes(damaged)) == 0


def test_every_operation_of_a_disk_goes_through_its_fence_to_the_disk_that_was_given():
    class Other(Disk):
        pass

    fenced = FencedDisk(Other(), lambda: None)
    for name, _ in inspect.getmembers(Disk, inspect.isfunction):
        if not name.startswith("_"):
            own = getattr(fenced, name)
            assert name in vars(FencedDisk) or isinstance(own.__self__, Other), name


def test_a_file_that_was_opened_while_the_run_was_lost_is_closed_again(tmp_path):
    looks = iter([None, RunLocked("lost")])

    def check():
        if error := next(looks):
            raise error

    home, before = os.open(tmp_path, os.O_RDONLY), psutil.Process().num_fds()
    with pytest.raises(RunLocked, match="lost"):
        FencedDisk(Disk(), check).open_update("response.md", home)
    assert psutil.Process().num_fds() == before
    os.close(home)


def test_a_log_with_a_second_name_elsewhere_is_not_taken_over_and_keeps_its_mode(begun, take_over, tmp_path):
    old = begun()
    (tmp_path / "other").hardlink_to(old.logs_root / "events.jsonl")
    before = (tmp_path / "other").stat().st_mode
    with pytest.raises(StorageError, match=r"cannot take over .*events\.jsonl: the file has a second name somewhere"):
        take_over(old.logs_root)
    assert (tmp_path / "other").stat().st_mode == before


def test_whoever_cannot_say_that_the_run_was_taken_over_leaves_nothing_open_and_no_lock(begun, take_over):
    counted = FaultyDisk()
    take_over(begun("counted").logs_root, disk=counted)
    words = [number for number, (_, name) in enumerate(counted.operations, 1) if name == "owner.json"]
    old = begun()
    before = psutil.Process().num_fds()
    with pytest.raises(StorageError, match=r"owner\.json"):
        take_over(old.logs_root, disk=FaultyDisk(fail_at=words[-1]))
    assert psutil.Process().num_fds() == before
    assert not is_owned(old.logs_root)


def test_temporary_files_of_a_killed_process_are_not_moved_to_the_evidence(begun):
    store = begun()
    files = store.open_stage("plan", 1, 1)
    files.write_text("prompt.md", "x")
    (files.directory / ".attractor-tmp-old").write_text("half")
    store.open_stage("plan", 1, 2)
    assert names_in(files.directory) == ["visits"]
    assert names_in(files.directory / "visits" / "1.1") == ["prompt.md"]


class TestStanding:
    def test_an_end_that_missed_the_manifest_is_read_from_the_log(self, begun):
        store = begun("runs/a")
        store.append(PipelineCompleted(sequence=2, time=60.0, duration=1.0), is_synced=True)
        store.close()
        (run,) = list_runs(store.logs_root.parent)
        assert (run.status, run.end_time) == ("completed", "1970-01-01T00:01:00Z")
        assert read_run(store.logs_root).status == "completed"

    @pytest.mark.parametrize("end", ["completed", "failed", "running"])
    def test_ruling_21_a_run_stands_as_its_restart_does(self, begun, event_of, end):
        store = begun("runs/a")
        fresh = store.make_restart(1, "abcdefgh")
        record = PipelineRestarted(sequence=2, target="plan", restarts=1, logs_root=str(fresh.logs_root))
        store.append(record, is_synced=True)
        fresh.append(event_of(1), is_synced=True)
        store.close()
        fresh.save_manifest({"status": end})
        (run,) = list_runs(store.logs_root.parent)  # its own manifest never heard of the restart
        assert run.status == ("running" if end == "running" else end)
        assert bool(run.owner) == (end == "running")
        fresh.close()
        (run,) = list_runs(store.logs_root.parent)
        assert run.status == ("abandoned" if end == "running" else end)

    def test_a_restart_that_is_gone_leaves_the_run_abandoned(self, begun):
        store = begun("runs/a")
        store.save_manifest({"status": "restarted", "restarted_as": "../../elsewhere"})
        store.close()
        assert read_run(store.logs_root).status == "abandoned"

    def test_the_last_event_is_found_behind_long_lines_free_space_and_a_torn_end(self, begun):
        store = begun()
        store.append(StageStarted(sequence=2, name="plan"), is_synced=True)
        long = RunWarning(sequence=3, message="x" * 200_000)
        store.append(long, is_synced=True)
        store.close()
        log = store.logs_root / "events.jsonl"
        with log.open("ab") as file:
            file.write(b'{"type":"Stage' + bytes(5000))
        assert read_last_event(store.logs_root) == long
        log.write_bytes(b"")
        assert read_last_event(store.logs_root) is None
        log.unlink()
        assert read_last_event(store.logs_root) is None


def test_a_lock_file_that_another_owner_sweeps_away_before_it_is_locked_loses_the_take_over(
    begun, take_over, monkeypatch
):
    """An owner removes temporary files when it opens a run; a lock on a removed file cannot be had."""
    old = begun()
    swept = FileLock(old.logs_root / "swept", thread_local=False)
    monkeypatch.setattr("attractor_nb.storage.log.lock.temporary_name", lambda: "swept")
    with swept, pytest.raises(RunLocked):
        take_over(old.logs_root)
