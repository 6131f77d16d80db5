"""The directories of child runs: found in order, and nothing else taken for one."""

import pytest

from attractor_nb.errors import StorageError
from attractor_nb.storage import child_directories
from attractor_nb.storage.child_directories import latest_run, next_place, runs_of_visit


def test_the_runs_of_a_visit_are_found_in_their_order(tmp_path):
    for count in range(2):
        next_place(tmp_path, 3, count).mkdir()
    assert [place.name for place in runs_of_visit(tmp_path, 3)] == ["3", "3.2"]
    assert runs_of_visit(tmp_path, 4) == []


def test_more_runs_of_a_visit_than_anybody_began_are_not_looked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(child_directories, "MAX_TRIES", 2)
    for count in range(2):
        next_place(tmp_path, 1, count).mkdir()
    with pytest.raises(StorageError, match="holds too many child runs of visit 1"):
        runs_of_visit(tmp_path, 1)


def test_the_latest_run_is_that_of_the_highest_visit(tmp_path):
    for name in ("2", "10", "10.2", "9.3", "pipeline.dot"):
        (tmp_path / name).mkdir()
    assert latest_run(tmp_path) == tmp_path / "10.2"


@pytest.mark.parametrize("home", ["none", "file"])
def test_without_a_home_there_is_no_latest_run(tmp_path, home):
    (tmp_path / "file").write_text("")
    assert latest_run(tmp_path / home) is None


@pytest.mark.parametrize("act", [latest_run, lambda home: runs_of_visit(home, 1)], ids=["latest", "visit"])
def test_a_home_that_cannot_be_looked_at_is_a_storage_error(tmp_path, act):
    with pytest.raises(StorageError, match=r"cannot read .*: file name too long"):
        act(tmp_path / ("x" * 300))
