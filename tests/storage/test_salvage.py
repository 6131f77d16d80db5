"""Surveys of damaged run directories, and what is saved of them: never in place, never made up."""

import os

import pytest

from attractor_nb.errors import CheckpointCorrupt, StorageError
from attractor_nb.model.events import RunWarning, StageStarted
from attractor_nb.storage.directory_survey import plan_salvage, salvage, survey_run
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.stored_run import read_run


@pytest.fixture
def run(create, event_of, checkpoint):
    """A directory with six records, of which the checkpoint knows four."""
    store = create("run")
    for number in range(1, 5):
        store.append(event_of(number), is_synced=True)
    store.open_stage("plan", 1, 1).write_text("response.md", "a plan")
    store.save_checkpoint(checkpoint | {"run_id": "", "timestamp": 1.0}, is_forced=True)
    for number in range(5, 7):
        store.append(event_of(number), is_synced=True)
    store.close()
    return store.logs_root


def seen(run):
    return survey_run(run, lambda event: None)


def states(survey):
    return {file.name: file.state for file in survey.files}


def damage(run, line):
    path = run / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b'"sequence"', b'"sequenze"')
    path.write_bytes(b"".join(lines))


def saved(run, tmp_path, *, suspect=None):
    target = tmp_path / "saved"
    salvage(seen(run), {"run_id": "abcdefgh"}, target, suspect=suspect, disk=Disk(), now=1.0)
    return target


def test_a_whole_run_is_healthy_and_its_events_are_told_in_order(run, event_of):
    told = []
    survey = survey_run(run, told.append)
    assert survey.is_healthy
    assert told == [event_of(number) for number in range(1, 7)]
    assert (survey.log.records, survey.log.size) == (6, survey.log.offset)


def test_damage_names_line_and_byte(run):
    damage(run, 3)
    survey = seen(run)
    place = len(b"".join((run / "events.jsonl").read_bytes().splitlines(keepends=True)[:2]))
    assert states(survey)["events.jsonl"] == "damaged"
    assert f"line 3 (byte {place})" in survey.files[0].detail
    assert survey.log.records == 2


def test_an_unfinished_last_record_is_no_damage(run):
    with (run / "events.jsonl").open("ab") as file:
        file.write(b'{"type":"Stage')
    survey = seen(run)
    assert survey.is_healthy
    assert "14 bytes of one that was never finished" in survey.files[0].detail


def test_free_space_is_no_damage(run):
    with (run / "events.jsonl").open("ab") as file:
        file.write(bytes(70_000))
    assert seen(run).is_healthy


def test_records_are_saved_up_to_the_damage(run, tmp_path, event_of):
    damage(run, 6)
    assert plan_salvage(seen(run)).records == 5
    stored = read_run(saved(run, tmp_path))
    assert stored.events[:5] == tuple(event_of(number) for number in range(1, 6))
    assert isinstance(stored.events[5], RunWarning)
    assert "lost: what followed record 5" in stored.events[5].message
    assert stored.checkpoint is None


def test_a_checkpoint_that_is_newer_than_the_whole_records_is_saved(run, tmp_path, event_of, checkpoint):
    damage(run, 3)
    plan = plan_salvage(seen(run))
    assert plan.is_from_checkpoint
    assert "records 3 to 4" in plan.lost
    stored = read_run(saved(run, tmp_path))
    assert stored.events[:2] == (event_of(1), event_of(2))
    assert stored.checkpoint["context"] == checkpoint["context"]
    assert stored.tail == ()


def test_where_records_are_lost_the_next_stage_counts_as_cut_off(run, tmp_path):
    damage(run, 3)
    stored = read_run(saved(run, tmp_path, suspect=StageStarted(name="implement", visit=2)))
    assert [(event.name, event.visit) for event in stored.tail] == [("implement", 2)]


def test_where_nothing_is_lost_nothing_is_added(run, tmp_path, event_of):
    target = saved(run, tmp_path, suspect=StageStarted(name="implement", visit=2))
    assert read_run(target).events == tuple(event_of(number) for number in range(1, 7))


