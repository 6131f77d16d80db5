"""One owner per run directory; the lock dies with its owner."""

import errno
import json
import os
import subprocess
import sys
import threading

import filelock
import psutil
import pytest

from attractor_nb.errors import RunLocked, StorageError
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.log import event_log, lock
from attractor_nb.storage.log.lock import is_owned, read_owner
from attractor_nb.storage.run_store import DirectoryRunStore
from attractor_nb.storage.stored_run import read_run
from attractor_nb.testing import ManualClock
from tests.disks.faulty_disk import FaultyDisk

OWNER = """
import sys
from pathlib import Path
from attractor_nb.engine.time_limits import SystemClock
from attractor_nb.storage.run_store import DirectoryRunStore
store = DirectoryRunStore.open(Path(sys.argv[1]), durability="fast", clock=SystemClock())
print("owned", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other_owner(create):
    """A run directory that another process owns."""
    store = create()
    store.close()
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(store.logs_root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout.readline() == b"owned\n"
    yield store.logs_root, process
    process.kill()
    process.communicate()


def test_a_second_owner_is_told_who_the_first_one_is(other_owner, reopen):
    logs_root, process = other_owner
    with pytest.raises(RunLocked) as caught:
        reopen(logs_root)
    assert caught.value.owner["pid"] == process.pid
    assert {"host", "since"} <= caught.value.owner.keys()
    assert f"is owned by process {process.pid} on " in caught.value.message


@pytest.fixture
def ended_pid():
    """The number of a process that is gone."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def without_word(logs_root, pid):
    """As the directory is when a new owner has the lock, and has not yet written who it is."""
    word = logs_root / "owner.json"
    present = word.read_text()
    word.write_text(json.dumps({**json.loads(present), "pid": pid}))
    left = logs_root / "left.json"
    left.write_text(present)
    return lambda: left.replace(word)


def test_an_owner_that_has_not_left_word_yet_is_not_taken_for_the_one_before(other_owner, reopen, ended_pid):
    logs_root, process = other_owner
    leave_word = without_word(logs_root, ended_pid)
    timer = threading.Timer(0.2, leave_word)
    timer.start()
    with pytest.raises(RunLocked) as caught:
        reopen(logs_root)
    timer.join()
    assert caught.value.owner["pid"] == process.pid


def test_an_owner_that_leaves_no_word_is_another_process(other_owner, reopen, ended_pid):
    logs_root, _ = other_owner
    without_word(logs_root, ended_pid)
    with pytest.raises(RunLocked, match="is owned by another process") as caught:
        reopen(logs_root)
    assert caught.value.owner == {}


def test_a_second_owner_in_the_same_process_is_refused_too(create, reopen):
    store = create()
    with pytest.raises(RunLocked):
        reopen(store.logs_root)


def test_reading_needs_no_ownership(other_owner):
    logs_root, process = other_owner
    run = read_run(logs_root)
    assert (run.is_owned, run.owner["pid"], run.status) == (True, process.pid, "running")


def test_a_killed_owner_frees_the_run(other_owner, reopen):
    logs_root, process = other_owner
    assert is_owned(logs_root)
    process.kill()
    process.wait()
    assert not is_owned(logs_root)
    assert read_run(logs_root).status == "abandoned"
    reopen(logs_root)
    assert read_owner(logs_root)["pid"] == os.getpid()


def test_a_closed_store_frees_the_run(create, reopen):
    store = create()
    store.close()
    assert not is_owned(store.logs_root)
    reopen(store.logs_root)


def test_a_directory_that_nobody_ever_owned_is_free(tmp_path):
    assert not is_owned(tmp_path)
    assert read_owner(tmp_path) == {}


@pytest.mark.parametrize("content", ["", "[1]", "{"], ids=["empty", "list", "no json"])
def test_unreadable_facts_about_an_owner_are_no_facts(tmp_path, content):
    (tmp_path / "owner.json").write_text(content)
    assert read_owner(tmp_path) == {}


