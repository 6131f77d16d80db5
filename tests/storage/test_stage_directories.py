"""Stage directories: the newest attempt in front, all others kept, nothing outside touched."""

import json
import os

import psutil
import pytest

from attractor_nb.errors import StatusFileError, StorageError
from attractor_nb.storage.attempt_files import read_stage_text
from attractor_nb.storage.files.disk import Disk
from tests.disks.faulty_disk import FaultyDisk

MAX_STAGE_FILE_BYTES = 64 * 1024 * 1024
MAX_STATUS_BYTES = 1024 * 1024


def tree(root):
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_a_new_attempt_has_an_empty_directory(create):
    store = create()
    files = store.open_stage("plan", 1, 1)
    assert files.directory == store.logs_root / "plan"
    assert files.directory.stat().st_mode & 0o777 == 0o700
    assert list(files.directory.iterdir()) == []
    assert files.read_text("status.json") is None


def test_what_was_written_is_read_back(create):
    files = create().open_stage("plan", 1, 1)
    files.write_text("prompt.md", "naïve\r\n")
    files.write_text("prompt.md", "final\r\n")
    files.append_text("response.md", "one ")
    files.append_text("response.md", "two")
    assert files.read_text("prompt.md") == "final\r\n"
    assert files.read_text("response.md") == "one two"
    assert (files.directory / "prompt.md").stat().st_mode & 0o777 == 0o600


class InterruptedDisk(Disk):
    """Ctrl-C comes whenever one of our finalizers closes a descriptor."""

    is_armed = False

    def close(self, descriptor):
        super().close(descriptor)
        if self.is_armed:
            raise KeyboardInterrupt


def test_ctrl_c_is_not_lost_while_nobody_holds_the_files_any_more(create, monkeypatch):
    shown = []
    monkeypatch.setattr("sys.unraisablehook", shown.append)
    disk = InterruptedDisk()
    files = create(disk=disk).open_stage("plan", 1, 1)
    files.write_text("prompt.md", "x")
    before = psutil.Process().num_fds()
    disk.is_armed = True
    del files
    disk.is_armed = False
    assert shown == []
    assert psutil.Process().num_fds() == before - 1


def test_text_that_has_no_utf8_form_is_kept_escaped(create):
    files = create().open_stage("plan", 1, 1)
    files.write_text("prompt.md", "half \ud83d")
    assert files.read_text("prompt.md") == "half \\ud83d"


def test_ruling_28_earlier_visits_and_attempts_are_kept(create):
    store = create()
    for visit, attempt in ((1, 1), (1, 2), (2, 1)):
        files = store.open_stage("plan", visit, attempt)
        assert files.read_text("status.json") is None
        files.write_text("status.json", json.dumps({"visit": visit, "attempt": attempt}))
    assert tree(store.logs_root / "plan") == ["status.json", "visits/1.1/status.json", "visits/1.2/status.json"]
    assert '"visit": 2' in (store.logs_root / "plan/status.json").read_text()


def test_ruling_28_an_attempt_that_is_run_again_keeps_the_files_of_both(create, reopen, event_of):
    store = create()
    store.append(event_of(1), is_synced=True)
    store.append(event_of(2), is_synced=True)
    store.open_stage("plan", 1, 1).write_text("prompt.md", "first")
    store.close()
    again = reopen(store.logs_root)
    again.open_stage("plan", 1, 1).write_text("prompt.md", "second")
    again.open_stage("plan", 1, 1).write_text("prompt.md", "third")
    again.open_stage("plan", 1, 1)
    assert tree(store.logs_root / "plan") == [
        "visits/1.1-2/prompt.md", "visits/1.1-3/prompt.md", "visits/1.1/prompt.md",
    ]  # fmt: skip


def test_after_a_resume_the_log_says_which_attempt_the_files_are_of(create, reopen, event_of):
    store = create()
    store.append(event_of(1), is_synced=True)
    started = event_of(2)
    started.visit, started.attempt = 3, 2
    store.append(started, is_synced=True)
    store.open_stage("plan", 3, 2).write_text("prompt.md", "cut off")
    store.close()
    reopen(store.logs_root).open_stage("plan", 3, 3)
    assert tree(store.logs_root / "plan") == ["visits/3.2/prompt.md"]


