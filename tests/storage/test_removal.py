"""Removing runs: only runs, only dead ones, only here; and what a killed removal leaves is known."""

from __future__ import annotations

import pytest

from attractor_nb.errors import RunError, RunLocked, RunNotFound, StorageError
from attractor_nb.storage import run_listing
from attractor_nb.storage.log.lock import is_owned
from attractor_nb.storage.run_index import list_runs
from attractor_nb.storage.run_listing import is_half_deleted, remove_run
from tests.disks.faulty_disk import FaultyDisk


@pytest.fixture
def remove(tmp_path, clock):
    return lambda name, base="runs": remove_run(tmp_path / base, tmp_path / base / name, clock=clock)


def test_a_run_is_removed_with_all_that_is_in_it_and_links_are_not_followed(create, remove, tmp_path):
    store = create("runs/a")
    store.close()
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    (store.logs_root / "workspace").mkdir()
    (store.logs_root / "workspace/link").symlink_to(kept)
    remove("a")
    assert list((tmp_path / "runs").iterdir()) == []
    assert (kept / "file").read_text() == "mine"


def test_a_live_run_is_not_removed_and_stays_whole(create, remove):
    store = create("runs/a")
    before = sorted(store.logs_root.iterdir())
    with pytest.raises(RunLocked):
        remove("a")
    assert sorted(store.logs_root.iterdir()) == before


def test_a_run_with_something_alive_inside_is_not_removed(create, remove, tmp_path):
    create("runs/a").close()
    create("runs/a/restart-1")
    with pytest.raises(RunError, match="is alive"):
        remove("a")
    assert (tmp_path / "runs/a/events.jsonl").exists()


def test_what_is_no_run_is_left_alone(remove, tmp_path):
    (tmp_path / "runs/papers").mkdir(parents=True)
    (tmp_path / "runs/papers/thesis.txt").write_text("mine")
    with pytest.raises(RunNotFound, match="no run"):
        remove("papers")
    with pytest.raises(RunNotFound):
        remove("none")
    assert (tmp_path / "runs/papers/thesis.txt").read_text() == "mine"


def test_files_of_the_user_beside_a_run_keep_it_and_are_named(create, remove, tmp_path, event_of):
    """An earlier version took ``--logs-root .`` for a run directory (ruling 37)."""
    store = create("runs/a")
    for sequence in (1, 2):
        store.append(event_of(sequence), is_synced=False)
    store.open_stage("plan", 1, 1).write_text("prompt.md", "p")
    store.close()
    (tmp_path / "runs/a/src").mkdir()
    for name in ("README.md", "src/main.py", ".gitignore"):
        (tmp_path / "runs/a" / name).write_text("mine")
    before = sorted((tmp_path / "runs/a").rglob("*"))
    with pytest.raises(RunError, match=r"no run wrote: \.gitignore, README\.md and src; nothing was"):
        remove("a")
    assert sorted((tmp_path / "runs/a").rglob("*")) == before
    for name in ("README.md", "src/main.py", ".gitignore"):
        (tmp_path / "runs/a" / name).unlink()
    remove("a")
    assert not (tmp_path / "runs/a").exists()


def test_what_was_moved_under_the_visits_of_a_stage_keeps_the_run(create, remove, tmp_path, event_of):
    store = create("runs/a")
    for sequence in (1, 2):
        store.append(event_of(sequence), is_synced=False)
    store.close()
    moved = tmp_path / "runs/a/plan/visits/0.0/main.py"
    moved.parent.mkdir(parents=True)
    moved.write_text("mine")
    with pytest.raises(RunError, match=r"no run wrote: plan/visits/0\.0; nothing"):
        remove("a")
    assert moved.read_text() == "mine"


def test_somebody_elses_events_make_no_run(remove, tmp_path):
    (tmp_path / "runs/games").mkdir(parents=True)
    (tmp_path / "runs/games/events.jsonl").write_text('{"goal": 1}\n')
    with pytest.raises(RunNotFound, match="no run"):
        remove("games")
    assert (tmp_path / "runs/games/events.jsonl").exists()


@pytest.mark.parametrize("name", ["../outside", "a/inner", ".", ".."])
def test_only_a_directory_of_the_base_is_removed(create, remove, tmp_path, name):
    for place in ("runs/a", "outside", "runs/a/inner"):
        create(place).close()
    with pytest.raises(RunError):
        remove(name)
    assert (tmp_path / "outside/events.jsonl").exists()
    assert (tmp_path / "runs/a/inner/events.jsonl").exists()


def test_a_link_to_a_run_is_refused(create, remove, tmp_path):
    create("elsewhere/a").close()
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/a").symlink_to(tmp_path / "elsewhere/a")
    with pytest.raises(StorageError):
        remove("a")
    assert (tmp_path / "elsewhere/a/events.jsonl").exists()


def test_a_removal_that_was_cut_off_is_listed_as_what_it_is_and_ended(create, remove, tmp_path, monkeypatch):
    create("runs/a").close()

    def cut_off(path):
        (path / "events.jsonl").unlink()
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(run_listing.shutil, "rmtree", cut_off)
    cut_off.avoids_symlink_attacks = True
    with pytest.raises(StorageError, match="cannot delete"):
        remove("a")
    (row,) = list_runs(tmp_path / "runs")
    assert is_half_deleted(row.logs_root)
    assert (row.status, "delete it again" in row.note) == ("half-deleted", True)
    monkeypatch.undo()
    remove(row.logs_root.name)
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_run_that_cannot_be_set_aside_stays_whole_and_free(create, tmp_path, clock):
    class NoRename(FaultyDisk):
        def rename(self, source, target, parent, target_parent=None):
            if target.startswith(".deleted-"):
                raise PermissionError(13, "Permission denied")
            super().rename(source, target, parent, target_parent)

    create("runs/a").close()
    with pytest.raises(StorageError, match=r"cannot delete .*/runs/a: permission denied"):
        remove_run(tmp_path / "runs", tmp_path / "runs/a", clock=clock, disk=NoRename())
    assert (tmp_path / "runs/a/events.jsonl").exists()
    assert not is_owned(tmp_path / "runs/a")


def test_remains_of_runs_of_the_same_name_have_names_of_their_own_until_there_are_too_many(create, tmp_path, remove):
    create("runs/a").close()
    (tmp_path / "runs/.deleted-a").mkdir()
    remove("a")
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [".deleted-a"]
    for number in range(2, 1000):
        (tmp_path / f"runs/.deleted-a-{number}").touch()
    create("runs/a").close()
    with pytest.raises(StorageError, match="no free name for the remains of a"):
        remove("a")
    assert (tmp_path / "runs/a/events.jsonl").exists()
    assert not is_owned(tmp_path / "runs/a")


def test_where_links_could_be_followed_nothing_is_removed(create, remove, tmp_path, monkeypatch):
    create("runs/a").close()
    monkeypatch.setattr(run_listing.shutil.rmtree, "avoids_symlink_attacks", False)
    with pytest.raises(StorageError, match=r"this system cannot remove .*/runs/\.deleted-a safely"):
        remove("a")
    assert (tmp_path / "runs/.deleted-a/events.jsonl").exists()
