"""Files that a user names to be read whole: within bounds, and without an endless wait."""

import os
import select
import threading
from pathlib import Path

import pytest

from attractor_nb.errors import OptionError
from attractor_nb.given_files import read_bytes, read_file


def test_a_pipe_to_which_nobody_writes_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OptionError, match="pipe cannot be read: it is a pipe, and nobody writes to it") as told:
        read_bytes(tmp_path / "pipe")
    assert told.value.hint == "start the command that writes to it first, or name a file"


def test_a_pipe_is_read_to_its_end_however_late_the_text_comes(monkeypatch):
    reads, writes = os.pipe()
    waits = threading.Event()
    wait = select.select

    def noticed(*descriptors):
        waits.set()
        return wait(*descriptors)

    def write():
        with os.fdopen(writes, "wb", buffering=0) as file:
            waits.wait(60)
            file.write(b"a" * 100_000)
            file.write(b"b")

    monkeypatch.setattr("select.select", noticed)
    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    assert read_bytes(Path(f"/dev/fd/{reads}")) == b"a" * 100_000 + b"b"
    os.close(reads)
    writer.join(60)


@pytest.mark.parametrize("place", ["/dev/zero", "large"])
def test_what_has_no_end_or_is_too_large_is_refused_within_the_bound(tmp_path, place):
    (tmp_path / "large").write_bytes(b"x" * 1001)
    with pytest.raises(OptionError, match=r"has more than 1,000 bytes, and no more are read"):
        read_bytes(tmp_path / place, max_bytes=1000)


def test_a_file_of_the_largest_size_is_read(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * 1000)
    assert read_bytes(tmp_path / "large", max_bytes=1000) == b"x" * 1000


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (".", "cannot be read: it is a directory"),
        ("missing", "cannot be read: No such file or directory"),
        ("a\0b", "cannot be read: embedded null byte"),
        ("latin", r"is not UTF-8 text \(line 2\)"),
    ],
    ids=["directory", "missing", "NUL", "not UTF-8"],
)
def test_what_cannot_be_read_is_said_with_a_remedy(tmp_path, name, message):
    (tmp_path / "latin").write_bytes(b"a\n\xe9")
    with pytest.raises(OptionError, match=message) as told:
        read_file(tmp_path / name)
    assert told.value.hint


def test_a_byte_order_mark_is_no_text(tmp_path):
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbfa")
    assert read_file(tmp_path / "marked") == "a"
