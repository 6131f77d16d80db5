"""Many runs at once and many clients of their events against a real server.

load.py RUNS CLIENTS WAVES: each wave submits RUNS runs over HTTP, watches them with CLIENTS event streams that
hang up at random and come back with Last-Event-ID, waits until every run stands at its gate, has a third of all
clients hang up at once, answers all gates over HTTP, and compares what each client had with the log on the disk.
The server is one other process, so that its memory is its own; the first wave warms it up. The last line printed
is a JSON object.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import resource
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from load_checking import POOL_THREADS, Checked, Sample, percentile, since
from load_http import Caller, Connection
from load_sources import KINDS
from load_watching import Watched, Watcher

CALLERS = 16
STORM = 3
"""One client in so many hangs up when every run waits."""
WAVE_SECONDS = 1800
SETTLE_SECONDS = 30
SAMPLE_SECONDS = 0.25
ENGINE_FILES = 3
"""Files that the engine's event loop keeps open."""
SERVER = Path(__file__).with_name("load_server.py")


class Wave:
    """One wave of runs and clients."""

    def __init__(self, port: int, token: str, root: Path, runs: int, clients: int, seed: int) -> None:
        self._port = port
        self._token = token
        self._root = root
        self._runs = runs
        self._clients = clients
        self._chance = random.Random(seed)
        self._waiting = 0
        self._all_wait = asyncio.Event()
        self._answers: asyncio.Queue[Watched] = asyncio.Queue()
        self.checked = Checked()
        self.runs: list[Watched] = []
        self.figures: dict[str, float] = {}

    @property
    def watchers(self) -> list[Watcher]:
        """All clients."""
        return [watcher for run in self.runs for watcher in run.watchers]

    async def go(self) -> None:
        """Do all of it."""
        begin = time.perf_counter()
        following: list[asyncio.Task[None]] = []
        try:
            async with asyncio.timeout(WAVE_SECONDS):
                await self._submit(following)
                self.figures |= {"runs": len(self.runs), "submitting": since(begin)}
                await self._all_wait.wait()
                self.figures["until_all_wait"] = since(begin)
                await self._storm()
                answering = time.perf_counter()
                await self._answer_all(following)
                self.figures["answering"] = since(answering)
                self.figures["whole"] = since(begin)
        except TimeoutError:
            self.checked.problems.append(f"after {WAVE_SECONDS} s {self._waiting} clients had seen a gate")
        finally:
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)
        for run in self.runs:
            self.checked.take(run, self._root)

    async def _submit(self, following: list[asyncio.Task[None]]) -> None:
        numbers = iter(range(self._runs))

        async def submit(caller: Caller) -> None:
            for number in numbers:
                kind = KINDS[number % len(KINDS)]
                body = {"source": kind.source, "backend": "simulated"}
                status, plain = await caller.post("/pipelines", body)
                if status != 201:
                    self.checked.problems.append(f"a submission was answered {status}: {plain}")
                    continue
                run = Watched(plain["id"], kind)
                self.runs.append(run)
                for _ in range(number, self._clients, self._runs):
                    chance = random.Random(self._chance.random())
                    watcher = Watcher(run, self._connect, chance, self._saw_question)
                    run.watchers.append(watcher)
                    following.append(asyncio.create_task(watcher.follow()))

        await self._with_callers(submit)

    async def _storm(self) -> None:
        """Many hang up at once, and are back before the gates are answered."""
        before = {watcher: watcher.connections for watcher in self.watchers[::STORM]}
        for watcher in before:
            watcher.drop()
        for watcher, connections in before.items():
            while watcher.connections == connections or watcher.connection is None:
                if watcher.connections == connections:
                    watcher.drop()  # it was just coming back
                await asyncio.sleep(0.01)
            await watcher.connection.begun

    async def _answer_all(self, following: list[asyncio.Task[None]]) -> None:
        for run in self.runs:
            self._answers.put_nowait(run)

        async def answer(caller: Caller) -> None:
            while True:
                run = await self._answers.get()
                choice = run.kind.answers[run.asked - 1]
                path = f"/pipelines/{run.id}/questions/{quote(run.question)}/answer"
                status, plain = await caller.post(path, {"choice": choice})
                if status != 200:
                    self.checked.problems.append(f"an answer to {run.id} was answered {status}: {plain}")

        answering = asyncio.create_task(self._with_callers(answer))
        ending = asyncio.gather(*following)
        await asyncio.wait([answering, ending], return_when=asyncio.FIRST_COMPLETED)
        if answering.done():
            await answering  # it never ends by itself
        answering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await answering
        await ending

    async def _with_callers(self, work: Callable[[Caller], Awaitable[None]]) -> None:
        callers = [Caller(self._port, self._token) for _ in range(CALLERS)]
        try:
            await asyncio.gather(*(work(caller) for caller in callers))
        finally:
            for caller in callers:
                caller.close()

    def _saw_question(self, watcher: Watcher) -> None:
        run = watcher.run
        if not watcher.is_waiting:
            watcher.is_waiting = True
            self._waiting += 1
            if self._waiting == self._clients:
                self._all_wait.set()
        if watcher is run.watchers[0]:
            run.question = json.loads(watcher.had[-1].data)["question_id"]
            run.asked += 1
            if run.asked > 1:
                self._answers.put_nowait(run)

    async def _connect(self, run_id: str, last_id: str, on_message: Callable[..., None]) -> Connection:
        last = f"Last-Event-ID: {last_id}\r\n" if last_id else ""
        request = (
            f"GET /pipelines/{run_id}/events HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
            f"Authorization: Bearer {self._token}\r\nAccept: text/event-stream\r\n{last}\r\n"
        ).encode()
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: Connection(request, on_message), "127.0.0.1", self._port)
        return connection


