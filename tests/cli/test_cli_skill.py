"""``skill install``: where the guide is written, and what it does not touch."""

import json

import pytest

from attractor_nb.cli.skill import FOLDERS, skill_text


@pytest.fixture
def places(tmp_path):
    return [tmp_path / folder / "attractor-nb" / "SKILL.md" for folder in FOLDERS]


def test_the_guide_is_written_where_assistants_look(command, tmp_path, places):
    ended = command("skill", "install", "--directory", str(tmp_path))
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.split() == [str(place) for place in places]
    assert [place.read_text("utf-8") for place in places] == [skill_text()] * 2


def test_by_default_it_is_written_into_the_current_directory(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = command("skill", "install", "--json")
    assert json.loads(ended.out) == {"paths": [f"{folder}/attractor-nb/SKILL.md" for folder in FOLDERS]}
    assert (tmp_path / FOLDERS[0] / "attractor-nb" / "SKILL.md").is_file()


def test_an_older_guide_is_replaced(command, tmp_path, places):
    places[1].parent.mkdir(parents=True)
    places[1].write_text("---\nname: attractor-nb\n---\nan older one")
    assert command("skill", "install", "--directory", str(tmp_path)).code == 0
    assert places[1].read_text("utf-8") == skill_text()


def test_a_foreign_skill_is_left_alone_and_nothing_is_written(command, tmp_path, places):
    places[1].parent.mkdir(parents=True)
    places[1].write_text("---\nname: mine\n---\n")
    ended = command("skill", "install", "--directory", str(tmp_path))
    assert ended.code == 2
    assert f"{places[1]} is another skill; it was left alone" in ended.err
    assert places[1].read_text("utf-8") == "---\nname: mine\n---\n"
    assert not places[0].exists()
