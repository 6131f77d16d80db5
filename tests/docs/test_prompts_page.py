"""docs/prompts.md is true: its programs run, its pipeline has no findings, its variables have values."""

import re
from pathlib import Path

import pytest

from attractor_nb import Pipeline
from attractor_nb.model.vocabulary.variables import FILTERS, RENDERED_ATTRIBUTES, variables

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "prompts.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("program", blocks("python"), ids=["pictures", "names", "types"])
def test_the_programs_on_the_page_run(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"Pipeline": Pipeline, "__name__": "page"}
    exec(compile(program, "docs/prompts.md", "exec"), names)
    assert names["result"].status == "success"


@pytest.mark.parametrize("source", blocks("dot"), ids=["answer", "look"])
def test_a_pipeline_on_the_page_has_no_findings(source):
    assert not Pipeline(source).lint()


def test_the_variables_on_the_page_are_read_as_variables():
    table = PAGE.split("| variable |")[1].split("\n\n")[0]
    written = re.findall(r"`(\$[^`]+)`", table)
    assert len(written) == 20
    assert [text for text in written if text != "$$" and [len(text)] != [each.end for each in variables(text)]] == []


def test_the_page_names_all_filters_and_attributes():
    assert [name for name in (*FILTERS, *RENDERED_ATTRIBUTES) if f"`{name}`" not in PAGE] == []
