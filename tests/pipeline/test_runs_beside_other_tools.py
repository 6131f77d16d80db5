"""Runs lie beside the user's files: what other tools do there ends no run and hides nothing (ruling 49)."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb import Pipeline, Run, gates
from attractor_nb.errors import OptionError, StorageError
from attractor_nb.model.events import StageStarted
from attractor_nb.pipeline.runs import runs
from attractor_nb.storage.files.document_files import DocumentConflict, DocumentFolder
from attractor_nb.storage.log.event_log import REPLACEMENT_NAME
from attractor_nb.storage.stored_run import read_run

FRAME = """digraph d {{ start [shape=Mdiamond] done [shape=Msquare] node [shape=parallelogram, idempotent=true]
    one [tool_command="echo 1"] other [tool_command="{command}"] two [tool_command="echo 2"]
    start -> one -> other -> two -> done }}"""
COMMIT = "git -c user.name=a -c user.email=a@example.org commit -qm all"


def git(*arguments, cwd="."):
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    return subprocess.run(["git", *identity, *arguments], cwd=cwd, check=True, capture_output=True, text=True).stdout


def started(directory):
    return [event.name for event in read_run(directory).events if isinstance(event, StageStarted)]


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository in which the test works."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    place = tmp_path / "project"
    place.mkdir()
    monkeypatch.chdir(place)
    git("init", "-q")
    (place / "a.txt").write_text("one\n")
    git("add", "-A")
    git("commit", "-qm", "first")
    return place


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("echo x > x.txt; git stash -u", id="stash"),
        pytest.param("git clean -fd", id="clean"),
        pytest.param(f"echo x > x.txt; git add -A; {COMMIT}; git reset --hard HEAD", id="commit and reset"),
        pytest.param("git add -A; git reset --hard HEAD", id="add and reset"),
    ],
)
@pytest.mark.parametrize("runs_dir", [None, "out"])
def test_ruling_49_git_leaves_runs_alone(repository, command, runs_dir):
    result = Pipeline(FRAME.format(command=command)).run(wait=True, runs_dir=runs_dir)
    assert result.status == "success", result.reason
    assert list(Run.load(result.logs_root).visits) == ["start", "one", "other", "two", "done"]
    git("add", "-A")
    assert set(git("ls-files").split()) <= {"a.txt", "x.txt"}


@pytest.mark.parametrize("option", [{"logs_root": ".attractor/first"}, {"durability": "none", "cache": True}])
def test_ruling_49_whatever_makes_the_folder_of_ours_hides_it_from_git(repository, option):
    Pipeline(FRAME.format(command='true", cache="true')).run(wait=True, **option)
    assert (repository / ".attractor/.gitignore").read_text() == "*\n"


def test_ruling_49_an_ignore_file_and_a_runs_folder_of_the_users_stay_as_they_are(repository):
    (repository / ".attractor").mkdir()
    (repository / ".attractor/.gitignore").write_text("cache\n")
    (repository / "results").mkdir()
    for runs_dir in (None, "results"):
        Pipeline(FRAME.format(command="true")).run(wait=True, runs_dir=runs_dir)
    assert (repository / ".attractor/.gitignore").read_text() == "cache\n"
    assert not (repository / "results/.gitignore").exists()


def test_ruling_49_a_linter_in_a_workspace_sees_its_files(repository):
    command = f"mkdir src; echo import os > src/a.py; '{sys.executable}' -m ruff check --no-cache . || true"
    result = Pipeline(FRAME.format(command=command)).run(wait=True, isolation="workspace")
    assert "F401" in result["other"].files("stdout.txt")
    assert (
        "F401"
        not in subprocess.run(
            [sys.executable, "-m", "ruff", "check", "--no-cache", "."], capture_output=True, text=True, check=False
        ).stdout
    )


@pytest.mark.parametrize("durability", ["full", "fast"])
def test_ruling_49_an_owner_that_finds_another_file_under_the_logs_name_stops_and_puts_the_log_back(
    tmp_path, durability
):
    """Ruling 49: no success is reported, and nothing that was recorded runs again."""
    effects = tmp_path / "effects"
    replace = "cd $ATTRACTOR_LOGS_ROOT; head -2 events.jsonl > x; mv x events.jsonl"
    command = f"test -e {effects} || ({replace}); echo >> {effects}"
    run = Pipeline(FRAME.format(command=command)).run(logs_root=tmp_path / "run", durability=durability)
    with pytest.raises(StorageError, match="put another file in its place"):
        run.result()
    assert len((tmp_path / "run" / REPLACEMENT_NAME).read_text().splitlines()) == 2
    assert started(tmp_path / "run") == ["start", "one", "other"]
    result = Run.load(tmp_path / "run").resume().result()
    assert result.status == "success", result.reason
    assert started(tmp_path / "run") == ["start", "one", "other", "other", "two", "done"]
    runs(tmp_path)[0].delete(confirm=True)
    assert not (tmp_path / "run").exists()


def test_ruling_49_an_owner_whose_directory_was_removed_stops_and_says_so(tmp_path):
    run = Pipeline(FRAME.format(command="rm -rf $ATTRACTOR_LOGS_ROOT")).run(logs_root=tmp_path / "run")
    with pytest.raises(StorageError, match="another program removed") as caught:
        run.result()
    assert caught.value.hint.startswith("restore the run directory")
    assert not os.path.lexists(tmp_path / "run")


@pytest.fixture(params=["EPERM", "EOPNOTSUPP", "EMLINK", "not implemented", "missing"])
def no_links(request, monkeypatch):
    """A file system, or a Python, on which a file has one name."""

    def refuse(*_, **__):
        if request.param == "not implemented":
            raise NotImplementedError("link: follow_symlinks unavailable on this platform")
        raise OSError(getattr(errno, request.param), os.strerror(getattr(errno, request.param)))

    if request.param == "missing":
        monkeypatch.delattr(os, "link")
    else:
        monkeypatch.setattr(os, "link", refuse)


@pytest.mark.parametrize("durability", ["full", "fast"])
def test_ruling_49_without_hard_links_a_run_keeps_both_generations_of_its_files(tmp_path, no_links, durability):
    source = FRAME.format(command="true")
    result = Pipeline(source).run(wait=True, logs_root=tmp_path / "run", durability=durability, stop_after=2)
    kept = {name: (tmp_path / "run" / name).read_bytes() for name in ("manifest.previous.json", "manifest.json")}
    assert all(kept.values())
    assert kept["manifest.previous.json"] != kept["manifest.json"]
    again = Run.load(result.logs_root).resume().result()
    assert again.status == "success", again.reason
    assert not [entry for entry in (tmp_path / "run").iterdir() if entry.name.startswith(".")]


def test_ruling_49_without_hard_links_a_new_document_gets_its_name_and_takes_nobodys(tmp_path, no_links):
    files = DocumentFolder(tmp_path)
    assert files.is_possible()
    assert files.write("new.dot", "digraph {}", "").text == "digraph {}"
    with pytest.raises(DocumentConflict):
        files.write("new.dot", "other", "")
    assert [entry.name for entry in tmp_path.iterdir()] == ["new.dot"]


@pytest.mark.parametrize("as_type", [str, Path])
def test_ruling_49_each_option_that_names_a_place_takes_the_home_directory(repository, tmp_path, as_type):
    """Never a directory that is called ``~``."""
    (tmp_path / "work").mkdir()
    (tmp_path / "p.dot").write_text(FRAME.format(command="true"))
    pipeline = Pipeline(as_type("~/p.dot"))
    cached = Pipeline(FRAME.format(command='true", cache="true'))
    assert (
        pipeline.run(wait=True, trust=True, runs_dir=as_type("~/runs"), workdir=as_type("~/work")).workdir
        == tmp_path / "work"
    )
    root = cached.run(wait=True, logs_root=as_type("~/first"), cache=as_type("~/cache")).logs_root
    cached.run(wait=True, cassette=as_type("~/tape.json"), cassette_mode="record", runs_dir=as_type("~/runs"))
    cached.run(wait=True, isolation="workspace", workspace_from=as_type("~/work"), runs_dir=as_type("~/runs"))
    pipeline.map([{"n": 1}], wait=True, trust=True, map_dir=as_type("~/map"), session=as_type("~/work"))
    assert root == tmp_path / "first"
    assert {"runs", "first", "cache", "tape.json", "map"} <= {entry.name for entry in tmp_path.iterdir()}
    assert Run.load(as_type("~/first")).logs_root == root
    assert len(runs(as_type("~/runs"))) == 3
    assert not (repository / "~").exists()


def test_ruling_49_a_home_directory_that_is_not_known_is_told(repository, monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(OptionError, match="runs_dir '~/runs' names a home directory, and this user has none"):
        Pipeline(FRAME.format(command="true")).run(wait=True, runs_dir="~/runs")


@pytest.mark.parametrize("look", [runs, gates, Run.load], ids=["runs", "gates", "load"])
def test_ruling_49_a_relative_place_below_a_removed_directory_is_told(tmp_path, monkeypatch, look):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(OptionError, match="the current directory was removed"):
        look(".attractor/runs")
