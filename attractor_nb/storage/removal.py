"""Removing a run: never one that is alive, never what is no run, never what a link leads to.

The directory is given another name first, in one step, so that whoever looks finds either a whole run or what
is plainly the rest of one (``is_remains``). Removing the rest again ends what a killed process began.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import RunError, RunNotFound, StorageError
from attractor_nb.storage.disk import Disk, storage_error
from attractor_nb.storage.event_log import EVENT_LOG_NAME
from attractor_nb.storage.lock import LOCK_NAME, OWNER_NAME, OwnerLock, is_owned
from attractor_nb.storage.map_directory import MAP_NAME
from attractor_nb.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.protocols import Clock

REMAINS_BEGINNING: Final = ".deleted-"
_OUR_FILES: Final = (EVENT_LOG_NAME, MAP_NAME, LOCK_NAME, OWNER_NAME)


def is_remains(path: Path) -> bool:
    """Whether a directory is what is left of a run that was being removed."""
    return path.name.startswith(REMAINS_BEGINNING)


def remove_run(base: Path, logs_root: Path, *, clock: Clock, disk: Disk | None = None) -> None:
    """Remove a run directory, or that of a map, or the remains of one.

    Args:
        base: The runs base that it is in.
        logs_root: The directory.
        clock: For the word of ownership that keeps others away meanwhile.
        disk: The disk's operations; tests give their own.

    Raises:
        RunNotFound: There is no run of ours in that directory.
        RunLocked: A process owns it.
        RunError: It is not in the base, or something inside it is alive.
        StorageError: It is a link, or the disk refused; what is left is listed as half-deleted.
    """
    disk = disk or Disk()
    logs_root = logs_root.absolute()
    if logs_root.parent != base.absolute() or logs_root.name in {"", ".", ".."}:
        raise RunError(
            f"{logs_root} is not in the runs base {base}", hint="only what runs() lists is deleted"
        )
    home = RunDirectory(disk, base)
    try:
        target = RunDirectory(disk, logs_root)  # refuses links
        try:
            remains = logs_root if is_remains(logs_root) else _set_aside(disk, home, target, clock)
        finally:
            target.close()
        _remove_tree(remains)
    finally:
        home.close()


def _set_aside(disk: Disk, home: RunDirectory, target: RunDirectory, clock: Clock) -> Path:
    """Take a run's ownership and give its directory the name of remains."""
    path = target.path
    if not any(os.path.lexists(path / name) for name in _OUR_FILES):
        raise RunNotFound(f"{path} holds no run, so it is left alone", hint="remove it by hand if it may go")
    for inner in _inner_directories(path):
        if is_owned(inner):
            raise RunError(f"{inner} is alive, so {path} is not deleted", hint="stop it first: run.cancel()")
    lock = OwnerLock(disk, target, clock)
    try:
        name = _free_name(home, path.name)
        disk.rename(path.name, name, home.descriptor)
    except OSError as error:
        raise storage_error(error, "delete", path) from error
    finally:
        lock.release()
    return home.path / name


def _inner_directories(path: Path) -> Iterator[Path]:
    """Where processes can own something inside: restarts, the rows of a map, child runs however deep."""
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if not (Path(folder) / name).is_symlink()]
        if LOCK_NAME in names and Path(folder) != path:
            yield Path(folder)


def _free_name(home: RunDirectory, name: str) -> str:
    for number in range(1, 1000):
        candidate = f"{REMAINS_BEGINNING}{name}" + (f"-{number}" if number > 1 else "")
        if not os.path.lexists(home.path / candidate):
            return candidate
    raise StorageError(f"no free name for the remains of {name}", path=str(home.path))


def _remove_tree(remains: Path) -> None:
    if not shutil.rmtree.avoids_symlink_attacks:  # pragma: no cover - no system that we run on
        raise StorageError(f"this system cannot remove {remains} safely", path=str(remains))
    try:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(remains)
    except OSError as error:
        raise storage_error(error, "delete", remains) from error
