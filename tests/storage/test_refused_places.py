"""Error branches of storage that only a race, another user or a failing system enters."""

import json
import os
from pathlib import Path

import pytest

from attractor_nb.errors import StorageError
from attractor_nb.storage import run_index
from attractor_nb.storage.cache_store import CacheStore
from attractor_nb.storage.files import atomic
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.log import event_log
from attractor_nb.storage.run_directory import make_directory


class Refusing(Disk):
    """A disk whose directories cannot be opened."""

    def open_directory(self, name, parent=None):
        raise OSError(24, "Too many open files")


def test_a_directory_that_somebody_else_makes_meanwhile_is_no_error(tmp_path):
    class Racing(Disk):
        def make_directory(self, path, *arguments):
            super().make_directory(path, *arguments)
            raise FileExistsError(17, "File exists", str(path))

    make_directory(Racing(), tmp_path / "a" / "b", is_synced=True)
    assert (tmp_path / "a" / "b").is_dir()


def test_a_workspace_that_cannot_be_opened_is_told(tmp_path, monkeypatch):
    real = os.open

    def refuse(path, flags, *arguments, **more):
        if Path(path) == tmp_path / ".attractor":
            raise OSError(24, "Too many open files")
        return real(path, flags, *arguments, **more)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StorageError, match=r"cannot open .*too many open files"):
        make_directory(Disk(), tmp_path / ".attractor" / "runs", is_synced=False)


def test_a_cache_whose_directory_cannot_be_opened_is_told(tmp_path):
    store = CacheStore(tmp_path / "cache", disk=Refusing())
    with pytest.raises(StorageError, match="cannot open"):
        store._write(tmp_path / "cache" / "x", "name", b"data")


def test_ruling_42_a_file_of_another_user_is_refused(tmp_path, monkeypatch):
    (tmp_path / "status.json").write_text("{}")
    monkeypatch.setattr(atomic.os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(StorageError, match="belongs to another user"):
        atomic.read_plain_file(tmp_path / "status.json", max_bytes=100, must_be_own=True)


def test_a_line_of_the_index_that_nobody_here_wrote_is_not_read(tmp_path):
    values = [None] * len(run_index.SUMMARY_NAMES)
    with pytest.raises(ValueError, match=r"^$"):
        run_index._decoded(json.dumps(["..", "run", [""], True, 0, [], *values]).encode(), tmp_path)


def test_a_log_whose_name_cannot_be_looked_at_is_told(tmp_path, monkeypatch):
    from attractor_nb import Pipeline

    real = os.stat

    def refuse(path, *arguments, **more):
        if path == event_log.EVENT_LOG_NAME and "dir_fd" in more:
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **more)

    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(StorageError, match=r"cannot look at .*events"):
        Pipeline("digraph { start [shape=Mdiamond] done [shape=Msquare] start -> done }").run(
            wait=True, logs_root=tmp_path / "run"
        )


@pytest.mark.parametrize("linked", ["a", "branches"])
def test_ruling_52_a_link_in_a_run_directory_leads_to_no_file_of_the_user(tmp_path, linked):
    from attractor_nb import Pipeline, Run

    source = """digraph { start [shape=Mdiamond] done [shape=Msquare] a [prompt=a] b [prompt=b] c [prompt=c]
        fan [shape=component] join [shape=tripleoctagon]
        start -> a -> fan fan -> b -> join fan -> c -> join join -> done }"""
    Pipeline(source).run(
        wait=True, logs_root=tmp_path / "run", backend=lambda node, prompt, context: f"answer of {node.id}"
    )
    real = tmp_path / "run" / linked
    real.rename(tmp_path / "private")
    real.symlink_to(tmp_path / "private")
    run = Run.load(tmp_path / "run")
    node = "a" if linked == "a" else "b"
    assert run.read_stage_file(node, "response.md") is None
    assert run.read_stage_file("c" if node == "a" else "a", "response.md") is not None
    seen = run.inspect(node)
    assert (seen.prompt, seen.response, seen.files) == (None, None, ())
    with pytest.raises(StorageError):
        seen.read("response.md")