async def sampled(pid: int, samples: list[Sample]) -> None:
    """Look at the server again and again."""
    while True:
        samples.append(Sample.of(pid))
        await asyncio.sleep(SAMPLE_SECONDS)


async def settled(pid: int, files: int) -> Sample:
    """The state of the server once it has noticed that all clients have gone."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(SETTLE_SECONDS):
            while Sample.of(pid).files > files:  # noqa: ASYNC110 - another process has no event of ours
                await asyncio.sleep(SAMPLE_SECONDS)
    return Sample.of(pid)


async def idle_after_one(pid: int, wave: Wave) -> Sample:
    """The state of the server after one run: it has its engine and its threads, which are made once."""
    before = Sample.of(pid)
    await wave.go()
    assert not wave.checked.wrong, wave.checked
    return await settled(pid, before.files + ENGINE_FILES)


async def measure(server: subprocess.Popen[str], url: str, root: Path, token: str) -> dict[str, Any]:
    """All waves, and what they showed."""
    runs, clients, waves = map(int, sys.argv[1:4])
    port = urlsplit(url).port or 0
    idle = await idle_after_one(server.pid, Wave(port, token, root, 1, 1, -1))
    samples: list[Sample] = []
    after: list[Sample] = []
    done: list[Wave] = []
    sampling = asyncio.create_task(sampled(server.pid, samples))
    for number in range(waves):
        wave = Wave(port, token, root, runs, clients, number)
        cpu, own = Sample.of(server.pid).cpu, time.process_time()
        await wave.go()
        wave.figures["cpu"] = Sample.of(server.pid).cpu - cpu
        wave.figures["client_cpu"] = time.process_time() - own
        after.append(await settled(server.pid, idle.files))
        wave.figures |= counted(wave.watchers)
        wave.runs = []  # what its clients had is not needed any more
        done.append(wave)
        sys.stderr.write(f"wave {number}: {wave.figures} {wave.checked.problems[:3]} {after[-1]}\n")
    sampling.cancel()
    return report(done, idle, samples, after)


def counted(watchers: Iterable[Watcher]) -> dict[str, float]:
    """Counts of the connections that clients made, and of those that were cut off."""
    found = list(watchers)
    return {
        "connections": sum(watcher.connections for watcher in found),
        "gaps": sum(watcher.gaps for watcher in found),
    }


def report(waves: list[Wave], idle: Sample, samples: list[Sample], after: list[Sample]) -> dict[str, Any]:
    """The figures of all waves; times and rates are those of the waves behind the first."""
    checks = [wave.checked for wave in waves]
    warm = waves[1:] or waves
    latencies = [value for wave in warm for value in wave.checked.latencies]
    events = sum(wave.checked.events for wave in warm)

    def total(name: str) -> float:
        return sum(wave.figures.get(name, 0.0) for wave in warm)

    return {
        "events": sum(check.events for check in checks),
        "missing": sum(check.missing for check in checks),
        "repeated": sum(check.repeated for check in checks),
        "different": sum(check.different for check in checks),
        "wrong": sum(check.wrong for check in checks),
        "problems": [problem for check in checks for problem in check.problems][:5],
        "connections": sum(wave.figures["connections"] for wave in waves),
        "gaps": sum(wave.figures["gaps"] for wave in waves),
        "seconds": [round(wave.figures.get("whole", 0.0), 2) for wave in waves],
        "submitted_per_second": total("runs") / max(total("submitting"), 1e-9),
        "events_per_second": events / max(total("whole"), 1e-9),
        "cpu_per_event": total("cpu") / max(events, 1),
        "client_cpu": total("client_cpu") / max(total("whole"), 1e-9),
        "p50": percentile(latencies, 0.50),
        "p99": percentile(latencies, 0.99),
        "peak_rss": max(sample.rss for sample in samples),
        "peak_files": max(sample.files for sample in samples),
        "peak_threads": max(sample.threads for sample in samples),
        "pool_threads": POOL_THREADS,
        "rss": [idle.rss, *(sample.rss for sample in after)],
        "files": [idle.files, *(sample.files for sample in after)],
        "threads": [idle.threads, *(sample.threads for sample in after)],
    }


def main() -> None:
    """Start the server, measure, stop it."""
    runs, clients = int(sys.argv[1]), int(sys.argv[2])
    if clients < runs:
        raise SystemExit("every run needs a client: nobody else sees that it waits")
    if not Path("/proc/self/status").exists():
        raise SystemExit("this system does not say what a process has open")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard != resource.RLIM_INFINITY and hard < 6 * runs + 2 * clients + 100:
        raise SystemExit(f"this machine lets a process open {hard} files, too few for {runs} runs")
    token, root = secrets.token_urlsafe(32), Path(tempfile.mkdtemp()) / "runs"
    command = [sys.executable, str(SERVER), str(root), token, str(runs), str(2 * clients)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ}) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().strip()
            if not url:
                raise SystemExit("the server did not start")
            print(json.dumps(asyncio.run(measure(server, url, root, token))))
        finally:
            server.terminate()


if __name__ == "__main__":
    main()
