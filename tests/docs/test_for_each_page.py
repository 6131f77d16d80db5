"""The examples of the page about lists are true."""

import re
from pathlib import Path

from attractor_nb import Pipeline
from attractor_nb.model.vocabulary.value_forms import DEFAULT_MAX_ITEMS
from tests.pipeline.test_for_each import PerItem

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "for-each.md").read_text("utf-8")


def block(language):
    """The first block of a language."""
    return re.search(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1]


def test_the_pipeline_of_the_page_has_no_findings_and_runs():
    pipeline = Pipeline(block("dot"))
    assert not pipeline.lint()
    result = pipeline.run(wait=True, backend=PerItem(), durability="none", params={"files": ["a.py", "b.py"]})
    assert result.context["review.outputs"] == ["read a.py", "read b.py"]


def test_the_python_of_the_page_runs(monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    code = block("python").replace("wait=True", 'wait=True, durability="none"')
    names = {}
    exec(compile(code, "the page", "exec"), names)
    assert len(names["result"].context["review.outputs"]) == 2


def test_the_keys_of_a_result_are_those_of_the_page():
    row = next(line for line in PAGE.splitlines() if line.startswith("| `<node>.results`"))
    result = Pipeline(block("dot")).run(wait=True, backend=PerItem(), durability="none", params={"files": ["a.py"]})
    assert set(re.findall(r"`(\w+)`", row)) == set(result.context["review.results"][0])


def test_the_figures_of_the_page_are_those_of_the_code():
    assert f"`max_items` items ({DEFAULT_MAX_ITEMS} by default)" in PAGE
