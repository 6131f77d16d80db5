"""The examples of the written pages are true: examples parse, named magics, options and variables exist."""

import inspect
import re
from pathlib import Path

import pytest

import attractor_nb
from attractor_nb import Pipeline
from attractor_nb.languages.condition import parse_condition
from attractor_nb.model.vocabulary.attribute_table import TABLE
from attractor_nb.notebook.extension import LINE_MAGICS

DOCS = Path(__file__).resolve().parents[2] / "docs"


def section(page, title):
    text = (DOCS / page).read_text("utf-8")
    return text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def block(text, language=""):
    return re.search(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)[1]


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


GUIDES = [
    page
    for page in (*DOCS.glob("*.md"), DOCS.parent / "README.md")
    if page.stem != "conformance" and not page.stem.startswith("api")  # whose headings name methods of objects
]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_what_a_page_calls_on_a_class_can_be_called_on_it(page):
    for owner, name in re.findall(r"\b(Pipeline|Run)\.(\w+)\(", page.read_text("utf-8")):
        found = inspect.getattr_static(getattr(attractor_nb, owner), name)
        assert isinstance(found, classmethod), f"{owner}.{name}(…) is a method of an object"


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


def test_the_pipeline_on_the_page_of_structured_answers_routes_as_it_says():
    source = block((DOCS / "structured-answers.md").read_text("utf-8"), "dot")
    for urgent, target in (("true", "call"), ("false", "answer")):
        given = {}

        def answer(node, prompt, context, urgent=urgent, given=given):
            given[node.id] = prompt
            return f'{{"team": "billing", "urgent": {urgent}}}' if node.id == "sort" else "fine"

        pipeline = Pipeline(source, backend=answer)
        assert not pipeline.lint()
        result = pipeline.run(params={"ticket": "41"}, wait=True, durability="none")
        assert result.completed_nodes == ("start", "sort", target, "done"), result.reason
        assert "for billing: 41" in given[target]


LITERALS = {"the truth value true": [True], "the number 3 or 3.0": [3, 3.0], "the text `3`": ["3"], "null": [None, ""]}


def test_the_table_of_literals_is_true():
    from attractor_nb.languages.condition import evaluate_condition

    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \|$", section("structured-answers.md", "How a condition compares"), re.MULTILINE
    )
    values = dict.fromkeys([name for name, _ in rows[2:]])
    assert len(values) == 6
    for name, cells in rows[2:]:
        matching, _, different = cells.partition("but not")
        for value in next(
            (found for start, found in LITERALS.items() if name.startswith(start)),
            ["red\n"] if "red" in name else [[1, 2]],
        ):
            for is_equal, part in ((True, matching), (False, different)):
                for literal in re.findall(r"`([^`]+)`", part):
                    condition = parse_condition(f"context.x={literal}")
                    assert evaluate_condition(condition, "", "", {"x": value}.get) is is_equal, (value, literal)
