"""docs/cli.md names all commands, and what it shows can be typed."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from attractor_nb.cli.command_tree import app

PAGE = (Path(__file__).parents[2] / "docs/cli.md").read_text()
BLOCKS = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
LINES = re.findall(r"attractor-nb (?:(?! \| | > |\)\"|\)\n).)*", "\n".join(BLOCKS))
ROOT = typer.main.get_command(app)


def test_every_command_is_named():
    names = set(ROOT.commands) - {"model"}
    assert {name for name in names if f"`{name}`" not in PAGE} == set()


def test_examples_are_found():
    assert len(LINES) > 10


@pytest.mark.parametrize("line", LINES)
def test_each_example_parses(line, monkeypatch):
    monkeypatch.setenv("ATTRACTOR_SERVER", "http://127.0.0.1:8765")
    words = shlex.split(line, comments=True)[1:]
    context = ROOT.make_context("attractor-nb", words)
    name, command, rest = ROOT.resolve_command(context, words)
    with command.make_context(name, rest, parent=context) as parsed:
        assert parsed.params is not None
