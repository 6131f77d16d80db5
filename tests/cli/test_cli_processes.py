"""The command as a real process: signals, a real terminal, readers that go away."""

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.timeout(180)
PATIENCE_SECONDS = 90


def wait_for(condition, process):
    """Wait until something is true, as long as the process lives."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < give_up
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "TERM"])
def test_an_interrupted_run_ends_with_130_and_can_be_resumed(started, command, sources, number):
    process = started("run", "slow.dot", "--trust", "--logs-root", "out")
    wait_for((sources / "began").exists, process)
    tools = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    out, err = (text.decode() for text in process.communicate(timeout=PATIENCE_SECONDS))

    assert process.returncode == 130
    assert "Stopped at `nap`; continue with `attractor-nb resume out`" in err
    assert "Traceback" not in out + err
    assert tools
    assert not any(tool.is_running() and tool.status() != psutil.STATUS_ZOMBIE for tool in tools)

    (sources / "quick").touch()
    resumed = command("resume", "out", "--json")
    summary = json.loads(resumed.out)
    assert (resumed.code, summary["status"]) == (0, "success")
    assert [stage["id"] for stage in summary["stages"]] == ["start", "nap", "done"]


def test_an_interrupted_run_prints_its_summary_as_json(started, sources):
    process = started("run", "slow.dot", "--trust", "--logs-root", "out", "--json", "-q")
    wait_for((sources / "began").exists, process)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    summary = json.loads(out)
    assert process.returncode == 130
    assert (summary["status"], summary["next_node"], summary["is_resumable"]) == ("interrupted", "nap", True)


class Screen:
    """A terminal with somebody in front of it."""

    def __init__(self, *arguments, directory, **variables):
        self._end, other = pty.openpty()
        environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "attractor_nb.cli", *arguments],
            cwd=directory,
            stdin=other,
            stdout=other,
            stderr=other,
            env=environment | {"TERM": "xterm-256color", "COLUMNS": "90"} | variables,
            start_new_session=True,
        )
        os.close(other)
        self.text = ""

    def read_until(self, *expected):
        give_up = time.monotonic() + PATIENCE_SECONDS
        while not all(part in self.text for part in expected):
            assert time.monotonic() < give_up, self.text
            if select.select([self._end], [], [], 0.5)[0]:
                self.text += self._read()

    def read_to_the_end(self):
        while chunk := self._read():
            self.text += chunk
        return self.process.wait(PATIENCE_SECONDS)

    def _read(self):
        try:
            chunk = os.read(self._end, 65536).decode(errors="replace")
        except OSError:  # Linux says so when the other end is closed
            return ""
        if "\x1b[6n" in chunk:  # a menu asks where the cursor is
            self.type("\x1b[1;1R")
        return chunk

    def type(self, keys):
        os.write(self._end, keys.encode())

    def hang_up(self):
        os.close(self._end)
        self._end = -1

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self._end >= 0:
            os.close(self._end)


@pytest.fixture
def screen(sources):
    screens = []

    def open_screen(*arguments, **variables):
        screens.append(Screen(*arguments, directory=sources, **variables))
        return screens[-1]

    yield open_screen
    for opened in screens:
        opened.close()


def test_a_gate_is_answered_at_a_terminal(screen):
    opened = screen("run", "review.dot")
    opened.read_until("Good enough?", "Again")
    assert "[Simulated] Response for stage: plan" in opened.text  # what is to be judged
    opened.type("a\r")
    assert opened.read_to_the_end() == 0
    assert "Good enough? → Approve (by you)" in opened.text


def test_ctrl_c_at_a_gate_stops_the_run_and_the_same_gate_asks_again(screen):
    opened = screen("run", "review.dot", "--logs-root", "out")
    opened.read_until("Good enough?", "Again")
    opened.type("\x03")
    assert opened.read_to_the_end() == 130
    assert "Stopped at `gate`" in opened.text

    again = screen("resume", "out")
    again.read_until("Good enough?", "Again")
    again.type("a\r")
    assert again.read_to_the_end() == 0


def test_a_terminal_that_is_closed_never_approves(screen, command, sources):
    opened = screen("run", "review.dot", "--logs-root", "out")
    opened.read_until("Good enough?", "Again")
    opened.hang_up()
    assert opened.process.wait(PATIENCE_SECONDS) != 0
    assert command("runs", "--runs-dir", ".", "--json").out.count('"completed"') == 0


def test_a_terminal_shows_colours_unless_no_color_is_set(screen):
    coloured = screen("run", "straight.dot")
    assert coloured.read_to_the_end() == 0
    assert "\x1b[32m" in coloured.text
    plain = screen("run", "straight.dot", NO_COLOR="1")
    assert plain.read_to_the_end() == 0
    assert "\x1b[32m" not in plain.text


def test_a_reader_of_stdout_that_goes_away_is_no_error(started, sources):
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = started("graph", "review.dot", "-f", "svg", stdout=write_end)
    os.close(write_end)
    _, err = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, err) == (0, b"")


def test_a_reader_of_progress_that_goes_away_does_not_stop_the_run(started, sources):
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = started("run", "straight.dot", "--json", stderr=write_end)
    os.close(write_end)
    out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert json.loads(out)["status"] == "success"


def test_the_installed_command_is_the_same(sources):
    script = Path(sys.executable).with_name("attractor-nb")
    done = subprocess.run([script, "validate", "review.dot"], cwd=sources, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "✓ review.dot: no findings (4 nodes, 4 edges)\n")


SHARED = """digraph shared { start [shape=Mdiamond]; done [shape=Msquare]
    work [shape=parallelogram, tool_command="if [ -e again ]; then echo mine; exit 0; fi; touch again; tail -f /dev/null"]
    start -> work -> done }"""


def test_a_run_is_taken_over_from_a_frozen_owner_who_loses_when_it_goes_on(started, command, sources):
    (sources / "shared.dot").write_text(SHARED)
    owner = started("run", "shared.dot", "--trust", "--logs-root", "out")
    wait_for((sources / "again").exists, owner)
    tools = psutil.Process(owner.pid).children(recursive=True)
    owner.send_signal(signal.SIGSTOP)
    try:
        refused = command("resume", "out", "--trust")
        assert refused.code == 2
        assert "owned by" in refused.err
        assert "--take-over" in refused.err
        taken = command("resume", "out", "--trust", "--take-over", "--on-interrupted", "rerun", "--json")
        assert taken.code == 0, taken.err
        assert json.loads(taken.out)["status"] == "success"
        log = (sources / "out/events.jsonl").read_bytes()
    finally:
        owner.send_signal(signal.SIGCONT)
    _, err = (text.decode() for text in owner.communicate(timeout=PATIENCE_SECONDS))
    assert owner.returncode not in {0, None}
    assert "was taken over by" in err
    assert "Traceback" not in err
    psutil.wait_procs(tools, timeout=PATIENCE_SECONDS)
    assert not any(tool.is_running() for tool in tools)
    assert (sources / "out/events.jsonl").read_bytes() == log
    assert json.loads((sources / "out/manifest.json").read_text())["status"] == "completed"
