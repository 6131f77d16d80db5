"""The command as a real process: signals, a real terminal, readers that go away."""

import contextlib
import getpass
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests import warm

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
    assert "Stopped at `nap`; resume with `attractor-nb resume out`" in err
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
    """A terminal with a user in front of it."""

    def __init__(self, *arguments, directory, start=subprocess.Popen, **variables):
        self._end, other = pty.openpty()
        environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        self.process = start(
            [sys.executable, "-m", "attractor_nb", *arguments],
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
    assert f"Good enough? → Approve (by {getpass.getuser()}, at the console)" in opened.text


@pytest.mark.kind("an interrupt")
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


@pytest.mark.campaign
def test_a_terminal_shows_colours_unless_no_color_is_set(screen):
    coloured = screen("run", "straight.dot")
    assert coloured.read_to_the_end() == 0
    assert "\x1b[32m" in coloured.text
    plain = screen("run", "straight.dot", NO_COLOR="1")
    assert plain.read_to_the_end() == 0
    assert "\x1b[32m" not in plain.text


@pytest.mark.parametrize("is_unbuffered", [False, True], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["graph", "review.dot", "-f", "svg"], 0),
        (["validate", "review.dot"], 0),
        (["validate", "review.dot", "--json"], 0),
        (["validate", "no_such.dot"], 2),
        (["run", "straight.dot", "--json"], 0),
        (["--help"], 0),
    ],
    ids=["picture", "findings", "findings-json", "error", "run", "help"],
)
@pytest.mark.campaign
def test_a_reader_of_stdout_and_stderr_that_goes_away_is_no_error(
    started, sources, monkeypatch, arguments, code, is_unbuffered
):
    if is_unbuffered:
        monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    read_end, write_end = os.pipe()
    os.close(read_end)
    to_nobody = started(*arguments, stdout=write_end)
    in_silence = started(*arguments, stdout=write_end, stderr=write_end)
    os.close(write_end)
    _, err = to_nobody.communicate(timeout=PATIENCE_SECONDS)
    assert b"Traceback" not in err
    assert b"Exception ignored" not in err
    assert in_silence.wait(PATIENCE_SECONDS) == to_nobody.returncode == code


@pytest.mark.parametrize("is_unbuffered", [False, True], ids=["buffered", "unbuffered"])
def test_a_reader_of_progress_that_goes_away_does_not_stop_the_run(started, sources, monkeypatch, is_unbuffered):
    if is_unbuffered:
        monkeypatch.setenv("PYTHONUNBUFFERED", "1")
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


# -- texts of strangers (ruling 38) -------------------------------------------------------------------------

HOSTILE = r"""digraph Hostile {
    start [shape=Mdiamond]
    t [shape=parallelogram, label="T ESC[31m DEL C1 BIDI",
       tool_command="printf '\\033]0;PWN\\007\\033[2Jx\\177\\302\\233y\\342\\200\\256z\\rq' | tee out >&2; cat out; exit 1"]
    done [shape=Msquare]
    start -> t -> done
}
"""
OUR_OWN = re.compile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b[=>78]|\x1b\\(B")
"""The sequences that rich itself writes to a terminal; no letters of a title, no C1."""
STEERING_LEFT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
SHOWING = [
    ("watch", "r"),
    ("doctor", "r"),
    ("runs", "--runs-dir", "."),
    ("diff", "r", "r"),
    ("commands", "hostile.dot"),
    ("graph", "--format", "text", "hostile.dot"),
    ("validate", "hostile.dot"),
    ("resume", "r"),
    ("models", "hostile.dot"),
    ("estimate", "hostile.dot"),
    ("analyse", "hostile.dot"),
    ("graph", "--engine", "dot", "hostile.dot"),
    ("fork", "r", "--at", "t", "--trust"),
    ("answer", "r", "A"),
    ("export", "r", "--output", "r/x.html"),
]


@pytest.fixture
def hostile(tmp_path):
    text = HOSTILE.replace("ESC", "\x1b").replace("DEL", "\x7f").replace("C1", "\x9b").replace("BIDI", "\u202e")
    (tmp_path / "hostile.dot").write_text(text)
    command = [sys.executable, "-m", "attractor_nb", "run", "hostile.dot", "--trust", "--logs-root", "r"]
    ran = warm.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert ran.returncode == 1
    return tmp_path, ran


def test_ruling_38_a_run_shows_the_escapes_of_what_a_tool_wrote(hostile):
    _, ran = hostile
    told = (ran.stdout + ran.stderr).decode()
    assert not STEERING_LEFT.search(told)
    assert r"\x1b]0;PWN\x07\x1b[2Jx\x7f\x9by\u202ez" in told


@pytest.mark.parametrize(
    "words",
    [pytest.param(words, id=words[0], marks=() if words[0] == "watch" else pytest.mark.campaign) for words in SHOWING],
)
@pytest.mark.campaign
def test_ruling_38_no_command_lets_a_text_steer_the_terminal(hostile, words):
    directory, _ = hostile
    screen = Screen(*words, directory=directory, start=warm.Popen)
    try:
        screen.read_to_the_end()
    finally:
        screen.close()
    assert not STEERING_LEFT.search(OUR_OWN.sub("", screen.text)), screen.text
    assert "\x1b[31m DEL" not in screen.text
    assert "\x1b[2J" not in screen.text
    piped = warm.run([sys.executable, "-m", "attractor_nb", *words], cwd=directory, capture_output=True, check=False)
    assert not STEERING_LEFT.search((piped.stdout + piped.stderr).decode())


@pytest.mark.campaign
def test_ruling_38_json_escapes_by_itself_and_a_text_asked_for_is_raw_in_a_pipe(hostile):
    directory, _ = hostile
    ask = [sys.executable, "-m", "attractor_nb"]
    listed = warm.run([*ask, "resume", "r", "--json"], cwd=directory, capture_output=True, check=False)
    assert not STEERING_LEFT.search(listed.stdout.decode())
    assert "\x1b]0;PWN" in json.dumps(json.loads(listed.stdout), ensure_ascii=False).replace("\\u001b", "\x1b")
    raw = warm.run([*ask, "graph", "--format", "dot", "hostile.dot"], cwd=directory, capture_output=True)
    assert b"\x1b[31m" in raw.stdout


def test_ruling_38_a_gate_lets_no_label_steer_the_terminal(sources, screen):
    text = (sources / "review.dot").read_text()
    text = text.replace("Good enough?", "Good\x1b]0;PWN\x07 enough?").replace("[R] Again", "[R] Ag\x1b[2Jain")
    (sources / "gate.dot").write_text(text)
    screen = screen("run", "gate.dot")
    screen.read_until("enough?", "Approve")
    screen.type("a\r")
    assert screen.read_to_the_end() == 0
    assert r"Good\x1b]0;PWN\x07 enough?" in screen.text
    assert "\x1b[2Jain" not in screen.text
    shown = OUR_OWN.sub("", screen.text).replace("\b", "")  # so the prompt moves its cursor back by one
    assert not STEERING_LEFT.search(shown), screen.text
