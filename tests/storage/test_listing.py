"""The list of runs: what each line says without reading whole logs, and what is wrong with a directory."""

from __future__ import annotations

import json

import pytest
from msgspec import structs

from attractor_nb.model.events import (
    InterviewCompleted,
    InterviewStarted,
    PipelineResumed,
    StageCompleted,
    StageStarted,
)
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.storage import manifest_file, run_listing
from attractor_nb.storage.run_index import list_runs
from attractor_nb.storage.run_listing import change_tags
from attractor_nb.storage.sealed_file import seal, unseal


def one(tmp_path, base="runs"):
    (row,) = list_runs(tmp_path / base)
    return row


def ended(create, name="runs/a", **facts):
    store = create(name)
    store.save_manifest({"status": "completed", "end_time": "2026-01-01T00:00:00Z", **facts})
    store.close()
    return store.logs_root


def test_a_line_says_what_the_manifest_says_of_the_end(create, tmp_path):
    usage = Usage(10, 5, 0.25, 1)
    change_tags(ended(create, duration=2.5, stages=4, usage=usage.to_plain()), add=["good"])
    row = one(tmp_path)
    assert (row.duration, row.stages, row.usage, row.tags) == (2.5, 4, usage, ("good",))


def test_what_no_file_says_is_unknown_and_not_nothing(create, tmp_path):
    ended(create)
    row = one(tmp_path)
    assert (row.duration, row.stages, row.usage) == (None, None, None)


def test_a_run_without_totals_in_its_manifest_is_counted_by_its_checkpoint(create, checkpoint, event_of, tmp_path):
    store = create("runs/a")
    store.append(event_of(1), is_synced=True)
    store.save_checkpoint(checkpoint, is_forced=True)
    row = one(tmp_path)
    assert row.is_live
    assert row.stages is not None
    store.close()


ASKED = InterviewStarted(question="Ship?", stage="ask", question_id="ask:1", branch="fan/left")
ANSWERED = InterviewCompleted(question="Ship?", answer="Y", duration=1.0, question_id="ask:1", stage="ask")
BESIDE = StageStarted(name="build", visit=1, branch="fan/right")
BRANCH_END = StageCompleted(name="build", visit=1, duration=1.0, outcome=Outcome.success(), branch="fan/right")
MAIN_END = StageCompleted(name="fan", visit=1, duration=1.0, outcome=Outcome.success())


@pytest.mark.parametrize(
    ("events", "status", "note"),
    [
        ([ASKED], "waiting", "waits at ask"),
        ([ASKED, BESIDE, *[BRANCH_END] * 100], "waiting", "waits at ask"),
        ([ASKED, ANSWERED, BESIDE], "running", "at build"),
        ([ASKED, MAIN_END], "running", "at fan"),
        ([ASKED, PipelineResumed(next_node="fan"), BESIDE], "running", "at build"),
        ([MAIN_END, PipelineResumed(next_node="fan"), ASKED], "waiting", "waits at ask"),
    ],
    ids=["now", "beside another branch", "answered", "ended", "cut off", "asked again"],
)
def test_a_run_under_way_whose_question_is_open_waits(create, tmp_path, events, status, note):
    store = create("runs/a")
    for number, event in enumerate(events, 1):
        store.append(structs.replace(event, sequence=number), is_synced=False)
    row = one(tmp_path)
    assert (row.status, row.note, row.is_live) == (status, note, True)
    store.close()
    assert one(tmp_path).status == "abandoned"


def test_only_the_end_of_a_long_log_is_searched_for_an_open_question(create, tmp_path, monkeypatch):
    monkeypatch.setattr(manifest_file, "_MAX_ASKING_BYTES", manifest_file._FIRST_TAIL_BYTES)
    store = create("runs/a")
    for number, event in enumerate([ASKED, *[BRANCH_END] * 100], 1):
        store.append(structs.replace(event, sequence=number), is_synced=False)
    assert one(tmp_path).status == "running"


