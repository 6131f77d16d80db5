"""The runs of a root: the directory that an id means, and those that a server that comes back takes up.

A small file for each, beside the runs, written before the run is. It names the root by its path and its place
on the disk, which the author of a directory elsewhere cannot know: a copied or downloaded run must not
continue unasked. A kernel lock for each lets one server at a time decide about a run.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import socket
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from filelock import FileLock, Timeout

from attractor_nb.errors import RunLocked, RunNotFound, StorageError
from attractor_nb.server.replies import Problem
from attractor_nb.server.requests import RUN_ID
from attractor_nb.storage.files.atomic import read_plain_file, write_whole
from attractor_nb.storage.files.disk import FILE_MODE, Disk, storage_error
from attractor_nb.storage.files.strict_json import JsonProblem, json_bytes, read_json
from attractor_nb.storage.log.lock import process_of, read_owner
from attractor_nb.storage.map_directory import is_evaluation
from attractor_nb.storage.own_places import is_own_place, made_own_place

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

_ID: Final = re.compile(RUN_ID)
ROW_SIGN: Final = "~"
"""Between the two names in the id of a row; no directory of a run has it in its name."""

STARTED_PLACE: Final = ".server/runs"
_SUFFIX: Final = ".json"
_MAX_BYTES: Final = 64 * 1024
_PATIENCE_SECONDS: Final = 5.0
"""Longer than it takes to begin to continue a run."""

Owner = tuple[int, str]
"""A process, and the machine that it is on."""


def run_place(root: Path, run_id: str) -> Path:
    """The directory of a run, or of a row of a map; neither is behind a link."""
    missing = RunNotFound(f"there is no pipeline {run_id[:80]!r}", hint="GET /pipelines lists them")
    if _ID.fullmatch(run_id) is None:
        raise missing
    place = root
    for name in run_id.split(ROW_SIGN):
        place /= name
        try:
            if not stat.S_ISDIR(place.lstat().st_mode):
                raise missing
        except (FileNotFoundError, NotADirectoryError):
            raise missing from None
        except OSError as error:
            raise storage_error(error, "read", place) from error
    return place


def row_id(map_id: str, directory: str) -> str:
    """The id of a row of a map, whose run directory is inside that of the map.

    >>> row_id("2026-02-21T18-30-00Z-q7kd2m4x", "row-00012")
    '2026-02-21T18-30-00Z-q7kd2m4x~row-00012'
    """
    return f"{map_id}{ROW_SIGN}{directory}"


def is_row(run_id: str) -> bool:
    """True if an id is one of a row of a map."""
    return bool(map_of(run_id))


def map_of(run_id: str) -> str:
    """The map whose row has that id; empty for any other run.

    >>> map_of("2026-02-21T18-30-00Z-q7kd2m4x~row-00012")
    '2026-02-21T18-30-00Z-q7kd2m4x'
    """
    map_id, sign, _ = run_id.partition(ROW_SIGN)
    return map_id if sign else ""


def way_to_resume(root: Path, run_id: str) -> str:
    """The request that resumes a run; for a row of a map the command that resumes its map.

    >>> from pathlib import Path
    >>> way_to_resume(Path("/runs"), "2026-02-21T18-30-00Z-q7kd2m4x")
    'POST /pipelines/2026-02-21T18-30-00Z-q7kd2m4x/resume'
    >>> way_to_resume(Path("/runs"), "first~row-00012")
    'attractor-nb map --resume /runs/first'
    """
    if not (map_id := map_of(run_id)):
        return f"POST /pipelines/{run_id}/resume"
    given = ["evaluate", "--scorers", "MODULE:NAME"] if is_evaluation(root / map_id) else ["map"]
    return shlex.join(["attractor-nb", *given, "--resume", str(root / map_id)])


@dataclass(frozen=True, slots=True)
class Started:
    """The record of a run that a server works, or worked, on."""

    owners: tuple[Owner, ...]  #: Possible last owners; the program of any other owner decides about the run.
    tries: int = 0  #: Number of resumes since its last progress.
    last_id: str = ""  #: The last event when it was last resumed; empty when it was not.


def made_server_place(root: Path, name: str, *, is_synced: bool) -> Path:
    """A folder of the server's own records, made unless it is there."""
    use, remedy = "the server keeps its own records", "remove it, or start the server for another directory of runs"
    return made_own_place(Disk(), root, name, is_synced=is_synced, use=use, remedy=remedy)


