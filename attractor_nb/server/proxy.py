"""In Jupyter: the server behind jupyter-server-proxy, with a card in JupyterLab's launcher.

Jupyter asks for the login and lets only its users through; it looks at the Host, for it alone is reached from
outside. Then it shows our token, which nothing else has: not the browser, no page, no command line. The server
listens on a socket file in a folder of this user (on Windows, at a port), and gives nothing away without the
token, the page included.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from importlib.metadata import version
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.account import account_name
from attractor_nb.extras import missing_packages
from attractor_nb.model.vocabulary import environment_variables
from attractor_nb.own_python import own_python
from attractor_nb.server import check_installed
from attractor_nb.server.server_settings import ServerSettings, checked_token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attractor_nb.server.serving import ServerProcess

START_SECONDS: Final = 30
LOOK_SECONDS: Final = 1.0
"""Interval at which the server checks that Jupyter is still there."""


def setup_attractor() -> dict[str, Any]:
    """The settings for jupyter-server-proxy: how to start, authorise and show the server."""
    token = checked_token(None)
    with as_file(files("attractor_nb.server.web") / "icon.svg") as icon:
        icon_path = str(icon)
    return {
        "command": _command,
        "unix_socket": os.name == "posix",
        "environment": {environment_variables.TOKEN: token},
        "timeout": START_SECONDS,
        "new_browser_tab": False,
        "request_headers_override": {"Authorization": f"Bearer {token}"},
        "launcher_entry": {
            "enabled": not missing_packages("server"),
            "title": "Attractor runs",
            "icon_path": icon_path,
        },
    }


def main(arguments: Sequence[str]) -> None:
    """Serve for the proxy that has put the token into the environment.

    Args:
        arguments: The path of the socket file, or a port of this machine; the runs base; the id of the
            process that has the proxy, with which the server ends.
    """
    check_installed()
    # The libraries are an extra, and Jupyter imports this module for the card alone.
    from attractor_nb.runtime.prepare.known_secrets import redact_also  # noqa: PLC0415
    from attractor_nb.server.asgi_app import Server  # noqa: PLC0415
    from attractor_nb.server.serving import ServerProcess, listen  # noqa: PLC0415
    from attractor_nb.storage.files.disk import Disk  # noqa: PLC0415
    from attractor_nb.storage.run_directory import make_runs_base  # noqa: PLC0415

    place, root, parent = arguments
    token = checked_token(os.environ.pop(environment_variables.TOKEN, ""))
    redact_also(token)
    make_runs_base(Disk(), Path(root), is_synced=False)
    settings = ServerSettings(root=Path(root).absolute(), tokens={account_name(): token}, hosts=None, is_proxied=True)
    server = Server(settings, version=version("attractor_nb"))
    listening = listen("127.0.0.1", int(place)) if place.isdecimal() else _listen_at(place)
    with contextlib.closing(listening):
        process = ServerProcess(server, lambda: None)
        if os.name == "posix":  # elsewhere a process does not get to know that its parent has ended
            watch: tuple[Any, ...] = (process, int(parent))
            threading.Thread(target=_end_with, args=watch, name="attractor-proxy", daemon=True).start()
        process.run(sockets=[listening])


def _end_with(process: ServerProcess, parent: int) -> None:
    """End in order when the parent is gone: Jupyter that is shut down by a click leaves its children."""
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    process.should_exit = True


def _listen_at(path: str) -> socket.socket:
    """A socket file of this user alone; one that a killed server has left is replaced."""
    with contextlib.suppress(FileNotFoundError):
        Path(path).unlink()
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listening.bind(path)
    Path(path).chmod(0o600)
    listening.listen()
    listening.setblocking(False)  # noqa: FBT003 - Python's own
    return listening


def _command(port: int, unix_socket: str) -> list[str]:
    """The command line; what is returned is a template of the proxy's, in which braces stand for values."""
    place = unix_socket or str(port)
    # Jupyter starts it in its own working directory, which may be a cloned folder.
    parts = own_python("-m", "attractor_nb.server.proxy", place, str(_runs_base()), str(os.getpid()))
    return [part.replace("{", "{{").replace("}", "}}") for part in parts]


def _runs_base() -> Path:
    """The runs base of notebooks that lie where Jupyter shows files from."""
    root = _jupyter_root()
    if given := os.environ.get(environment_variables.RUNS_DIR):
        return root / os.path.expanduser(given)  # noqa: PTH111 - without a home it stays as it is
    from attractor_nb.storage.own_places import refuse_linked  # noqa: PLC0415 - Jupyter imports this module for the card alone
    from attractor_nb.storage.run_directory import DEFAULT_RUNS_BASE  # noqa: PLC0415 - as above

    return refuse_linked(root / DEFAULT_RUNS_BASE, folder=root, option=f"{environment_variables.RUNS_DIR}=DIR")


def _jupyter_root() -> Path:
    from jupyter_server.serverapp import ServerApp  # noqa: PLC0415 - it is there when Jupyter calls this

    if not ServerApp.initialized():
        return Path.cwd()
    root: Any = ServerApp.instance().root_dir  # pyright: ignore[reportUnknownMemberType]
    return Path(str(root))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1:])
