"""The directory of a map: one owner, whole or not begun, and nothing in it believed unseen."""

import psutil
import pytest

from attractor_nb.errors import CheckpointCorrupt, RunNotFound, StorageError
from attractor_nb.storage.log.lock import is_owned
from attractor_nb.storage.map_directory import MapDirectory, read_inputs, read_map, read_map_source
from tests.disks.faulty_disk import FaultyDisk


@pytest.fixture
def make(tmp_path, clock):
    maps = []

    def make(disk=None):
        facts = {"durability": "fast", "clock": clock, "disk": disk, "source_text": "digraph {}", "facts": {}}
        maps.append(MapDirectory.create(tmp_path / "map", rows=[{"n": 0}, {"n": 1}], **facts))
        return maps[-1].path

    yield make
    for each in maps:
        each.close()


def test_a_fault_at_any_operation_of_a_beginning_leaves_nothing_open_and_a_place_to_begin_again(make, tmp_path):
    fault = 0
    before = psutil.Process().num_fds()
    while not is_owned(tmp_path / "map"):
        fault += 1
        try:
            make(FaultyDisk(fail_at=fault))
        except StorageError:
            assert psutil.Process().num_fds() == before, fault
    assert fault > 5
    assert read_map(tmp_path / "map")["status"] == "running"


def test_a_fault_at_any_operation_of_a_resume_frees_the_map(make, clock):
    path = make()
    MapDirectory.open(path, durability="fast", clock=clock, take_over=True).close()
    before = psutil.Process().num_fds()
    for fault in range(1, 100):
        try:
            taken = MapDirectory.open(path, durability="fast", clock=clock, disk=FaultyDisk(fail_at=fault))
        except StorageError:
            assert not is_owned(path), fault
            assert psutil.Process().num_fds() == before, fault
        else:
            break
    assert is_owned(path)
    taken.close()


def test_a_map_without_its_source_says_how_to_go_on(make):
    path = make()
    assert read_map_source(path) == "digraph {}"
    (path / "pipeline.dot").unlink()
    with pytest.raises(RunNotFound, match="does not hold the pipeline's source") as caught:
        read_map_source(path)
    assert "resume_map(directory)" in caught.value.hint


def test_a_row_that_is_no_json_is_damaged_and_named(make):
    path = make()
    assert read_inputs(path, read_map(path)) == [{"n": 0}, {"n": 1}]
    (path / "inputs.jsonl").write_text('{"n":0}\n{"n":\n')
    with pytest.raises(CheckpointCorrupt, match=r"inputs\.jsonl.* row 1: is not JSON"):
        read_inputs(path, read_map(path))
