"""The states that a power loss may leave, by the model of disks/power_loss.py: one rule a test."""

import os

import pytest

from tests.disks.power_loss import PowerLoss, write_image
from tests.disks.recorded_disk import RecordedDisk


@pytest.fixture
def disk(tmp_path):
    root = tmp_path / "disk"
    root.mkdir()
    (root / "old").write_bytes(b"old")
    return RecordedDisk(root)


@pytest.fixture
def top(disk):
    descriptor = disk.open_directory(disk.root)
    yield descriptor
    os.close(descriptor)


def left_by(disk, count=60):
    """All that a power loss after the last operation may leave."""
    loss = PowerLoss(disk)
    while loss.advance():
        pass
    return list(loss.images(count, 1))


def contents(disk, name):
    return {image.get(name, "absent") for image in left_by(disk)}


def written(disk, top, name, data, *, is_flushed=False):
    descriptor = disk.create(name, top)
    disk.write(descriptor, data)
    if is_flushed:
        disk.sync(descriptor)
    disk.close(descriptor)


def test_what_was_there_before_stays(disk, top):
    written(disk, top, "new", b"new")
    assert contents(disk, "old") == {b"old"}


def test_a_file_that_was_never_flushed_may_be_whole_zeros_empty_or_absent(disk, top):
    written(disk, top, "new", b"new")
    assert contents(disk, "new") == {b"new", bytes(3), b"", "absent"}


def test_a_flushed_file_is_whole_but_its_name_may_be_lost(disk, top):
    written(disk, top, "new", b"new", is_flushed=True)
    assert contents(disk, "new") == {b"new", "absent"}


def test_a_flushed_directory_keeps_a_name_but_not_what_it_names(disk, top):
    written(disk, top, "new", b"new")
    disk.sync(top)
    assert contents(disk, "new") == {b"new", bytes(3), b""}


def test_both_flushed_is_durable(disk, top):
    written(disk, top, "new", b"new", is_flushed=True)
    disk.sync(top)
    assert contents(disk, "new") == {b"new"}


def test_a_rename_is_whole_or_not_at_all_until_it_is_flushed(disk, top):
    written(disk, top, "temporary", b"new", is_flushed=True)
    disk.rename("temporary", "old", top)
    assert contents(disk, "old") == {b"old", b"new"}
    disk.sync(top)
    assert contents(disk, "old") == {b"new"}
    assert contents(disk, "temporary") == {"absent"}


def test_sectors_are_lost_one_by_one_and_in_any_order(disk, top):
    descriptor = disk.create("new", top)
    disk.write(descriptor, bytes(1024))
    disk.sync(descriptor)
    disk.sync(top)
    disk.write_at(descriptor, b"a" * 1024, 0)
    disk.close(descriptor)
    halves = {(image["new"][:512], image["new"][512:]) for image in left_by(disk)}
    zeros, letters = bytes(512), b"a" * 512
    assert halves == {(first, second) for first in (zeros, letters) for second in (zeros, letters)}


def test_a_sector_is_as_it_was_at_some_moment(disk, top):
    descriptor = disk.create("new", top)
    disk.write(descriptor, bytes(8))
    disk.sync(descriptor)
    disk.sync(top)
    disk.write_at(descriptor, b"one", 0)
    disk.write_at(descriptor, b"two", 4)
    disk.close(descriptor)
    assert contents(disk, "new") == {bytes(8), b"one" + bytes(5), b"one\0two\0"}


def test_a_cut_may_be_lost(disk, top):
    descriptor = disk.open_update("old", top)
    disk.truncate(descriptor, 1)
    disk.close(descriptor)
    assert {b"old", b"o"} <= contents(disk, "old")


def test_what_is_in_a_lost_directory_is_lost_though_it_was_flushed(disk, top):
    disk.make_directory("inner", top)
    inner = disk.open_directory("inner", top)
    written(disk, inner, "new", b"new", is_flushed=True)
    disk.sync(inner)
    disk.close(inner)
    assert contents(disk, "inner/new") == {b"new", "absent"}
    disk.sync(top)
    assert contents(disk, "inner/new") == {b"new"}


def test_a_directory_never_ends_up_within_itself(disk, top):
    for name in ("outer", "inner", "aside"):
        disk.make_directory(name, top)
    outer, inner, aside = (disk.open_directory(name, top) for name in ("outer", "inner", "aside"))
    disk.sync(top)
    disk.rename("inner", "inner", top, outer)
    disk.sync(outer)
    disk.rename("inner", "inner", outer, aside)
    disk.rename("outer", "outer", top, inner)
    disk.sync(inner)
    for descriptor in (outer, inner, aside):
        disk.close(descriptor)
    assert all("aside/inner/outer" in image for image in left_by(disk))


def test_a_removed_file_may_come_back(disk, top):
    disk.remove("old", top)
    assert contents(disk, "old") == {b"old", "absent"}


def test_a_second_name_has_the_same_content(disk, top):
    disk.link("old", "second", top)
    disk.sync(top)
    assert contents(disk, "second") == {b"old"}


def test_an_image_becomes_a_disk(disk, top, tmp_path):
    disk.make_directory("inner", top)
    written(disk, top, "new", b"new")
    place = tmp_path / "copy"
    place.mkdir()
    write_image(left_by(disk, 1)[0], place)
    assert (place / "new").read_bytes() == b"new"
    assert (place / "inner").is_dir()


def test_notes_are_found_again(disk, top):
    disk.note("before")
    disk.sync(top)
    disk.note("after")
    assert list(disk.notes()) == [(0, "before"), (2, "after")]
