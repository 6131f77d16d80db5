"""Comparison of contenders: they take turns, in rounds, and each round gives a ratio.

A machine that others use gets slower and faster while it measures. What is measured a moment apart
shares its mood, so the ratio of a round says more than two averages; the median over rounds is what
counts, and the ratio of the best times is shown beside it.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = ROOT / ".bench-envs"
WORKERS = Path(__file__).parent / "workers"
WORKER_SECONDS = 900


@dataclass(frozen=True)
class Figures:
    """The figures of one contender, a value for each round."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def minimum(self) -> float:
        return min(self.values)


@dataclass(frozen=True)
class Ratio:
    """One contender against another."""

    median: float
    minimum: float

    @classmethod
    def of(cls, ours: Figures, theirs: Figures) -> Ratio:
        rounds = [mine / other for mine, other in zip(ours.values, theirs.values, strict=True)]
        return cls(statistics.median(rounds), ours.minimum / theirs.minimum)


class MissingPeer(Exception):
    """A peer that is not there, and why."""


def in_turns(contenders: Mapping[str, Callable[[int], float]], rounds: int, *, warm_ups: int = 1) -> dict[str, Figures]:
    """Let contenders take turns; each gets the number of the round and gives its figure.

    Rounds before the first are not counted: caches fill, modules load. Workers have processes of their
    own and warm up there.
    """
    values: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(warm_ups + rounds):
        for name, contender in contenders.items():
            gc.collect()
            figure = contender(number)
            if number >= warm_ups:
                values[name].append(figure)
    return {name: Figures(tuple(figures)) for name, figures in values.items()}


def cpu_seconds() -> float:
    """User and system time of this process and its ended children."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def cpu_of(work: Callable[[], object]) -> float:
    """CPU seconds that a piece of work takes, children included."""
    begin = cpu_seconds()
    work()
    return cpu_seconds() - begin


def precise_cpu_of(work: Callable[[], object]) -> float:
    """CPU seconds of this process alone, for short work: the finer of the two clocks."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def worker(name: str, *arguments: object, python: str = sys.executable) -> dict[str, float]:
    """Run a worker script in a process of its own; its last line is a JSON object of figures.

    Raises:
        MissingPeer: It did not get that far.
    """
    command = [python, str(WORKERS / f"{name}.py"), *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=WORKER_SECONDS, env=surroundings(), check=False
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise MissingPeer(f"{name} {arguments[0]} ended with {done.returncode}: {last[0]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def system_calls_of_a_step(contender: str) -> dict[str, int]:
    """Calls of the system, by name, that one more step makes: between chains of 140 and of 40 steps.

    How often the loop waits depends on how busy the machine is, and is not counted.

    Args:
        contender: As ``workers/chain.py`` names it.

    Raises:
        MissingPeer: ``strace`` is not here, or may not trace.
    """
    few, many = 40, 140
    worker("chain", contender, few, 1)  # compiles what is imported
    short, long = (_system_calls(contender, steps) for steps in (few, many))
    runs = 2  # the worker's first run is none of its figures, but it is traced too
    each = {name: round((long[name] - short.get(name, 0)) / (many - few) / runs) for name in long}
    return {name: calls for name, calls in each.items() if calls and name != "epoll_wait"}


def _system_calls(contender: str, steps: int) -> dict[str, int]:
    with tempfile.NamedTemporaryFile("r") as table:
        tracing = ["strace", "-f", "-qq", "-c", "-o", table.name]
        command = [*tracing, sys.executable, str(WORKERS / "chain.py"), contender, str(steps), "1"]
        try:
            subprocess.run(command, capture_output=True, timeout=WORKER_SECONDS, env=surroundings(), check=True)
        except (FileNotFoundError, subprocess.CalledProcessError) as error:
            raise MissingPeer(f"strace counts nothing here: {error}") from error
        rows = [line.split() for line in table]
    # % time, seconds, usecs/call, calls, perhaps errors, name
    return {row[-1]: int(row[3]) for row in rows if len(row) > 4 and row[3].isdigit() and row[-1] != "total"}


def surroundings() -> dict[str, str]:
    """The environment of a worker: bytecode is kept, as it is where packages are installed."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(ENVIRONMENTS / "bytecode"), **QUIET}


QUIET = {
    "DO_NOT_TRACK": "1",
    "BURR_TELEMETRY_ENABLED": "false",
    "HAMILTON_TELEMETRY_ENABLED": "false",
    "LANGSMITH_TRACING": "false",
}
"""Peers that would call home are told not to."""
