"""The same runs over HTTP: an API, events, and the door before both.

The server is another face on ``pipeline/``: the run directories under its root are the truth, so it may be
killed at any moment, started again, and run beside others on the same root. It knows no notebook and no
terminal. Starlette and uvicorn come with the extra ``server`` and are loaded when a server is started.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from attractor_nb.errors import OptionError
from attractor_nb.runtime.prepare.run_options import as_path
from attractor_nb.server.server_settings import DEFAULT_MAX_RUNS, DEFAULT_MAX_STREAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["serve"]
DEFAULT_PORT = 8765


def serve(
    root: Path,
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    token: str | None = None,
    users: Sequence[str] = (),
    prefix: str = "",
    on_ready: Callable[[str], None] | None = None,
    allow_remote: bool = False,
    allowed_hosts: Sequence[str] = (),
    documents: Path | None = None,
    edit: bool = False,
    recover: bool = True,
    max_runs: int = DEFAULT_MAX_RUNS,
    max_streams: int = DEFAULT_MAX_STREAMS,
) -> None:
    """Serve the runs of a runs base over HTTP until the process is told to end.

    Runs that are under way here are then stopped in order; each can be resumed.

    Args:
        root: The runs base; it is made if need be.
        host: Where to listen.
        port: The port; 0 for any that is free.
        token: What every request has to show; a fresh one of 256 bits if not given. With ``users`` the secret from
            which their tokens are made.
        users: Names of persons. Each gets a separate token, and the person's answers are recorded under this name.
            Without users the one token is that of the account of this process.
        prefix: Path before all others, for a proxy that does not take it off.
        on_ready: Called with the address, the token in it, once requests are taken; once for each user, in order.
        allow_remote: Listen where other machines can reach it.
        allowed_hosts: What the Host header may say besides: names with their port, of a proxy before it.
        documents: A folder whose DOT files the page shows; none by default.
        edit: Let the page save these files.
        recover: Take up again, at start, the runs that a killed server of this root was working on.
        max_runs: How many runs may be under way at a time.
        max_streams: How many event streams may be open at a time.

    Raises:
        OptionError: An argument is unusable, the port is taken, or the extra is not installed.
        StorageError: The runs base cannot be made.
    """
    check_installed()
    from attractor_nb.server.serving import run_server  # noqa: PLC0415 - its libraries are an extra

    run_server(
        as_path(root, "root"),
        host=host,
        port=port,
        token=token,
        users=users,
        prefix=prefix,
        on_ready=on_ready,
        allow_remote=allow_remote,
        allowed_hosts=allowed_hosts,
        documents=None if documents is None else as_path(documents, "documents"),
        edit=edit,
        recover=recover,
        max_runs=max_runs,
        max_streams=max_streams,
        version=version("attractor_nb"),
    )


def check_installed() -> None:
    """Make sure that the extra ``server`` is installed.

    Raises:
        OptionError: It is not; the hint is the command that installs it.
    """
    from attractor_nb.extras import install_command, missing_packages  # noqa: PLC0415 - once, before a server starts

    if missing := missing_packages("server"):
        raise OptionError(f"the server needs {missing[0]}, which is not installed", hint=install_command("server"))
