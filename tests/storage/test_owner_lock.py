"""One owner per run directory; the lock dies with its owner."""

import json
import os
import subprocess
import sys
import threading

import pytest

from attractor_nb.errors import RunLocked, StorageError
from attractor_nb.storage.log.lock import is_owned, read_owner
from attractor_nb.storage.stored_run import read_run
from tests.disks.faulty_disk import FaultyDisk

OWNER = """
import sys
from pathlib import Path
from attractor_nb.engine.system_clock import SystemClock
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
