"""Comparison of the events that clients received with the log, and the cost for the server."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from load_watching import Watched, Watcher

TICKS = os.sysconf("SC_CLK_TCK")
POOL_THREADS = 40 + min(32, (os.cpu_count() or 1) + 4) + 8 + 4
"""Threads that a server may have: starlette's pool, the loop's, those of plain functions; itself, its engine."""
KIB = 1024


def logged(place: Path) -> list[tuple[str, dict[str, Any]]]:
    """Id and values of every event in the log of a run, with that of its restart."""
    found: list[tuple[str, dict[str, Any]]] = []
    part, directory = 0, place
    while (log := directory / "events.jsonl").exists():
        for line in log.read_bytes().rstrip(b"\0").splitlines():
            plain = json.loads(line)
            del plain["crc"]
            found.append((f"{part}.{plain['sequence']}", plain))
        part += 1
        directory = place / f"restart-{part}"
    return found


@dataclass
class Checked:
    """The result of comparing.

    Attributes:
        events: How many events clients had.
        missing: How many they should have had besides.
        repeated: How many they had twice.
        different: How many were not what the log says, or out of order.
        latencies: Seconds from the log to the client, of those that came on a connection that was open.
        problems: What else went wrong.
    """

    events: int = 0
    missing: int = 0
    repeated: int = 0
    different: int = 0
    latencies: list[float] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        """The number of deviations."""
        return self.missing + self.repeated + self.different + len(self.problems)

    def take(self, run: Watched, root: Path) -> None:
        """Compare what the clients of a run had with its log."""
        expected = logged(root / run.id)
        if not expected or expected[-1][1]["type"] != "PipelineCompleted":
            self.problems.append(f"run {run.id} ({run.kind.name}) did not complete")
        for watcher in run.watchers:
            self._compare(watcher, expected)

    def _compare(self, watcher: Watcher, expected: list[tuple[str, dict[str, Any]]]) -> None:
        run = watcher.run
        had = [one.id for one in watcher.had]
        ids = [event_id for event_id, _ in expected]
        self.events += len(had)
        self.repeated += len(had) - len(set(had))
        self.missing += len(set(ids) - set(had))
        if had == ids:
            for one, (_, plain) in zip(watcher.had, expected, strict=True):
                self.different += json.loads(one.data) != plain
                if plain["time"] > one.opened:
                    self.latencies.append(one.at - plain["time"])
        else:
            self.different += 1
        if watcher.status not in {"completed", ""}:
            self.problems.append(f"a client of {run.id} was told {watcher.status}")
        for what in (*watcher.faults, *map(str, watcher.refusals)):
            self.problems.append(f"a client of {run.id} ({run.kind.name}) was refused: {what}")


@dataclass(frozen=True)
class Sample:
    """Resources of a process at a moment.

    Attributes:
        rss: Resident bytes.
        threads: Threads.
        files: Open file descriptors.
        cpu: Processor seconds since it began.
    """

    rss: int
    threads: int
    files: int
    cpu: float

    @classmethod
    def of(cls, pid: int) -> Sample:
        """Of a process of this machine."""
        place = Path("/proc") / str(pid)
        facts = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
        times = (place / "stat").read_text().rpartition(")")[2].split()
        cpu = (int(times[11]) + int(times[12])) / TICKS
        files = sum(1 for _ in (place / "fd").iterdir())
        return cls(int(facts["VmRSS"].split()[0]) * KIB, int(facts["Threads"]), files, cpu)


def percentile(values: list[float], share: float) -> float:
    """The value below which that share lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def since(begin: float) -> float:
    """Seconds since a moment."""
    return time.perf_counter() - begin
