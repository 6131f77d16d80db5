"""Results of stages by what went into them: a directory that any number of runs and processes share.

``entries/<two digits>/<key>.json`` is an entry, sealed by a checksum and named by the digest of the inputs
that it holds. ``nodes/<group>/<key>`` are empty files that say which entries a node has had. An entry that is
torn, altered or named wrongly is none. A file appears whole; two processes that write the same entry at the
same time leave one of both.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from attractor_nb.errors import StorageError
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_plain_file, write_whole
from attractor_nb.storage.files.disk import Disk, storage_error
from attractor_nb.storage.files.strict_json import JsonProblem
from attractor_nb.storage.own_places import is_own_place, made_own_place
from attractor_nb.storage.sealed_file import seal, unseal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_ENTRY_BYTES: Final = 16 * 1024 * 1024
"""A larger result is not kept."""
ENTRIES_NAME: Final = "entries"
NODES_NAME: Final = "nodes"
_SUFFIX: Final = ".json"
_FOLDERS: Final = re.compile(r"[0-9a-f]{2}|[0-9a-f]{32}")
_FILES: Final = re.compile(rf"[0-9a-f]{{64}}(?:\{_SUFFIX})?|{re.escape(TEMPORARY_PREFIX)}.*")


class CacheSize(NamedTuple):
    """The size of a cache: entries, and their bytes."""

    entries: int
    size_bytes: int


class CacheStore:
    """A cache directory. It is made when something is first written."""

    def __init__(self, root: str | Path, disk: Disk | None = None) -> None:
        self.root = Path(root)
        self._disk = disk or Disk()

    def read(self, key: str) -> dict[str, Any] | None:
        """An entry's values; None when there is none."""
        place = self._place(key)
        if not is_own_place(self.root, place):
            return None
        path = self.root / place / f"{key}{_SUFFIX}"
        data = read_plain_file(path, max_bytes=2 * MAX_ENTRY_BYTES)
        return None if data is None else unseal(data)

    def write(self, key: str, plain: Mapping[str, Any], *, group: str) -> bool:
        """Keep an entry, and note whose it is; whether it is small enough to be kept."""
        data = seal(plain)
        if len(data) > MAX_ENTRY_BYTES:
            return False
        self._write(self._place(key), f"{key}{_SUFFIX}", data)
        self.note(key, group=group)
        return True

    def note(self, key: str, *, group: str) -> None:
        """Say that an entry is the newest one of a group."""
        self._write(self._group(group), key, b"")

    def recent(self, group: str, *, limit: int) -> Iterator[dict[str, Any]]:
        """The entries of a group that can be read, the newest first."""
        place = self._group(group)
        names = _newest(self.root / place) if is_own_place(self.root, place) else ()
        for key in names[:limit]:
            with contextlib.suppress(JsonProblem, StorageError):
                if (plain := self.read(key)) is not None:
                    yield plain

    def size(self) -> CacheSize:
        """The number of kept entries, and their bytes."""
        sizes = [size for _, size in self._files() if size >= 0]
        return CacheSize(len(sizes), sum(sizes))

    def clear(self) -> CacheSize:
        """Remove all entries; returns their number and size. Runs that are under way keep new ones."""
        count = total = 0
        for path, size in list(self._files()):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise storage_error(error, "remove", path) from error
            if size >= 0:
                count, total = count + 1, total + size
        return CacheSize(count, total)

    def _files(self) -> Iterator[tuple[Path, int]]:
        """All our files with their sizes; -1 for those that are no entries.

        Who made the directory may have planted links in it: what they lead to is not ours.
        """
        for name in (ENTRIES_NAME, NODES_NAME):
            try:
                for folder in _listed(self.root / name, _FOLDERS):
                    for path in _listed(folder, _FILES):
                        is_entry = name == ENTRIES_NAME and not path.name.startswith(TEMPORARY_PREFIX)
                        with contextlib.suppress(FileNotFoundError):
                            yield path, path.lstat().st_size if is_entry else -1
            except OSError as error:
                raise storage_error(error, "read the cache", self.root) from error

    def _place(self, key: str) -> str:
        """The folder of an entry, relative to the cache."""
        return f"{ENTRIES_NAME}/{key[:2]}"

    def _group(self, group: str) -> str:
        """The folder of a group, relative to the cache."""
        digest = hashlib.sha256(group.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{NODES_NAME}/{digest[:32]}"

    def _write(self, place: str, name: str, data: bytes) -> None:
        use, remedy = "the cache keeps its own files", "remove it, or name another directory for the cache"
        directory = made_own_place(self._disk, self.root, place, is_synced=False, use=use, remedy=remedy)
        try:
            parent = self._disk.open_directory(directory)
        except OSError as error:
            raise storage_error(error, "open", directory) from error
        try:
            # Not flushed: what a power loss tears has a wrong checksum, and is executed once more.
            write_whole(self._disk, parent, name, data, directory=directory, is_synced=False)
        finally:
            self._disk.close(parent)


def _listed(directory: Path, form: re.Pattern[str]) -> list[Path]:
    """The entries of a directory whose name has a form; links are not followed."""
    if directory.is_symlink() or not directory.is_dir():
        return []
    return sorted(path for path in directory.iterdir() if form.fullmatch(path.name))


def _newest(directory: Path) -> list[str]:
    """The names in a directory, the latest changed first; none where it is not there."""
    found: list[tuple[float, str]] = []
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if not entry.name.startswith(TEMPORARY_PREFIX):
                with contextlib.suppress(OSError):
                    found.append((entry.stat(follow_symlinks=False).st_mtime_ns, entry.name))
    return [name for _, name in sorted(found, reverse=True)]
