"""Files that a user names: written whole or not at all, and what is no file is not replaced by one."""

import os
import threading

import pytest

from attractor_nb.errors import StorageError
from attractor_nb.storage.files.user_files import write_file


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write_file(pipe, "drawn")
    assert pipe.is_fifo()
    reader.join(60)
    assert read == ["drawn"]


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(StorageError, match="cannot be written: Is a directory"):
        write_file(tmp_path, "drawn")
    assert list(tmp_path.iterdir()) == []


def test_a_text_that_the_disk_does_not_take_leaves_the_old_one(tmp_path, monkeypatch):
    kept = tmp_path / "kept.dot"
    write_file(kept, "old")

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", refuse)
    with pytest.raises(StorageError, match=r"kept\.dot cannot be written: No space left on device"):
        write_file(kept, "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("kept.dot", "old")]