def test_an_owner_that_cannot_say_who_it_is_gives_up(create):
    refused = []
    while not refused or "owner.json" not in refused[-1]:
        with pytest.raises(StorageError) as caught:
            create(disk=FaultyDisk(fail_at=len(refused) + 1))
        refused.append(str(caught.value))
    create()


def test_a_planted_lock_is_refused(create, reopen, tmp_path):
    store = create()
    store.close()
    (store.logs_root / "owner.lock").unlink()
    (store.logs_root / "owner.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="cannot lock"):
        reopen(store.logs_root)
    assert not (tmp_path / "elsewhere").exists()


def swapped(path):
    path.unlink()
    path.touch()


@pytest.mark.parametrize("act", [swapped, lambda path: path.unlink()], ids=["another file", "no file"])
def test_a_lock_on_a_file_that_is_not_the_lock_file_any_more_is_none(create, reopen, monkeypatch, act):
    store = create()
    store.close()
    take = filelock.FileLock.acquire

    def acquire(lock, *args, **options):
        held = take(lock, *args, **options)
        act(store.logs_root / "owner.lock")
        return held

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)
    before = psutil.Process().num_fds()
    with pytest.raises(RunLocked, match="is owned by") as caught:
        reopen(store.logs_root)
    assert psutil.Process().num_fds() <= before, caught.value  # earlier tests may leave some to the collector


def test_of_two_who_take_a_run_over_at_once_the_slower_one_is_refused_before_it_changes_the_lock(create, monkeypatch):
    store = create()
    place = store.logs_root / "owner.lock"
    make, faster = lock._new_lock, []

    def new_lock(path):
        if path.name != "owner.lock":
            swapped(place)
            faster.append(place.stat().st_ino)
        return make(path)

    monkeypatch.setattr(lock, "_new_lock", new_lock)
    before = psutil.Process().num_fds()
    with pytest.raises(RunLocked) as caught:  # held, so that its frames keep alive what was not closed
        DirectoryRunStore.open(store.logs_root, durability="fast", clock=ManualClock(), take_over=True)
    assert [place.stat().st_ino] == faster
    assert not list(store.logs_root.glob(".attractor-tmp-*"))
    assert psutil.Process().num_fds() <= before, caught.value  # earlier tests may leave some to the collector


def test_whoever_takes_a_run_over_and_is_swept_away_by_another_is_refused(create):
    class Swept(Disk):
        def rename(self, source, target, parent, target_parent=None):
            if target == "owner.lock":
                self.remove(source, parent)
            super().rename(source, target, parent, target_parent)

    store = create()
    before = psutil.Process().num_fds()
    with pytest.raises(RunLocked, match=f"is owned by process {os.getpid()} ") as caught:
        DirectoryRunStore.open(store.logs_root, durability="fast", clock=ManualClock(), take_over=True, disk=Swept())
    assert psutil.Process().num_fds() <= before, caught.value  # earlier tests may leave some to the collector
    store.check_owner()


def test_where_a_file_system_has_no_locks_nobody_is_known_to_own_a_run(create, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    store = create()
    assert is_owned(store.logs_root)
    with monkeypatch.context() as without_locks:
        without_locks.setattr("fcntl.flock", refuse)
        assert not is_owned(store.logs_root)


def test_an_owner_of_another_user_is_not_taken_for_one_that_is_gone(create, reopen, monkeypatch):
    def refuse(pid, number):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    store = create()
    monkeypatch.setattr(lock.os, "kill", refuse)
    with pytest.raises(RunLocked) as caught:
        reopen(store.logs_root)
    assert caught.value.owner["pid"] == os.getpid()


def test_an_interrupt_while_a_run_is_opened_frees_it(create, reopen, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    store = create()
    store.close()
    before = psutil.Process().num_fds()
    monkeypatch.setattr(event_log, "sweep", interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        reopen(store.logs_root)
    assert psutil.Process().num_fds() <= before, caught.value  # earlier tests may leave some to the collector
    monkeypatch.undo()
    reopen(store.logs_root)
