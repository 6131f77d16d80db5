"""``serve``: a server until it is stopped, and the lines that say how a browser or a program reaches it."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from attractor_nb.cli.remote_runs.server_client import read_address
from attractor_nb.cli.reporting import ExitCode
from attractor_nb.cli.run_summary import shown_path
from attractor_nb.network import outward_address
from attractor_nb.server import serve

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def _from_elsewhere(host: str, url: str) -> list[str]:
    """The ways to reach a server that listens everywhere from other machines."""
    if host not in {"0.0.0.0", "::"}:  # noqa: S104 - nothing is bound here
        return []
    parts = urlsplit(url)
    names = f"--allow-host NAME:{parts.port} for each other name of this machine"
    outward = outward_address(host)
    if not outward:
        return [f"from other machines: start it with {names}, and put that name into the address"]
    shown = f"[{outward}]" if ":" in outward else outward
    there = urlunsplit((parts.scheme, f"{shown}:{parts.port}", f"{parts.path}/", "", ""))
    return [f"from other machines: {there} with the same #token=…; {names}"]


def serve_runs(runs_dir: Path, *, is_json: bool, host: str, users: Sequence[str], **options: Any) -> ExitCode:
    """Serve the runs of a runs base until Ctrl-C.

    Args:
        runs_dir: The runs base.
        is_json: Print the address as JSON, one line for each user.
        host: Where it listens.
        users: The persons who get an address of their own; none for one address without a name.
        **options: As of ``attractor_nb.server.serve``; what is None is the server's own choice.
    """
    unannounced: list[str | None] = list(users) or [None]
    is_ready = False

    def announce(url: str) -> None:
        nonlocal is_ready
        is_ready = True
        address, user = read_address(url), unannounced.pop(0)
        if is_json:  # not by print_json: the token is to be seen here, and nowhere else
            line = {"url": url, "server": address.url, "token": address.token}
            print(json.dumps({**line, "user": user} if user else line), flush=True)
            return
        print(f"{user} {url}" if user else url, flush=True)  # all of stdout: a script reads it as a whole
        if unannounced:
            return
        which = "the address of your name" if users else "that address"
        hints = [
            f"serving the runs in {shown_path(runs_dir)}: open {which}, or give it to --server; Ctrl-C stops",
            # the token is on stdout alone: stderr ends in logs
            f'with that address in URL: curl -H "Authorization: Bearer ${{URL#*=}}" {address.url}/pipelines',
            *_from_elsewhere(host, address.url),
        ]
        print("\n".join(hints), file=sys.stderr, flush=True)

    try:
        given = {name: value for name, value in options.items() if value is not None}
        serve(runs_dir, host=host, users=users, on_ready=announce, **given)
    except KeyboardInterrupt:  # that is how a server ends; by now it has let its runs go in order
        if not is_ready:
            raise
    return ExitCode.SUCCESS
