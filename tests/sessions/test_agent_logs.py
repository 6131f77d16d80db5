"""Agents' logs: complete however a process ends, and no thread is left behind."""

import errno
import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from attractor_nb.errors import SessionError, StorageError
from attractor_nb.sessions import create_session, open_agent_log, recorder
from attractor_nb.sessions.recorder import AgentLog
from attractor_nb.storage.files.disk import Disk


@pytest.fixture
def session(tmp_path):
    return create_session(tmp_path, "orchestrate", "x.dot", [{"id": "001"}])


def say(words, **options):
    return subprocess.Popen(
        [sys.executable, "-c", f"print({words!r}, flush=True); {options.pop('then', '')}"], **options
    )


def copies():
    return [thread for thread in threading.enumerate() if thread.name == "attractor-agent-log"]


def test_a_log_takes_the_output_of_processes_one_after_the_other(session):
    for word in ("one", "two"):
        with open_agent_log(session, "001") as log:
            say(word, stdout=log).wait()
    path = session / "001.log"
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("one\ntwo\n", 0o600)
    with pytest.raises(SessionError, match="no agent"):
        open_agent_log(session, "../../x")
    assert copies() == []


def test_a_process_goes_on_writing_when_the_log_is_closed_here(session):
    log = open_agent_log(session, "001")
    process = say("begun", stdout=log, stdin=subprocess.PIPE, then="input(); print('ended')")
    log.close()
    assert not log.wait(0)
    assert len(copies()) == 1
    with pytest.raises(SessionError, match=r"001\.log is closed here"):
        log.fileno()
    process.communicate(b"\n")
    assert log.wait(60)
    assert (session / "001.log").read_text() == "begun\nended\n"
    assert copies() == []


def test_a_killed_process_leaves_all_that_it_had_written(session):
    size = 3_000_000
    with open_agent_log(session, "001") as log:
        process = say("x" * 10, stdout=log, then=f"print('y' * {size}, flush=True); import os; os.kill(os.getpid(), 9)")
        assert process.wait() == -9
    assert (session / "001.log").read_text() == "x" * 10 + "\n" + "y" * size + "\n"


@pytest.mark.campaign
def test_a_log_that_is_dropped_ends_with_its_process(session):
    say("dropped", stdout=open_agent_log(session, "001")).wait()
    gc.collect()
    for thread in copies():
        thread.join(60)
    assert (session / "001.log").read_text() == "dropped\n"
    assert copies() == []


def test_a_block_that_is_left_by_an_error_waits_for_nobody(session):
    log = open_agent_log(session, "001")
    process = say("waits", stdout=log, stdin=subprocess.PIPE, then="input()")
    log.__exit__(KeyboardInterrupt)
    assert process.poll() is None
    process.communicate(b"\n")
    assert log.wait(60)


class Full(Disk):
    """Takes a few bytes and no more."""

    left = 1

    def write(self, descriptor, data):
        if not self.left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.left -= 1
        return super().write(descriptor, data)


def test_a_full_disk_is_said_and_holds_no_agent_up(session):
    path = session / "001.log"
    log = AgentLog(Full(), os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), path)
    process = say("first", stdout=log, then="print('x' * 1_000_000, flush=True)")
    assert process.wait() == 0
    with pytest.raises(StorageError, match=r"001\.log"):
        log.wait()
    assert copies() == []


ORCHESTRATOR = """
import subprocess, sys
from pathlib import Path
from attractor_nb.sessions import open_agent_log
log = open_agent_log(Path(sys.argv[1]), "001")
subprocess.run([sys.executable, "-c", "print('said', flush=True)"], stdout=log, check=True)
if len(sys.argv) > 2:
    subprocess.Popen([sys.executable, "-c", "input()"], stdout=log, stderr=subprocess.DEVNULL)
"""


def orchestrate(session, *more, **options):
    return subprocess.run(
        [sys.executable, "-c", ORCHESTRATOR, str(session), *more], capture_output=True, text=True, check=True, **options
    )


def test_a_program_that_forgets_its_log_ends_with_the_log_complete(session):
    assert orchestrate(session).stderr == ""
    assert (session / "001.log").read_text() == "said\n"


def test_a_program_does_not_wait_without_end_for_an_agent_that_goes_on(session):
    held, kept = os.pipe()
    try:
        ended = orchestrate(session, "and leave one", stdin=held, timeout=60)
    finally:
        os.close(kept)
        os.close(held)
    assert "an agent is still running" in ended.stderr
    assert (session / "001.log").read_text() == "said\n"


def descriptors():
    """The open descriptors of this process, where the system lists them."""
    place = Path("/proc/self/fd")
    return len(list(place.iterdir())) if place.is_dir() else 0


def test_without_another_descriptor_a_log_says_so_and_closes_its_file(session, monkeypatch):
    def refuse():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    before = descriptors()
    with monkeypatch.context() as patched:
        patched.setattr(os, "pipe", refuse)
        with pytest.raises(StorageError, match=r"cannot open .*001\.log: too many open files") as refused:
            open_agent_log(session, "001")
    assert "raise the limit of open files" in refused.value.hint
    assert descriptors() == before


def test_without_another_thread_a_log_says_so_and_closes_what_it_opened(session, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    before = descriptors()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(SessionError, match=r"no thread can be started that writes .*001\.log"):
            open_agent_log(session, "001")
    assert descriptors() == before
    assert not recorder._COPIES


def test_a_link_in_the_place_of_a_log_is_not_written_through(session, tmp_path):
    other = tmp_path / "other"
    other.write_text("of somebody else")
    (session / "001.log").symlink_to(other)
    with pytest.raises(StorageError, match=r"cannot open .*001\.log") as refused:
        open_agent_log(session, "001")
    assert "a symbolic link is in its place" in refused.value.hint
    assert other.read_text() == "of somebody else"


def test_no_descriptor_is_left(session):
    open_agent_log(session, "001").wait()
    before = descriptors()
    for _ in range(5):
        open_agent_log(session, "001").wait()
    assert descriptors() == before
