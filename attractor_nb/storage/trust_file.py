"""The commands that this user has trusted on this machine, by place: one small file in the user's state directory.

It is a convenience and never a gate: a file that is missing, damaged, foreign or out of reach means that
nothing is remembered, and the user is asked again. It holds hashes and commands as plain values and
decides nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from attractor_nb.errors import StorageError
from attractor_nb.model.vocabulary import environment_variables
from attractor_nb.platforms import HAS_POSIX
from attractor_nb.storage.files.atomic import read_plain_file, sweep, write_whole
from attractor_nb.storage.files.disk import FILE_MODE, Disk
from attractor_nb.storage.files.strict_json import JsonProblem
from attractor_nb.storage.run_directory import make_directory
from attractor_nb.storage.sealed_file import seal, unseal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager

FILE_NAME: Final = "trust.json"
_LOCK_NAME: Final = "trust.lock"
_SCHEMA_VERSION: Final = 1
_MAX_BYTES: Final = 32 * 1024 * 1024
_MOST_PLACES: Final = 600
"""More are forgotten, the oldest first: what is forgotten is asked again."""
_MOST_CHARACTERS: Final = 16 * 1024
"""Commands longer than this together are kept as a hash alone, without the diff that they would give."""
_PATIENCE_SECONDS: Final = 5.0
_OTHERS_MAY_WRITE: Final = 0o022

Row = tuple[str, str, str]
"""Node, attribute and text of a command."""


class Remembered(msgspec.Struct, frozen=True):
    """The commands that were trusted at a place."""

    full_hash: str  #: The hash of its commands.
    commands: tuple[Row, ...] | None  #: The commands themselves; None when they were not to be kept, or too long.


class TrustFile:
    """The file of one state directory.

    Args:
        directory: Where; the user's own by default.
    """

    def __init__(self, directory: Path | None = None) -> None:
        self._directory = directory or state_directory()
        self._disk = Disk()

    def recall(self, place: str) -> Remembered | None:
        """The commands that were trusted at a place; None when nothing is remembered."""
        return _remembered(self._read().get(place))

    def remember(self, place: str, full_hash: str, commands: Sequence[Row] | None, *, is_synced: bool = False) -> None:
        """Note what is let run at a place, if the state directory can be written to.

        Args:
            place: Where.
            full_hash: The hash of the commands.
            commands: The commands; None keeps the hash alone.
            is_synced: Keep it through a power loss.
        """
        if self._directory is None:
            return
        rows = [list(row) for row in commands or ()]
        length = sum(len(part) for row in rows for part in row)
        kept = rows if commands is not None and length <= _MOST_CHARACTERS else None
        try:
            make_directory(self._disk, self._directory, is_synced=is_synced)
            if not is_private(self._directory):
                return
            with self._lock():
                places = self._read()
                known = places.pop(place, None)
                places[place] = {"hash": full_hash, "commands": kept}
                if known != places[place]:
                    self._write(places, is_synced=is_synced)
        except (OSError, StorageError, NotImplementedError):  # the last: a file system without locks
            return  # it will be asked again, and the run that is about to begin is none the worse

    def _lock(self) -> AbstractContextManager[object]:
        assert self._directory is not None, "checked by the caller"
        from filelock import FileLock  # noqa: PLC0415 - only to trust something

        lock = FileLock(self._directory / _LOCK_NAME, mode=FILE_MODE)
        return lock.acquire(timeout=_PATIENCE_SECONDS, poll_interval=0.01)

    def _read(self) -> dict[str, Any]:
        """All places, oldest first; empty when the file is not to be believed."""
        if self._directory is None or not is_private(self._directory):
            return {}
        try:
            data = read_plain_file(self._directory / FILE_NAME, max_bytes=_MAX_BYTES)
            plain = unseal(data) if data is not None else {}
        except (JsonProblem, StorageError):
            return {}
        places = plain.get("places")
        is_ours = plain.get("schema_version") == _SCHEMA_VERSION and isinstance(places, dict)
        return cast("dict[str, Any]", places) if is_ours else {}

    def _write(self, places: Mapping[str, Any], *, is_synced: bool) -> None:
        assert self._directory is not None, "checked by the caller"
        newest = dict(list(places.items())[-_MOST_PLACES:])
        data = seal({"schema_version": _SCHEMA_VERSION, "places": newest})
        descriptor = self._disk.open_directory(self._directory)
        try:
            sweep(self._disk, descriptor)  # the lock is held: what lies there was left by the dead
            write_whole(self._disk, descriptor, FILE_NAME, data, directory=self._directory, is_synced=is_synced)
        finally:
            self._disk.close(descriptor)


def state_directory() -> Path | None:
    """The directory of this user's state between runs; None when the user has no home."""
    if given := os.environ.get(environment_variables.STATE_DIR):
        return Path(os.path.expanduser(given)).resolve()  # noqa: PTH111 - without a home it stays as it is
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "darwin":
        return (home / "Library" / "Application Support" / "attractor-nb").resolve()
    base = os.environ.get(environment_variables.STATE_HOME, "")
    return ((Path(base) if Path(base).is_absolute() else home / ".local/state") / "attractor-nb").resolve()


def is_private(directory: Path) -> bool:
    """True if only this user (and root) can have put a file there."""
    try:
        facts = directory.stat()
    except OSError:
        return False
    return HAS_POSIX and facts.st_uid == os.geteuid() and not facts.st_mode & _OTHERS_MAY_WRITE


def _remembered(entry: object) -> Remembered | None:
    if not isinstance(entry, dict):
        return None
    plain = cast("dict[str, Any]", entry)
    full_hash, rows = plain.get("hash"), plain.get("commands")
    if not isinstance(full_hash, str):
        return None
    if not isinstance(rows, list):
        return Remembered(full_hash, None)
    read = [_row(row) for row in cast("list[object]", rows)]
    return Remembered(full_hash, None if None in read else tuple(row for row in read if row))


def _row(row: object) -> Row | None:
    match row:
        case [str(node_id), str(attribute), str(text)]:
            return node_id, attribute, text
        case _:
            return None
