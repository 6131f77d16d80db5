"""Pipelines as files, and the command as a process of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest

REVIEW = """\
digraph Review {
    graph [goal="Ship it"]
    start [shape=Mdiamond]
    plan  [label="Plan the work", prompt="Plan: $goal"]
    gate  [shape=hexagon, label="Good enough?"]
    done  [shape=Msquare]
    start -> plan -> gate
    gate -> done [label="[A] Approve"]
    gate -> plan [label="[R] Again"]
}
"""
STRAIGHT = """\
digraph Straight {
    start [shape=Mdiamond]
    write [label="Write it", prompt="Write"]
    done  [shape=Msquare]
    start -> write -> done
}
"""
FAILING = """\
digraph Failing {
    start [shape=Mdiamond]
    check [shape=parallelogram, tool_command="echo no >&2; exit 3"]
    done  [shape=Msquare]
    start -> check -> done
}
"""
SLOW = """\
digraph Slow {
    start [shape=Mdiamond]
    nap   [shape=parallelogram, idempotent=true, tool_command="touch began; test -e quick || sleep 60"]
    done  [shape=Msquare]
    start -> nap -> done
}
"""
BROKEN = """\
digraph Broken {
    start [shape=Mdiamond]
    write [prompt="Write"]
    done [shape=Msquare]
    start -> write -> dne
}
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def sources(tmp_path):
    """The pipelines above as files in the working directory."""
    texts = {"review": REVIEW, "straight": STRAIGHT, "failing": FAILING, "slow": SLOW, "broken": BROKEN}
    for name, text in texts.items():
        (tmp_path / f"{name}.dot").write_text(text)
    return tmp_path


@pytest.fixture
def command(capfd, monkeypatch):
    """Run a command line in this process; stdin is empty unless given."""
    from attractor_nb.cli import main

    def run(*arguments, stdin=b""):
        read_end, write_end = os.pipe()
        os.write(write_end, stdin)
        os.close(write_end)
        with os.fdopen(read_end, "r") as given:
            monkeypatch.setattr(sys, "stdin", given)
            capfd.readouterr()
            code = main([str(argument) for argument in arguments])
            captured = capfd.readouterr()
        return Ended(int(code), captured.out, captured.err)

    return run


@pytest.fixture
def started(tmp_path):
    """Start the command as a process; ended at the end of the test if it still runs."""
    processes = []

    def start(*arguments, **options):
        defaults = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(
            [sys.executable, "-m", "attractor_nb.cli", *(str(argument) for argument in arguments)],
            cwd=tmp_path,
            **(defaults | options),
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
