"""The guide for assistants names all attributes, shapes, rules and commands, and its own examples work."""

import re

import pytest

from attractor_nb import Pipeline
from attractor_nb.cli.skill import BEGINNING, NAME, skill_text
from attractor_nb.lint import BUILT_IN_RULES
from attractor_nb.lint.rules import path_rules
from attractor_nb.model.vocabulary.attribute_table import TABLE
from attractor_nb.model.vocabulary.shapes import SHAPE_TO_TYPE
from tests.docs.blocks import REPOSITORY
from tests.docs.reference_pages import commands
from tests.docs.site import sources
from tests.docs.site.llms import LEFT_OUT, llms_pages

NAMES = {
    "attributes": [f"`{spec.name}`" for spec in TABLE],
    "shapes": [f"`{shape}`" for shape in SHAPE_TO_TYPE],
    "rules": [f"`{rule.name}`" for rule in (*BUILT_IN_RULES, *path_rules.RULES)],
    "commands": [f"attractor-nb {name}" for name, _ in commands()],
}


@pytest.mark.parametrize("subject", NAMES)
def test_the_guide_and_the_long_text_name_all(subject):
    texts = {"SKILL.md": skill_text(), "llms-full.txt": made()["llms-full.txt"]}
    assert {(file, name) for file, text in texts.items() for name in NAMES[subject] if name not in text} == set()
    assert len(NAMES[subject]) > 8


def made():
    """The files as the site has them."""
    paths = [path for path in sources.pages() if path.endswith(".md")]
    texts = {path: (REPOSITORY / path).read_text("utf-8") for path in paths}
    return llms_pages({sources.place(path): sources.with_links(text, path, set()) for path, text in texts.items()})


def test_its_head_has_the_form_that_assistants_read():
    head = skill_text().split("---\n")[1]
    assert skill_text().startswith(BEGINNING)
    assert re.findall(r"^(\w+): ", head, re.MULTILINE) == ["name", "description"]
    assert re.fullmatch(r"[a-z-]{1,64}", NAME)
    assert len(head) < 1024


def test_its_pipeline_has_no_findings_and_its_program_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = dict(re.findall(r"^```(dot|python)\n(.*?)^```", skill_text(), re.DOTALL | re.MULTILINE))
    assert not Pipeline(blocks["dot"]).lint()
    (tmp_path / "note.dot").write_text(blocks["dot"])
    exec(compile(blocks["python"], "SKILL.md", "exec"), {"__name__": "page"})


def test_the_short_text_links_to_pages_that_are_beside_it():
    pages = made()
    linked = re.findall(r"\]\(([^)]+)\)", pages["llms.txt"])
    known = {*pages, *(f"tutorials/{path.stem}.html" for path in (REPOSITORY / "notebooks").glob("*.ipynb"))}
    assert [link for link in linked if link not in known] == []
    assert len(linked) > 60
    assert not LEFT_OUT & set(linked)
