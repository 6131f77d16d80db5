"""Links and records that a stranger's folder plants beside its runs reach nothing outside of the root (ruling 43)."""

import json
import os
import time

import pytest

from attractor_nb.errors import StorageError
from attractor_nb.server.recovery import Recovery
from attractor_nb.server.replies import Reply
from attractor_nb.server.request_calls import Ledger
from attractor_nb.server.run_service import RunService
from attractor_nb.server.server_runs import StartedRuns
from attractor_nb.storage.own_places import is_own_place
from tests.server.conftest import running

LONG_AGO = time.time() - 30 * 24 * 3600


@pytest.fixture
def treasure(tmp_path):
    """A folder of the user with old files."""
    folder = tmp_path / "documents"
    (folder / "runs").mkdir(parents=True)
    (folder / "keys").mkdir()
    (folder / "other").mkdir()
    for name in ("notes.json", "thesis.txt", "runs/notes.json", "keys/thesis.txt"):
        (folder / name).write_text("years of work")
        os.utime(folder / name, (LONG_AGO, LONG_AGO))
    return folder


def content(folder):
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_nothing_is_made_behind_a_planted_link(root, tmp_path):
    (tmp_path / "empty").mkdir()
    plant(root, ".server", tmp_path / "empty")
    with pytest.raises(StorageError, match="a link"), StartedRuns(root).held("a"):
        pass
    assert not list((tmp_path / "empty").iterdir())


def plant(root, link, treasure):
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to(treasure, target_is_directory=True)


LINKS = [".server", ".server/runs", ".server/keys"]


@pytest.mark.parametrize("link", LINKS)
def test_a_server_that_starts_over_planted_links_forgets_nothing_of_the_users(root, treasure, link):
    plant(root, link, treasure)
    before = content(treasure)
    service = RunService(root, 4)
    assert service.started.ids() == []
    Recovery(service)._begin(["notes"])
    assert content(treasure) == before


@pytest.mark.parametrize("link", LINKS)
def test_a_key_sweeps_and_writes_nothing_behind_a_planted_link(root, treasure, link):
    plant(root, link, treasure)
    before = content(treasure)
    if link == ".server/runs":
        assert Ledger(root).once("k", b"", lambda _: Reply(b"{}")).status == 200
    else:
        with pytest.raises(StorageError, match="a link"):
            Ledger(root).once("k", b"", lambda _: Reply(b"{}"))
    assert content(treasure) == before


@pytest.mark.parametrize("link", LINKS[:2])
def test_a_run_is_not_noted_behind_a_planted_link(root, treasure, link):
    plant(root, link, treasure)
    before = content(treasure)
    started = StartedRuns(root)
    with pytest.raises(StorageError, match="a link"), started.noted("notes"):
        pass
    with pytest.raises(StorageError, match="a link"), started.held("notes"):
        pass
    started.forget("notes")
    assert started.read("notes") is None
    assert content(treasure) == before


def test_a_server_over_planted_links_says_what_to_remove(root, treasure, sources):
    plant(root, ".server", treasure)
    before = content(treasure)
    with running(root) as client:
        refused = client.post("/pipelines", {"source": sources.plain})
        assert (refused.status_code, client.get("/pipelines").status_code) == (503, 200)
        assert "a link" in refused.json()["detail"]
    assert content(treasure) == before


def test_a_lock_that_is_a_planted_link_empties_no_file(root, treasure):
    place = root / ".server/runs"
    place.mkdir(parents=True)
    (place / "a.lock").symlink_to(treasure / "thesis.txt")
    try:
        with StartedRuns(root).held("a"):
            pass
    except StorageError:
        pass
    assert (treasure / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(
    "name", ["../../documents/notes", "a/../../../documents/notes", "/etc/passwd", "..", ".", "a\x00b"]
)
def test_an_id_that_is_a_path_is_no_run(root, treasure, name):
    started = StartedRuns(root)
    before = content(treasure)
    started.forget(name)
    assert started.read(name) is None
    assert content(treasure) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of another user")
def test_a_record_of_another_user_takes_up_no_run(root):
    started = StartedRuns(root)
    with started.noted("a"):
        pass
    record = root / ".server/runs/a.json"
    assert started.read("a") is not None
    os.chown(record, 12345, 12345)
    with pytest.raises(StorageError, match="another user"):
        started.read("a")
    with started.noted("a"):  # whoever goes on with it by hand may
        assert json.loads(record.read_text())["owners"]
    assert record.stat().st_uid == os.geteuid()


def test_only_records_of_keys_are_swept(root):
    place = root / ".server/keys"
    place.mkdir(parents=True)
    for name in ("thesis.txt", "a" * 64 + ".json", "b" * 64 + ".lock"):
        (place / name).write_text("x")
        os.utime(place / name, (LONG_AGO, LONG_AGO))
    Ledger(root).once("k", b"", lambda _: Reply(b"{}"))
    left = {path.name for path in place.iterdir()}
    assert "thesis.txt" in left
    assert not {"a" * 64 + ".json", "b" * 64 + ".lock"} & left


def test_a_place_of_which_the_disk_says_nothing_is_an_error(tmp_path):
    with pytest.raises(StorageError, match="name too long"):
        is_own_place(tmp_path / ("x" * 300), ".server/runs")


def test_records_that_cannot_be_listed_are_none(root, monkeypatch):
    (root / ".server" / "runs").mkdir(parents=True)
    monkeypatch.setattr(os, "scandir", lambda place: (_ for _ in ()).throw(PermissionError(13, "no permission")))
    assert StartedRuns(root).ids() == []
