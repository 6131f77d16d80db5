"""The processes of this machine: from /proc, and where there is none, such as on macOS, from psutil."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, Protocol

from msgspec import Struct

from attractor_nb.extras import has_package

PROC: Final = Path("/proc")
_DEAD_STATES = "ZX"
_TICKS_PER_SECOND = 100


class Facts(Struct, frozen=True):
    """Facts about a process."""

    is_dead: bool
    parent: int
    group: int
    session: int
    started_ticks: int


class ProcessTable(Protocol):
    """Reads the processes of this machine."""

    def numbers(self) -> list[int]:
        """All processes, the newest first; none where they cannot be read."""
        ...

    def facts_of(self, process: int) -> Facts | None:
        """Facts about a process; None when it is gone."""
        ...

    def has_variable(self, process: int, name: str, value: str) -> bool:
        """True if a process was started with this environment variable; False where that cannot be read."""
        ...


def process_table(proc: Path = PROC) -> ProcessTable:
    """The table of this system.

    Args:
        proc: Where the kernel shows its processes as files, if it does.
    """
    return ProcTable(proc) if (proc / "self" / "stat").exists() or not has_package("psutil") else PsutilTable()


class ProcTable:
    """The processes as /proc shows them."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc

    def numbers(self) -> list[int]:
        """All processes, the newest first; none where there is no /proc."""
        try:
            return sorted((int(entry.name) for entry in self._proc.iterdir() if entry.name.isdigit()), reverse=True)
        except OSError:
            return []

    def facts_of(self, process: int) -> Facts | None:
        """Facts about a process; None when it is gone."""
        try:
            facts = (self._proc / f"{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            return None
        return Facts(facts[0] in _DEAD_STATES, int(facts[1]), int(facts[2]), int(facts[3]), int(facts[19]))

    def has_variable(self, process: int, name: str, value: str) -> bool:
        """True if a process was started with this environment variable."""
        try:
            return f"{name}={value}".encode() in (self._proc / f"{process}/environ").read_bytes()
        except OSError:
            return False


class PsutilTable:
    """The processes as psutil reads them. macOS shows the environment of no program of its own, such as ``sleep``."""

    def __init__(self) -> None:
        import psutil  # noqa: PLC0415 - installed where there is no /proc

        self._psutil: Any = psutil

    def numbers(self) -> list[int]:
        """All processes, those with the highest numbers first."""
        return sorted(self._psutil.pids(), reverse=True)

    def facts_of(self, process: int) -> Facts | None:
        """Facts about a process; None when it is gone."""
        try:
            found = self._psutil.Process(process)
            with found.oneshot():
                is_dead = found.status() in (self._psutil.STATUS_ZOMBIE, self._psutil.STATUS_DEAD)
                started_ticks = int(found.create_time() * _TICKS_PER_SECOND)
                return Facts(is_dead, found.ppid(), os.getpgid(process), os.getsid(process), started_ticks)
        except (OSError, self._psutil.Error):
            return None

    def has_variable(self, process: int, name: str, value: str) -> bool:
        """True if a process was started with this environment variable."""
        try:
            return self._psutil.Process(process).environ().get(name) == value
        except (OSError, self._psutil.Error):
            return False
