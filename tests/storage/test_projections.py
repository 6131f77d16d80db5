"""checkpoint.json and manifest.json: sealed, two generations, rebuilt from the log."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.model.checkpoint import Checkpoint
from attractor_nb.model.events import (
    PipelineCompleted,
    PipelineFailed,
    PipelineInterrupted,
    PipelineRestarted,
    PipelineResumed,
    PipelineRewound,
    PipelineStarted,
    RunWarning,
    StageStarted,
)
from attractor_nb.model.outcome import ResultMarks
from attractor_nb.storage.checkpoint_file import CheckpointSchedule, read_checkpoint
from attractor_nb.storage.files.strict_json import JsonProblem
from attractor_nb.storage.manifest_file import manifest_from_events, read_manifest
from attractor_nb.storage.sealed_file import seal, unseal
from attractor_nb.storage.stages.stage_directories import escaped_name


@given(st.dictionaries(st.text(), st.text() | st.lists(st.integers(-(2**53), 2**53)) | st.none(), min_size=1))
def test_what_was_sealed_is_unsealed_unchanged(plain):
    assert unseal(seal(plain)) == plain


def test_a_sealed_file_is_plain_json_for_everybody_else():
    plain = json.loads(seal({"schema_version": 1, "goal": "naïve"}))
    assert plain.pop("checksum")
    assert plain == {"schema_version": 1, "goal": "naïve"}


def test_every_flipped_byte_and_every_truncation_of_a_sealed_file_is_noticed():
    data = seal({"schema_version": 1, "current_node": "plan", "context": {"a": [1, 2.5, None, "ü"]}})
    for place in range(len(data)):
        for flip in (0x01, 0x20, 0x80, data[place]):
            damaged = bytearray(data)
            damaged[place] ^= flip
            with pytest.raises(JsonProblem):
                unseal(bytes(damaged))
        with pytest.raises(JsonProblem):
            unseal(data[:place])
    with pytest.raises(JsonProblem):
        unseal(data + b" ")


def test_ruling_29_a_checkpoint_has_the_keys_of_the_spec_and_ours(create, checkpoint, event_of):
    store = create()
    store.append(event_of(1), is_synced=True)
    store.save_checkpoint(checkpoint, is_forced=True)
    plain, problems = read_checkpoint(store.logs_root)
    assert problems == []
    assert plain == {
        "schema_version": 1,
        "timestamp": 1_700_000_000.0,
        **checkpoint,
        "log_sequence": 1,
        "log_offset": (store.logs_root / "events.jsonl").stat().st_size,
    }
    read = Checkpoint.from_plain(plain)
    assert (read.current_node, read.completed_nodes, read.context_values) == ("plan", ["plan"], {"outcome": "success"})
    assert read.to_plain()["context"] == {"outcome": "success"}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param(b"", "checkpoint.json has no checksum at its end", id="empty"),
        pytest.param(b'{"current_node": "plan"}', "checkpoint.json has no checksum at its end", id="foreign"),
        pytest.param(seal({"timestamp": 1.0}), "has a wrong shape: current_node: field required", id="wrong shape"),
        pytest.param(seal({"schema_version": 9}), "has a wrong shape: schema_version: ", id="newer version"),
        pytest.param(None, "cannot read", id="a directory"),
    ],
)
def test_a_checkpoint_that_is_not_ours_falls_back_to_the_one_before(create, checkpoint, content, problem):
    store = create()
    store.save_checkpoint({**checkpoint, "logs": ["older"]}, is_forced=True)
    store.save_checkpoint(checkpoint, is_forced=True)
    place = store.logs_root / "checkpoint.json"
    place.unlink()
    place.mkdir() if content is None else place.write_bytes(content)
    plain, problems = read_checkpoint(store.logs_root)
    assert plain["logs"] == ["older"]
    assert problem in problems[0]


def test_without_any_valid_generation_there_is_no_checkpoint(tmp_path):
    (tmp_path / "checkpoint.json").write_text("x")
    assert read_checkpoint(tmp_path) == (None, ["checkpoint.json has no checksum at its end"])


def test_ruling_29_while_stages_rush_a_checkpoint_is_written_every_100_ms_at_most():
    schedule = CheckpointSchedule(0.0)
    assert not schedule.is_due(0.05, 1000)
    assert schedule.is_due(0.10, 2000)
    schedule.note_saved(0.10, 2000, 400)
    assert not schedule.is_due(0.15, 3000)
    assert schedule.is_due(0.20, 5200)


def test_ruling_29_after_a_stage_of_more_than_100_ms_a_checkpoint_is_always_written():
    schedule = CheckpointSchedule(0.0)
    schedule.note_saved(0.0, 0, 1_000_000)
    assert not schedule.is_due(0.09, 100)
    assert schedule.is_due(0.20, 200)


def test_goal_p4_the_log_must_outgrow_the_checkpoint_first():
    schedule = CheckpointSchedule(0.0)
    schedule.note_saved(0.0, 5000, 1000)
    assert not schedule.is_due(0.09, 12_999)
    assert not schedule.is_due(0.18, 12_999)
    assert schedule.is_due(0.27, 13_000)


def test_goal_p4_bytes_written_grow_with_the_number_of_stages():
    def checkpoint_bytes(stages):
        schedule, now, offset, total = CheckpointSchedule(0.0), 0.0, 0, 0
        for stage in range(1, stages + 1):
            now, offset = now + 0.001, offset + 600
            if schedule.is_due(now, offset):
                size = 500 + 60 * stage
                total += size
                schedule.note_saved(now, offset, size)
        return total + offset

    assert checkpoint_bytes(10_000) <= 12 * checkpoint_bytes(1_000)


def test_an_unforced_checkpoint_waits_until_it_is_due(create, checkpoint, clock):
    store = create()
    store.save_checkpoint(checkpoint, is_forced=False)
    assert not (store.logs_root / "checkpoint.json").exists()
    clock.advance(0.2)
    assert store.is_checkpoint_due()
    store.save_checkpoint(checkpoint, is_forced=False)
    assert (store.logs_root / "checkpoint.json").exists()
    assert not store.is_checkpoint_due()


def test_ruling_30_the_manifest_is_merged_and_read_back(create):
    store = create(goal="ship")
    store.save_manifest({"status": "completed", "end_time": "2026-01-01T00:00:00Z", "reason": ""})
    plain, problems = read_manifest(store.logs_root)
    assert problems == []
    assert plain == {
        "schema_version": 1,
        "status": "completed",
        "start_time": "2023-11-14T22:13:20Z",
        "end_time": "2026-01-01T00:00:00Z",
        "run_id": "abcdefgh",
        "pipeline_name": "review",
        "goal": "ship",
        "reason": "",
        "log_sequence": 0,
    }


@pytest.mark.parametrize(
    ("last", "status", "end_time"),
    [
        pytest.param(RunWarning(message="x"), "running", None, id="running"),
        pytest.param(PipelineCompleted(time=60.0, duration=1.0), "completed", "1970-01-01T00:01:00Z", id="completed"),
        pytest.param(PipelineFailed(time=60.0, error="x", duration=1.0), "failed", "1970-01-01T00:01:00Z", id="failed"),
        pytest.param(
            PipelineInterrupted(time=60.0, reason="x"), "interrupted", "1970-01-01T00:01:00Z", id="interrupted"
        ),
        pytest.param(PipelineResumed(next_node="plan", answers="real", backend="local"), "resumed", None, id="resumed"),
    ],
)
def test_a_lost_manifest_is_rebuilt_from_the_log(last, status, end_time):
    started = PipelineStarted(
        time=0.0,
        name="review",
        id="abcdefgh",
        graph_hash="h",
        start_node="s",
        restart_of="..",
        goal="ship",
        model="small",
        node_count=4,
        backend="local",
        answers="real",
    )
    plain = manifest_from_events([started, StageStarted(name="CON"), last])
    assert plain.pop("reason", "x") == "x"
    assert plain == {
        "goal": "ship",
        "model": "small",
        "node_count": 4,
        "backend": "local",
        **ResultMarks("real").to_facts(),
        "stage_directories": {"CON": escaped_name("CON")},
        "schema_version": 1,
        "status": status,
        "end_time": end_time,
        "run_id": "abcdefgh",
        "pipeline_name": "review",
        "graph_hash": "h",
        "start_node": "s",
        "start_time": "1970-01-01T00:00:00Z",
        "restart_of": "..",
    }


def test_a_manifest_that_is_rebuilt_knows_the_restart_and_forgets_it_after_a_rewind():
    events = [
        PipelineStarted(name="review", id="a", restart_of="/runs/first"),
        PipelineRestarted(target="plan", restarts=2, logs_root="/runs/first/restart-2"),
    ]
    plain = manifest_from_events(events)
    assert (plain["status"], plain["restarted_as"]) == ("restarted", "../restart-2")
    plain = manifest_from_events([*events, PipelineRewound(node="plan", visit=1, to_sequence=1)])
    assert (plain["status"], "restarted_as" in plain) == ("resumed", False)


def test_the_first_run_of_a_pipeline_continues_nothing():
    assert "restart_of" not in manifest_from_events([PipelineStarted(name="review", id="abcdefgh")])
