"""The directory that an id means, and the files of the runs that servers of a root have begun."""

import errno
import os
from contextlib import contextmanager
from pathlib import Path

import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import RunLocked, RunNotFound, StorageError
from attractor_nb.server import server_runs
from attractor_nb.server.answers.run_answers import take_answer
from attractor_nb.server.replies import Problem
from attractor_nb.server.requests import Answer, Resumption
from attractor_nb.server.run_service import RunService
from attractor_nb.server.server_runs import StartedRuns, run_place
from attractor_nb.storage.files.disk import Disk
from tests.waiting import wait_until


@contextmanager
def standing(root, sources):
    """A run that waits at its gate, and whose owner is no server."""
    run = Pipeline(sources.gate).run(
        wait=False, logs_root=root / "a", is_shown=False, interviewer="deferred", durability="fast"
    )
    try:
        wait_until(lambda: run.gates)
        yield run
    finally:
        run.cancel()
        run.result(30)


def record_of(root, run_id):
    return root / ".server/runs" / f"{run_id}.json"


def test_a_root_that_cannot_be_looked_into_is_no_missing_run():
    with pytest.raises(StorageError, match=r"cannot read .*: file name too long"):
        run_place(Path("/") / ("x" * 300), "a")


def test_a_record_that_is_no_json_is_that_of_no_run_begun_here(root):
    started = StartedRuns(root)
    with started.noted("a"):
        assert started.read("a").owners[-1][0] == os.getpid()
    record_of(root, "a").write_text('{"root": ')
    assert started.read("a") is None


def test_a_run_that_another_server_decides_about_is_locked(root, monkeypatch):
    monkeypatch.setattr(server_runs, "_PATIENCE_SECONDS", 0)
    with StartedRuns(root).held("a"):
        with (
            pytest.raises(Problem, match="another server is starting or resuming a") as refused,
            StartedRuns(root).held("a"),
        ):
            pass
        with StartedRuns(root).held("b"):
            pass
    assert (refused.value.status, refused.value.kind, refused.value.hint) == (409, "locked", "try again in a moment")
    with StartedRuns(root).held("a"):
        pass


def test_a_lock_that_cannot_be_made_is_said(root):
    record_of(root, "a").with_suffix(".lock").mkdir(parents=True)
    with pytest.raises(StorageError, match=r"cannot lock .*a\.lock: is a directory"), StartedRuns(root).held("a"):
        pass


def test_a_run_that_cannot_be_noted_is_not_begun(root, monkeypatch):
    def refuse(disk, name, parent=None):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    begun = []
    with monkeypatch.context() as patched:
        patched.setattr(Disk, "open_directory", refuse)
        cannot_open = pytest.raises(StorageError, match=r"cannot open .*\.server/runs: too many open files")
        with cannot_open, StartedRuns(root).noted("a"):
            begun.append("a")
    assert not begun
    assert StartedRuns(root).ids() == []


def test_a_directory_that_contains_no_run_is_none(root):
    (root / "empty").mkdir()
    service = RunService(root, 10)
    with pytest.raises(Problem, match="empty contains no run") as refused:
        service.summary("empty")
    assert (refused.value.status, refused.value.kind) == (404, "no-such-pipeline")
    with pytest.raises(RunNotFound):
        service.run("empty")


def test_a_server_that_ends_begins_nothing(root, sources):
    with standing(root, sources) as run:
        run.cancel()
    service = RunService(root, 10)
    assert service.summary("a").is_resumable
    service.close()
    with pytest.raises(Problem, match="shutting down") as refused:
        service.resume("a", Resumption())
    assert refused.value.status == 503
    assert service.summary("a").is_resumable


@pytest.fixture
def elsewhere(root, sources):
    with standing(root, sources) as run:
        yield run


@pytest.mark.parametrize(
    "ask",
    [
        pytest.param(lambda service, gate: service.cancel("a"), id="cancel"),
        pytest.param(lambda service, gate: service.resume("a", Resumption()), id="resume"),
        pytest.param(lambda service, gate: take_answer(service, "a", gate.id, Answer(choice="A")), id="answer"),
    ],
)
def test_what_only_the_owner_of_a_run_can_do_names_the_owner(root, elsewhere, ask):
    service = RunService(root, 10)
    with pytest.raises(RunLocked, match=f"pipeline a is run by .*{os.getpid()}") as refused:
        ask(service, elsewhere.gates[0])
    assert refused.value.owner["pid"] == os.getpid()
    assert [gate.stage for gate in elsewhere.gates] == ["review"]
