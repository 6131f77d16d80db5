"""What the written pages show is true: examples parse, named magics, options and variables exist."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb import Pipeline
from attractor_nb.languages.condition import parse_condition
from attractor_nb.model.vocabulary.attribute_table import TABLE
from attractor_nb.notebook.magics import LINE_MAGICS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def section(page, title):
    text = (DOCS / page).read_text("utf-8")
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def block(text, language=""):
    return re.search(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1]


def test_the_pipeline_on_the_page_of_the_language_has_no_findings():
    page = (DOCS / "language.md").read_text("utf-8")
    assert not Pipeline(block(page, "dot")).lint()


@pytest.mark.parametrize("line", block(section("language.md", "Conditions")).splitlines())
def test_the_conditions_on_the_page_parse(line):
    assert parse_condition(line).clauses


def test_the_stylesheet_on_the_page_gives_the_model_that_it_says():
    sheet = block(section("language.md", "The model stylesheet")).replace('"', '\\"')
    pipeline = Pipeline(f"""digraph {{
        graph [model_stylesheet="{sheet}"]
        start [shape=Mdiamond]
        plan [prompt="x", class="hard"]
        review [prompt="x"]
        done [shape=Msquare]
        start -> plan -> review -> done
    }}""")
    models = {name: pipeline.graph.nodes[name].attrs["llm_model"] for name in ("plan", "review")}
    assert models == {"plan": "large", "review": "largest"}
    assert not pipeline.lint().errors


@pytest.mark.parametrize("name", LINE_MAGICS)
def test_the_page_of_notebooks_names_each_magic(name):
    assert f"`%{name}" in section("notebooks.md", "Magics")


@pytest.mark.parametrize("page", ["runs.md", "notebooks.md"])
def test_the_options_that_a_page_names_exist(page):
    named = {name for name in re.findall(r"`(\w+)=", (DOCS / page).read_text("utf-8")) if name.islower()}
    named -= {"idempotent", *(spec.name for spec in TABLE)}  # attributes of the graph are written alike
    assert named
    known = {*inspect.signature(Pipeline.run).parameters, *inspect.signature(Pipeline.resume).parameters}
    assert named <= known


def test_the_trace_on_the_page_of_runs_is_made():
    """With the exporter of the page, in a process of its own: what it prints is the trace."""
    code = block(section("runs.md", "Traces"), "python").replace(
        "pipeline.run(", "pipeline.run(wait=True, durability='none', "
    )
    before = (
        "from attractor_nb import Pipeline\n"
        "pipeline = Pipeline('digraph shown { start [shape=Mdiamond] done [shape=Msquare] start -> done }')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{before}{code}\nprovider.shutdown()"], capture_output=True, text=True, check=True
    )
    assert "invoke_workflow shown" in done.stdout
