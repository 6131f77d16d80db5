"""Runs and findings as a user reads them later: what a loaded run says of itself."""

import os
import signal
import subprocess
import sys

import pytest

from attractor_nb import Pipeline, Run
from tests import warm

SOURCE = """digraph Essay {
    start [shape=Mdiamond]
    plan [prompt="Plan it"]
    write [prompt="Write it"]
    done [shape=Msquare]
    start -> plan -> write -> done
}"""
PROGRAM = """
import sys, time
from attractor_nb import Pipeline

def backend(node, prompt, context):
    if node.id == "write":
        print("writing", flush=True)
        time.sleep(60)
    return "text"

Pipeline(sys.argv[1]).run(wait=True, backend=backend, logs_root=sys.argv[2])
"""


@pytest.fixture
def killed_run(tmp_path):
    """The directory of a run whose process was killed in the middle of `write`."""
    logs_root = tmp_path / "run"
    command = [sys.executable, "-c", PROGRAM, SOURCE, str(logs_root)]
    with warm.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writing\n"
        os.kill(process.pid, signal.SIGKILL)
    return logs_root


def test_a_run_whose_process_was_killed_says_so_and_how_to_go_on(killed_run):
    loaded = Run.load(killed_run)
    assert str(loaded) == "‖ stopped   2 stages   abandoned: its process ended   at write   resume with run.resume()"
    assert loaded.status == "interrupted"
    assert loaded.view.next_node == "write"
    assert not list(loaded.view.active_nodes)


def test_a_killed_run_is_continued_without_repeating_what_was_finished(killed_run):
    result = Run.load(killed_run).resume(backend=lambda prompt: "by the second process").result()
    assert result["plan"].response == "text"
    assert result["write"].response == "by the second process"


def test_a_pipeline_without_findings_says_so():
    assert str(Pipeline(SOURCE).lint()) == "no findings"
