"""In Jupyter: the server behind jupyter-server-proxy, with a card in JupyterLab's launcher.

Jupyter asks for the login and lets nobody else through; it looks at the Host, for it alone is reached from
outside. Then it shows our token, which nobody else has: not the browser, no page, no command line.
Without the token this server gives nothing away, the page included, whoever finds its port.
"""

from __future__ import annotations

import contextlib
import os
import sys
from importlib.metadata import version
from importlib.resources import as_file, files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attractor_nb.server.settings import ServerSettings, checked_token

if TYPE_CHECKING:
    from collections.abc import Sequence

TOKEN_VARIABLE: Final = "ATTRACTOR_TOKEN"  # noqa: S105 - the name of a variable
RUNS_VARIABLE: Final = "ATTRACTOR_RUNS_DIR"
"""The runs base, from Jupyter's root, where it is another than that of notebooks at its top."""
START_SECONDS: Final = 30
_NEEDED: Final = ("starlette", "sse_starlette", "uvicorn")


def setup_attractor() -> dict[str, Any]:
    """What jupyter-server-proxy is told: how the server is started, let in, and shown."""
    token = checked_token(None)
    with as_file(files("attractor_nb.server.web") / "icon.svg") as icon:
        icon_path = str(icon)
    return {
        "command": _command,
        "environment": {TOKEN_VARIABLE: token},
        "timeout": START_SECONDS,
        "new_browser_tab": False,
        "request_headers_override": {"Authorization": f"Bearer {token}"},
        "launcher_entry": {
            "enabled": all(find_spec(name) for name in _NEEDED),
            "title": "Attractor runs",
            "icon_path": icon_path,
        },
    }


def main(arguments: Sequence[str]) -> None:
    """Serve at a port of this machine for the proxy that has put the token into the environment.

    Args:
        arguments: The port, and the runs base.

    Raises:
        OptionError: The token is none, or the port is taken.
        StorageError: The runs base cannot be made.
    """
    # The libraries are an extra, and Jupyter imports this module for the card alone.
    from attractor_nb.pipeline.secrets import redact_also  # noqa: PLC0415
    from attractor_nb.server.app import Server  # noqa: PLC0415
    from attractor_nb.server.serving import ServerProcess, listen  # noqa: PLC0415
    from attractor_nb.storage.disk import Disk  # noqa: PLC0415
    from attractor_nb.storage.run_directory import make_directory  # noqa: PLC0415

    port, root = arguments
    token = checked_token(os.environ.pop(TOKEN_VARIABLE, ""))
    redact_also(token)
    make_directory(Disk(), Path(root), is_synced=False)
    settings = ServerSettings(root=Path(root).absolute(), token=token, hosts=None, is_proxied=True)
    with contextlib.closing(listen("127.0.0.1", int(port))) as listening:
        ServerProcess(Server(settings, version=version("attractor_nb")), lambda: None).run(
            sockets=[listening]
        )


def _command(port: int) -> list[str]:
    return [sys.executable, "-m", "attractor_nb.server.proxy", str(port), str(_runs_base())]


def _runs_base() -> Path:
    """The runs base of notebooks that lie where Jupyter shows files from."""
    return _jupyter_root() / os.environ.get(RUNS_VARIABLE, ".attractor/runs")


def _jupyter_root() -> Path:
    from jupyter_server.serverapp import ServerApp  # noqa: PLC0415 - it is there when Jupyter calls this

    if not ServerApp.initialized():
        return Path.cwd()
    root: Any = ServerApp.instance().root_dir  # pyright: ignore[reportUnknownMemberType]
    return Path(str(root))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(sys.argv[1:])