def test_the_damaged_directory_is_left_as_it_is(run, tmp_path):
    damage(run, 3)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    saved(run, tmp_path)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_evidence_is_copied_but_no_link_and_no_pipe(run, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (run / "plan" / "planted").symlink_to(tmp_path / "secret")
    (run / "elsewhere").symlink_to(tmp_path)
    os.mkfifo(run / "plan" / "pipe")
    target = saved(run, tmp_path)
    assert (target / "plan" / "response.md").read_text() == "a plan"
    assert sorted(path.name for path in (target / "plan").iterdir()) == ["response.md"]
    assert not (target / "elsewhere").exists()


def test_a_pipe_in_place_of_the_log_is_not_waited_for(run):
    (run / "events.jsonl").unlink()
    os.mkfifo(run / "events.jsonl")
    assert seen(run).files[0].detail == "cannot be read: not a plain file"


def test_a_link_in_place_of_the_log_is_not_followed(run, tmp_path):
    (run / "events.jsonl").rename(tmp_path / "log")
    (run / "events.jsonl").symlink_to(tmp_path / "log")
    assert states(seen(run))["events.jsonl"] == "damaged"


def test_an_artifact_is_told_by_its_hash(run):
    place = run / "artifacts"
    place.mkdir()
    name = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b.json"
    (place / name).write_text("1")
    assert states(seen(run))["artifacts"] == "ok"
    (place / name).write_text("2")
    assert states(seen(run))[f"artifacts/{name}"] == "damaged"


def test_nothing_whole_is_nothing_to_go_on_with(run, tmp_path):
    damage(run, 1)
    for path in run.glob("checkpoint*.json"):
        path.unlink()
    assert plan_salvage(seen(run)) is None
    with pytest.raises(CheckpointCorrupt, match="neither a record of the log nor a checkpoint is whole"):
        saved(run, tmp_path)


def test_a_target_that_is_a_file_is_refused_and_left(run, tmp_path):
    (tmp_path / "saved").write_text("mine")
    with pytest.raises(StorageError, match="is not a directory"):
        saved(run, tmp_path)
    assert (tmp_path / "saved").read_text() == "mine"


def test_a_target_that_holds_something_is_refused(run, tmp_path):
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "mine").write_text("mine")
    with pytest.raises(StorageError, match="is not empty"):
        saved(run, tmp_path)


def test_a_salvage_that_is_cut_off_is_not_taken_for_a_run(run, tmp_path):
    from tests.disks.faulty_disk import FaultyDisk

    counted = FaultyDisk()
    salvage(seen(run), {}, tmp_path / "counted", suspect=None, disk=counted, now=1.0)
    places = [number for number, (kind, _) in enumerate(counted.operations, 1) if kind != "open_directory"]
    for number in places[:-1]:
        target = tmp_path / f"cut-{number}"
        with pytest.raises(StorageError):
            salvage(seen(run), {}, target, suspect=None, disk=FaultyDisk(fail_at=number, lasts=10**6), now=1.0)
        assert not (target / "events.jsonl").exists()


def test_links_in_the_place_of_source_and_artifacts_are_damage(run, tmp_path):
    (tmp_path / "outside").mkdir()
    for name in ("pipeline.dot", "artifacts"):
        if (run / name).exists():
            (run / name).rename(tmp_path / name)
        (run / name).symlink_to(tmp_path / "outside")
    survey = seen(run)
    assert (states(survey)["pipeline.dot"], states(survey)["artifacts"]) == ("damaged", "damaged")
    details = {file.name: file.detail for file in survey.files}
    assert "cannot read" in details["pipeline.dot"]
    assert "cannot open artifacts" in details["artifacts"]


def test_a_large_log_is_surveyed_one_record_at_a_time(run, monkeypatch):
    """No more than a record and the end are ever read at once."""
    import attractor_nb.storage.directory_survey as module

    size = (run / "events.jsonl").stat().st_size
    monkeypatch.setattr(module, "MAX_RECORD_BYTES", size // 3)
    survey = seen(run)
    assert survey.log.records == 6