def test_without_a_record_in_the_log_the_status_file_says_it(create, reopen):
    store = create()
    store.open_stage("plan", 1, 1).write_text("status.json", '{"visit": 4, "attempt": 2}')
    store.close()
    reopen(store.logs_root).open_stage("plan", 5, 1)
    assert tree(store.logs_root / "plan") == ["visits/4.2/status.json"]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param('{"visit": "../..", "attempt": 2}', id="hostile"),
        pytest.param("[]", id="no object"),
        pytest.param("no json", id="no json"),
    ],
)
def test_ruling_37_a_directory_that_no_run_wrote_stays_and_the_stage_has_another(create, reopen, status):
    store = create()
    (store.logs_root / "plan").mkdir()
    (store.logs_root / "plan" / "status.json").write_text(status)
    files = store.open_stage("plan", 1, 1)
    files.write_text("prompt.md", "ours")
    assert tree(store.logs_root / "plan") == ["status.json"]
    assert (store.logs_root / "plan" / "status.json").read_text() == status
    assert store.manifest["stage_directories"] == {"plan": files.directory.name}
    store.close()
    again = reopen(store.logs_root)
    assert again.open_stage("plan", 2, 1).directory == files.directory
    assert tree(store.logs_root / "plan") == ["status.json"]


def test_ruling_27_a_stale_status_file_leaves_before_anything_else(create):
    disk = FaultyDisk()
    store = create(disk=disk)
    files = store.open_stage("plan", 1, 1)
    for name in ("a.md", "status.json", "z.md"):
        files.write_text(name, "")
    disk.operations.clear()
    store.open_stage("plan", 1, 2)
    assert [name for operation, name in disk.operations if operation == "rename"] == ["status.json", "a.md", "z.md"]


def test_a_move_that_was_cut_off_is_finished_in_the_same_place(create):
    disk = FaultyDisk()
    store = create(disk=disk)
    files = store.open_stage("plan", 1, 1)
    for name in ("prompt.md", "status.json"):
        files.write_text(name, "")
    disk._fail_at = len(disk.operations) + 5  # mkdir, mkdir visits, mkdir 1.1, first rename, second rename
    with pytest.raises(StorageError):
        store.open_stage("plan", 1, 2)
    assert tree(store.logs_root / "plan") == ["prompt.md", "visits/1.1/status.json"]
    store.open_stage("plan", 1, 2)
    assert tree(store.logs_root / "plan") == ["visits/1.1/prompt.md", "visits/1.1/status.json"]


@pytest.mark.parametrize("node_id", ["artifacts", "CON", "a/b", "..", "x" * 300], ids=lambda text: text[:10])
def test_ruling_32_a_hostile_id_has_a_recorded_directory(create, reopen, node_id):
    store = create()
    directory = store.open_stage(node_id, 1, 1).directory
    assert directory.parent == store.logs_root
    assert store.manifest["stage_directories"] == {node_id: directory.name}
    store.close()
    assert reopen(store.logs_root).open_stage(node_id, 2, 1).directory == directory


@pytest.mark.parametrize("plant", ["link", "file", "fifo"])
def test_what_was_planted_in_the_place_of_a_stage_is_refused(create, tmp_path, plant):
    store = create()
    (tmp_path / "outside").mkdir()
    place = store.logs_root / "plan"
    if plant == "link":
        place.symlink_to(tmp_path / "outside")
    elif plant == "file":
        place.write_text("")
    else:
        os.mkfifo(place)
    with pytest.raises(StorageError, match="cannot make stage directory"):
        store.open_stage("plan", 1, 1)
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_stage_directory_that_became_a_link_is_not_written_through(create, tmp_path):
    store = create()
    files = store.open_stage("plan", 1, 1)
    (tmp_path / "outside").mkdir()
    files.directory.rmdir()
    files.directory.symlink_to(tmp_path / "outside")
    for attempt in (
        lambda: files.write_text("a", ""),
        lambda: files.append_text("a", ""),
        lambda: files.read_text("a"),
    ):
        with pytest.raises(StorageError, match="cannot open stage directory"):
            attempt()
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_stage_directory_that_is_swapped_under_way_is_not_written_through(create, tmp_path):
    files = create().open_stage("plan", 1, 1)
    files.write_text("prompt.md", "mine")
    (tmp_path / "outside").mkdir()
    files.directory.rename(tmp_path / "moved")
    files.directory.symlink_to(tmp_path / "outside")
    files.write_text("response.md", "mine too")
    assert (tmp_path / "moved/response.md").read_text() == "mine too"
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_planted_link_is_not_appended_to(create, tmp_path):
    files = create().open_stage("plan", 1, 1)
    (tmp_path / "precious").write_text("precious")
    (files.directory / "response.md").symlink_to(tmp_path / "precious")
    with pytest.raises(StorageError, match=r"cannot write .*response\.md"):
        files.append_text("response.md", "x")
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_file_with_a_second_name_elsewhere_is_not_appended_to(create, tmp_path):
    files = create().open_stage("plan", 1, 1)
    (tmp_path / "precious").write_text("precious")
    files.write_text("prompt.md", "x")
    (files.directory / "response.md").hardlink_to(tmp_path / "precious")
    before = psutil.Process().num_fds()
    with pytest.raises(StorageError, match=r"cannot write .*response\.md: the file has a second name somewhere"):
        files.append_text("response.md", "x")
    assert (tmp_path / "precious").read_text() == "precious"
    assert psutil.Process().num_fds() == before


