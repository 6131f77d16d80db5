"""Tags of runs: a file of their own, whole or not at all, and never trusted."""

from __future__ import annotations

import json

import pytest

from attractor_nb.errors import OptionError, RunNotFound, StorageError
from attractor_nb.storage.run_listing import change_tags, read_tags
from attractor_nb.storage.stages.stage_directories import is_safe_name

MAX_TAGS = 50
TAGS_NAME = ".tags.json"


def test_tags_are_put_on_and_taken_away_and_none_is_there_twice(tmp_path):
    assert read_tags(tmp_path) == ((), "")
    assert change_tags(tmp_path, add=["good", " paper 2 "]) == ("good", "paper 2")
    assert change_tags(tmp_path, add=["good", "late"], remove=["paper 2", "never"]) == ("good", "late")
    assert read_tags(tmp_path) == (("good", "late"), "")
    assert oct((tmp_path / TAGS_NAME).stat().st_mode)[-3:] == "600"


@pytest.mark.parametrize("tag", ["", "  ", "a,b", "a\nb", "\x1b[2J", "\u202eabc", "x" * 61, 5, None])
def test_what_is_no_tag_is_refused_and_nothing_is_written(tmp_path, tag):
    with pytest.raises(OptionError, match="is not a tag"):
        change_tags(tmp_path, add=[tag])
    assert list(tmp_path.iterdir()) == []


def test_a_run_has_a_bounded_number_of_tags(tmp_path):
    change_tags(tmp_path, add=[f"t{number}" for number in range(MAX_TAGS)])
    with pytest.raises(OptionError, match="at most"):
        change_tags(tmp_path, add=["one more"])
    assert len(read_tags(tmp_path)[0]) == MAX_TAGS


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "is not JSON"),
        (b"[]", "no list of tags"),
        (b'{"tags": 5}', "no list of tags"),
        (b'{"tags": ["good", 5]}', "not a tag"),
        (b'{"tags": ["good", "\\u202e"]}', "not a tag"),
        (b'{"tags": "' + b"x" * 70_000 + b'"}', "more than"),
    ],
)
def test_a_damaged_file_of_tags_is_told_and_what_is_whole_is_read(tmp_path, data, words):
    (tmp_path / TAGS_NAME).write_bytes(data)
    tags, problem = read_tags(tmp_path)
    assert words in problem
    assert tags in {(), ("good",)}
    assert change_tags(tmp_path, add=["new"])[-1] == "new", "tagging makes it whole again"
    assert read_tags(tmp_path)[1] == ""


def test_no_link_is_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(json.dumps({"tags": ["leaked"]}))
    run = tmp_path / "run"
    run.mkdir()
    (run / TAGS_NAME).symlink_to(secret)
    assert read_tags(run)[0] == ()
    change_tags(run, add=["mine"])
    assert json.loads(secret.read_text()) == {"tags": ["leaked"]}
    (tmp_path / "link").symlink_to(run)
    with pytest.raises(StorageError):
        change_tags(tmp_path / "link", add=["x"])
    with pytest.raises(RunNotFound):
        change_tags(tmp_path / "none", add=["x"])


def test_no_stage_can_have_the_name_of_the_file():
    assert not is_safe_name(TAGS_NAME)
