"""A disk that records every operation on it, with the data.

``power_loss.py`` computes from such a record what may be left after a power loss. The record names files
and directories by numbers, because names change. A name is an entry of a directory and becomes durable
with a flush of the directory; the data becomes durable with a flush of the file.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attractor_nb.storage.files.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = 0
"""The number of the directory under which everything is recorded."""


@dataclass(frozen=True, slots=True)
class Written:
    """Data was written to a file."""

    file: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Resized:
    """A file was cut, or widened with zeros."""

    file: int
    size: int


@dataclass(frozen=True, slots=True)
class Flushed:
    """A file's data, or a directory's entries, were put on stable storage."""

    file: int


@dataclass(frozen=True, slots=True)
class Renamed:
    """Entries of directories changed, all of them at once.

    Attributes:
        changes: Directory, name, and the number of what it names now; None when the name is gone.
    """

    changes: tuple[tuple[int, str, int | None], ...]


@dataclass(frozen=True, slots=True)
class Noted:
    """A mark that a test has set in the record, such as a promise that was made at this point."""

    subject: Any


Operation = Written | Resized | Flushed | Renamed | Noted


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file, or a directory when ``content`` is None, that was there before."""

    number: int
    content: bytes | None


class RecordedDisk(Disk):
    """The real disk, and a record of the operations on it.

    Attributes:
        root: The directory that it records; the directory and its present contents count as durable.
        operations: The operations, in order.
        found: The files and directories that existed before, by directory number and name.
        directories: The numbers that belong to directories.
    """

    def __init__(self, root: Path) -> None:
        """Begin to record."""
        self.root = root
        self.operations: list[Operation] = []
        self.found: dict[int, dict[str, FoundFile]] = {}
        self.directories: set[int] = set()
        self._numbers: dict[tuple[int, int], int] = {}
        self._next = ROOT
        self._find(root)

    def note(self, subject: Any) -> None:
        """Mark this point in the record."""
        self.operations.append(Noted(subject))

    def _find(self, directory: Path) -> int:
        number = self._new_number(directory.stat())
        self.directories.add(number)
        entries = self.found[number] = {}
        for path in sorted(directory.iterdir()):
            if path.is_symlink():
                continue
            if path.is_dir():
                entries[path.name] = FoundFile(self._find(path), None)
            elif path.is_file():
                entries[path.name] = FoundFile(self._new_number(path.stat()), path.read_bytes())
        return number

    def _new_number(self, facts: os.stat_result) -> int:
        number, self._next = self._next, self._next + 1
        self._numbers[facts.st_dev, facts.st_ino] = number
        return number

    def _number(self, descriptor: int) -> int:
        facts = os.fstat(descriptor)
        return self._numbers[facts.st_dev, facts.st_ino]

    def _directory(self, path: Path | str, parent: int | None) -> tuple[int, str]:
        """Number of the directory that holds a path, and the path's name in it."""
        if parent is not None:
            return self._number(parent), str(path)
        place = Path(path)
        facts = place.parent.stat()
        return self._numbers[facts.st_dev, facts.st_ino], place.name

    def _entry(self, name: str, parent: int) -> int:
        facts = os.stat(name, dir_fd=parent, follow_symlinks=False)
        return self._numbers[facts.st_dev, facts.st_ino]

    def make_directory(self, name: str | Path, parent: int | None = None) -> None:
        """Make a directory, and record it."""
        super().make_directory(name, parent)
        directory, entry = self._directory(name, parent)
        made = self._new_number(os.stat(name, dir_fd=parent, follow_symlinks=False))
        self.directories.add(made)
        self.operations.append(Renamed(((directory, entry, made),)))

    def create(self, name: str, parent: int) -> int:
        """Create a file, and record it."""
        descriptor = super().create(name, parent)
        made = self._new_number(os.fstat(descriptor))
        self.operations.append(Renamed(((self._number(parent), name, made),)))
        return descriptor

    def open_update(self, name: str, parent: int, *, is_append: bool = False) -> int:
        """Open a file, and record it if it is new."""
        try:
            os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            descriptor = super().open_update(name, parent, is_append=is_append)
            made = self._new_number(os.fstat(descriptor))
            self.operations.append(Renamed(((self._number(parent), name, made),)))
            return descriptor
        return super().open_update(name, parent, is_append=is_append)

    def write(self, descriptor: int, data: bytes) -> int:
        """Write, and record what was written."""
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND:
            offset = os.fstat(descriptor).st_size
        else:
            offset = os.lseek(descriptor, 0, os.SEEK_CUR)
        count = super().write(descriptor, data)
        self.operations.append(Written(self._number(descriptor), offset, bytes(data[:count])))
        return count

    def write_at(self, descriptor: int, data: bytes, offset: int) -> int:
        """Write at an offset, and record what was written."""
        count = super().write_at(descriptor, data, offset)
        self.operations.append(Written(self._number(descriptor), offset, bytes(data[:count])))
        return count

    def sync(self, descriptor: int) -> None:
        """Flush, and record it."""
        super().sync(descriptor)
        self.operations.append(Flushed(self._number(descriptor)))

    def sync_data(self, descriptor: int) -> None:
        """Flush, and record it: the size that the data needs is flushed with it."""
        super().sync_data(descriptor)
        self.operations.append(Flushed(self._number(descriptor)))

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut, and record it."""
        super().truncate(descriptor, size)
        self.operations.append(Resized(self._number(descriptor), size))

    def rename(self, source: str, target: str, parent: int, target_parent: int | None = None) -> None:
        """Rename, and record it."""
        moved = self._entry(source, parent)
        to = parent if target_parent is None else target_parent
        super().rename(source, target, parent, target_parent)
        changes = ((self._number(parent), source, None), (self._number(to), target, moved))
        self.operations.append(Renamed(changes))

    def link(self, source: str, target: str, parent: int) -> None:
        """Link, and record it."""
        super().link(source, target, parent)
        self.operations.append(Renamed(((self._number(parent), target, self._entry(source, parent)),)))

    def remove(self, name: str, parent: int) -> None:
        """Remove, and record it."""
        super().remove(name, parent)
        self.operations.append(Renamed(((self._number(parent), name, None),)))

    def notes(self) -> Iterator[tuple[int, Any]]:
        """The notes, each with the number of operations before it."""
        for place, operation in enumerate(self.operations):
            if isinstance(operation, Noted):
                yield place, operation.subject
