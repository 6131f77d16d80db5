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
_DEAD_STATES = "ZX"
_SHELL = "/bin/sh"


class Watchdog:
    """A shell that ends a command when we are gone: our end of its input closes with us.

    It kills the command's group, if it was told of it before, and what carries the command's mark.
    """

    _SCRIPT = """
        read -r group
        read -r word
        [ "$group" = dismissed ] || [ "$word" = dismissed ] && exit
        [ -n "$group" ] && kill -s KILL -- "-$group" 2>/dev/null
        for place in $(grep -alsF "$1" /proc/[0-9]*/environ); do
            process=${place#/proc/}
            kill -s KILL "${process%/environ}" 2>/dev/null
        done
    """

    def __init__(self, process: asyncio.subprocess.Process, leash: int) -> None:
        self._process = process
        self._leash = leash

    @classmethod
    async def start(cls, mark: str) -> Watchdog:
        """Start one for a command of this mark.

        Raises:
            OSError: There is no shell, or no room for a process.
        """
        reader, leash = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                _SHELL,
                "-c",
                cls._SCRIPT,
                "watchdog",
                f"{MARK_NAME}={mark}",
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

    def watch(self, group: int) -> None:
        """Tell it which group ends with us."""
        self._say(str(group))

    async def dismiss(self) -> None:
        """Let it go, and wait for its end: the group has ended, or was never there."""
        self._say("dismissed")
        os.close(self._leash)
        await self._process.wait()

    def _say(self, word: str) -> None:
        with contextlib.suppress(
            OSError
        ):  # somebody ended the watchdog; that is no reason to end the command
            os.write(self._leash, f"{word}\n".encode())


def send_signal(group: int, number: signal.Signals, strays: Iterable[int] = ()) -> None:
    """Signal a group and single processes; those that are gone do not matter."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
    for process in strays:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def is_group_alive(group: int) -> bool:
    """Whether anything of a process group still runs; what is dead but not reaped does not."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    processes = _process_numbers()
    return not processes or any(_runs_in_group(process, group) for process in processes)


def _runs_in_group(process: int, group: int) -> bool:
    try:
        facts = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return False
    state, group_number = facts[0], int(facts[2])
    return group_number == group and state not in _DEAD_STATES


def _process_numbers() -> list[int]:
    """All processes of this machine; none where there is no /proc."""
    try:
        return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except OSError:
        return []


def marked_processes(mark: str) -> list[int]:
    """Processes that inherited a command's mark, wherever they went; none where there is no /proc."""
    return [process for process in _process_numbers() if is_marked(process, mark)]


def is_marked(process: int, mark: str) -> bool:
    """Whether a process is alive and inherited a command's mark."""
    try:
        return f"{MARK_NAME}={mark}".encode() in Path(f"/proc/{process}/environ").read_bytes()
    except OSError:
        return False
