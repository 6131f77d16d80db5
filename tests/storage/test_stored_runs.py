"""Reading runs without owning them: checkpoint and tail, other engines' runs, the list of runs."""

import json

import pytest

from attractor_nb.errors import CheckpointCorrupt, RunNotFound, StorageError
from attractor_nb.storage.run_index import list_runs
from attractor_nb.storage.stored_run import has_event_log, read_run
from attractor_nb.testing import SeededRandomness


def test_ruling_29_a_run_is_its_newest_checkpoint_and_the_events_after_it(create, event_of, checkpoint):
    store = create()
    for number in (1, 2, 3):
        store.append(event_of(number), is_synced=True)
    store.save_checkpoint(checkpoint, is_forced=True)
    for number in (4, 5):
        store.append(event_of(number), is_synced=True)
    run = read_run(store.logs_root)
    assert run.checkpoint["log_sequence"] == 3
    assert [event.sequence for event in run.tail] == [4, 5]
    assert [event.sequence for event in run.events] == [1, 2, 3, 4, 5]
    assert (run.source_text, run.manifest["run_id"], run.is_legacy) == ("digraph {}", "abcdefgh", False)


def test_a_damaged_checkpoint_costs_nothing_but_a_longer_tail(create, event_of, checkpoint):
    store = create()
    for number in (1, 2, 3):
        store.append(event_of(number), is_synced=True)
        store.save_checkpoint(checkpoint, is_forced=True)
    (store.logs_root / "checkpoint.json").write_text("{")
    run = read_run(store.logs_root)
    assert run.checkpoint["log_sequence"] == 2
    assert run.problems == ("checkpoint.json has no checksum at its end",)
    (store.logs_root / "checkpoint.previous.json").write_text("{")
    run = read_run(store.logs_root)
    assert run.checkpoint is None
    assert len(run.tail) == 3


def test_a_damaged_manifest_is_rebuilt_in_memory(create, event_of):
    store = create()
    store.append(event_of(1), is_synced=True)
    (store.logs_root / "manifest.json").write_text("{}")
    run = read_run(store.logs_root)
    assert run.manifest["pipeline_name"] == "review"
    assert "manifest.json has no checksum at its end" in run.problems


def test_a_log_that_ends_before_its_checkpoint_lost_something(create, event_of, checkpoint):
    store = create()
    for number in (1, 2, 3):
        store.append(event_of(number), is_synced=True)
    store.save_checkpoint(checkpoint, is_forced=True)
    store.close()
    place = store.logs_root / "events.jsonl"
    place.write_bytes(b"".join(place.read_bytes().splitlines(keepends=True)[:2]))
    with pytest.raises(CheckpointCorrupt, match=r"with record 2, but checkpoint\.json knows 3") as caught:
        read_run(store.logs_root)
    assert "doctor" in caught.value.hint


def test_a_checkpoint_of_another_log_is_noticed(create, event_of, checkpoint):
    one, other = create("one"), create("other")
    for store in (one, other):
        store.append(event_of(1), is_synced=True)
    warned = event_of(2)
    warned.name = "another"
    one.append(event_of(2), is_synced=True)
    other.append(warned, is_synced=True)
    one.save_checkpoint(checkpoint, is_forced=True)
    (other.logs_root / "checkpoint.json").write_bytes((one.logs_root / "checkpoint.json").read_bytes())
    with pytest.raises(CheckpointCorrupt, match="does not belong to this log"):
        read_run(other.logs_root)


@pytest.mark.parametrize("name", ["checkpoint.json", "manifest.json"])
def test_a_file_of_another_run_is_refused_and_may_be_removed(create, event_of, checkpoint, name):
    one, other = create("one"), create("other", run_id="other-run")
    started = event_of(1)
    started.run_id = "other-run"
    for store, first in ((one, event_of(1)), (other, started)):
        store.append(first, is_synced=True)
        store.save_checkpoint({**checkpoint, "run_id": first.run_id}, is_forced=True)
    (one.logs_root / name).write_bytes((other.logs_root / name).read_bytes())
    with pytest.raises(
        CheckpointCorrupt, match=rf"{name} is of run other-run, and the log is of run abcdefgh"
    ) as caught:
        read_run(one.logs_root)
    assert "remove it: the log alone is enough" in caught.value.hint
    (one.logs_root / name).unlink()
    assert read_run(one.logs_root).events == (event_of(1),)


def test_a_record_that_was_never_finished_is_told(create, event_of):
    store = create()
    store.append(event_of(1), is_synced=True)
    store.close()
    with (store.logs_root / "events.jsonl").open("ab") as file:
        file.write(b'{"type":"Stage')
    run = read_run(store.logs_root)
    assert (len(run.events), run.cut_bytes) == (1, 14)


def test_a_live_full_run_is_read_in_spite_of_its_free_space(create, event_of):
    store = create(durability="full")
    store.append(event_of(1), is_synced=True)
    assert len(read_run(store.logs_root).events) == 1


def test_the_directory_of_a_stage_is_found_whatever_its_id(create):
    store = create()
    for node_id in ("plan", "CON", "a/b"):
        directory = store.open_stage(node_id, 1, 1).directory
        assert read_run(store.logs_root).stage_directory(node_id) == directory


def test_what_holds_no_run_is_not_found(tmp_path):
    with pytest.raises(RunNotFound, match="there is no run directory"):
        read_run(tmp_path / "none")
    with pytest.raises(RunNotFound, match=r"neither events\.jsonl nor a checkpoint"):
        read_run(tmp_path)


