"""The examples of docs/agents.md are true, with stub agents in place of the real ones."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb import Pipeline
from attractor_nb.backends.agents.installed import DIALECTS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "agents.md").read_text("utf-8")
STUBS = ROOT / "tests" / "backends" / "agents" / "stubs"


def block(language=""):
    return re.search(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1]


@pytest.fixture
def stubbed(monkeypatch):
    """The stubs answer with a verdict of success, and the page's pipeline is a file here."""
    monkeypatch.setenv("PATH", f"{STUBS}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STUB_MODE", "approve")
    Path("fix.dot").write_text(block("dot"))


def test_the_pipeline_on_the_page_has_no_findings():
    assert not Pipeline(block("dot")).lint()


@pytest.mark.campaign
def test_the_command_on_the_page_runs(stubbed):
    command = shlex.split(re.search(r"^```\n(attractor-nb run .*)\n```", PAGE, re.MULTILINE)[1])
    done = subprocess.run(
        [sys.executable, "-m", "attractor_nb", *command[1:], "--trust"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_code_on_the_page_runs(stubbed):
    code = block("python").replace('workdir="."', 'workdir=".", trust=True, wait=True')
    assert code.count("wait=True") == 2
    exec(code, {})


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_the_page_says_how_each_agent_is_installed(dialect):
    assert f'| `"{dialect.name}"` | {dialect.title} | `{dialect.install}` |' in PAGE


def test_the_program_of_ones_own_on_the_page_is_called_as_it_says(stubbed, tmp_path, monkeypatch):
    code = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1]
    program = tmp_path / "aider"
    program.write_text('#!/bin/sh\necho "$@" >> calls.txt\necho \'{"outcome": "success"}\'\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    result = {}
    exec(
        code.replace("Pipeline(", "result['is'] = Pipeline(").replace(
            'workdir="."', 'workdir=".", trust=True, wait=True'
        ),
        {"Pipeline": Pipeline, "result": result},
    )
    assert result["is"].status == "success"
    first, *_ = Path("calls.txt").read_text().splitlines()
    assert re.fullmatch(r"--yes --message-file=/.*/fix/agent\.prompt\.md", first)
