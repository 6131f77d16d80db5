"""A cache directory: whole entries or none, whoever else writes there."""

import errno
import json
import os
import threading
from pathlib import Path

import pytest

from attractor_nb.errors import StorageError
from attractor_nb.model.calls.call_content import CachedStage, CacheLook, InputChange, file_values
from attractor_nb.model.outcome import Outcome, Usage
from attractor_nb.storage import stage_contents
from attractor_nb.storage.cache_store import CacheSize, CacheStore
from attractor_nb.storage.files.strict_json import JsonProblem
from attractor_nb.storage.stage_contents import file_digests

MAX_ENTRY_BYTES = 16 * 1024 * 1024
MISSING = "missing"

KEY = "ab" * 32


@pytest.fixture
def store(tmp_path):
    return CacheStore(tmp_path / "cache")


def test_an_entry_is_read_as_it_was_written(store):
    assert store.read(KEY) is None
    assert store.write(KEY, {"a": [1, "ü"]}, group="g")
    assert store.read(KEY) == {"a": [1, "ü"]}
    assert store.size().entries == 1
    assert oct((store.root / "entries").stat().st_mode & 0o777) == "0o700"


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"a": 1', b"\xff"])
def test_what_is_no_whole_entry_is_a_problem_in_words(store, data):
    store.write(KEY, {"a": 1}, group="g")
    (store.root / "entries" / "ab" / f"{KEY}.json").write_bytes(data)
    with pytest.raises(JsonProblem):
        store.read(KEY)
    assert list(store.recent("g", limit=5)) == []


def test_a_link_in_the_place_of_an_entry_is_refused(store, tmp_path):
    store.write(KEY, {"a": 1}, group="g")
    place = store.root / "entries" / "ab" / f"{KEY}.json"
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError):
        store.read(KEY)


def test_the_newest_entries_of_a_group_come_first(store):
    keys = [f"{number:02x}" * 32 for number in range(5)]
    for number, key in enumerate(keys):
        store.write(key, {"n": number}, group="g")
        (note,) = (store.root / "nodes").glob(f"*/{key}")
        os.utime(note, (number, number))
    store.write("ff" * 32, {"n": 9}, group="another")
    assert [plain["n"] for plain in store.recent("g", limit=3)] == [4, 3, 2]


def test_too_large_a_result_is_not_kept(store):
    assert not store.write(KEY, {"a": "x" * MAX_ENTRY_BYTES}, group="g")
    assert store.size() == CacheSize(0, 0)


def test_clearing_removes_all_and_says_how_much(store):
    assert store.clear() == CacheSize(0, 0)
    for number in range(3):
        store.write(f"{number:02x}" * 32, {"n": number}, group="g")
    before = store.size()
    assert before.entries == 3
    assert store.clear() == before
    assert store.size() == CacheSize(0, 0)
    assert list(store.recent("g", limit=9)) == []
    store.write(KEY, {"a": 1}, group="g")
    assert store.read(KEY) == {"a": 1}


def test_many_writers_of_one_entry_leave_a_whole_one(store):
    begin = threading.Barrier(8)

    def write(number):
        begin.wait()
        for _ in range(20):
            store.write(KEY, {"n": number, "text": "x" * 5000}, group="g")
            assert store.read(KEY)["text"] == "x" * 5000

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.size().entries == 1


def test_a_stage_is_the_same_after_the_disk():
    contents = {"response.md": b"fine", "out/plot.bin": b"\x00\xff"}
    stage = CachedStage(
        run_id="r1",
        time=12.5,
        kind="model",
        node_id="plan",
        values={"prompt": "Plan."},
        outcome=Outcome.success("done", context_updates={"a": [1]}),
        usage=Usage(1, 2, None, 1),
        changes={"rows": 3},
        logs=("counted",),
        files=file_values(contents),
        conversation="[]",
    )
    again = CachedStage.from_plain(stage.to_plain())
    assert again == stage
    assert again.file_contents == contents


def test_an_entry_of_an_earlier_version_is_read_and_written_as_it_was():
    plain = {
        "schema_version": 1,
        "run_id": "r1",
        "time": 12.5,
        "kind": "model",
        "node": "plan",
        "inputs": {"prompt": "Plan."},
        "outcome": {"outcome": "success", "notes": "done", "context_updates": {"a": [1]}},
        "usage": {"input_tokens": 1, "output_tokens": 2, "calls": 1},
        "changes": {"rows": 3},
        "logs": ["counted"],
        "files": {"response.md": "fine", "out/plot.bin": {"base64": "AP8="}},
        "conversation": "[]",
    }
    assert json.loads(json.dumps(CachedStage.from_plain(plain).to_plain())) == plain


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2},
        {"inputs": None},
        {"outcome": {"outcome": "perhaps"}},
        {"files": {"../status.json": "x"}},
        {"files": {"/etc/passwd": "x"}},
        {"files": {"visits/1.1/a": "x"}},
        {"files": {"a": {"base64": "!"}}},
        {"usage": 3},
        {"logs": None},
    ],
    ids=lambda change: "-".join(f"{name}" for name in change) + str(change)[:40],
)
def test_an_entry_of_another_shape_is_none(change):
    plain = CachedStage(kind="model", node_id="plan", values={}, outcome=Outcome.success()).to_plain()
    with pytest.raises(ValueError):
        CachedStage.from_plain({**plain, **change})


