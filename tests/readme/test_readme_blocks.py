"""The README does what it says, from an empty directory."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb import Pipeline

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
LOAD, CELL, RUN, CRASH, MODELS = [text for language, text in BLOCKS if language == "python"]
SHELL_LINES = [
    shlex.split(line, comments=True) for language, text in BLOCKS if language == "sh" for line in text.splitlines()
]

SHELL = """import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
for block in sys.argv[1:]:
    shell.run_cell(block).raise_error()
"""
WAIT = 'print(run.wait_for_gate("gate").question.text, flush=True)\nimport time\ntime.sleep(600)'
APPROVE = (
    'run.wait_for_gate("gate")\nrun.answer("gate", "Approve")\nresult = await run\nprint(result.status, result.visits)'
)


def shell(*blocks):
    """An IPython process that runs the blocks."""
    return subprocess.Popen([sys.executable, "-c", SHELL, *blocks], stdout=subprocess.PIPE, text=True)


def test_it_is_short_and_each_block_says_its_language():
    assert len(README.splitlines()) <= 90
    assert {language for language, _ in BLOCKS} == {"python", "sh"}
    assert README.count("\n```") == 2 * len(BLOCKS)


@pytest.mark.kind("a kill")
def test_a_run_of_sixty_seconds_is_killed_and_resumed():
    with shell(LOAD, CELL, RUN, WAIT) as first:
        for line in first.stdout:
            if line.strip() == "Publish it?":
                break
        first.kill()
    with shell(LOAD, CRASH, APPROVE) as second:
        said = second.stdout.read()
    assert second.returncode == 0
    assert said.splitlines()[-1] == "success {'start': 1, 'plan': 1, 'write': 1, 'gate': 1, 'done': 1}"


@pytest.mark.real_llm
@pytest.mark.kind("a real model")
def test_each_line_with_a_model_runs(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    names = {"review": Pipeline(CELL.partition("\n")[2])}
    importing, *lines = [line for line in MODELS.splitlines() if line]
    exec(importing, names)
    ends = []
    for line in lines:
        exec(line.replace("review.run(", 'review.run(interviewer="auto", '), names)
        ends.append(names["run"].result())
    local, provider, function = ends
    assert local.status == "success"
    assert local["plan"].response
    assert "openai:gpt-5.2 needs a key" in provider.reason
    assert function["plan"].response.startswith("You asked: ")


@pytest.mark.parametrize("line", SHELL_LINES, ids=" ".join)
def test_each_make_target_exists(line):
    assert line[0] == "make"
    done = subprocess.run(["make", "-n", *line[1:]], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_each_file_that_it_names_exists():
    links = re.findall(r"\]\(([^)#:]+)[^):]*\)", README) + re.findall(r'src(?:set)?="([^"]+)"', README)
    assert len(links) > 20
    assert [link for link in links if not (REPOSITORY / link).exists()] == []
