"""Each block of each page does what its page says: Python and shell in page order, in an empty directory, without a key."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
import typer.main

from attractor_nb import Pipeline
from attractor_nb.cli.command_tree import app
from attractor_nb.model.calls.providers import PROVIDERS
from tests import warm
from tests.docs.blocks import REASONS, REPOSITORY, blocks_of

PAGES = [page for page in sorted((REPOSITORY / "docs").rglob("*.md")) if page.stem not in {"rules", "errors"}]
PAGES.append(REPOSITORY / "examples" / "README.md")
"""The generated pages of malformed and bad sources have tests of their own."""
BLOCKS = [block for page in PAGES for block in blocks_of(page)]
RUN = {block.page: (REPOSITORY / "docs" / block.page) for block in BLOCKS if block.is_run}
RUN |= {name: REPOSITORY / name for name in RUN if name.startswith("examples/")}
TYPED = r"(attractor-nb|pip|uv|conda|pytest|make|dask|jupyter|export|curl|eval) |[A-Z]+=\S"
OUTPUT = {"", "text", "diff"}
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
KEYS = {key for provider in PROVIDERS for key in provider.keys}


@contextmanager
def agents(folder):
    """Agents on the PATH that answer at once: the stubs of their tests, and one of the user's own."""
    own = folder / "programs" / "aider"
    own.parent.mkdir()
    own.write_text('#!/bin/sh\necho "$@" >> calls.txt\necho \'{"outcome": "success"}\'\n')
    own.chmod(0o755)
    stubs = REPOSITORY / "tests" / "backends" / "agents" / "stubs"
    yield {"PATH": os.pathsep.join([str(own.parent), str(stubs), PATH]), "STUB_MODE": "approve"}
    first, *_ = (folder / "calls.txt").read_text().splitlines()
    assert re.fullmatch(r"--yes --message-file=/.*/agent\.prompt\.md", first), first


@contextmanager
def a_server(folder):
    """A server of this directory, started as the pages say; the address that it prints is in the environment."""
    command = [sys.executable, "-m", "attractor_nb", "serve", "--port", "0"]
    with warm.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield {"ATTRACTOR_SERVER": server.stdout.readline().strip()}
        finally:
            server.send_signal(signal.SIGINT)


AROUND = {"agents.md": agents, "cli.md": a_server, "events.md": a_server, "server.md": a_server}
"""By page: the context manager that its blocks run in, which gives environment variables."""


MARKS = {"server.md": pytest.mark.kind("a server"), "cli.md": pytest.mark.campaign}
"""A page of many commands takes seconds; `server.md` and the how-to pages have the same ones in `make test`."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in RUN])
def test_the_programs_of_a_page_run_in_order_and_print_what_stands_there(name, tmp_path):
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    (tmp_path / "home").mkdir()
    environment = {key: value for key, value in os.environ.items() if key not in KEYS}
    environment |= {"PATH": PATH, "PYTHONPATH": str(REPOSITORY), "HOME": str(tmp_path / "home")}
    with AROUND.get(name, lambda folder: nullcontext({}))(tmp_path) as around:
        done = warm.run(
            [sys.executable, REPOSITORY / "tests" / "docs" / "blocks.py", RUN[name]],
            cwd=tmp_path,
            env=environment | around,
            capture_output=True,
            text=True,
            timeout=100,
        )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    assert [error for _, _, error in results if error] == []
    programs = [block for block in BLOCKS if block.page == name and block.is_run]
    assert [line for line, *_ in results] == [block.line for block in programs]
    for (line, printed, _), block in zip(results, programs, strict=True):
        if block.language == "python":
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


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.reason], ids=lambda block: block.id)
def test_a_block_that_is_not_run_has_a_reason_that_is_true_of_it(block):
    assert re.search(REASONS[block.reason], block.text, re.MULTILINE)


def test_each_reason_is_given_by_a_page():
    assert {block.reason for block in BLOCKS} == {"", *REASONS}


def test_what_is_typed_in_a_shell_is_marked_as_its_language():
    others = [block for block in BLOCKS if block.language in {"", "text", "bash", "console"}]
    assert [block.id for block in others if block.page != "commands.md" and re.match(TYPED, block.text)] == []


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "dot"], ids=lambda block: block.id)
def test_a_pipeline_of_a_page_has_the_findings_that_its_page_expects(block):
    if not block.reason:
        assert {found.rule for found in Pipeline(block.text).lint()} == set(block.rules)


COMMANDS = [
    (block, line)
    for block in BLOCKS
    if block.language == "sh" and block.reason
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