def test_a_look_is_the_same_after_the_disk():
    look = CacheLook("k", {"prompt": "01"}, False, "", (InputChange("prompt", "a", None),), "r1", "too large")
    assert CacheLook.from_plain(look.to_plain()) == look
    with pytest.raises(ValueError):
        CacheLook.from_plain({"changes": 3, "is_hit": False})


def test_declared_files_have_digests_by_name(tmp_path):
    (tmp_path / "src" / "deep").mkdir(parents=True)
    (tmp_path / "src" / "a.py").write_text("1")
    (tmp_path / "src" / "deep" / "b.py").write_text("2")
    found = file_digests(["src", "none.txt", "src/**/*.py"], tmp_path)
    assert list(found) == ["none.txt", "src/a.py", "src/deep/b.py"]
    assert found["none.txt"] == MISSING
    assert found["src/a.py"] != found["src/deep/b.py"]


def test_a_pipe_among_the_declared_files_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError, match="not a plain file"):
        file_digests(["pipe"], tmp_path)


def test_what_stands_in_the_place_of_an_entry_is_named_when_the_cache_is_cleared(store):
    store.write(KEY, {"a": 1}, group="g")
    (store.root / "entries" / "ab" / f"{'ac' * 32}.json").mkdir()
    with pytest.raises(StorageError, match=r"cannot remove .*/ab/acac"):
        store.clear()


@pytest.mark.parametrize("act", [CacheStore.size, CacheStore.clear], ids=["size", "clear"])
def test_a_cache_that_may_not_be_read_is_not_told_to_be_empty(store, monkeypatch, act):
    def refuse(place):
        raise PermissionError(errno.EACCES, "Permission denied", str(place))

    store.write(KEY, {"a": 1}, group="g")
    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(StorageError, match=r"cannot read the cache .*/cache: permission denied"):
        act(store)


def test_of_declared_files_that_lead_nowhere_or_in_circles_the_first_is_missing(tmp_path):
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    assert file_digests(["gone"], tmp_path) == {"gone": MISSING}
    with pytest.raises(StorageError, match=r"cannot read .*/circle: too many levels"):
        file_digests(["circle"], tmp_path)


@pytest.mark.parametrize(
    ("pattern", "message"), [("src", "src holds more than 2 files"), ("src/*", r"src/\* names more than 2 files")]
)
def test_more_declared_files_than_anybody_means_are_refused(tmp_path, monkeypatch, pattern, message):
    monkeypatch.setattr(stage_contents, "MAX_FILES", 2)
    (tmp_path / "src").mkdir()
    for name in "abc":
        (tmp_path / "src" / name).write_text(name)
    with pytest.raises(StorageError, match=message):
        file_digests([pattern], tmp_path)
    (tmp_path / "src" / "c").unlink()
    assert list(file_digests([pattern], tmp_path)) == ["src/a", "src/b"]


def test_a_declared_folder_that_may_not_be_read_is_not_empty(tmp_path, monkeypatch):
    def refuse(place):
        raise PermissionError(errno.EACCES, "Permission denied", str(place))

    (tmp_path / "src").mkdir()
    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(StorageError, match=r"cannot read .*/src: permission denied"):
        file_digests(["src"], tmp_path)


@pytest.mark.parametrize("link", ["entries", "nodes", "entries/ab"])
def test_nothing_is_written_or_read_behind_a_planted_link(tmp_path, link):
    """Ruling 43: names that are digests would appear in a folder of the user, and what is there would count."""
    CacheStore(tmp_path / "other").write(KEY, {"a": 1}, group="g")
    home, root = tmp_path / "other" / link, tmp_path / "cache"
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(home)
    before = sorted(home.rglob("*"))
    store = CacheStore(root)
    with pytest.raises(StorageError, match=f"{link} is a link, and the cache keeps its own files there") as told:
        store.write(KEY, {"a": 2}, group="other")
    assert told.value.hint == "remove it, or name another directory for the cache"
    assert sorted(home.rglob("*")) == before
    if link == "nodes":
        assert list(store.recent("g", limit=5)) == []
    else:
        assert store.read(KEY) is None


def test_a_cache_directory_that_is_a_link_is_the_users_choice(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "disk")
    store = CacheStore(tmp_path / "cache")
    store.write(KEY, {"a": 1}, group="g")
    assert store.read(KEY) == {"a": 1}


@pytest.mark.parametrize("link", ["entries", "nodes", "entries/ab"])
def test_clearing_removes_nothing_behind_a_planted_link_and_nothing_of_another_form(tmp_path, link):
    """Ruling 43: a stranger's folder may have a cache, and its links lead to files of the user."""
    home = tmp_path / "home"
    for name in ("papers/thesis.txt", "ab/thesis.txt", "ab/notes.json", f"ab/{'a' * 64}.json"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("years of work")
    root = tmp_path / "cache"
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(home if "/" not in link else home / "ab")
    own = root / ("nodes" if link != "nodes" else "entries") / "cd"
    own.mkdir(parents=True)
    (own / "readme.txt").write_text("mine")
    assert CacheStore(root).clear().entries == 0
    assert len([path for path in home.rglob("*") if path.is_file()]) == 4
    assert (own / "readme.txt").is_file()
