"""The files of an attempt, listed while its owner still writes: nothing planted is opened."""

import errno
import os

import psutil
import pytest

from attractor_nb.errors import StorageError
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.stages.stage_directories import Listing, StageFile, list_stage, read_beginning


def test_a_stage_without_a_directory_has_left_nothing(tmp_path):
    assert list_stage(tmp_path / "none", tmp_path) == Listing(())


def test_what_its_owner_renames_while_it_is_listed_is_left_out(tmp_path, monkeypatch):
    class Renaming:
        """A listing that is read to its end, and then a temporary file gets its name."""

        def __init__(self, place):
            with scan(place) as entries:
                self.entries = list(entries)
            (tmp_path / "prompt.part").replace(tmp_path / "prompt.md")

        def __enter__(self):
            return iter(self.entries)

        def __exit__(self, *_):
            pass

    scan = os.scandir
    for name in ("prompt.part", "response.md"):
        (tmp_path / name).write_text("x")
    monkeypatch.setattr(os, "scandir", Renaming)
    assert list_stage(tmp_path, tmp_path) == Listing((StageFile("response.md", 1),))


def test_a_folder_that_goes_while_its_stage_is_listed_has_nothing_in_it(tmp_path, monkeypatch):
    def removing(disk, name, parent=None):
        if name == tmp_path / "out":
            name.rmdir()
        return open_directory(disk, name, parent)

    open_directory = Disk.open_directory
    (tmp_path / "response.md").write_text("x")
    (tmp_path / "out").mkdir()
    monkeypatch.setattr(Disk, "open_directory", removing)
    assert list_stage(tmp_path, tmp_path) == Listing((StageFile("response.md", 1),))


def test_a_link_in_the_place_of_a_stage_is_not_followed(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("x")
    (tmp_path / "plan").symlink_to(tmp_path / "outside")
    with pytest.raises(StorageError, match=r"cannot list .*/plan"):
        list_stage(tmp_path / "plan", tmp_path)


def test_a_stage_that_may_not_be_listed_has_not_left_nothing(tmp_path, monkeypatch):
    def refuse(place):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)
    before = psutil.Process().num_fds()
    with pytest.raises(StorageError, match=f"cannot list {tmp_path}: permission denied"):
        list_stage(tmp_path, tmp_path)
    assert psutil.Process().num_fds() == before


@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_no_plain_file_is_not_read_and_not_waited_for(tmp_path, plant):
    plant(tmp_path / "response.md")
    before = psutil.Process().num_fds()
    with pytest.raises(StorageError, match=r"/response\.md is not a plain file; it is not opened"):
        read_beginning(tmp_path, "response.md", 100, tmp_path)
    assert psutil.Process().num_fds() == before


@pytest.mark.parametrize(
    ("data", "text"),
    [("aaé".encode(), "aa"), ("a€".encode(), "a"), (b"\xffab\xc3\xa9", "\ufffdab\ufffd"), (b"\xffabc", "\ufffdab")],
    ids=["two bytes", "three bytes", "no text, and cut", "no text"],
)
def test_a_character_that_is_cut_in_two_is_left_out_and_others_are_replaced(tmp_path, data, text):
    (tmp_path / "response.md").write_bytes(data)
    assert read_beginning(tmp_path, "response.md", len(data) - 1, tmp_path) == (text, len(data))
