"""A link in the place of ``.attractor`` in a cloned folder leads nowhere; other places are the user's choice (ruling 43)."""

import os
from pathlib import Path

import pytest

from attractor_nb import Pipeline, Run, gates, runs
from attractor_nb.cli import main
from attractor_nb.cli.shared_options import complete_runs
from attractor_nb.errors import StorageError
from attractor_nb.server import serve
from attractor_nb.server.proxy import _runs_base
from attractor_nb.studio.estimate.preflight import examine_machine

SOURCE = "digraph Clone { start [shape=Mdiamond] a [prompt=x] done [shape=Msquare] start -> a -> done }"


@pytest.fixture(params=["the folder", "its runs"])
def elsewhere(request, tmp_path, monkeypatch):
    """A folder of the user, behind a link that came with the clone that is the working directory."""
    place, clone = tmp_path / "mine", tmp_path / "clone"
    place.mkdir()
    clone.mkdir()
    monkeypatch.chdir(clone)
    if request.param == "the folder":
        (clone / ".attractor").symlink_to(place, target_is_directory=True)
    else:
        (clone / ".attractor").mkdir()
        (clone / ".attractor" / "runs").symlink_to(place, target_is_directory=True)
    return place


def _listed():
    runs()


def _asked():
    gates()


def _run():
    Pipeline(SOURCE).run(wait=True)


def _mapped():
    Pipeline(SOURCE).map([{}])


def _served():
    serve(Path(".attractor/runs"), port=0)


@pytest.mark.parametrize("act", [_run, _mapped, _listed, _asked, _served, _runs_base])
def test_ruling_43_nothing_is_kept_or_looked_for_behind_a_link_that_the_folder_came_with(elsewhere, act):
    with pytest.raises(StorageError, match=r"\.attractor.* is a link to ") as caught:
        act()
    assert str(elsewhere) in caught.value.message
    assert caught.value.hint.startswith("remove the link, or name the directory that you mean: ")
    assert not list(elsewhere.iterdir())


def test_ruling_43_a_fork_of_a_row_is_kept_behind_no_such_link(elsewhere, tmp_path):
    Pipeline(SOURCE).map([{}], map_dir=tmp_path / "map", wait=True)
    with pytest.raises(StorageError, match="is a link to"):
        Run.load(tmp_path / "map" / "row-00000").fork("a")
    assert not list(elsewhere.iterdir())


def test_ruling_43_neither_cache_nor_completion_nor_doctor_looks_behind_it(tmp_path, monkeypatch, capfd):
    (tmp_path / "mine" / "runs" / "first").mkdir(parents=True)
    (tmp_path / "mine" / "runs" / "first" / "events.jsonl").write_text("")
    (tmp_path / ".attractor").symlink_to(tmp_path / "mine", target_is_directory=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match="is a link to"):
        Pipeline(SOURCE).run(wait=True, durability="none", cache=True)
    assert complete_runs("") == []
    found = [each for each in examine_machine() if each.subject == "runs directory"]
    assert [each.state for each in found] == ["error"]
    for command, option in ((["runs"], "--runs-dir DIR"), (["cache", "--clear"], "--cache-dir DIR")):
        assert main(command) == 2
        assert f"or name the directory that you mean: {option}\n" in capfd.readouterr().err


def test_a_base_elsewhere_is_listed_from_a_removed_working_directory(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    (tmp_path / "runs").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert len(runs(tmp_path / "runs")) == len(gates(tmp_path / "runs")) == 0


def test_a_directory_that_the_user_names_may_be_behind_any_link(elsewhere, tmp_path):
    (tmp_path / "link").symlink_to(elsewhere, target_is_directory=True)
    run = Pipeline(SOURCE).run(wait=True, runs_dir=tmp_path / "link")
    assert [path.name for path in elsewhere.iterdir() if path.name != ".gitignore"] == [run.logs_root.name]
    assert len(runs(elsewhere)) == 1


def test_the_runs_base_that_the_environment_of_jupyter_names_may_be_a_link(elsewhere, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTRACTOR_RUNS_DIR", os.fspath(tmp_path / "clone" / ".attractor" / "runs"))
    assert _runs_base() == tmp_path / "clone" / ".attractor" / "runs"


def test_a_comparison_makes_nothing_behind_a_link(elsewhere):
    pipeline = Pipeline(SOURCE.replace("digraph Clone {", 'digraph Clone { inputs="x"'))
    with pytest.raises(StorageError):
        pipeline.compare({"other": {"a.prompt": "y"}}, [{"x": "1"}], {"any": lambda output: True})
    assert list(elsewhere.iterdir()) == []