class StartedRuns:
    """The files of one root. Its methods block; any thread may call them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._place = root / STARTED_PLACE

    def ids(self) -> list[str]:
        """The runs, by name: the oldest first."""
        if not is_own_place(self._root, STARTED_PLACE):
            return []  # no server of this root has begun one
        try:
            with os.scandir(self._place) as entries:
                names = [entry.name for entry in entries if entry.name.endswith(_SUFFIX)]
        except OSError:
            return []
        return sorted(run_id for name in names if _ID.fullmatch(run_id := name.removesuffix(_SUFFIX)))

    def read(self, run_id: str) -> Started | None:
        """The record of a run; None when no server of this root has begun it."""
        if not self._is_known_place(run_id):
            return None
        data = read_plain_file(self._place / f"{run_id}{_SUFFIX}", max_bytes=_MAX_BYTES, must_be_own=True)
        try:
            plain: Any = read_json(data) if data else None
        except JsonProblem:
            return None
        match plain:
            case {"root": root, "owners": [*owners], "tries": int(tries), "last_id": str(last_id)}:
                if root != self._identity():
                    return None
                return Started(tuple(found for one in owners if (found := _owner(one))), tries, last_id)
            case _:
                return None

    @contextlib.contextmanager
    def noted(self, run_id: str, *, tries: int = 0, last_id: str = "") -> Generator[None]:
        """Note that this process starts or resumes a run; undone if that fails."""
        before = None
        with contextlib.suppress(StorageError):  # what cannot be read is replaced
            before = self.read(run_id)
        owner = _owner(read_owner(self._root / run_id))  # until it is ours
        me = os.getpid(), socket.gethostname()
        self._write(run_id, Started(tuple(filter(None, (owner, me))), tries, last_id))
        try:
            yield
        except BaseException:  # whatever kept the run from beginning: the note of it goes, too
            if before is None:
                self.forget(run_id)
            else:
                self._write(run_id, before)
            raise

    def forget(self, run_id: str) -> None:
        """Forget a run: there is nothing left to resume."""
        if not self._is_known_place(run_id):
            return
        for suffix in (_SUFFIX, ".lock"):
            with contextlib.suppress(OSError):
                (self._place / f"{run_id}{suffix}").unlink(missing_ok=True)

    @contextlib.contextmanager
    def held(self, run_id: str) -> Generator[None]:
        """Be the one server that decides about a run."""
        path = made_server_place(self._root, STARTED_PLACE, is_synced=False) / f"{run_id}.lock"
        lock = FileLock(path, timeout=_PATIENCE_SECONDS, mode=FILE_MODE, thread_local=False)
        try:
            lock.acquire(poll_interval=0.01)
        except Timeout:
            deciding = f"another server is starting or resuming {run_id}"
            hint = "try again in a moment"
            raise Problem(409, "locked", "Another process owns the run", deciding, hint=hint) from None
        except OSError as error:
            raise storage_error(error, "lock", path) from error
        try:
            yield
        finally:
            lock.release()

    def _is_known_place(self, run_id: str) -> bool:
        """True if an id is one, so that it leads nowhere else, and our folder is ours."""
        return _ID.fullmatch(run_id) is not None and is_own_place(self._root, STARTED_PLACE)

    def _identity(self) -> list[Any]:
        return [os.path.realpath(self._root), self._root.stat().st_ino]

    def _write(self, run_id: str, started: Started) -> None:
        disk = Disk()
        made_server_place(self._root, STARTED_PLACE, is_synced=True)
        try:
            parent = disk.open_directory(self._place)
        except OSError as error:
            raise storage_error(error, "open", self._place) from error
        plain = {
            "root": self._identity(),
            "owners": [{"pid": pid, "host": host} for pid, host in started.owners],
            "tries": started.tries,
            "last_id": started.last_id,
        }
        try:
            data = json_bytes(plain)
            write_whole(disk, parent, f"{run_id}{_SUFFIX}", data, directory=self._place, is_synced=True)
        finally:
            disk.close(parent)


def _owner(plain: object) -> Owner | None:
    match plain:
        case {"pid": int(pid), "host": str(host)}:
            return pid, host
        case _:
            return None


def locked_elsewhere(run_id: str, owner: Mapping[str, Any]) -> RunLocked:
    """The refusal of what only the process can do that runs it."""
    return RunLocked(
        f"pipeline {run_id} is run by {process_of(owner)}",
        owner=dict(owner),
        hint="ask the server or program that runs it; here it can only be viewed",
    )
