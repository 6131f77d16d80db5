"""The first commands of docs/cli.md and docs/server.md, as a newcomer types them."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attractor_nb.cli.remote_runs.remote import follow_events
from attractor_nb.cli.remote_runs.server_client import Client, read_address

REPOSITORY = Path(__file__).parents[2]


def block_after(page, words):
    """The first shell block after some words of a page."""
    rest = (REPOSITORY / "docs" / page).read_text("utf-8").partition(words)[2]
    return re.search(r"^```sh\n(.*?)^```$", rest, re.MULTILINE | re.DOTALL)[1].splitlines()


@pytest.fixture(autouse=True)
def _examples(tmp_path):
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")


@pytest.mark.parametrize("line", block_after("cli.md", "## From a file to a run"))
def test_each_command_succeeds(line):
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(line.replace("attractor-nb", "attractor_nb", 1))],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.kind("a server")
def test_a_server_is_started_asked_and_answered():
    """Its lines one by one, in a shell each; before the answer the question is waited for, as a person would."""
    export, submit, look, answer, watch = block_after("server.md", "The other commands take the same URL")
    assert export.startswith("export ATTRACTOR_SERVER=")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with subprocess.Popen(
        ["attractor-nb", "serve", "--port", "0"], env=os.environ | {"PATH": path}, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            address = server.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#token=[\w-]+", address)
            environment = os.environ | {"PATH": path, "ATTRACTOR_SERVER": address}

            def shell(line):
                done = subprocess.run(["sh", "-c", line], env=environment, capture_output=True, text=True)
                assert done.returncode == 0, done.stderr
                return done.stdout

            environment["RUN"] = shell(submit + '; printf %s "$RUN"')
            wait_for_question(address, environment["RUN"])
            assert "? merge_gate   Merge this change?" in shell(look)
            assert shell(answer) == "✓ merge_gate: Merge\n"
            assert shell(watch).splitlines()[-1].startswith("✓ completed   Code review loop")
        finally:
            server.send_signal(signal.SIGINT)


def wait_for_question(address, run_id):
    client = Client(read_address(address))
    assert any(event.type == "InterviewStarted" for event in follow_events(client, run_id))
