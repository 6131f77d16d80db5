"""Each recipe of CONTRIBUTING runs as it stands."""

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text("utf-8")
RECIPES = {
    title: code
    for title, body in re.findall(r"^### (.+?)\n(.*?)(?=^##)", TEXT, re.MULTILINE | re.DOTALL)
    for code in re.findall(r"```python\n(.*?)```", body, re.DOTALL)
}


def test_there_is_a_recipe_for_each_plug():
    assert list(RECIPES) == ["A handler", "A lint rule", "An interviewer", "A backend"]


@pytest.mark.parametrize("title", RECIPES)
def test_a_recipe_runs(title):
    exec(compile(RECIPES[title], f"CONTRIBUTING.md, {title}", "exec"), {"__name__": "recipe"})
