"""Where a restart goes: ``restart-<number>`` in the directory of the first run, with facts of its own (ruling 21).

It makes room there, and begins no run.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from attractor_nb.errors import StorageError
from attractor_nb.storage.files.atomic import sweep
from attractor_nb.storage.files.disk import entry_names, storage_error
from attractor_nb.storage.log.lock import LOCK_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from attractor_nb.storage.files.disk import Disk

_MAX_RESTART_LEFTOVERS = 1000
_NOT_OF_A_RESTART = frozenset(
    {
        *("stage_directories", "restarted_as", "start_time", "end_time", "status", "reason"),
        *("continued_from", "fork_of", "log_sequence"),
    }
)


def restart_place(root: Path, facts: Mapping[str, Any], number: int) -> Path:
    """Where a restart of a run goes, which may be one itself.

    Args:
        root: The directory of the run.
        facts: Its manifest.
        number: Which restart it is of the first run's.
    """
    first = root.parent if facts.get("restart_of") else root
    return first / f"restart-{number}"


def restart_facts(facts: Mapping[str, Any], *, run_id: str, root: Path, place: Path) -> dict[str, Any]:
    """The manifest with which a restart begins.

    Args:
        facts: The manifest of the run that goes on there.
        run_id: The id of the restart.
        root: The directory of the run.
        place: That of the restart.
    """
    kept = {name: fact for name, fact in facts.items() if name not in _NOT_OF_A_RESTART}
    return {**kept, "run_id": run_id, "restart_of": os.path.relpath(root, place)}


def set_leftover_aside(disk: Disk, path: Path) -> None:
    """Rename what a restart left at a place that never began."""
    for number in range(1, _MAX_RESTART_LEFTOVERS):
        if not os.path.lexists(path):
            return
        aside = path.with_name(f"{path.name}-leftover-{number}")
        if os.path.lexists(aside):
            continue
        try:
            _rename_leftover(disk, path, aside.name)
        except OSError as error:
            raise storage_error(error, "rename", path) from error


def _rename_leftover(disk: Disk, path: Path, name: str) -> None:
    with contextlib.ExitStack() as stack:
        parent = disk.open_directory(path.parent)
        stack.callback(disk.close, parent)
        leftover = disk.open_directory(path.name, parent)
        stack.callback(disk.close, leftover)
        entries = entry_names(leftover)
        if entries and LOCK_NAME not in entries:
            raise StorageError(
                f"{path} stands where a restart goes, and no run wrote it",
                path=str(path),
                hint="move it out of the run directory, then resume the run",
            )
        sweep(disk, leftover)
        disk.sync(leftover)  # or a power loss brings back what was swept, at a place that nobody sweeps again
        disk.rename(path.name, name, parent)
