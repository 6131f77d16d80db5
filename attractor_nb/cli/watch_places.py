"""What ``watch`` is pointed at: a run in a directory, a run on a server, or a session of agents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from attractor_nb.cli.run_places import run_address
from attractor_nb.errors import OptionError

if TYPE_CHECKING:
    from attractor_nb.cli.exit_codes import ExitCode


def watch_place(
    place: str | None, *, server: str | None, token: str | None, is_once: bool, is_json: bool
) -> ExitCode:
    """Show what stands at a place until it has ended, or as it stands.

    Args:
        place: A run directory, that of a session, the URL of a run, or with ``server`` a run's id; None for
            the active session here.
        server: The server, or None.
        token: Its token.
        is_once: Show it as it stands, and return.
        is_json: Print JSON.

    Raises:
        RunNotFound, SessionNotFound, OptionError: There is nothing to be watched.
    """
    address = run_address(place or "", server, token)
    if address is not None:
        from attractor_nb.cli.run_watching import watch_server  # noqa: PLC0415 - each kind loads its own

        return watch_server(address, is_once=is_once, is_json=is_json)
    from attractor_nb.storage.map_directory import is_map  # noqa: PLC0415 - as above
    from attractor_nb.storage.stored_run import has_event_log  # noqa: PLC0415 - as above

    path = None if place is None else Path(place)
    if path is not None and has_event_log(path):
        from attractor_nb.cli.run_watching import watch_directory  # noqa: PLC0415 - as above

        return watch_directory(path, is_once=is_once, is_json=is_json)
    if path is not None and is_map(path):
        raise OptionError(
            f"{path} is a map of many runs",
            hint=f"attractor-nb runs --runs-dir {path} lists them; watch one of them",
        )
    from attractor_nb.cli.session_table_watch import watch  # noqa: PLC0415 - as above

    return watch(path, is_once=is_once, is_json=is_json)
