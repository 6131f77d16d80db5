"""The record of trusted commands, kept between runs: private, bounded, and never a reason for a run to fail."""

import stat
from pathlib import Path

import pytest

from attractor_nb.storage import trust_file
from attractor_nb.storage.trust_file import Remembered, TrustFile, state_directory

ROWS = (("build", "tool_command", "make"),)


@pytest.fixture
def memory(tmp_path):
    return TrustFile(tmp_path / "deep" / "state")


def path_of(tmp_path):
    return tmp_path / "deep" / "state" / "trust.json"


def test_what_is_remembered_is_recalled_by_another(memory, tmp_path):
    memory.remember("/a.dot", "0" * 64, ROWS)
    assert TrustFile(tmp_path / "deep" / "state").recall("/a.dot") == Remembered("0" * 64, ROWS)
    assert memory.recall("/b.dot") is None


def test_the_newest_word_about_a_place_counts(memory):
    memory.remember("/a.dot", "0" * 64, ROWS)
    memory.remember("/a.dot", "1" * 64, ROWS)
    assert memory.recall("/a.dot") == Remembered("1" * 64, ROWS)


def test_files_are_for_the_user_alone(memory, tmp_path):
    memory.remember("/a.dot", "0" * 64, ROWS)
    directory = tmp_path / "deep" / "state"
    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in directory.iterdir()}
    assert modes == {"trust.json": 0o600, "trust.lock": 0o600}
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_what_is_known_already_is_not_written_again(memory, tmp_path):
    memory.remember("/a.dot", "0" * 64, ROWS)
    before = path_of(tmp_path).stat()
    memory.remember("/a.dot", "0" * 64, ROWS)
    assert path_of(tmp_path).stat().st_ino == before.st_ino


def test_long_commands_are_kept_as_their_hash(memory):
    memory.remember("/a.dot", "0" * 64, [("build", "tool_command", "x" * 20_000)])
    assert memory.recall("/a.dot") == Remembered("0" * 64, None)


def test_the_oldest_places_are_forgotten_first(memory, monkeypatch):
    monkeypatch.setattr(trust_file, "_MOST_PLACES", 3)
    for name in "abcad":
        memory.remember(name, "0" * 64 if name != "a" else name * 64, ROWS)
    assert [name for name in "abcd" if memory.recall(name)] == ["b", "c", "d"]


@pytest.mark.parametrize("entry", [None, [], {"hash": 3}, {"commands": []}], ids=str)
def test_an_entry_of_a_foreign_shape_says_nothing(memory, tmp_path, entry):
    memory.remember("/b.dot", "0" * 64, ROWS)
    path_of(tmp_path).write_bytes(trust_file.seal({"schema_version": 1, "places": {"/a.dot": entry}}))
    assert memory.recall("/a.dot") is None


@pytest.mark.parametrize("rows", [[["a", "b"]], [3], [["a", "b", 3]], {}], ids=str)
def test_commands_of_a_foreign_shape_are_unknown(memory, tmp_path, rows):
    memory.remember("/b.dot", "0" * 64, ROWS)
    entry = {"hash": "0" * 64, "commands": rows}
    path_of(tmp_path).write_bytes(trust_file.seal({"schema_version": 1, "places": {"/a.dot": entry}}))
    assert memory.recall("/a.dot") == Remembered("0" * 64, None)


def test_another_version_is_not_believed_and_not_kept(memory, tmp_path):
    memory.remember("/a.dot", "0" * 64, ROWS)
    path_of(tmp_path).write_bytes(trust_file.seal({"schema_version": 2, "places": {"/a.dot": {}}}))
    assert memory.recall("/a.dot") is None
    memory.remember("/b.dot", "0" * 64, ROWS)
    assert memory.recall("/b.dot") is not None


@pytest.mark.parametrize("data", [b"", b"{", b'{"places": {}}', None], ids=str)
def test_a_damaged_memory_says_nothing_and_is_written_anew(memory, tmp_path, data):
    memory.remember("/a.dot", "0" * 64, ROWS)
    path_of(tmp_path).unlink()
    if data is None:
        path_of(tmp_path).symlink_to(tmp_path / "elsewhere")
    else:
        path_of(tmp_path).write_bytes(data)
    assert memory.recall("/a.dot") is None
    memory.remember("/b.dot", "1" * 64, ROWS)
    assert memory.recall("/b.dot") == Remembered("1" * 64, ROWS)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"ATTRACTOR_STATE_DIR": "/s", "XDG_STATE_HOME": "/x"}, "/s"),
        ({"XDG_STATE_HOME": "/x"}, "/x/attractor-nb"),
        ({"XDG_STATE_HOME": "relative"}, "/h/.local/state/attractor-nb"),
        ({}, "/h/.local/state/attractor-nb"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_where_a_users_state_is(monkeypatch, variables, expected):
    monkeypatch.setattr(trust_file.sys, "platform", "linux")
    for name in ("ATTRACTOR_STATE_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/h", **variables}.items():
        monkeypatch.setenv(name, value)
    assert state_directory() == Path(expected)


def test_a_user_without_a_home_has_no_memory(monkeypatch):
    def nobody():
        raise RuntimeError("no home")

    monkeypatch.delenv("ATTRACTOR_STATE_DIR")
    monkeypatch.setattr(Path, "home", nobody)
    assert state_directory() is None
    memory = TrustFile()
    memory.remember("/a.dot", "0" * 64, ROWS)
    assert memory.recall("/a.dot") is None


def test_what_a_killed_writer_left_is_swept(memory, tmp_path):
    memory.remember("/a.dot", "0" * 64, ROWS)
    (tmp_path / "deep" / "state" / ".attractor-tmp-dead-1-1").write_text("torn")
    memory.remember("/b.dot", "0" * 64, ROWS)
    names = sorted(entry.name for entry in (tmp_path / "deep" / "state").iterdir())
    assert names == ["trust.json", "trust.lock"]
