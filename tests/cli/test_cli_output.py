"""Standard output is a result: a command whose result cannot be written fails, whatever it has done."""

import io
import os
import sys
from pathlib import Path

import pytest

from attractor_nb.cli import main

FULL = Path("/dev/full")
RESULTS = {
    "run": ["run", "straight.dot", "--simulate", "--json", "-q"],
    "run for people": ["run", "straight.dot", "--simulate"],
    "map": ["map", "straight.dot", "--params", "rows.jsonl", "--simulate", "--json", "-q"],
    "parse": ["parse", "straight.dot"],
    "validate": ["validate", "straight.dot"],
    "commands": ["commands", "failing.dot"],
    "models": ["models", "straight.dot", "--json"],
    "estimate": ["estimate", "straight.dot"],
    "analyse": ["analyse", "straight.dot"],
    "graph": ["graph", "straight.dot", "-f", "svg"],
    "handlers": ["handlers"],
    "runs": ["runs", "--json"],
    "watch": ["watch", "out", "--once"],
    "watch for programs": ["watch", "out", "--json"],
    "doctor": ["doctor", "out"],
    "completion": ["completion", "bash"],
    "help": ["--help"],
    "help of a command": ["run", "--help"],
    "version": ["--version"],
}


@pytest.fixture
def ended_run(sources, command):
    """A run that has ended, in ``out``, and rows for a map."""
    (sources / "rows.jsonl").write_text("{}\n")
    assert command("run", "straight.dot", "--simulate", "--logs-root", "out", "-q").code == 0


@pytest.mark.usefixtures("ended_run")
@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize("arguments", RESULTS.values(), ids=RESULTS)
def test_a_result_that_a_full_disk_does_not_take_fails_the_command(arguments, monkeypatch, capfd):
    with FULL.open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(arguments) == 1
        assert capfd.readouterr().err.endswith("error: the output cannot be written: no space left on device\n")
        monkeypatch.undo()


@pytest.mark.usefixtures("ended_run")
@pytest.mark.parametrize("arguments", [RESULTS["run"], RESULTS["parse"], RESULTS["help"]], ids=["run", "parse", "help"])
def test_a_result_for_a_closed_output_fails_the_command(arguments, monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdout", None)  # as Python has it after >&-
    assert main(arguments) == 1
    err = capfd.readouterr().err
    assert err.endswith("error: the output cannot be written: it is closed\n")
    assert "Traceback" not in err


@pytest.mark.usefixtures("sources")
def test_a_command_without_a_result_needs_no_output(monkeypatch, capfd):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["graph", "straight.dot", "-o", "drawn.svg"]) == 0
    assert "cannot be written" not in capfd.readouterr().err


@pytest.mark.usefixtures("sources")
@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
def test_the_code_of_an_error_stays_when_its_document_cannot_be_written(monkeypatch, capfd):
    with FULL.open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(["run", "missing.dot", "--json"]) == 2
        assert "the output cannot be written" in capfd.readouterr().err
        monkeypatch.undo()


@pytest.mark.usefixtures("ended_run")
@pytest.mark.parametrize("is_unbuffered", [False, True], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("name", ["run", "parse", "runs", "help", "help of a command"])
def test_a_reader_that_goes_away_is_no_failure(name, is_unbuffered, monkeypatch, capfd):
    arguments = RESULTS[name]
    reader, writer = os.pipe()
    os.close(reader)
    raw = os.fdopen(writer, "wb", 0 if is_unbuffered else -1)
    with io.TextIOWrapper(raw, write_through=is_unbuffered) as unread:
        monkeypatch.setattr(sys, "stdout", unread)
        assert main(arguments) == 0
        assert "cannot be written" not in capfd.readouterr().err
        monkeypatch.undo()


@pytest.mark.usefixtures("sources")
def test_a_progress_that_cannot_be_written_loses_no_result(monkeypatch, capfd):
    monkeypatch.setattr(sys, "stderr", None)
    assert main(RESULTS["run"]) == 0
    assert '"status": "success"' in capfd.readouterr().out
