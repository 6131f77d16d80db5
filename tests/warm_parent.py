"""The parent of warm processes: imports, then forks for each request that comes by a socket (``warm.py``).

Usage: ``warm_parent.py KIND DESCRIPTOR``. It runs nothing of what it has imported, has one thread, and ends when the
other end of the socket is closed. A child leaves `serve` and goes on at the end of this module, so that the interpreter
itself ends it: exit codes, tracebacks, `atexit` and a death by Ctrl-C are those of any process.
"""

import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import signal
import socket
import struct
import sys
import types
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

LEFT_OUT = {
    # No command imports these, and what is in them is looked for in `sys.modules`.
    "command": {"notebook", "testing", "pytest_plugin", "__main__", "server", "backends"},
    "server": {"notebook", "testing", "pytest_plugin", "__main__", "cli", "backends"},
    "kernel": {"testing", "pytest_plugin", "__main__", "server", "cli", "backends"},
}
MORE = {
    "command": ["rich.console", "rich.live", "rich.markup", "rich.table", "rich.text"],
    "server": [],
    "kernel": ["ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.zmqshell", "ipywidgets", "anywidget"],
}


def make_imports(kind: str) -> None:
    """Import the parts of the package that belong to a kind, and what they use."""
    package = importlib.import_module("attractor_nb")
    for name in MORE[kind]:
        importlib.import_module(name)
    tops = [module.name for module in pkgutil.iter_modules(package.__path__) if module.name not in LEFT_OUT[kind]]
    for top in tops:
        part = importlib.import_module(f"attractor_nb.{top}")
        for module in pkgutil.walk_packages(getattr(part, "__path__", []), f"{part.__name__}."):
            importlib.import_module(module.name)


def serve(channel: socket.socket) -> list[str]:
    """Fork for each request; return its command line in the child."""
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a process with threads cannot fork safely"
    gc.freeze()
    while True:
        header, streams, _, _ = socket.recv_fds(channel, 8, 3)
        if not header:
            os._exit(0)
        content = channel.recv(struct.unpack("!Q", header)[0], socket.MSG_WAITALL)
        is_adopted, adopt = os.pipe()
        told, tell = os.pipe()
        middle = os.fork()
        if not middle:
            if os.fork():
                os._exit(0)
            request = json.loads(content)
            become(request, streams)
            os.write(tell, struct.pack("!Q", os.getpid()))
            os.close(adopt)
            os.read(is_adopted, 1)  # the end: the process between is gone, and whoever asked is the parent
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            return request["arguments"]
        os.waitpid(middle, 0)
        os.close(tell)
        channel.sendall(os.read(told, 8) or bytes(8))  # no process id: it failed, and has said why
        for number in (is_adopted, adopt, told, *streams):
            os.close(number)


def become(request: dict[str, Any], streams: list[int]) -> None:
    """Take on all that a process of its own would have."""
    if request["is_leader"]:
        os.setsid()
    if request["group"] >= 0:
        os.setpgid(0, request["group"])
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.chdir(request["directory"])
    os.environ.update(request["environment"])
    sys.dont_write_bytecode = bool(request["environment"].get("PYTHONDONTWRITEBYTECODE"))
    open_streams()
    importlib.invalidate_caches()


def open_streams() -> None:
    """Make the three streams of `sys` anew, as the interpreter makes them at its start."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        is_unbuffered = bool(number and os.environ.get("PYTHONUNBUFFERED"))
        raw: Any = io.FileIO(number, "wb" if number else "rb", closefd=False)
        raw.name = f"<{name}>"
        buffer = raw if is_unbuffered else (io.BufferedWriter if number else io.BufferedReader)(raw)
        new = io.TextIOWrapper(
            buffer,
            old.encoding,
            old.errors,
            newline="\n" if number else None,
            line_buffering=number == 2 or raw.isatty(),
            write_through=is_unbuffered,
        )
        new.mode = "w" if number else "r"
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def execute(arguments: list[str]) -> None:
    """Run a command line of the interpreter as its ``__main__``."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    main: Any = types.ModuleType("__main__")
    main.__builtins__ = __builtins__
    sys.modules["__main__"] = main
    sys.orig_argv = arguments
    _, first, *rest = arguments
    if first == "-m":
        sys.path[0] = str(Path.cwd())
        sys.argv = ["-m", *rest[1:]]
        runpy._run_module_as_main(rest[0])
    elif first == "-c":
        sys.path[0] = ""
        sys.argv = ["-c", *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), vars(main))
    else:
        sys.path[0] = str(Path(first).resolve().parent)
        sys.argv = [first, *rest]
        path = str(Path.cwd() / first)
        main.__file__, main.__cached__, main.__loader__ = path, None, SourceFileLoader("__main__", path)
        code = compile(Path(path).read_bytes(), path, "exec")
        exec(code, vars(main))


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    del sys.path[0]  # the folder of this file
    make_imports(sys.argv[1])
    sys.path.insert(0, "")
    execute(serve(socket.socket(fileno=int(sys.argv[2]))))
