"""The threads of a run in its directory (spec 5.4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attractor_nb.errors import StorageError
from attractor_nb.storage.memory_store import MemoryRunStore
from attractor_nb.storage.stages import thread_files
from attractor_nb.storage.stages.thread_files import Thread, thread_file_name
from tests.disks.faulty_disk import FaultyDisk

SECRET = "sk-ant-api03-" + "Ab1" * 30


@pytest.fixture(params=["full", "fast", "memory"])
def store(request, create, clock):
    if request.param != "memory":
        return create(durability=request.param)
    return MemoryRunStore(clock=clock)


def test_an_entry_is_read_back_and_another_one_is_not_there(store):
    assert store.read_thread("review", "plan:1.1") is None
    store.save_thread("review", "plan:1.1", "[1]", after="")
    assert store.read_thread("review", "plan:1.1") == "[1]"
    assert store.read_thread("review", "plan:1.2") is None
    assert store.read_thread("other", "plan:1.1") is None


def test_entries_stay_beside_each_other_and_the_same_one_is_replaced(store):
    store.save_thread("t", "a:1.1", "[1]", after="")
    store.save_thread("t", "b:1.1", "[1, 2]", after="a:1.1")
    store.save_thread("t", "b:1.2", "[1, 3]", after="a:1.1")
    store.save_thread("t", "b:1.2", "[1, 4]", after="a:1.1")
    texts = [store.read_thread("t", entry) for entry in ("a:1.1", "b:1.1", "b:1.2")]
    assert texts == ["[1]", "[1, 2]", "[1, 4]"]


def test_a_secret_is_never_kept(store):
    store.save_thread("t", "a:1.1", f'["the key is {SECRET}"]', after="")
    store.save_thread("t", "a:2.1", f'["the key is {SECRET}", "more"]', after="a:1.1")
    for entry in ("a:1.1", "a:2.1"):
        assert SECRET not in store.read_thread("t", entry)
    assert store.read_thread("t", "a:2.1").endswith('"more"]')


def test_a_conversation_that_grows_is_kept_once(create):
    store = create()
    text, before = "[0", ""
    for number in range(1, 101):
        text += f", {'x' * 1000}"
        store.save_thread("t", f"a:{number}.1", text + "]", after=before)
        before = f"a:{number}.1"
    assert (store.logs_root / "threads/t.json").stat().st_size < 2 * len(text)
    assert store.read_thread("t", "a:100.1") == text + "]"
    assert len(store.read_thread("t", "a:50.1")) == len("[0]") + 50 * 1002


@given(st.lists(st.tuples(st.integers(0, 9), st.text("ab\ud800", max_size=8), st.integers(0, 8)), max_size=12))
def test_whatever_is_saved_in_whatever_order_is_read_back(steps):
    thread, saved = Thread(thread="t"), {"": ""}
    for number, (base, text, kept) in enumerate(steps):
        after = list(saved)[base % len(saved)]
        saved[f"e:{number}"] = whole = saved[after][:kept] + text
        thread = thread.with_entry(f"e:{number}", whole, after=after)
        thread = Thread.from_plain(thread.to_plain())
    del saved[""]
    assert {entry: thread.text_of(entry) for entry in saved} == saved


def test_a_stored_thread_is_read_and_written_as_it_was():
    plain = {"schema_version": 1, "thread": "t", "entries": {"a:1.1": ["", 0, "[1]"], "b:1.1": ["a:1.1", 2, ", 2]"]}}
    thread = Thread.from_plain(plain)
    assert thread.text_of("b:1.1") == "[1, 2]"
    assert thread.to_plain() == plain


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2},
        {"entries": {"a:1.1": ["", 0]}},
        {"entries": {"a:1.1": ["", "0", "text"]}},
        {"entries": {"a:1.1": ["", 0, 3]}},
        {"entries": {"a:1.1": ["b:1.1", 2, "text"]}},
        {"entries": None},
    ],
)
def test_a_thread_of_another_shape_is_none(change):
    with pytest.raises(ValueError):
        Thread.from_plain({**Thread(thread="t").to_plain(), **change})


@pytest.mark.parametrize("thread", ["../../x", "Plan", "CON", "a b", "", "ü" * 300, ".", "plan.json/"])
def test_whatever_the_key_is_its_file_is_in_the_directory_of_threads(create, thread):
    store = create()
    store.save_thread(thread, "a:1.1", "text", after="")
    store.save_thread("plan", "a:1.1", "other", after="")
    names = {path.name for path in (store.logs_root / "threads").iterdir()}
    assert names == {"plan.json", thread_file_name(thread)}
    assert len({name.lower() for name in names}) == 2
    assert store.read_thread(thread, "a:1.1") == "text"


def test_a_node_of_that_name_has_another_directory(create):
    store = create()
    store.save_thread("t", "a:1.1", "text", after="")
    assert store.open_stage("threads", 1, 1).directory.name != "threads"


DAMAGES = {
    "torn": lambda data: data[:-20],
    "altered": lambda data: data.replace(b"text", b"tent"),
    "foreign": lambda _: b'{"checksum": "x",\n "entries": {}\n}\n',
    "no JSON": lambda _: b"hello",
    "empty": lambda _: b"",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_a_storage_error_that_says_what_to_do(create, damage):
    store = create()
    store.save_thread("t", "a:1.1", "text", after="")
    place = store.logs_root / "threads/t.json"
    place.write_bytes(damage(place.read_bytes()))
    for act in (
        lambda: store.read_thread("t", "a:1.1"),
        lambda: store.save_thread("t", "a:2.1", "text", after="a:1.1"),
    ):
        with pytest.raises(StorageError, match=r"t\.json is damaged") as caught:
            act()
        assert "remove it, and the thread starts again" in caught.value.hint


def test_a_thread_that_grows_too_large_keeps_what_it_has(create, monkeypatch):
    store = create()
    store.save_thread("t", "a:1.1", "one", after="")
    monkeypatch.setattr(thread_files, "MAX_BYTES", 400)
    with pytest.raises(StorageError, match=r"thread 't' has grown to \d+ bytes, more than the 400") as caught:
        store.save_thread("t", "a:2.1", "x" * 400, after="a:1.1")
    assert caught.value.hint == "give later stages another thread_id"
    assert (store.read_thread("t", "a:1.1"), store.read_thread("t", "a:2.1")) == ("one", None)


@pytest.mark.parametrize("durability", ["full", "fast"])
def test_fault_3_a_fault_at_any_operation_of_a_save_leaves_the_thread_as_it_was(create, durability):
    counted = FaultyDisk()
    store = create("counted", disk=counted, durability=durability)
    store.save_thread("t", "a:1.1", "one", after="")
    begin = len(counted.operations)
    store.save_thread("t", "a:2.1", "one two", after="a:1.1")
    for number in range(begin + 1, len(counted.operations) + 1):
        disk = FaultyDisk(fail_at=number)
        store = create(str(number), disk=disk, durability=durability)
        store.save_thread("t", "a:1.1", "one", after="")
        with pytest.raises(StorageError):
            store.save_thread("t", "a:2.1", "one two", after="a:1.1")
        assert store.read_thread("t", "a:1.1") == "one"
        assert store.read_thread("t", "a:2.1") in (None, "one two")


def test_what_a_killed_owner_left_half_written_is_swept(create, reopen):
    store = create()
    store.save_thread("t", "a:1.1", "text", after="")
    store.close()
    left = store.logs_root / "threads/.attractor-tmp-old"
    left.write_text("")
    again = reopen(store.logs_root)
    assert not left.exists()
    assert again.read_thread("t", "a:1.1") == "text"
