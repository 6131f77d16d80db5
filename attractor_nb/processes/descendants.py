"""Ends the processes of a command: its group, those that left it, and all of them if we are killed.

Not asyncio's own: there a task that connects pipes is cancelled when a second Ctrl-C ends the loop, and
a caller that waits for the end of that program then waits forever.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from concurrent.futures import Future
from io import FileIO
from typing import TYPE_CHECKING, Any

from attractor_nb.model.vocabulary import environment_variables
from attractor_nb.platforms import SIGKILL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from attractor_nb.processes.process_table import ProcessTable

MARK_NAME = environment_variables.COMMAND_MARK
"""Environment variable by whose value a command's descendants are found."""
MAX_KILL_ROUNDS = 50
"""Most searches for processes that a command starts while it is being killed."""
_SHELL = "/bin/sh"


class ChildProcess:
    """A child process. A separate thread waits for its end, so that no interrupt can lose it."""

    def __init__(self, arguments: Sequence[str], **options: Any) -> None:
        """Start it.

        Args:
            arguments: The program and its arguments.
            **options: As of ``subprocess.Popen``.
        """
        self._process = subprocess.Popen(arguments, bufsize=0, **options)  # noqa: S603 - starting programs is its purpose
        self._end: Future[int] = Future()
        self._end.set_running_or_notify_cancel()  # a caller that stops waiting does not cancel the end
        threading.Thread(target=self._reap, name="attractor-child", daemon=True).start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def wait(self) -> int:
        """Wait for its end; its exit code, negative: the signal that ended it."""
        return await asyncio.wrap_future(self._end)

    def _reap(self) -> None:
        self._end.set_result(self._process.wait())


class Watchdog:
    """A shell that ends a command when we are gone: our end of its input closes with us.

    It kills the command's group, if it was notified of it before, what descends from it, and what carries the
    command's mark. Without /proc it knows neither sessions nor marks.

    Attributes:
        started_ticks: When it started, by the table: whatever the command starts is not older; 0 when unknown.
    """

    _SCRIPT = """
        read -r group
        read -r word
        [ "$group" = dismissed ] || [ "$word" = dismissed ] && exit
        set -f
        mark=$1 proc=$2
        family=" $group "
        look() {  # who has a parent or a session of the family
            is_larger=
            if ! [ -r "$proc/self/stat" ]; then  # macOS
                set -- $(ps -A -o pid= -o ppid=)
                while [ $# -gt 1 ]; do
                    case $family in
                        *" $1 "*) ;;
                        *" $2 "*) family="$family$1 " is_larger=yes ;;
                    esac
                    shift 2
                done
            fi
            for number in $(ls "$proc"); do
                case $number in *[!0-9]*) continue ;; esac
                read -r line 2>/dev/null <"$proc/$number/stat" || continue
                set -- ${line##*) }
                case $family in
                    *" $number "*) ;;
                    *" $2 "* | *" $4 "*) family="$family$number " is_larger=yes ;;
                esac
            done
            [ "$is_larger" ]
        }
        [ -n "$group" ] && while look; do :; done
        for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
            [ -n "$group" ] && kill -s KILL -- "-$group" 2>/dev/null
            places=$(cd "$proc" && set +f && grep -alsF "$mark" [0-9]*/environ)
            [ "$round" = 1 ] || [ -n "$places" ] || break
            for place in $family $places; do
                kill -s KILL "${place%/environ}" 2>/dev/null
            done
            family=
        done
    """

    def __init__(self, process: ChildProcess, lifeline: FileIO, started_ticks: int) -> None:
        self._process = process
        self._lifeline = lifeline
        self.started_ticks = started_ticks

    @classmethod
    def start(cls, mark: str, stack: contextlib.ExitStack, table: ProcessTable, proc: Path) -> Watchdog:
        """Start one for a command of this mark.

        Args:
            mark: The command's mark.
            table: The processes of this machine.
            proc: Where the kernel shows them as files, if it does.
            stack: Lets go of it at its end, whatever else was interrupted before that.
        """
        reader, writer = os.pipe()
        lifeline = stack.enter_context(FileIO(writer, "w"))
        try:
            process = ChildProcess(
                [_SHELL, "-c", cls._SCRIPT, "watchdog", f"{MARK_NAME}={mark}", str(proc)],
                stdin=reader,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        finally:
            os.close(reader)
        facts = table.facts_of(process.pid)
        return cls(process, lifeline, facts.started_ticks if facts else 0)

    def watch(self, group: int) -> None:
        """Tell it which group ends with us."""
        self._say(str(group))

    async def dismiss(self) -> None:
        """Let it go, and wait for its end: the group has ended, or was never there."""
        self._say("dismissed")
        self._lifeline.close()
        await self._process.wait()

    async def end_all(self) -> None:
        """Have it end what carries the mark: we were stopped before we knew the group."""
        self._lifeline.close()
        await self._process.wait()

    def _say(self, word: str) -> None:
        with contextlib.suppress(OSError):  # the watchdog was ended; that is no reason to end the command
            self._lifeline.write(f"{word}\n".encode())


class Descendants:
    """The live descendants of a command: by its group, its session, its parents, or its mark.

    A process that was seen once is known from then on, also when its parent has ended. A process that left the
    session, gave up its environment and was adopted by init, all before the first scan, is not found.
    """

    def __init__(self, group: int, mark: str, since_ticks: int, table: ProcessTable) -> None:
        """Take the command's process group, its mark, a time at which nothing of it was there yet, and the table."""
        self._group = group
        self._mark = mark
        self._table = table
        self._since_ticks = since_ticks
        self._known: dict[int, int] = {}

    def is_alive(self) -> bool:
        """True if anything of it still runs; what is dead but not reaped does not."""
        if not self._table.numbers():
            return self._is_group_there()
        return bool(self._alive())

    def end_gently(self) -> None:
        """Ask all of it to end."""
        self._signal(signal.SIGTERM, self._alive())

    def kill(self) -> None:
        """Kill all processes of the command, including those that start meanwhile."""
        killed: set[int] = set()
        for _ in range(MAX_KILL_ROUNDS):
            found = self._alive(killed)
            self._signal(SIGKILL, found)
            if not found:
                return
            killed |= found

    def _signal(self, number: signal.Signals, processes: Iterable[int]) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._group, number)
        for process in processes:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)

    def _is_group_there(self) -> bool:
        try:
            os.killpg(self._group, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _alive(self, killed: AbstractSet[int] = frozenset()) -> set[int]:
        """Those of it that are alive and were not killed.

        One of them may start another and end while they are looked at: none is alive only when, after all
        were looked at, there is no process that was not there before.
        """
        seen: set[int] = set()
        while added := [number for number in self._table.numbers() if number not in seen]:
            if found := self._among(added) - killed:
                return found
            seen.update(added)
        return set()

    def _among(self, processes: Iterable[int]) -> set[int]:
        """Those of it that are alive among these processes."""
        facts = {number: found for number in processes if (found := self._table.facts_of(number))}
        facts = {number: found for number, found in facts.items() if found.started_ticks >= self._since_ticks}
        known = {
            number
            for number, found in facts.items()
            if self._group in (found.group, found.session)
            or self._known.get(number) == found.started_ticks
            or self._table.has_variable(number, MARK_NAME, self._mark)
        }
        added = known
        while added:
            added = {number for number, found in facts.items() if found.parent in added} - known
            known |= added
        self._known.update({number: facts[number].started_ticks for number in known})
        return {number for number in known if not facts[number].is_dead}
