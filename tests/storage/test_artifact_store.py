"""Artifacts: spec 5.5, and the value store behind the context."""

import threading
from hashlib import sha256

import pytest

from attractor_nb.context import Context
from attractor_nb.errors import CheckpointCorrupt, StorageError
from attractor_nb.storage.stages.artifact_store import ArtifactInfo, ArtifactStore
from tests.disks.faulty_disk import FaultyDisk

BIG = "x" * (100 * 1024)


@pytest.fixture
def memory(clock):
    return ArtifactStore(clock)


def test_an_artifact_of_up_to_100_kb_stays_in_memory(create):
    store = create()
    info = store.values.store("small", "a list", [1, 2])
    assert info == ArtifactInfo("small", "a list", 5, 1_700_000_000.0, is_file_backed=False)
    assert store.values.retrieve("small") == [1, 2]
    assert not (store.logs_root / "artifacts").exists()


def test_a_larger_one_is_written_to_a_file(create):
    store = create()
    assert store.values.store("big", "text", BIG).is_file_backed
    assert (store.logs_root / "artifacts/big.json").read_text() == f'"{BIG}"'
    assert store.values.retrieve("big") == BIG
    assert store.artifact_count == 1


def test_without_a_directory_all_stay_in_memory(memory):
    assert not memory.store("big", "text", BIG).is_file_backed
    assert memory.retrieve("big") == BIG


def test_has_list_remove_and_clear(create):
    values = create().values
    for name, data in (("a", BIG), ("b", 1), ("c", None)):
        values.store(name, name, data)
    assert [info.id for info in values.list()] == ["a", "b", "c"]
    values.remove("a")
    assert (values.has("a"), values.has("b")) == (False, True)
    values.clear()
    assert len(values) == 0


def test_storing_again_replaces_also_across_the_threshold(create):
    store = create()
    store.values.store("a", "a", BIG)
    store.values.store("a", "a", "small")
    assert store.values.retrieve("a") == "small"
    assert not (store.logs_root / "artifacts/a.json").exists()
    store.values.store("a", "a", BIG)
    assert store.values.retrieve("a") == BIG


@pytest.mark.parametrize("call", ["retrieve", "remove"])
def test_an_unknown_artifact_is_an_error(memory, call):
    with pytest.raises(StorageError, match="there is no artifact 'none'"):
        getattr(memory, call)("none")


@pytest.mark.parametrize("artifact_id", ["", "../x", "a/b", ".hidden", "ü", "x" * 201, "a b"], ids=ascii)
def test_an_id_that_is_no_file_name_is_refused(memory, artifact_id):
    with pytest.raises(StorageError, match="is not an artifact id"):
        memory.store(artifact_id, "x", 1)


@pytest.mark.parametrize("value", [{1, 2}, float("nan")], ids=["set", "nan"])
def test_a_value_without_json_form_is_refused(memory, value):
    with pytest.raises(StorageError, match="has no JSON form"):
        memory.store("a", "x", value)


def test_ruling_31_a_large_context_value_becomes_a_reference_and_reads_back(create):
    store = create()
    context = Context(store=store.values)
    context.set("plan.response", BIG)
    reference = context.snapshot()["plan.response"]
    artifact_id = sha256(f'"{BIG}"'.encode()).hexdigest()
    assert reference == {
        "type": "artifact_ref",
        "artifact_id": artifact_id,
        "size_bytes": len(BIG) + 2,
        "summary": "Externalized value for 'plan.response'",
    }
    assert context.get("plan.response") == BIG
    assert (store.logs_root / f"artifacts/{artifact_id}.json").exists()


def test_equal_values_are_stored_once(create):
    disk = FaultyDisk()
    store = create(disk=disk)
    first = store.values.externalize("a", [BIG])
    count = len(disk.operations)
    assert store.values.externalize("b", [BIG])["artifact_id"] == first["artifact_id"]
    assert len(disk.operations) == count


def test_a_resumed_run_finds_its_artifacts(create, reopen):
    store = create()
    reference = store.values.externalize("a", [BIG])
    store.close()
    again = reopen(store.logs_root)
    assert again.artifact_count == 1
    assert again.values.resolve(reference) == [BIG]
    assert again.values.list()[0].name == reference["artifact_id"]


def test_an_altered_or_lost_artifact_is_noticed(create):
    store = create()
    reference = store.values.externalize("a", [BIG])
    place = store.logs_root / f"artifacts/{reference['artifact_id']}.json"
    place.write_text(place.read_text().replace("xx", "xy", 1))
    with pytest.raises(CheckpointCorrupt, match="is not what the run stored"):
        store.values.resolve(reference)
    place.unlink()
    with pytest.raises(CheckpointCorrupt, match="is gone"):
        store.values.resolve(reference)
    with pytest.raises(CheckpointCorrupt, match="is not an artifact id"):
        store.values.resolve({**reference, "artifact_id": "../manifest"})


def test_a_named_artifact_that_is_no_json_any_more_is_an_error(create):
    store = create()
    store.values.store("a", "a", BIG)
    (store.logs_root / "artifacts/a.json").write_text("{")
    with pytest.raises(StorageError, match="artifact a is not JSON"):
        store.values.retrieve("a")


def test_an_artifact_whose_file_is_gone_already_can_be_removed(create):
    store = create()
    store.values.store("a", "a", BIG)
    (store.logs_root / "artifacts/a.json").unlink()
    store.values.remove("a")
    assert not store.values.has("a")


def test_a_planted_artifacts_directory_is_refused(create, reopen, tmp_path):
    store = create()
    (tmp_path / "outside").mkdir()
    (store.logs_root / "artifacts").symlink_to(tmp_path / "outside")
    with pytest.raises(StorageError, match=r"cannot open .*artifacts"):
        store.values.externalize("a", [BIG])
    store.close()
    with pytest.raises(StorageError, match=r"cannot open .*artifacts"):
        reopen(store.logs_root)
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_file_that_cannot_be_removed_keeps_its_artifact(create):
    disk = FaultyDisk()
    store = create(disk=disk)
    store.values.store("a", "a", BIG)
    disk._fail_at = len(disk.operations) + 1
    with pytest.raises(StorageError, match="cannot remove"):
        store.values.remove("a")
    assert store.values.retrieve("a") == BIG


def test_full_durability_flushes_an_artifact_and_its_name(create):
    disk = FaultyDisk()
    store = create(durability="full", disk=disk)
    disk.operations.clear()
    store.values.externalize("a", [BIG])
    names = [operation for operation, _ in disk.operations]
    assert names == ["make_directory", "sync", "create", "write", "sync", "rename", "sync"]


def test_several_threads_may_store(memory):
    def work(number):
        for index in range(20):
            memory.externalize("key", [number, index])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(memory) == 80
