"""`watch`: a session at a terminal, in a pipe, as JSON; its exit code."""

import json
import os
import pty
import re
import signal
import sys

import pytest

from attractor_nb.sessions import (
    cancel_session,
    complete_agent,
    complete_session,
    create_session,
    fail_agent,
    start_agent,
)
from tests import warm
from tests.waiting import read_until


@pytest.fixture
def session_dir(tmp_path):
    agents = [{"id": "001", "name": "plan"}, {"id": "002", "name": "write"}]
    return create_session(tmp_path, "orchestrate", "review.dot", agents)


def end_with(session_dir, status):
    start_agent(session_dir, "001")
    if status == "failed":
        fail_agent(session_dir, "001", "Exit code 1: no cheese")
    else:
        complete_agent(session_dir, "001")
        start_agent(session_dir, "002")
        if status == "complete":
            complete_agent(session_dir, "002")
    if status == "cancelled":
        cancel_session(session_dir)
    elif status != "running":
        complete_session(session_dir)


@pytest.mark.parametrize(("status", "code"), [("running", 0), ("complete", 0), ("failed", 1), ("cancelled", 130)])
def test_the_exit_code_says_how_the_session_stands(command, session_dir, status, code):
    end_with(session_dir, status)
    shown = command("watch", "--once")
    assert (shown.code, shown.err) == (code, "")
    assert shown.out.split()[1] == status
    assert json.loads(command("watch", session_dir, "--once", "--json").out)["status"] == status


def test_a_directory_that_is_not_there_may_be_of_a_run_a_map_or_a_session(command, tmp_path):
    shown = command("watch", tmp_path / "nowhere", "--once")
    assert shown.code == 2
    assert f"there is no directory {tmp_path / 'nowhere'}" in shown.err
    assert "a run, a map or a session" in shown.err


def test_an_ended_session_is_shown_without_waiting(command, session_dir):
    end_with(session_dir, "failed")
    shown = command("watch")
    first, *lines = shown.out.splitlines()
    assert shown.code == 1
    assert re.match(r"✕ failed   1 failed, 1 cancelled   .* s   review\.dot$", first)
    assert re.match(r"✕ failed +001  plan  .* s  Exit code 1: no cheese$", lines[0])
    assert re.match(r"‖ cancelled +002  write$", lines[1])
    assert lines[2:] == [first]


def test_without_a_session_the_remedy_is_named(command):
    shown = command("watch")
    assert shown.code == 2
    assert "no session is active" in shown.err
    assert "hint: name the directory of a session, a run or a map; attractor-nb runs lists runs and maps" in shown.err


@pytest.mark.parametrize("options", [(), ("--once",), ("--json",)], ids=["followed", "once", "JSON"])
def test_a_directory_without_a_run_a_map_or_a_session_says_so_and_names_the_list(command, tmp_path, options):
    (tmp_path / "empty").mkdir()
    shown = command("watch", "empty", *options)
    told = shown.out if "--json" in options else shown.err
    assert shown.code == 2
    assert "empty contains neither a run nor a map nor a session" in told
    assert "attractor-nb runs lists runs and maps" in told


def test_a_damaged_session_is_invalid_input(command, session_dir):
    (session_dir / "status.json").write_bytes(b"{")
    shown = command("watch", "--once", "--json")
    assert shown.code == 2
    assert json.loads(shown.out)["error"]["type"] == "SessionDamaged"


def test_in_a_pipe_each_change_of_an_agent_is_a_line(started, session_dir):
    process = started("watch")
    lines = iter(process.stdout.readline, b"")
    assert "● running   2 queued" in next(lines).decode()
    start_agent(session_dir, "001")
    assert re.match(r"● running +001  plan$", next(lines).decode().rstrip())
    fail_agent(session_dir, "001", "Exit code 1: no cheese\nsecond line")
    assert re.match(r"✕ failed +001  plan  .* s  Exit code 1: no cheese second line$", next(lines).decode().rstrip())
    complete_session(session_dir)
    assert re.match(r"‖ cancelled +002  write$", next(lines).decode().rstrip())
    assert next(lines).decode().startswith("✕ failed   1 failed, 1 cancelled")
    assert list(lines) == []
    assert process.wait() == 1


def test_ctrl_c_ends_the_watching_alone(started, session_dir):
    process = started("watch")
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"")
    start_agent(session_dir, "001")


def test_at_a_terminal_a_table_moves_and_its_last_state_stays(session_dir):
    end, other = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    process = warm.Popen(
        [sys.executable, "-m", "attractor_nb", "watch"],
        stdin=other,
        stdout=other,
        stderr=other,
        env=environment | {"TERM": "xterm-256color", "COLUMNS": "90"},
        start_new_session=True,
    )
    os.close(other)
    try:
        read_until(end, "2 queued", "plan", "write")
        start_agent(session_dir, "001")
        read_until(end, "1 queued, 1 running")
        complete_agent(session_dir, "001")
        start_agent(session_dir, "002")
        complete_agent(session_dir, "002")
        complete_session(session_dir)
        text = read_until(end, "2 complete", "\x1b[?25h")  # the cursor is back
        assert process.wait() == 0
    finally:
        process.kill()
        process.wait()
        os.close(end)
    assert "Traceback" not in text
