"""``docs/benchmarks.md``: what was measured, on what, and how it stands to the goals."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from environments import NOT_ON_A_REGISTRY, PACKAGES, versions
from goals import Goal, Row
from measuring import MissingPeer

OWN_PACKAGES = ("attractor_nb", "networkx", "ipython", "pydantic", "pydantic-ai-slim")
HEAD = """\
# Benchmarks

`{command}` wrote this file. Each figure is a ratio of contenders that took turns in one run, so that a
busy machine slows both; the median over rounds counts, the ratio of the best times stands beside it.
CPU is user and system time, children included. Building or compiling a graph is not counted, for any library.
Goals were fixed before the code was written. Notes below explain each measurement.
"""


def report(goals: Sequence[tuple[Goal, Sequence[Row]]], command: str) -> str:
    """The page."""
    parts = [HEAD.format(command=command), _table(goals)]
    remarks = [f"- **{goal.key}** {goal.remark}" for goal, _ in goals if goal.remark]
    if remarks:
        parts.append("## Remarks\n\n" + "\n".join(remarks) + "\n")
    parts.append("## Machine and versions\n\n" + "\n".join(f"- {line}" for line in _surroundings()) + "\n")
    return "\n".join(parts)


def _table(goals: Sequence[tuple[Goal, Sequence[Row]]]) -> str:
    lines = ["| goal | subject | at most | median | best | ours / theirs | |", "|---|---|---|---|---|---|---|"]
    for goal, rows in goals:
        for position, row in enumerate(rows):
            key, title = (f"**{goal.key}**", f"{goal.title}: ") if position == 0 else ("", "")
            lines.append(f"| {key} | {title}{row.subject} | {_number(row.limit, row)} | {_figures(row)} |")
    return "\n".join(lines) + "\n"


def merged(page: str, goals: Sequence[tuple[Goal, Sequence[Row]]]) -> str:
    """A page with the rows and remarks of these goals in place of its own; all else stays as it is."""
    lines = page.splitlines()
    for goal, rows in goals:
        lines = _replaced(lines, f"| **{goal.key}** |", "|  |", "| **", _table([(goal, rows)]).splitlines()[2:])
        if goal.remark:
            lines = _replaced(lines, f"- **{goal.key}** ", "  ", "- **", [f"- **{goal.key}** {goal.remark}"])
    return "\n".join(lines) + "\n"


def _replaced(lines: list[str], begin: str, more: str, others: str, new: list[str]) -> list[str]:
    """Put lines where those are that begin so, with those that follow them; else behind the others' last."""
    at = next((index for index, line in enumerate(lines) if line.startswith(begin)), -1)
    if at < 0:
        at = end = _end_of_block(lines, others, more)
    else:
        end = at + 1
        while end < len(lines) and lines[end].startswith(more):
            end += 1
    return [*lines[:at], *new, *lines[end:]]


def _end_of_block(lines: list[str], begin: str, more: str) -> int:
    at = next(index for index, line in enumerate(lines) if line.startswith(begin))
    while at < len(lines) and lines[at].startswith((begin, more)):
        at += 1
    return at


def _figures(row: Row) -> str:
    if row.missing:
        return f"| | | {row.missing}"
    best = "" if row.best is None else _number(row.best, row)
    return f"{_number(row.figure, row)} | {best} | {row.detail} | {'met' if row.is_met else '**not met**'}"


def _number(value: float, row: Row) -> str:
    return f"{value:.3g} {row.unit}".strip() if value < 1000 else f"{value:.0f} {row.unit}".strip()


def _surroundings() -> list[str]:
    lines = [
        datetime.now(UTC).strftime("%Y-%m-%d"),
        f"{platform.system()} {platform.release()}, {_processor()}, {os.cpu_count()} processors",
        f"Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in OWN_PACKAGES)
        + f", {_dot_version()}",
    ]
    for peer in PACKAGES:
        try:
            lines.append(versions(peer))
        except (MissingPeer, subprocess.CalledProcessError) as error:
            lines.append(f"{peer}: {error}")
    lines += [f"{peer}: missing ({why})" for peer, why in NOT_ON_A_REGISTRY.items()]
    return lines


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _dot_version() -> str:
    try:
        done = subprocess.run(["dot", "-V"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "no dot"
    return done.stderr.strip()


def say(text: str) -> None:
    """Tell whoever waits."""
    sys.stderr.write(text + "\n")
