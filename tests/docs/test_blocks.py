"""Each block of each page does what its page says: one page after the other, in an empty directory, without a key."""

import json
import os
import re
import shlex
import sys
from contextlib import contextmanager, nullcontext

import pytest
import typer.main

from attractor_nb import Pipeline
from attractor_nb.cli.command_tree import app
from attractor_nb.model.calls.providers import PROVIDERS
from tests import warm
from tests.docs.blocks import REPOSITORY, blocks_of

PAGES = [page for page in sorted((REPOSITORY / "docs").rglob("*.md")) if page.stem not in {"rules", "errors"}]
"""The generated pages of malformed and bad sources have tests of their own."""
BLOCKS = [block for page in PAGES for block in blocks_of(page)]
PYTHON = {
    name: found
    for name in dict.fromkeys(block.page for block in BLOCKS)
    if (found := [block for block in BLOCKS if block.page == name and block.language == "python"])
}
OUTPUT = {"", "text", "diff"}
KEYS = {key for provider in PROVIDERS for key in provider.keys}


@contextmanager
def agents(folder):
    """Agents on the PATH that answer at once: the stubs of their tests, and one of the user's own."""
    own = folder / "programs" / "aider"
    own.parent.mkdir()
    own.write_text('#!/bin/sh\necho "$@" >> calls.txt\necho \'{"outcome": "success"}\'\n')
    own.chmod(0o755)
    stubs = REPOSITORY / "tests" / "backends" / "agents" / "stubs"
    yield {"PATH": os.pathsep.join([str(own.parent), str(stubs), os.environ["PATH"]]), "STUB_MODE": "approve"}
    first, *_ = (folder / "calls.txt").read_text().splitlines()
    assert re.fullmatch(r"--yes --message-file=/.*/agent\.prompt\.md", first), first


@contextmanager
def a_server(folder):
    """A server on this machine, whose URL is in the environment."""
    from tests.server.conftest import TOKEN, running

    (folder / "runs").mkdir()
    with running(folder / "runs") as client:
        yield {"ATTRACTOR_SERVER": f"{client.base}/#token={TOKEN}"}


AROUND = {"agents.md": agents, "events.md": a_server, "server.md": a_server}
"""By page: the context manager that its blocks run in, which gives environment variables."""


@pytest.mark.parametrize("name", PYTHON)
def test_the_programs_of_a_page_run_in_order_and_print_what_stands_there(name, tmp_path):
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    environment = {key: value for key, value in os.environ.items() if key not in KEYS}
    with AROUND.get(name, lambda folder: nullcontext({}))(tmp_path) as around:
        done = warm.run(
            [sys.executable, REPOSITORY / "tests" / "docs" / "blocks.py", REPOSITORY / "docs" / name],
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(REPOSITORY)} | around,
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    assert [error for _, _, error in results if error] == []
    assert [line for line, *_ in results] == [block.line for block in PYTHON[name] if not block.reason]
    for line, printed, _ in results:
        assert_is_shown(printed, name, line)


def assert_is_shown(printed, name, line):
    """Compare the output of a block with the block below it, or with its comments."""
    here = [block for block in BLOCKS if block.page == name]
    position = next(number for number, block in enumerate(here) if block.line == line)
    below = here[position + 1] if position + 1 < len(here) else None
    if below and below.language in OUTPUT and below.text.strip() == printed.strip():
        return
    comments = re.findall(r"# (.*)", here[position].text)
    assert [text for text in printed.splitlines() if text not in comments] == []


def test_a_block_that_is_not_run_says_why_in_a_sentence():
    assert [block.id for block in BLOCKS if block.reason and len(block.reason.split()) < 4] == []


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "dot"], ids=lambda block: block.id)
def test_a_pipeline_of_a_page_has_the_findings_that_its_page_expects(block):
    if not block.reason:
        assert {found.rule for found in Pipeline(block.text).lint()} == set(block.rules)


COMMANDS = [
    (block, line)
    for block in BLOCKS
    if block.language in {"", "sh", "bash"}
    for line in re.findall(r"attractor-nb (?:(?! \| | > |\)\"|\)\n|\n).)*", block.text.replace("\\\n", " "))
]
ROOT = typer.main.get_command(app)


@pytest.mark.parametrize(("block", "line"), COMMANDS, ids=[f"{block.id} {line}" for block, line in COMMANDS])
def test_a_command_of_a_page_can_be_typed(block, line, monkeypatch):
    monkeypatch.setenv("ATTRACTOR_SERVER", "http://127.0.0.1:8765")
    words = shlex.split(line, comments=True)[1:]
    context = ROOT.make_context("attractor-nb", words)
    name, command, rest = ROOT.resolve_command(context, words)
    with command.make_context(name, rest, parent=context) as parsed:
        assert parsed.params is not None
