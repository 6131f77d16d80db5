"""Removing a run: never one that is alive, never what is no run, never what a link leads to.

It refuses, before it changes anything, a directory whose top level holds what no run wrote (ruling 37): an
earlier version took ``--logs-root .`` for a run directory, and the user's files stood in it.

The directory is given another name first, in one step, so that whoever looks finds either a whole run or what
is plainly the rest of one (``is_remains``). Removing the rest again ends what a killed process began.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import RunError, RunNotFound, StorageError
from attractor_nb.model.events import StageStarted
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX
from attractor_nb.storage.files.disk import Disk, storage_error
from attractor_nb.storage.log.event_log import REPLACEMENT_NAME, read_log
from attractor_nb.storage.log.lock import LOCK_NAME, OwnerLock, is_owned
from attractor_nb.storage.manifest_file import read_manifest
from attractor_nb.storage.map_directory import INPUTS_NAME, MAP_NAME
from attractor_nb.storage.run_directory import SHOWN_NAME, STATUS_NAME, VISITS_NAME, RunDirectory
from attractor_nb.storage.run_lists.run_tags import TAGS_NAME
from attractor_nb.storage.run_recognition import listed
from attractor_nb.storage.salvage import UNFINISHED_LOG
from attractor_nb.storage.sealed_file import previous_name
from attractor_nb.storage.stages.stage_directories import recorded_attempt
from attractor_nb.storage.stages.stage_names import RUN_ENTRIES, StageNames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attractor_nb.protocols import Clock

REMAINS_BEGINNING: Final = ".deleted-"
_OURS: Final = RUN_ENTRIES | {
    *(MAP_NAME, previous_name(MAP_NAME), INPUTS_NAME, TAGS_NAME),
    *(UNFINISHED_LOG, REPLACEMENT_NAME, SHOWN_NAME),
}
_OUR_PATTERN: Final = re.compile(
    rf"{re.escape(TEMPORARY_PREFIX)}.*|restart-\d+(-leftover-\d+)?|row-\d+(\.sent)?", re.DOTALL
)
_ASIDE: Final = re.compile(r"-taken-over-\d+\Z")
_NOT_OF_A_STAGE: Final = re.compile(r"0\.0(-\d+)?")
"""Under a stage's ``visits``: what an earlier version found in the place of a stage, and moved there."""


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
    """
    disk = disk or Disk()
    logs_root = logs_root.absolute()
    if logs_root.parent != base.absolute() or logs_root.name in {"", ".", ".."}:
        raise RunError(f"{logs_root} is not in the runs base {base}", hint="only what runs() lists is deleted")
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
    names = _stage_names(path)
    if names is None and not os.path.lexists(path / LOCK_NAME):  # events.jsonl is a common name
        raise RunNotFound(f"{path} holds no run, so it is left alone", hint="remove it by hand if it may go")
    if foreign := list(_foreign_entries(path, names)):
        raise RunError(
            f"{path} holds what no run wrote: {listed(foreign)}; nothing was deleted",
            hint="move it elsewhere, then delete the run; or remove by hand what may go",
        )
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


def _stage_names(path: Path) -> set[str] | None:
    """The directories that the log of a run gives its stages; None when no log of ours can be read."""
    try:
        events = read_log(path).events
        facts, _ = read_manifest(path)
    except RunError:
        return None
    visited = [event.name for event in events if isinstance(event, StageStarted) and not event.branch]
    names = StageNames((facts or {}).get("stage_directories", {}), visited)
    return {names.name_of(node_id) for node_id in visited} if events else None


def _foreign_entries(path: Path, stages: set[str] | None) -> Iterator[str]:
    """What no run wrote, of the top level of a run directory and of the visits of its stages."""
    for entry in sorted(path.iterdir()):
        if entry.name in _OURS or _OUR_PATTERN.fullmatch(entry.name):
            continue
        if entry.is_symlink() or not entry.is_dir():
            yield entry.name
        elif _ASIDE.sub("", entry.name) in (stages or ()) or _is_left_by_a_stage(entry):
            visits = entry / VISITS_NAME
            if visits.is_dir() and not visits.is_symlink():
                for place in sorted(visits.iterdir()):
                    if _NOT_OF_A_STAGE.fullmatch(place.name):
                        yield place.relative_to(path).as_posix()
        else:
            yield entry.name


def _is_left_by_a_stage(directory: Path) -> bool:
    """Whether a directory of which the log says nothing is a stage's: empty, or with a status of ours."""
    return not any(directory.iterdir()) or recorded_attempt(directory / STATUS_NAME) != (0, 0)


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
    if not shutil.rmtree.avoids_symlink_attacks:
        raise StorageError(f"this system cannot remove {remains} safely", path=str(remains))
    try:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(remains)
    except OSError as error:
        raise storage_error(error, "delete", remains) from error
