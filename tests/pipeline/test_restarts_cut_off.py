"""A restart whose process ends before its first record: the resume that begins it says what the restart would have."""

import contextlib

import pytest

from attractor_nb import Outcome, Pipeline
from attractor_nb.errors import StorageError
from attractor_nb.model.events import PipelineStarted
from attractor_nb.storage.stored_run import read_run
from tests.disks.faulty_disk import FaultyDisk

SOURCE = """digraph Again {
    start [shape=Mdiamond]
    first [prompt="Begin"]
    judge [type=judge]
    done  [shape=Msquare]
    start -> first -> judge
    judge -> first [condition="outcome=fail", loop_restart=true]
    judge -> done  [condition="outcome=success"]
}"""


def pipeline_that_restarts():
    """The judge sends the run back once, whichever process it is in."""
    tries = []

    def judge(node, context, graph, logs_root):
        tries.append(logs_root)
        return Outcome.fail("once more") if len(tries) == 1 else Outcome.success()

    return Pipeline(SOURCE, handlers={"judge": judge})


def cut_off(place, number):
    """A run whose disk fails once, at an operation: its pipeline, and the operations that there were."""
    pipeline, disk = pipeline_that_restarts(), FaultyDisk(fail_at=number)
    with contextlib.suppress(StorageError):
        pipeline.run(wait=True, logs_root=place, durability="full", disk=disk, is_shown=False)
    return pipeline, disk.operations


def first_record(place):
    events = read_run(place).events
    return events[0] if events else None


@pytest.fixture
def operations(tmp_path):
    """The operations that make a restart, up to its second record."""
    _, made = cut_off(tmp_path / "whole", None)
    begins = next(number for number, entry in enumerate(made, 1) if entry[1].endswith("restart-1"))
    return range(begins, begins + 40)


def test_the_first_record_of_a_restart_says_what_it_goes_on_from(tmp_path, operations):
    whole = first_record(tmp_path / "whole/restart-1")
    assert whole.restart_of
    assert whole.carried.visits == {"start": 1, "first": 1, "judge": 1}
    begun_later = 0
    for number in operations:
        place = tmp_path / str(number)
        pipeline, _ = cut_off(place, number)
        restart = place / "restart-1"
        begun_later += (restart / "events.jsonl").exists() and first_record(restart) is None
        if read_run(place).status != "completed":
            pipeline.resume(place, is_shown=False).result(60)
        begun = first_record(restart)
        assert isinstance(begun, PipelineStarted), number
        assert begun.restart_of == str(place), number
        assert (begun.carried.restarts, begun.carried.visits) == (1, whole.carried.visits), number
        assert pipeline.resume(place, rewind_to="judge", is_shown=False).result(60).status == "success", number
    assert begun_later > 3, "no restart was cut off before its first record"
