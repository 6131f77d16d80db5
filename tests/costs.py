"""Measures the processor time of each test and of each fixture, child processes included.

Usage: pytest --costs FILE ... writes one line of JSON per test and per fixture; ``python tests/costs.py FILE`` prints
the table: folders, fixtures and the most expensive tests.

A test's time contains its function-scoped fixtures; a fixture of a wider scope has a line of its own. A process that
has detached itself from the test's tree is not counted. Linux only: the tree is read from /proc.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

TICKS = os.sysconf("SC_CLK_TCK")


def tree_seconds() -> float:
    """CPU seconds of this process, of the children it has reaped and of its live descendants."""
    own = os.times()
    return (
        own.user
        + own.system
        + own.children_user
        + own.children_system
        + sum(map(_descendant_seconds, _children("self")))
    )


def _children(pid: int | str) -> list[int]:
    found: list[int] = []
    try:
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            found += map(int, children.read_text().split())
    except OSError:
        return found
    return found


def _descendant_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS + sum(map(_descendant_seconds, _children(pid)))


class Costs:
    """Writes the cost of each test and of each fixture of a wider scope."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fixtures = 0.0
        """CPU seconds of shared fixtures within the current test: they are not the test's."""

    def _write(self, kind: str, name: str, cpu: float, wall: float) -> None:
        line = {"kind": kind, "name": name, "cpu": round(cpu, 4), "wall": round(wall, 4)}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._fixtures = 0.0
        cpu, wall = tree_seconds(), time.perf_counter()
        try:
            return (yield)
        finally:
            spent = tree_seconds() - cpu
            self._write("test", item.nodeid, spent - self._fixtures, time.perf_counter() - wall)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        if fixturedef.scope == "function":
            return (yield)
        cpu, wall, before = tree_seconds(), time.perf_counter(), self._fixtures
        try:
            return (yield)
        finally:
            spent = tree_seconds() - cpu
            inner = self._fixtures - before
            self._fixtures = before + spent
            name = f"{fixturedef.baseid or 'tests'}::{fixturedef.argname}"
            self._write("fixture", name, spent - inner, time.perf_counter() - wall)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--costs", metavar="FILE", help="append the CPU seconds of each test and fixture to FILE")


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--costs")
    if path and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        config.pluginmanager.register(Costs(Path(path)))


def table(path: Path, rows: int) -> str:
    """The costs as text: CPU seconds by folder, by fixture and by test."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    parts: dict[str, dict[str, list[float]]] = {
        "folder": defaultdict(list),
        "fixture": defaultdict(list),
        "test": defaultdict(list),
    }
    for line in lines:
        name = line["name"]
        parts[line["kind"]][name.partition("[")[0] if line["kind"] == "test" else name].append(line["cpu"])
        parts["folder"]["/".join(name.partition("::")[0].split("/")[:2])].append(line["cpu"])
    text = [f"{sum(line['cpu'] for line in lines):9.1f} CPU seconds in all"]
    for kind, costs in parts.items():
        text.append(f"\n{'CPU s':>9} {'times':>6}  {kind}")
        dearest = sorted(costs.items(), key=lambda each: -sum(each[1]))
        text += [f"{sum(each):9.1f} {len(each):6}  {name}" for name, each in dearest[:rows]]
    return "\n".join(text)


if __name__ == "__main__":
    print(table(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40))
