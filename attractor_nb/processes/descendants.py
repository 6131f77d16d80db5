"""Ending what a command started: its group, what left the group, and all of it when we are killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable

MARK_NAME = "ATTRACTOR_COMMAND"
"""Environment variable by whose value a command's descendants are found."""
_SHELL = "/bin/sh"


class Watchdog:
    """A shell that ends a process group when we are gone: our end of its input closes with us."""

    _SCRIPT = 'read -r word; [ "$word" = dismissed ] || kill -s KILL -- "-$1" 2>/dev/null; :'

    def __init__(self, process: asyncio.subprocess.Process, leash: int) -> None:
        self._process = process
        self._leash = leash

    @classmethod
    async def start(cls, group: int) -> Watchdog:
        """Watch a group."""
        reader, leash = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                _SHELL,
                "-c",
                cls._SCRIPT,
                "watchdog",
                str(group),
                stdin=reader,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            os.close(leash)
            raise
        finally:
            os.close(reader)
        return cls(process, leash)

    def dismiss(self) -> None:
        """Let it go: the group has ended."""
        with contextlib.suppress(OSError):
            os.write(self._leash, b"dismissed\n")
        os.close(self._leash)

    async def wait(self) -> None:
        """Wait for its end, which follows its dismissal."""
        await self._process.wait()


def send_signal(group: int, number: signal.Signals, strays: Iterable[int] = ()) -> None:
    """Signal a group and single processes; those that are gone do not matter."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
    for process in strays:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def is_group_alive(group: int) -> bool:
    """Whether anything of a process group is left."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def marked_processes(mark: str) -> list[int]:
    """Processes that inherited a command's mark, wherever they went; none where there is no /proc."""
    try:
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return []
    return [number for number in numbers if is_marked(number, mark)]


def is_marked(process: int, mark: str) -> bool:
    """Whether a process is alive and inherited a command's mark."""
    try:
        return f"{MARK_NAME}={mark}".encode() in Path(f"/proc/{process}/environ").read_bytes()
    except OSError:
        return False
