"""A disk that refuses while a run moves to its restart's directory."""

import errno

import pytest

from attractor_nb import Outcome, Pipeline, Run, StageStatus, current_stage
from attractor_nb.errors import StorageError
from attractor_nb.testing import ManualClock
from tests.disks.faulty_disk import FaultyDisk

RESTARTING = """digraph Restarting {
    start [shape=Mdiamond]
    work [prompt="Work"]
    done [shape=Msquare]
    start -> work
    work -> work [label="anew", loop_restart=true]
    work -> done [label="fine"]
}"""


def answer(node, prompt, context):
    is_first = "restart" not in current_stage().logs_root.name
    return Outcome(StageStatus.SUCCESS, preferred_label="anew" if is_first else "fine")


@pytest.mark.campaign
def test_the_directory_of_a_restart_is_free_after_every_fault(tmp_path):
    pipeline = Pipeline(RESTARTING, backend=answer)
    whole = FaultyDisk()
    assert pipeline.run(wait=True, logs_root=tmp_path / "whole", disk=whole, clock=ManualClock()).status == "success"
    moving = next(place for place, (_, name) in enumerate(whole.operations) if name.endswith("restart-1"))
    refused = 0
    for operation in range(moving + 1, len(whole.operations) + 1):
        root = tmp_path / str(operation)
        disk = FaultyDisk(fail_at=operation, error=errno.ENOSPC)
        try:
            pipeline.run(wait=True, logs_root=root, disk=disk, clock=ManualClock())
        except StorageError:
            refused += 1
            if Run.load(root).status != "completed":
                assert pipeline.resume(root, clock=ManualClock()).result(60).status == "success"
    assert refused
