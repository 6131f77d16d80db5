"""The directory of a run: names, places and the open directory (spec 5.6; ruling 32).

It has the names of a run directory's entries, and knows nothing of their content.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from attractor_nb.errors import RunNotFound, StorageError
from attractor_nb.platforms import O_CLOEXEC, O_DIRECTORY
from attractor_nb.storage.files.atomic import write_whole
from attractor_nb.storage.files.disk import Disk, storage_error

if TYPE_CHECKING:
    from attractor_nb.protocols import Clock, Randomness

_TIME_OF_NAME = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-")

OUR_PLACE = ".attractor"
"""Our folder beside the user's files."""
DEFAULT_RUNS_BASE = Path(OUR_PLACE) / "runs"
IGNORE_NAME = ".gitignore"
SHOWN_NAME = ".ignore"
_HIDE_ALL = b"*\n"
_SHOW_ALL = b"![!.]*\n"
"""All but hidden names, which stay hidden."""
SOURCE_NAME = "pipeline.dot"
STATUS_NAME = "status.json"
VISITS_NAME = "visits"
BRANCHES_NAME = "branches"
THREADS_NAME = "threads"
WORKSPACE_NAME = "workspace"
"""Folder of a run with a workspace."""
WORKTREE_NAME = "worktree"
"""Folder of a run with a git worktree."""
_RESTART = re.compile(r"restart-[0-9]+\Z")
_MAX_TRIES = 100


class RunDirectory:
    """A directory that is held open: everything below is reached through it, never by its path.

    Attributes:
        path: Where it was when it was opened, absolute.
    """

    def __init__(self, disk: Disk, path: Path, *, descriptor: int | None = None) -> None:
        """Open a directory that is there.

        Args:
            disk: Where.
            path: The directory.
            descriptor: The directory, if it is open already.
        """
        self.path = path.absolute()
        self._disk = disk
        self._descriptor = descriptor
        if descriptor is not None:
            return
        try:
            self._descriptor = disk.open_directory(self.path)
        except FileNotFoundError:
            raise RunNotFound(f"there is no run directory {self.path}") from None
        except OSError as error:
            raise storage_error(error, "open", self.path) from error

    @property
    def descriptor(self) -> int:
        """The open directory."""
        if self._descriptor is None:
            raise StorageError(f"the run in {self.path} is closed", path=str(self.path))
        return self._descriptor

    def close(self) -> None:
        """Give the directory back."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            self._disk.close(descriptor)


def make_directory(disk: Disk, path: Path, *, is_synced: bool) -> None:
    """Make a directory and those above it, unless they are there; hide ``.attractor`` from git (ruling 49).

    Args:
        disk: Where.
        path: The directory.
        is_synced: Flush the names of what was made; and the directory's own name even where somebody else
            made it (and can be flushed), because what is flushed inside is lost with it.
    """
    path = path.absolute()
    missing: list[Path] = []
    place = path
    while not os.path.lexists(place):
        missing.append(place)
        place = place.parent
    try:
        for directory in reversed(missing):
            try:
                disk.make_directory(directory)
            except FileExistsError:
                continue
            if is_synced:
                _sync_directory(disk, directory.parent)
        if is_synced and not missing and os.access(path.parent, os.R_OK):
            _sync_directory(disk, path.parent)
    except OSError as error:
        raise storage_error(error, "make directory", path) from error
    ours = next((place for place in (path, *path.parents) if place.name == OUR_PLACE), None)
    if ours is not None:
        _write_once(disk, ours, IGNORE_NAME, _HIDE_ALL, is_synced=is_synced)


def make_runs_base(disk: Disk, base: Path, *, is_synced: bool) -> None:
    """Make the directory in which runs are made, unless it is there.

    One that is made here has a ``.gitignore`` with ``*``: ``git add -A``, ``git stash -u`` and ``git clean -fd`` leave
    the runs alone (ruling 49). A directory that was there before stays as it is, unless it is in ``.attractor``.
    """
    is_new = not os.path.lexists(base)
    make_directory(disk, base, is_synced=is_synced)
    if is_new and OUR_PLACE not in base.absolute().parts:
        _write_once(disk, base, IGNORE_NAME, _HIDE_ALL, is_synced=is_synced)


def make_workspace(disk: Disk, root: Path, *, is_synced: bool) -> Path:
    """Make the folder in which a run works; its path.

    What is hidden from git is hidden from linters and search tools, too. An ``.ignore`` file in the run directory,
    which they read and git does not, shows them the workspace when they are started in it.
    """
    path = root / WORKSPACE_NAME
    make_directory(disk, path, is_synced=is_synced)
    refuse_link(path)
    _write_once(disk, root, SHOWN_NAME, _SHOW_ALL, is_synced=is_synced)
    return path


def refuse_link(path: Path) -> None:
    """Refuse a link in the place of a run's own folder: the creator of the directory could lead the run elsewhere."""
    if path.is_symlink():
        raise StorageError(
            f"{path} is a link, and a run that has a place of its own works nowhere else",
            path=str(path),
            hint="remove it; or name the directory yourself, in a new run",
        )


def _write_once(disk: Disk, place: Path, name: str, data: bytes, *, is_synced: bool) -> None:
    """Write a file where there is none: a user who wants the runs in git empties ours."""
    if os.path.lexists(place / name) or not os.access(place, os.W_OK):
        return
    try:
        descriptor = os.open(place, os.O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    except OSError as error:
        raise storage_error(error, "open", place) from error
    try:
        write_whole(disk, descriptor, name, data, directory=place, is_synced=is_synced)
    finally:
        disk.close(descriptor)


def _sync_directory(disk: Disk, path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    try:
        disk.sync(descriptor)
    finally:
        disk.close(descriptor)


def new_run_directory(
    base: Path, *, clock: Clock, randomness: Randomness, disk: Disk | None = None, is_synced: bool = False
) -> tuple[Path, str]:
    """Make a fresh directory ``<UTC timestamp>-<id>`` under the runs base; its path and the id.

    Args:
        base: The runs base.
        clock: For the timestamp.
        randomness: For the id.
        disk: Where.
        is_synced: Flush the name of the base; that of the run is flushed by the store that takes it.
    """
    disk = disk or Disk()
    make_runs_base(disk, base, is_synced=is_synced)
    for _ in range(_MAX_TRIES):
        run_id = randomness.new_id()
        path = base.absolute() / run_directory_name(clock.time(), run_id)
        try:
            disk.make_directory(path)
        except FileExistsError:
            continue
        except OSError as error:
            raise storage_error(error, "make directory", path) from error
        return path, run_id
    raise StorageError(f"no free name for a run directory in {base}", path=str(base))


def run_directory_name(seconds: float, run_id: str) -> str:
    """The name of the directory of a run that begins then."""
    return f"{time.strftime('%Y-%m-%dT%H-%M-%SZ', time.gmtime(seconds))}-{run_id}"


def without_times(text: str) -> str:
    """A text in which names of run directories have no times, which leave no room for the part that tells runs apart.

    >>> without_times("fork of 2026-11-30T10-39-08Z-pgptupn4")
    'fork of pgptupn4'
    """
    return _TIME_OF_NAME.sub("", text)


def first_directory(path: Path) -> Path:
    """The directory of the run's beginning: around that of a restart, itself else (ruling 21).

    >>> str(first_directory(Path("runs/first/restart-2")))
    'runs/first'
    """
    return path.parent if _RESTART.match(path.name) else path


def utc_text(seconds: float) -> str:
    """A moment as ISO 8601 in UTC.

    >>> utc_text(1771698600.0)
    '2026-02-21T18:30:00Z'
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