def test_no_long_log_is_read_as_a_whole(create, event_of, tmp_path, monkeypatch):
    store = create("runs/a")
    store.append(event_of(1), is_synced=True)
    store.close()
    monkeypatch.setattr(run_listing, "MAX_CHECKED_BYTES", 10)
    monkeypatch.setattr(run_listing, "read_run", lambda path: pytest.fail("the log was read"))
    assert one(tmp_path).status == "abandoned"


@pytest.mark.parametrize("keeps_older", [True, False])
def test_a_run_of_a_newer_version_is_a_line_that_says_so(create, tmp_path, keeps_older):
    path = ended(create)
    plain = unseal((path / "manifest.json").read_bytes())
    (path / "manifest.json").write_bytes(seal({**plain, "schema_version": 7}))
    if not keeps_older:
        (path / "manifest.previous.json").unlink()
    row = one(tmp_path)
    assert row.status == "newer"
    assert "schema 7, this one knows 1" in row.note
    assert not row.is_resumable


def test_a_directory_that_was_never_begun_says_that_it_may_go(create, tmp_path):
    path = ended(create)
    (path / "events.jsonl").unlink()
    row = one(tmp_path)
    assert (row.status, "delete it" in row.note) == ("half-written", True)


def test_a_run_that_is_being_begun_is_no_rest(create, tmp_path):
    store = create("runs/a")
    (store.logs_root / "events.jsonl").unlink()
    assert (one(tmp_path).status, one(tmp_path).note) == ("running", "it is starting")
    store.close()


def test_a_run_of_another_engine_is_a_line_that_says_how_to_go_on(tmp_path):
    (tmp_path / "runs/a").mkdir(parents=True)
    (tmp_path / "runs/a/checkpoint_17.json").write_text(json.dumps({"completed_nodes": []}))
    row = one(tmp_path)
    assert row.status == "foreign"
    assert "pipeline.resume" in row.note


def test_a_damaged_run_names_its_fault_and_the_doctor(create, tmp_path):
    path = ended(create)
    (path / "manifest.json").unlink()
    (path / "manifest.previous.json").unlink(missing_ok=True)
    (path / "events.jsonl").write_text("nonsense\n{}\n")
    row = one(tmp_path)
    assert row.status == "damaged"
    assert row.note.startswith("attractor-nb doctor a says what can be saved: ")


def test_a_planted_directory_in_place_of_a_file_breaks_no_list(create, tmp_path):
    ended(create, "runs/a")
    path = ended(create, "runs/b")
    (path / "manifest.json").unlink()
    (path / "manifest.json").mkdir()
    (path / ".tags.json").mkdir()
    rows = {row.logs_root.name: row for row in list_runs(tmp_path / "runs")}
    assert set(rows) == {"a", "b"}
    assert rows["a"].status == "completed"
    assert ".tags.json" in rows["b"].note


def test_a_damaged_map_is_a_line_that_says_so(tmp_path):
    (tmp_path / "runs/m").mkdir(parents=True)
    (tmp_path / "runs/m/map.json").write_text("{}")
    row = one(tmp_path)
    assert row.status == "damaged"
    assert "map.json" in row.note


def test_a_run_that_may_not_be_read_is_a_line_and_the_others_are_listed(create, tmp_path, monkeypatch):
    def refuse(path):
        if path.name == "b":
            raise PermissionError(13, "Permission denied")
        return look(path)

    look = run_listing._summary_of_run
    ended(create, "runs/a")
    ended(create, "runs/b")
    monkeypatch.setattr(run_listing, "_summary_of_run", refuse)
    rows = {row.logs_root.name: row for row in list_runs(tmp_path / "runs")}
    assert {name: row.status for name, row in rows.items()} == {"a": "completed", "b": "damaged"}
    assert "Permission denied" in rows["b"].note


def test_lineage_is_told(create, tmp_path):
    ended(create, fork_of={"run_id": "r-1", "directory": "../first", "node": "plan", "visit": 1})
    assert one(tmp_path).lineage == "fork of first"
