"""Responses about runs that are half written or damaged."""

import shutil

import pytest

from attractor_nb import Pipeline
from attractor_nb.errors import CheckpointCorrupt, SessionNotFound, StorageError
from attractor_nb.server.answers.run_answers import all_questions, artifacts_of, questions_of, session_of, status_of
from attractor_nb.server.run_service import RunService
from attractor_nb.sessions import create_session
from attractor_nb.storage.run_directory import RunDirectory
from attractor_nb.storage.run_index import list_runs
from attractor_nb.storage.run_listing import RunSummary


def test_artifacts_that_cannot_be_listed_are_said_and_leave_nothing_open(root, sources, monkeypatch):
    closed = []
    close = RunDirectory.close
    Pipeline(sources.plain).run(wait=True, logs_root=root / "a", is_shown=False)
    (root / "a" / "artifacts").write_text("no directory")
    monkeypatch.setattr(RunDirectory, "close", lambda directory: closed.append(directory.path) or close(directory))
    with pytest.raises(StorageError, match="artifacts"):
        artifacts_of("a", root / "a")
    assert closed == [root / "a"]


def test_a_session_that_is_just_being_made_is_none_yet(tmp_path):
    session_dir = create_session(tmp_path, "orchestrate", "a.dot", [{"id": "001"}])
    (session_dir / "status.json").unlink()
    with pytest.raises(SessionNotFound, match="this run has no session") as refused:
        session_of(tmp_path)
    assert refused.value.hint == 'submit it with "session": true'


def test_the_questions_of_a_run_that_cannot_be_read_are_none_and_hide_no_others(root, sources):
    """Its log was damaged after its line was made."""
    Pipeline(sources.plain).run(wait=True, logs_root=root / "a", is_shown=False)
    log = root / "a" / "events.jsonl"
    log.write_bytes(log.read_bytes().replace(b"StageStarted", b"StageStarteX", 1))
    line = RunSummary(root / "a", "a", "demo", "abandoned", "", None)

    class Desk(RunService):
        def summary(self, run_id):
            return line

    service = Desk(root, 10)
    assert all_questions(service, [line]).questions == []
    with pytest.raises(CheckpointCorrupt):
        questions_of(service, "a")
    status = status_of(service, "a")
    assert (status.status, status.questions, status.progress.nodes) == ("abandoned", 0, 0)


def test_the_questions_of_a_map_that_cannot_be_read_are_none_and_hide_no_others(root, sources):
    """Its directory was replaced after its line was made."""
    for name in ("a", "b"):
        Pipeline(sources.gate).map([{}], map_dir=root / name, interviewer="pause", durability="fast", wait=True)
    lines = list_runs(root)
    shutil.rmtree(root / "a")
    (root / "a").symlink_to("a")
    asked = all_questions(RunService(root, 10), lines)
    assert [question.pipeline for question in asked.questions] == ["b~row-00000"]
    assert asked.more_questions == 0