def test_a_planted_link_is_no_folder_of_a_stage(create, tmp_path):
    files = create().open_stage("plan", 1, 1)
    (tmp_path / "outside").mkdir()
    (files.directory / "out").symlink_to(tmp_path / "outside")
    with pytest.raises(StorageError, match=r"cannot write .*plan/out/plot\.bin"):
        files.write_bytes("out/plot.bin", b"x")
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize("name", ["", ".", "..", "visits", "a/b", "/etc/passwd", "a\0b"], ids=ascii)
def test_only_plain_names_are_files_of_a_stage(create, name):
    files = create().open_stage("plan", 1, 1)
    for attempt in (
        lambda: files.write_text(name, ""),
        lambda: files.append_text(name, ""),
        lambda: files.read_text(name),
    ):
        with pytest.raises(StorageError, match="is not a file name for a stage"):
            attempt()


def test_ruling_27_a_status_file_beyond_all_measure_is_the_stages_fault(create):
    files = create().open_stage("plan", 1, 1)
    with (files.directory / "status.json").open("wb") as file:
        file.truncate(MAX_STATUS_BYTES + 1)
    with pytest.raises(StatusFileError, match="are more than"):
        files.read_text("status.json")


def test_another_file_beyond_all_measure_is_refused(create):
    files = create().open_stage("plan", 1, 1)
    with (files.directory / "response.md").open("wb") as file:
        file.truncate(MAX_STAGE_FILE_BYTES + 1)
    with pytest.raises(StorageError, match="are more than"):
        files.read_text("response.md")


def test_a_late_writer_of_a_closed_run_is_refused(create):
    store = create()
    files = store.open_stage("plan", 1, 1)
    store.close()
    with pytest.raises(StorageError, match="is closed"):
        files.write_text("late.md", "")


def test_a_full_disk_is_a_storage_error(create):
    disk = FaultyDisk()
    files = create(disk=disk).open_stage("plan", 1, 1)
    disk._fail_at = len(disk.operations) + 2
    with pytest.raises(StorageError, match="cannot write"):
        files.append_text("response.md", "x")


def test_an_interrupted_last_word_of_an_attempt_leaves_no_half_of_a_status(create):
    class Interrupted(Disk):
        def write(self, descriptor, data):
            if b"half" in data:
                super().write(descriptor, data[:2])
                raise KeyboardInterrupt
            return super().write(descriptor, data)

    files = create(disk=Interrupted()).open_stage("plan", 1, 1)
    with pytest.raises(KeyboardInterrupt):
        files.create_deferred("status.json", lambda: "half of it")
    assert list(files.directory.iterdir()) == []


def test_a_file_that_is_not_there_cannot_be_renamed(create):
    files = create().open_stage("plan", 1, 1)
    with pytest.raises(StorageError, match=r"cannot rename .*plan/status\.json: no such file"):
        files.rename("status.json", "status.1.json")


@pytest.mark.parametrize("place", ["fan", "fan/a"])
def test_what_was_planted_in_the_place_of_a_branch_is_refused(create, tmp_path, place):
    store = create()
    (tmp_path / "outside").mkdir()
    planted = store.open_stage("plan", 1, 1, "fan/a").directory.parent
    store.close_branch("fan/a")
    planted = planted if place == "fan/a" else planted.parent
    planted.rename(tmp_path / "moved")
    planted.symlink_to(tmp_path / "outside")
    before = psutil.Process().num_fds()
    with pytest.raises(StorageError, match=r"cannot make branch directory .*fan"):
        store.open_stage("plan", 2, 1, "fan/a")
    assert list((tmp_path / "outside").iterdir()) == []
    assert psutil.Process().num_fds() == before


def test_ruling_29_stage_files_are_evidence_and_cost_no_flush_even_under_full_durability(create):
    disk = FaultyDisk()
    files = create(durability="full", disk=disk).open_stage("plan", 1, 1)
    disk.operations.clear()
    files.write_text("prompt.md", "x")
    assert [operation for operation, _ in disk.operations] == ["create", "write", "rename"]


def test_a_stage_that_is_out_of_reach_is_an_error_and_not_a_missing_file(tmp_path):
    with pytest.raises(StorageError, match="file name too long"):
        read_stage_text(tmp_path / ("x" * 256), "prompt.md", tmp_path)
