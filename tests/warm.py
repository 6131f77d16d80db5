"""Starts Python processes from a parent that has made their imports already: half a second of start-up less each.

`Popen` and `run` are those of `subprocess`, for commands of this interpreter. A parent (``warm_parent.py``) forks; the
process that comes out is a child of this one, with its own directory, environment, streams and ``__main__``.

What the parent cannot give is started as ever: other programs, options of the interpreter, preloaded libraries,
measured coverage, systems other than Linux. A test whose subject is start-up, imports or what a process inherits uses
`subprocess` itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

PARENT = Path(__file__).with_name("warm_parent.py")
READ_AT_START = ("PYTHON", "LANG", "LC_", "TZ", "FORCE_COLOR", "PY_COLORS", "TERMINAL_WIDTH")
"""Variables that an interpreter or an import reads once: each set of their values has a parent of its own."""
SET_LATER = {"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}
ORDINARY = ("LD_", "COVERAGE", "MALLOC_")
"""Variables that must be there when a process begins."""
BECOME_SUBREAPER, IS_SUBREAPER = 36, 37
_EXECUTED = [
    "args",
    "executable",
    "preexec_fn",
    "close_fds",
    "pass_fds",
    "cwd",
    "env",
    "startupinfo",
    "creationflags",
    "shell",
    "p2cread",
    "p2cwrite",
    "c2pread",
    "c2pwrite",
    "errread",
    "errwrite",
    "restore_signals",
    "gid",
    "gids",
    "uid",
    "umask",
    "start_new_session",
    "process_group",
]
_lock = threading.Lock()
_parents: dict[tuple[Any, ...], Parent] = {}


class Parent:
    """A process that has imported what its children need, has run nothing, and forks on request."""

    def __init__(self, kind: str, environment: Mapping[str, str]) -> None:
        self._channel, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, str(PARENT), kind, str(theirs.fileno())]
            none = subprocess.DEVNULL
            self._process = subprocess.Popen(
                command, cwd="/", env=environment, stdin=none, stdout=none, pass_fds=[theirs.fileno()]
            )

    def fork(self, request: dict[str, Any], streams: Sequence[int]) -> int:
        """The process id of a new child of this process."""
        content = json.dumps(request).encode()
        with adopting():
            socket.send_fds(self._channel, [struct.pack("!Q", len(content))], streams)
            self._channel.sendall(content)
            answer = self._channel.recv(8, socket.MSG_WAITALL)
        if len(answer) < 8:
            message = f"the parent of warm processes ended with {self._process.wait()}"
            raise RuntimeError(message)
        (pid,) = struct.unpack("!Q", answer)
        if not pid:
            message = f"no process came of {request['arguments'][:3]}"
            raise RuntimeError(message)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # raises if it is not a child of this process
        return pid

    def close(self) -> None:
        self._channel.shutdown(socket.SHUT_RDWR)  # a process that a test forked may have the socket open, too
        self._channel.close()
        self._process.wait()


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Orphans among the descendants of this process become its children meanwhile; a moment only.

    So a child of the parent becomes one of this process when the process that forked it has ended: it is waited for and
    signalled by `subprocess` alone.
    """
    library = ctypes.CDLL(None)
    before = ctypes.c_int()
    library.prctl(IS_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    library.prctl(BECOME_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        library.prctl(BECOME_SUBREAPER, before.value, 0, 0, 0)


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen` for a command that begins with `sys.executable`, then ``-m``, ``-c`` or a script."""

    kind = "command"

    def _execute_child(self, *given: Any) -> None:
        named = dict(zip(_EXECUTED, given, strict=True))
        arguments = [os.fspath(each) for each in named["args"]] if not named["shell"] else []
        environment = dict(os.environ if named["env"] is None else named["env"])
        place = Path.cwd() / (named["cwd"] or "")
        if not is_forkable(named, arguments, environment) or not place.is_dir():
            super()._execute_child(*given)  # pyright: ignore[reportAttributeAccessIssue]
            return
        request = {
            "arguments": arguments,
            "directory": str(place),
            "environment": environment,
            "is_leader": named["start_new_session"],
            "group": named["process_group"],
        }
        streams = [named["p2cread"], named["c2pwrite"], named["errwrite"]]
        streams = [number if given == -1 else given for number, given in enumerate(streams)]
        with _lock:
            self.pid = parent_of(self.kind, environment).fork(request, streams)
        self._child_created = True
        self._close_pipe_fds(*(named[name] for name in _EXECUTED[10:16]))


class Kernel(Popen):
    """A process that has imported ipykernel, too."""

    kind = "kernel"


class Server(Popen):
    """A process that has imported the server, too."""

    kind = "server"


def run(
    arguments: Sequence[Any],
    *,
    input: Any = None,  # noqa: A002 - as subprocess names it
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    start: type[Popen] = Popen,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` by `Popen`, or by another class of this module."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(arguments, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    ended = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        ended.check_returncode()
    return ended


def is_forkable(named: dict[str, Any], arguments: list[str], environment: Mapping[str, str]) -> bool:
    """True if a parent can start this command as `subprocess` would."""
    is_plain = (named["gid"], named["gids"], named["uid"], named["preexec_fn"]) == (None,) * 4
    return (
        sys.platform == "linux"
        and is_plain
        and named["close_fds"]
        and named["restore_signals"]
        and not named["pass_fds"]
        and named["umask"] < 0
        and named["executable"] is None
        and len(arguments) > 1
        and all(isinstance(each, str) for each in arguments)
        and arguments[0] == sys.executable
        and (not arguments[1].startswith("-") or (arguments[1] in {"-c", "-m"} and len(arguments) > 2))
        and not any(name.startswith(ORDINARY) for name in environment)
    )


def parent_of(kind: str, environment: Mapping[str, str]) -> Parent:
    """The parent for processes of this kind and environment; started when it is not there."""
    read = {
        name: value for name, value in environment.items() if name.startswith(READ_AT_START) and name not in SET_LATER
    }
    key = (kind, os.getpid(), *sorted(read.items()))
    if key not in _parents:
        _parents[key] = Parent(kind, read)  # it has no other variables: what a child has is its own
    return _parents[key]


def pytest_unconfigure() -> None:
    """End the parents; they end by themselves when this process dies."""
    while _parents:
        _parents.popitem()[1].close()
