"""Executors to ship to: pools of this machine, and a Dask cluster of a scheduler and two workers."""

import multiprocessing
import os
import signal
import subprocess
import sys
import uuid
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import psutil
import pytest

from attractor_nb import Pipeline
from attractor_nb.workers.perform import probe
from tests.waiting import wait_until

FRAME = "digraph demo {{ start [shape=Mdiamond]\n done [shape=Msquare]\n {body} }}"
START_SECONDS = 60


@pytest.fixture
def make():
    """A pipeline of the given statements, simulated."""

    def build(body, **options):
        return Pipeline(FRAME.format(body=body), **options)

    return build


class Pools:
    """A pool of two processes for many tests; another one when a test, or the machine, has broken it."""

    def __init__(self):
        self._pool = None

    def whole(self):
        """The pool with a started process: a busy machine may take longer to start one than a run waits for it."""
        if self._pool is None or not self._is_whole():
            self.close()
            self._pool = ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))
            self._pool.submit(probe).result()
        return self._pool

    def _is_whole(self):
        try:
            return self._pool.submit(os.getpid).result() != os.getpid()
        except BrokenExecutor:
            return False

    def close(self):
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)


@pytest.fixture(scope="module")
def pools():
    """The pool of a module's tests."""
    found = Pools()
    yield found
    found.close()


@pytest.fixture
def processes(pools):
    """A pool of two processes that work."""
    return pools.whole()


@pytest.fixture
def threads():
    """A pool of two threads."""
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture(params=["threads", "processes"])
def pool(request):
    """Each of them."""
    return request.getfixturevalue(request.param)


class LosingExecutor(Executor):
    """Loses the first workers that it is given stages for; then does them in this thread."""

    def __init__(self, losses):
        self.losses, self.stages = losses, []

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        if args:
            self.stages.append(args[0])
            if len(self.stages) <= self.losses:
                future.set_exception(BrokenExecutor("a process ended abruptly"))
                return future
        future.set_result(function(*args))
        return future


@pytest.fixture
def losing():
    return LosingExecutor


@pytest.fixture
def endless():
    """A command that does not end by itself; tests that run at the same time elsewhere have others."""
    return f"sleep 4711.{uuid.uuid4().int}"


def commands_with(mark):
    """Processes that have the mark in their command line, and are no zombies."""
    found = []
    for process in psutil.process_iter():
        try:
            if mark in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture(name="commands_with")
def _commands_with():
    return commands_with


class DaskProcesses:
    """A scheduler and workers as processes of their own on loopback, ended by their id."""

    def __init__(self, folder):
        self._file = folder / "scheduler.json"
        self._log = (folder / "dask.log").open("wb")
        self.scheduler = self._start("scheduler", "--port", "0")
        self.workers = []

    def _start(self, what, *more):
        command = [sys.executable, "-m", "dask", what, "--scheduler-file", str(self._file), "--no-dashboard"]
        command += ["--host", "127.0.0.1", *more]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log, start_new_session=True)

    def add_worker(self):
        more = ("--no-nanny", "--nthreads", "1", "--death-timeout", str(START_SECONDS))
        self.workers.append(self._start("worker", *more))

    @property
    def file(self):
        wait_until(self._file.exists, "the scheduler's file")
        return str(self._file)

    def kill_worker(self, pid):
        (process,) = [worker for worker in self.workers if worker.pid == pid]
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.workers.remove(process)

    def replace_worker(self, pid):
        """Another one starts while the test goes on."""
        self.add_worker()
        self.kill_worker(pid)

    def stop_scheduler(self):
        self.scheduler.kill()
        self.scheduler.wait()

    def close(self):
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                process.terminate()
        for process in (*self.workers, self.scheduler):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()


@pytest.fixture(scope="module")
def start_dask(tmp_path_factory):
    """Starts clusters; all are stopped when the module ends, for idle ones take a tenth of a processor."""
    started = []

    def start(workers):
        cluster = DaskProcesses(tmp_path_factory.mktemp("dask"))
        started.append(cluster)
        for _ in range(workers):
            cluster.add_worker()
        return cluster

    yield start
    for cluster in started:
        cluster.close()


def pid_file(path):
    """The number in a file that a worker writes."""
    wait_until(lambda: path.exists() and path.read_text().strip().isdigit(), path.name)
    return int(path.read_text())


@pytest.fixture(name="pid_file")
def _pid_file():
    return pid_file


@pytest.fixture
def own_pid():
    return os.getpid()
