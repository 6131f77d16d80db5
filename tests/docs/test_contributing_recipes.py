"""Each recipe of CONTRIBUTING runs as it stands; one that changes the package is followed in a copy of it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TEXT = (REPOSITORY / "CONTRIBUTING.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##)", TEXT, re.MULTILINE | re.DOTALL))
RECIPES = {
    title: code for title, body in SECTIONS.items() for code in re.findall(r"```python\n(.*?)```", body, re.DOTALL)
}
CHANGES = {
    title: diff for title, body in SECTIONS.items() for diff in re.findall(r"```diff\n(.*?)```", body, re.DOTALL)
}
MOST_FILES = 3


def test_there_is_a_recipe_for_each_plug():
    assert list(RECIPES) == ["A handler", "A lint rule", "An interviewer", "A backend", *CHANGES]
    assert list(CHANGES) == ["A provider", "A run option", "An attribute", "An event", "A view of a run"]


@pytest.mark.parametrize("title", [title for title in RECIPES if title not in CHANGES])
def test_a_recipe_checks_its_result_and_runs(title):
    assert re.search(r"^(assert |asyncio\.run\(verify_)", RECIPES[title], re.MULTILINE)
    exec(compile(RECIPES[title], f"CONTRIBUTING.md, {title}", "exec"), {"__name__": "recipe"})


def followed(diff, copy):
    """Change a copy as a recipe says, each line behind the one that it names or in a new file; these files."""
    changed, path, behind = [], None, None
    for line in diff.splitlines():
        if line.startswith("--- "):
            path = copy / line[4:]
            changed.append(path)
            behind = None
        elif line.startswith("+") and behind is None:
            assert not path.exists(), f"{path} is there, and the recipe does not say where the line goes"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{line[1:]}\n", "utf-8")
            behind = line[1:]
        elif line.startswith("+"):
            text = path.read_text("utf-8")
            assert text.count(f"{behind}\n") == 1, f"{path} has this line {text.count(behind)} times: {behind}"
            path.write_text(text.replace(f"{behind}\n", f"{behind}\n{line[1:]}\n"), "utf-8")
            behind = f"{behind}\n{line[1:]}"
        else:
            behind = line[1:]
    return changed


@pytest.mark.parametrize("title", CHANGES)
@pytest.mark.campaign
def test_a_recipe_that_changes_the_package_is_all_that_is_needed(title, tmp_path):
    name = "attractor_nb"
    shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    assert len(followed(CHANGES[title], tmp_path)) <= MOST_FILES
    ended = subprocess.run(
        [sys.executable, "-c", RECIPES[title]],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
