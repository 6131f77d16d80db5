"""The examples of docs/tools.md are true: its pipelines lint, its program runs, its tools and variables exist."""

import re
from pathlib import Path

import pytest

from attractor_nb import Pipeline
from attractor_nb.backends.llm.tools.catalog import DEFAULT_COMMAND_SECONDS, MAX_COMMAND_SECONDS, TOOLS
from attractor_nb.backends.llm.tools.file_tools import MAX_LISTED, MAX_RESULT_CHARACTERS
from attractor_nb.backends.llm.tools.tool_calls import MAX_CALLS, NOT_STARTED, TIMED_OUT

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tools.md").read_text("utf-8")


PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("text", re.findall(r"^```dot\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
def test_a_pipeline_on_the_page_has_no_findings(text):
    assert not Pipeline(text).lint()


def test_the_program_on_the_page_prints_what_it_says(capsys):
    program = PROGRAMS[1]
    program = program.replace("wait=True, ", 'wait=True, durability="none", ')
    exec(compile(program, "docs/tools.md", "exec"), {"__name__": "page"})
    said = re.search(r"print\(.*\)  # (.*)", program)[1]
    assert capsys.readouterr().out == f"{said}\n"


def test_the_table_names_each_tool_and_its_arguments():
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)\((.*?)\)` \|", PAGE, re.MULTILINE)
    expected = [(tool.word, tool.name, ", ".join(entry.name for entry in tool.parameters)) for tool in TOOLS]
    assert rows == expected


def test_the_bounds_on_the_page_are_those_of_the_code():
    for text in (
        f"{MAX_RESULT_CHARACTERS:,} characters at once",
        f"up to {MAX_LISTED:,}.",
        f"{DEFAULT_COMMAND_SECONDS} s by default, {MAX_COMMAND_SECONDS} at most",
        f"{MAX_RESULT_CHARACTERS // 2:,} characters",
        f"at most {MAX_CALLS} calls",
        f"exit code {TIMED_OUT}",
        f"exit code {NOT_STARTED}",
    ):
        assert text in PAGE


def test_a_model_calls_the_function_on_the_page(capsys):
    """Through a function that calls the tool as a model would, in place of the model."""
    from attractor_nb.backends.llm.tools.catalog import function_tool
    from attractor_nb.stage import current_stage

    told = []

    async def model(node, prompt, context):
        (tool,) = [function_tool(*entry) for entry in current_stage().workplace.functions.items()]
        assert (tool.name, tool.schema["required"]) == ("lookup", ["order"])
        told.append(await tool.call({"order": "A-7"}))
        return told[0]

    program = PROGRAMS[0].replace('backend="llm"', 'backend=model, durability="none", trust=True')
    exec(compile(program, "docs/tools.md", "exec"), {"__name__": "page", "model": model})
    assert capsys.readouterr().out == "A-7: shipped on Monday\n"
