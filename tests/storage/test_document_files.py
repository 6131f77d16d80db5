"""Files that are saved for others: whole or not at all, and no temporary file beside them."""

import errno
import hashlib
import os

import pytest

from attractor_nb.storage.files.document_files import DocumentFolder, NoDocument


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("is_new", [True, False], ids=["new", "there already"])
def test_a_save_that_fails_leaves_what_was_there_and_nothing_else(tmp_path, monkeypatch, error, is_new):
    def fail(_):
        raise error

    if not is_new:
        (tmp_path / "a.dot").write_text("old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(type(error)):
        DocumentFolder(tmp_path).write("a.dot", "new", "" if is_new else hashlib.sha256(b"old").hexdigest())
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == ({} if is_new else {"a.dot": "old"})


def test_a_folder_that_is_gone_has_no_documents(tmp_path):
    folder = DocumentFolder(tmp_path / "gone")
    assert folder.list() == ([], False)
    for act in (lambda: folder.read("a.dot"), lambda: folder.write("a.dot", "new", "")):
        with pytest.raises(NoDocument, match="there is none"):
            act()
