"""Locations of the run that a command names: a directory here, or a server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from attractor_nb.cli.option_choices import is_url
from attractor_nb.model.vocabulary import environment_variables

if TYPE_CHECKING:
    from attractor_nb.cli.remote_runs.server_client import ServerAddress


def usual_server() -> str | None:
    """The server of this shell, by default."""
    return os.environ.get(environment_variables.SERVER) or None


def run_address(place: str, server: str | None, token: str | None) -> ServerAddress | None:
    """The address of a run on a server; None for a run in a directory here.

    A URL and ``--server`` decide it. ``ATTRACTOR_SERVER`` does so for what is not a directory here.

    Args:
        place: A run directory, the id of a run, or its URL; empty where none is named.
        server: The value of ``--server``.
        token: The value of ``--token``.
    """
    if server is None and not is_url(place):
        if not place or os.path.exists(place):  # noqa: PTH110 - a name that is too long is none, too
            return None
        server = usual_server()
        if server is None:
            return None
    from attractor_nb.cli.remote_runs.server_client import read_run_address  # noqa: PLC0415 - a directory needs no client

    return read_run_address(place, server, token)
