"""The durable writer: new content whole, or the old content."""

import errno
import os
import stat

import psutil
import pytest

from attractor_nb.errors import OptionError, StorageError
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, entries_below, read_plain_file, sweep, write_whole
from attractor_nb.storage.files.disk import Disk, check_durability, write_all
from tests.disks.faulty_disk import FaultyDisk


@pytest.fixture
def home(tmp_path):
    descriptor = os.open(tmp_path, os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def write(disk, home, tmp_path, data, **options):
    write_whole(disk, home, "a.json", data, directory=tmp_path, is_synced=True, **options)


def test_a_file_is_written_for_its_owner_alone(home, tmp_path):
    write(Disk(), home, tmp_path, b"new")
    assert (tmp_path / "a.json").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o600


def test_content_is_flushed_before_its_name_and_the_name_before_the_return(home, tmp_path):
    disk = FaultyDisk()
    write(disk, home, tmp_path, b"new")
    assert [operation for operation, _ in disk.operations] == ["create", "write", "sync", "rename", "sync"]


def test_the_replaced_file_can_be_kept_and_one_of_both_is_always_there(home, tmp_path):
    write(Disk(), home, tmp_path, b"one", keep_as="b.json")
    assert not (tmp_path / "b.json").exists()
    disk = FaultyDisk()
    write(disk, home, tmp_path, b"two", keep_as="b.json")
    assert ((tmp_path / "a.json").read_bytes(), (tmp_path / "b.json").read_bytes()) == (b"two", b"one")
    assert [name for operation, name in disk.operations if operation == "rename"] == ["b.json", "a.json"]


def test_two_names_of_one_file_as_a_kill_leaves_them_leave_no_temporary_name_behind(home, tmp_path):
    write(Disk(), home, tmp_path, b"one")
    os.link(tmp_path / "a.json", tmp_path / "b.json")
    write(Disk(), home, tmp_path, b"two", keep_as="b.json")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.json", "b.json"]
    assert ((tmp_path / "a.json").read_bytes(), (tmp_path / "b.json").read_bytes()) == (b"two", b"one")


@pytest.mark.parametrize(
    "error", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS], ids=errno.errorcode.get
)
@pytest.mark.parametrize("number", range(1, 6))
def test_a_fault_at_any_operation_leaves_the_old_or_the_new_content(home, tmp_path, number, error):
    (tmp_path / "a.json").write_bytes(b"old")
    with pytest.raises(StorageError) as caught:
        write(FaultyDisk(fail_at=number, error=error), home, tmp_path, b"new content")
    assert "a.json" in caught.value.path
    assert caught.value.hint
    # Only the last operation, the flush of the directory, comes after the rename.
    assert (tmp_path / "a.json").read_bytes() == (b"new content" if number == 5 else b"old")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_a_link_in_the_place_of_the_target_is_replaced_and_not_followed(home, tmp_path):
    (tmp_path / "outside").write_text("precious")
    (tmp_path / "a.json").symlink_to(tmp_path / "outside")
    write(Disk(), home, tmp_path, b"new")
    assert (tmp_path / "outside").read_text() == "precious"
    assert not (tmp_path / "a.json").is_symlink()


def test_sweeping_removes_temporary_files_and_nothing_else(home, tmp_path):
    (tmp_path / f"{TEMPORARY_PREFIX}1").write_text("")
    (tmp_path / "a.json").write_text("")
    assert sweep(Disk(), home) == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_a_sweep_that_fails_is_no_fault(home, tmp_path):
    (tmp_path / f"{TEMPORARY_PREFIX}1").write_text("")
    assert sweep(FaultyDisk(fail_at=1), home) == 0


def test_reading_what_is_not_there_gives_nothing(tmp_path):
    assert read_plain_file(tmp_path / "none", max_bytes=10) is None


@pytest.mark.parametrize("plant", ["link", "fifo", "directory"])
def test_reading_refuses_what_is_no_plain_file_and_never_waits(tmp_path, plant):
    place = tmp_path / "planted"
    if plant == "link":
        place.symlink_to("/etc/hostname")
    elif plant == "fifo":
        os.mkfifo(place)
    else:
        place.mkdir()
    with pytest.raises(StorageError, match="cannot read"):
        read_plain_file(place, max_bytes=10)


def test_reading_refuses_a_file_over_the_limit(tmp_path):
    (tmp_path / "big").write_bytes(b"x" * 11)
    with pytest.raises(StorageError, match="11 bytes are more than the 10 allowed"):
        read_plain_file(tmp_path / "big", max_bytes=10)


def test_a_file_that_the_disk_cannot_give_is_a_storage_error(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "a").write_bytes(b"0123456789")
    before = psutil.Process().num_fds()
    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(StorageError, match=r"cannot read .*/a: input/output error"):
        read_plain_file(tmp_path / "a", max_bytes=10)
    assert psutil.Process().num_fds() == before


def test_reading_can_begin_at_an_offset(tmp_path):
    (tmp_path / "a").write_bytes(b"0123456789")
    assert read_plain_file(tmp_path / "a", max_bytes=10, offset=7) == b"789"


class _Dripping(Disk):
    """Takes one byte at a time, and none once its room is used up."""

    def __init__(self, room):
        self.room = room

    def write(self, descriptor, data):
        self.room -= 1
        return 0 if self.room < 0 else super().write(descriptor, data[:1])


def test_all_is_written_however_little_the_system_takes(tmp_path):
    with (tmp_path / "a").open("wb") as file:
        write_all(_Dripping(9), file.fileno(), b"patience")
    assert (tmp_path / "a").read_bytes() == b"patience"


def test_a_disk_that_takes_nothing_is_a_fault(tmp_path):
    with (tmp_path / "a").open("wb") as file, pytest.raises(OSError, match="took no more"):
        write_all(_Dripping(3), file.fileno(), b"patience")


def test_an_unknown_durability_is_an_option_error():
    with pytest.raises(OptionError, match="'sometimes'"):
        check_durability("sometimes")


@pytest.mark.parametrize("is_known", [True, False], ids=["full flush", "file system without full flush"])
def test_on_macos_a_flush_reaches_the_medium_where_the_file_system_can(tmp_path, monkeypatch, is_known):
    calls = []

    def full_flush(descriptor, command):
        if not is_known:
            raise OSError(errno.ENOTSUP, "not supported")
        calls.append(command)

    monkeypatch.setattr("fcntl.fcntl", full_flush)
    monkeypatch.setattr("attractor_nb.storage.files.disk.os.fsync", lambda _: calls.append("fsync"))
    monkeypatch.setattr("attractor_nb.storage.files.disk.sys.platform", "darwin")
    with (tmp_path / "a").open("wb") as file:
        Disk().sync_data(file.fileno())
    monkeypatch.undo()
    assert calls == ([51] if is_known else ["fsync"])


def test_entries_below_a_directory_follow_no_link_and_leave_out_what_is_being_written(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("s")
    root = tmp_path / "root"
    for name in ("b", "a/c", "a/visits", "visits/1", f"{TEMPORARY_PREFIX}1/x", f"a/{TEMPORARY_PREFIX}2"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "z").symlink_to("b")
    found = [name for name, _ in entries_below(root, is_left_out="visits".__eq__)]
    assert found == ["b", "link", "z", "a/c", "a/visits"]
    assert [name for name, _ in entries_below(root)] == [*found, "visits/1"]
