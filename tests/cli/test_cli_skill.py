"""``skill install``: where the guide is written, and what it does not touch."""

import json
import re
from pathlib import Path

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


DOCUMENTED = {
    # https://code.claude.com/docs/en/skills: `.claude/skills/NAME/SKILL.md` of a project, `~/.claude/skills` of a user
    "Claude Code": ".claude/skills",
    # https://developers.openai.com/codex/skills: `$CWD/.agents/skills` up to the root, `$HOME/.agents/skills` of a user
    "Codex": ".agents/skills",
    # https://geminicli.com/docs/cli/using-agent-skills: `.agents/skills` and `~/.agents/skills`, beside `.gemini/skills`
    "Gemini CLI": ".agents/skills",
    # https://github.com/jupyterlite/ai/pull/259 (merged in February 2026)
    "JupyterLite AI": ".agents/skills",
}
"""Read on 2026-11-30. Agents in marimo (https://docs.marimo.io/guides/editor_features/agents) and
in Jupyter AI (the package jupyter-ai-acp-client) are the programs above, connected by ACP; of the chats of their own
nothing was found."""


@pytest.mark.parametrize("assistant", DOCUMENTED)
def test_the_guide_is_where_an_assistant_documents_its_skills_and_the_page_says_so(assistant):
    folder = DOCUMENTED[assistant]
    assert folder in FOLDERS
    page = (Path(__file__).parents[2] / "docs" / "assistants.md").read_text("utf-8")
    assert re.search(
        rf"^\| .*\b{assistant}\b.* \| `{re.escape(folder)}/attractor-nb/SKILL\.md` \|$", page, re.MULTILINE
    )


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