LEGACY = {
    "pipeline_name": "my_pipeline",
    "current_node": "review",
    "context": {"code.output": "..."},
    "completed_nodes": ["start", "code", "review"],
    "timestamp": 1771699200.0,
    "node_retries": {"code": 1},
    "logs": [
        {"node": "start", "outcome": "success", "timestamp": 1771699100.0},
        {"node": "code", "outcome": "FAILED"},
        "free text",
    ],
}


@pytest.mark.parametrize("name", ["checkpoint_1771699200000.json", "checkpoint.json"])
def test_migration_path_a_checkpoint_of_another_engine_is_read(tmp_path, name):
    (tmp_path / name).write_text(json.dumps(LEGACY))
    run = read_run(tmp_path)
    assert run.is_legacy
    assert (run.events, run.tail, run.source_text) == ((), (), None)
    assert run.manifest == {"pipeline_name": "my_pipeline", "status": "interrupted"}
    assert run.checkpoint == {
        "schema_version": 1,
        "pipeline_name": "my_pipeline",
        "timestamp": 1771699200.0,
        "current_node": "review",
        "completed_nodes": ["start", "code", "review"],
        "node_retries": {"code": 1},
        "node_outcomes": {"start": "success", "code": "fail"},
        "context": {"code.output": "..."},
        "logs": ["start: success", "code: FAILED", "free text"],
    }


def test_migration_path_the_newest_valid_checkpoint_counts(tmp_path):
    for stamp, text in (
        (999, json.dumps(LEGACY)),
        (1000, json.dumps({**LEGACY, "current_node": "newer"})),
        (2000, "{"),
        (3000, "[]"),
    ):
        (tmp_path / f"checkpoint_{stamp}.json").write_text(text)
    (tmp_path / "checkpoint_4000.json").mkdir()
    (tmp_path / "checkpoint_5000.json").write_text(json.dumps({**LEGACY, "completed_nodes": 3}))
    run = read_run(tmp_path)
    assert run.checkpoint["current_node"] == "newer"
    assert [problem.split()[0] for problem in run.problems if "cannot" not in problem] == [
        "checkpoint_5000.json", "checkpoint_3000.json", "checkpoint_2000.json",
    ]  # fmt: skip


def test_migration_path_without_a_valid_checkpoint_all_problems_are_told(tmp_path):
    (tmp_path / "checkpoint_1.json").write_text("{")
    with pytest.raises(CheckpointCorrupt, match=r"no valid checkpoint: checkpoint_1\.json is not JSON"):
        read_run(tmp_path)


def test_runs_are_listed_newest_first_with_their_standing(create, clock, tmp_path, event_of):
    base = "runs"
    done = create(f"{base}/a", pipeline_name="first")
    done.save_manifest({"status": "completed", "end_time": "2026-01-01T00:00:00Z"})
    done.close()
    clock.advance(10)
    create(f"{base}/b").close()
    clock.advance(10)
    create(f"{base}/c")
    clock.advance(10)
    lost = create(f"{base}/d")
    lost.append(event_of(1), is_synced=True)
    lost.close()
    (lost.logs_root / "manifest.json").unlink()
    damaged = create(f"{base}/e")
    damaged.close()
    (damaged.logs_root / "manifest.json").unlink()
    (damaged.logs_root / "events.jsonl").write_text("nonsense\n")
    (tmp_path / base / "f").mkdir()
    (tmp_path / base / "note.txt").write_text("")
    runs = {run.logs_root.name: run for run in list_runs(tmp_path / base)}
    assert [name for name in runs if name in "abc"] == ["c", "b", "a"]
    assert {name: run.status for name, run in runs.items()} == {
        "a": "completed", "b": "abandoned", "c": "running", "d": "abandoned", "e": "damaged",
    }  # fmt: skip
    assert runs["a"].pipeline_name == "first"
    assert "pid" in runs["c"].owner
    assert runs["b"].owner == {}


def test_without_a_base_there_are_no_runs(tmp_path):
    assert list_runs(tmp_path / "none") == []


def test_ruling_32_run_directories_are_named_by_time_and_chance(tmp_path, clock):
    from attractor_nb.storage.run_directory import new_run_directory

    path, run_id = new_run_directory(tmp_path / "runs", clock=clock, randomness=SeededRandomness(1))
    assert path == tmp_path / "runs" / f"2023-11-14T22-13-20Z-{run_id}"
    assert path.is_dir()
    assert len(run_id) == 8


def test_ruling_32_a_run_directory_is_made_exclusively(tmp_path, clock):
    from attractor_nb.errors import StorageError
    from attractor_nb.storage.run_directory import new_run_directory

    class Stuck:
        def new_id(self):
            return "aaaaaaaa"

    new_run_directory(tmp_path, clock=clock, randomness=Stuck())
    with pytest.raises(StorageError, match="no free name"):
        new_run_directory(tmp_path, clock=clock, randomness=Stuck())


def test_a_runs_base_that_is_a_file_is_a_storage_error(tmp_path, clock):
    from attractor_nb.errors import StorageError
    from attractor_nb.storage.run_directory import new_run_directory

    (tmp_path / "runs").write_text("")
    with pytest.raises(StorageError, match="cannot make directory"):
        new_run_directory(tmp_path / "runs", clock=clock, randomness=SeededRandomness(1))
    with pytest.raises(StorageError, match="cannot make directory"):
        new_run_directory(tmp_path / "runs/deeper", clock=clock, randomness=SeededRandomness(1))


@pytest.mark.parametrize("act", [read_run, list_runs, has_event_log], ids=["read", "list", "log"])
def test_a_place_that_cannot_be_looked_at_is_a_storage_error(tmp_path, act):
    with pytest.raises(StorageError, match="name"):
        act(tmp_path / ("x" * 300))
