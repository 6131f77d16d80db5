"""Ctrl-C and requests to end: what a command makes of one that comes early, and of one that comes late."""

import signal
import threading

import pytest

from attractor_nb.cli import serve_until_stopped
from attractor_nb.cli.reporting import ExitCode
from attractor_nb.cli.run_execution import requests_to_end_as_interrupts, wait_for
from attractor_nb.errors import RunInterrupted, RunLocked, StorageError

in_the_main_thread = pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread(), reason="Python interrupts the main thread alone"
)


class Waited:
    """A run whose ``result`` raises or returns what a test gives, one after another."""

    def __init__(self, *results, is_done):
        self.results = list(results)
        self.is_done = is_done
        self.timeouts = []

    def result(self, timeout=None):
        self.timeouts.append(timeout)
        found = self.results.pop(0)
        if isinstance(found, BaseException):
            raise found
        return found


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt(), RunInterrupted("stopped")], ids=["Ctrl-C", "stopped"])
def test_of_an_interrupted_run_there_is_the_result_that_it_came_to(interrupt):
    run = Waited(interrupt, "result", is_done=True)
    assert wait_for(run) == "result"
    assert run.timeouts == [None, 0.0]


def test_a_second_ctrl_c_leaves_at_once_and_asks_nothing_more():
    run = Waited(KeyboardInterrupt(), is_done=False)
    assert wait_for(run) is None
    assert run.timeouts == [None]


@pytest.mark.parametrize("late", [RunLocked("taken over"), StorageError("full"), TimeoutError()])
def test_an_interrupted_run_without_a_result_ends_as_interrupted(late):
    with pytest.raises(RunInterrupted, match="stopped"):
        wait_for(Waited(RunInterrupted("stopped"), late, is_done=True))


@in_the_main_thread
@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_request_to_end_is_an_interrupt_until_the_run_has_ended(name):
    number = getattr(signal, name, None)
    if number is None:
        pytest.skip("this system has no such signal")
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), requests_to_end_as_interrupts():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("is_ready", [False, True], ids=["before it serves", "while it serves"])
def test_ctrl_c_is_how_a_server_ends_and_before_that_an_interrupt(monkeypatch, tmp_path, capsys, is_ready):
    def serve(runs_dir, *, host, users, on_ready):
        if is_ready:
            on_ready("http://127.0.0.1:8765/#token=abc")
        raise KeyboardInterrupt

    monkeypatch.setattr(serve_until_stopped, "serve", serve)
    if is_ready:
        assert serve_until_stopped.serve_runs(tmp_path, is_json=False, host="127.0.0.1", users=()) is ExitCode.SUCCESS
    else:
        with pytest.raises(KeyboardInterrupt):
            serve_until_stopped.serve_runs(tmp_path, is_json=False, host="127.0.0.1", users=())
    assert capsys.readouterr().out.splitlines() == ["http://127.0.0.1:8765/#token=abc"] * is_ready
