"""A run directory that came from elsewhere: there as a whole, or not at all."""

import psutil
import pytest

from attractor_nb.errors import StorageError
from attractor_nb.storage.files.disk import Disk
from attractor_nb.storage.map_directory import put_run
from attractor_nb.storage.run_directory import RunDirectory
from tests.disks.faulty_disk import FaultyDisk

FILES = {"response.md": b"a plan", "plan/prompt.md": b"Plan."}


def test_a_fault_at_any_operation_leaves_nothing_of_the_run_behind(tmp_path):
    counted = FaultyDisk()
    (tmp_path / "counted").mkdir()
    put_run(counted, RunDirectory(Disk(), tmp_path / "counted"), "row-1", FILES, lambda _: None, is_synced=False)
    assert (tmp_path / "counted" / "row-1" / "plan" / "prompt.md").read_bytes() == b"Plan."
    (tmp_path / "home").mkdir()
    home = RunDirectory(Disk(), tmp_path / "home")
    before = psutil.Process().num_fds()
    for number in range(1, len(counted.operations) + 1):
        with pytest.raises(StorageError, match=r"cannot write .*/home/row-1"):
            put_run(FaultyDisk(fail_at=number), home, "row-1", FILES, lambda _: None, is_synced=False)
        assert list((tmp_path / "home").iterdir()) == []
        assert psutil.Process().num_fds() == before
