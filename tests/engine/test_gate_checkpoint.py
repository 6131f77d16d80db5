"""The checkpoint that is written before a gate says nothing that the log does not say."""

import contextlib

from attractor_nb import Pipeline
from attractor_nb.errors import StorageError
from attractor_nb.model.events import StageStarted
from attractor_nb.storage.stored_run import read_run
from attractor_nb.testing import ManualClock, ScriptedInterviewer
from tests.disks.faulty_disk import FOR_EVER, FaultyDisk

GATE = """digraph Gate {
    start [shape=Mdiamond]
    review [shape=hexagon, label="Ship?"]
    done [shape=Msquare]
    start -> review
    review -> done [label="[A] Approve"]
}"""


def test_a_gate_whose_intent_was_never_recorded_was_not_interrupted(tmp_path):
    pipeline = Pipeline(GATE)
    whole = FaultyDisk()
    options = {"clock": ManualClock(), "interviewer": ScriptedInterviewer({"review": "A"})}
    pipeline.run(wait=True, logs_root=tmp_path / "whole", disk=whole, **options)
    unasked = 0
    for operation in range(1, len(whole.operations) + 1):
        root = tmp_path / str(operation)
        disk = FaultyDisk(fail_at=operation, lasts=FOR_EVER)
        with contextlib.suppress(StorageError):
            pipeline.run(wait=True, logs_root=root, disk=disk, **options)
        if not (root / "events.jsonl").exists():
            continue
        stored = read_run(root)
        begun = [event.name for event in stored.events if isinstance(event, StageStarted)]
        if begun == ["start"] and stored.checkpoint and stored.checkpoint["next_node"] == "review":
            unasked += 1
            assert stored.checkpoint["state"]["in_flight"] is None
            assert pipeline.resume(root, on_interrupted="fail", **options).result(60).status == "success"
    assert unasked
