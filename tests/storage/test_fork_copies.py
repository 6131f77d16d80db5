"""The files that a fork copies from its parent, which may be running meanwhile."""

import errno

import pytest

from attractor_nb.errors import StorageError
from attractor_nb.storage import stored_run
from attractor_nb.storage.stored_run import copied_files, read_run


@pytest.fixture
def parent(create, event_of):
    """A run with one stage."""
    store = create()
    for number in range(1, 4):
        store.append(event_of(number), is_synced=True)
    store.open_stage("plan", 1, 1).write_text("response.md", "a plan")
    return read_run(store.logs_root)


def test_a_file_that_a_running_parent_moves_is_looked_for_again(parent, monkeypatch):
    read, gone = stored_run.read_plain_file, [True]
    monkeypatch.setattr(
        stored_run, "read_plain_file", lambda *args, **bounds: None if gone and gone.pop() else read(*args, **bounds)
    )
    assert copied_files(parent, parent.events) == {"plan/response.md": b"a plan"}
    assert gone == []


def test_a_parent_that_never_holds_still_is_not_forked(parent, monkeypatch):
    monkeypatch.setattr(stored_run, "read_plain_file", lambda *_, **__: None)
    with pytest.raises(StorageError, match="begins stages faster than their files can be copied") as caught:
        copied_files(parent, parent.events)
    assert caught.value.hint == "fork it when it waits or has ended"


def test_a_stage_that_may_not_be_read_is_not_left_out(parent, monkeypatch):
    def refuse(place):
        raise PermissionError(errno.EACCES, "Permission denied", str(place))

    monkeypatch.setattr(stored_run.os, "scandir", refuse)
    with pytest.raises(StorageError, match=r"cannot read .*/plan: permission denied"):
        copied_files(parent, parent.events)
