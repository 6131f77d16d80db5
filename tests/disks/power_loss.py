"""The possible contents of a disk after a power loss, computed from a record of the operations on it.

The model is POSIX with a drive that reorders writes, so it is harsher than any real file system:

- A flush of a file makes its data and its size durable, and nothing else: not its name. A flush of a
  directory makes the changes of its entries durable (names made, replaced and removed), and nothing else.
- Data written to a file since its last flush may be lost, sector by sector (512 bytes) and in any order:
  each sector has any of the contents that it had since then. The size is any size that the file had since
  then, independently of the data; sectors within it that were never written are zeros.
- Of the changes to a directory since its last flush, any subset has happened. Each change is whole, and the
  changes to one name keep their order. A rename within a directory is one change. A rename between two
  directories is durable when either is flushed: file systems journal it as one transaction. Moves of
  directories keep their order, because otherwise a directory could end up within itself.
- A file or directory whose name is lost is gone, even if its data was flushed.

Not modelled, because the store does not promise it: drives that report a flush before it is done, torn
sectors, and contents of other files in unwritten space (file systems clear it).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from tests.disks.recorded_disk import ROOT, Flushed, RecordedDisk, Renamed, Resized, Written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.disks.recorded_disk import Operation

SECTOR_BYTES = 512
Image = dict[str, "bytes | None"]
"""Contents by path below the root, in order of creation; None for a directory."""


@dataclass(slots=True)
class _File:
    durable: bytes = b""
    pending: list[Written | Resized] = field(default_factory=list["Written | Resized"])

    def histories(self) -> tuple[dict[int, list[bytes]], list[int]]:
        """The contents of each sector that changed since the last flush, and the sizes; oldest first."""
        content, size = bytearray(self.durable), len(self.durable)
        sectors: dict[int, list[bytes]] = {}
        sizes = [size]
        for operation in self.pending:
            before = size
            if isinstance(operation, Written):
                first, end = operation.offset, operation.offset + len(operation.data)
                size = max(size, end)
            else:
                first, end = min(operation.size, size), max(operation.size, size)
                size = operation.size
            touched = range(first // SECTOR_BYTES, -(-end // SECTOR_BYTES))
            for sector in touched:
                sectors.setdefault(sector, [_sector(content, sector)])
            if isinstance(operation, Written):
                content.extend(bytes(max(0, size - len(content))))
                content[first:end] = operation.data
            else:
                del content[size:]
                content.extend(bytes(size - len(content)))
            for sector in touched:
                sectors[sector].append(_sector(content, sector))
            if size != before:
                sizes.append(size)
        return sectors, sizes


def _sector(content: bytearray, sector: int) -> bytes:
    start = sector * SECTOR_BYTES
    return bytes(content[start : start + SECTOR_BYTES]).ljust(SECTOR_BYTES, b"\0")


@dataclass(frozen=True, slots=True)
class _Choice:
    """The fate of content that was not flushed.

    Attributes:
        keeps_change: Whether the k-th of so many changes of entries has happened.
        content_of: Which of so many contents a sector of a file has, from 0 for the flushed one.
        size_of: Which of so many sizes a file has.
    """

    keeps_change: Callable[[int, int], bool]
    content_of: Callable[[int, int], int]
    size_of: Callable[[int, int], int]


class PowerLoss:
    """Steps through a record, and gives at each point what a power loss may leave."""

    def __init__(self, disk: RecordedDisk) -> None:
        """Begin before the first operation."""
        self._operations: Sequence[Operation] = tuple(disk.operations)
        self._files: dict[int, _File] = {}
        self._durable: dict[int, dict[str, int]] = {ROOT: {}}
        self._pending: list[Renamed] = []
        self._directories = frozenset(disk.directories)
        self._place = 0
        for number, entries in disk.found.items():
            self._durable[number] = {name: found.number for name, found in entries.items()}
            for found in entries.values():
                if found.content is not None:
                    self._files[found.number] = _File(found.content)

    @property
    def place(self) -> int:
        """The number of operations that were done."""
        return self._place

    def advance(self) -> bool:
        """Do the next operation; False when there is none."""
        if self._place == len(self._operations):
            return False
        operation = self._operations[self._place]
        self._place += 1
        if isinstance(operation, Written | Resized):
            self._files.setdefault(operation.file, _File()).pending.append(operation)
        elif isinstance(operation, Renamed):
            self._pending.append(operation)
        elif isinstance(operation, Flushed):
            self._flush(operation.file)
        return True

    def _flush(self, number: int) -> None:
        if number not in self._directories:
            file = self._files.setdefault(number, _File())
            if file.pending:
                file.durable = _newest(file)
                file.pending.clear()
            return
        flushed = [any(place == number for place, _, _ in entry.changes) for entry in self._pending]
        moved = [k for k, entry in enumerate(self._pending) if flushed[k] and self._moves_directory(entry)]
        left: list[Renamed] = []
        for k, operation in enumerate(self._pending):
            if flushed[k] or (moved and k < moved[-1] and self._moves_directory(operation)):
                _apply(self._durable, operation)
            else:
                left.append(operation)
        self._pending = left

    def _moves_directory(self, operation: Renamed) -> bool:
        places = {place for place, _, _ in operation.changes}
        return len(places) > 1 and operation.changes[-1][2] in self._directories

    def images(self, count: int, seed: int) -> Iterator[Image]:
        """Images that a power loss here may leave: first the simple cases, then random ones.

        Args:
            count: The number of images; some may be equal.
            seed: The same seed gives the same images.
        """
        chance = random.Random(seed * 1_000_003 + self._place)
        for choice in islice(self._choices(chance), count):
            yield self._image(choice)

    def _choices(self, chance: random.Random) -> Iterator[_Choice]:
        def newest(_: int, length: int) -> int:
            return length - 1

        def oldest(_: int, _length: int) -> int:
            return 0

        yield _Choice(lambda _k, _n: True, newest, newest)
        yield _Choice(lambda _k, _n: False, oldest, oldest)
        yield _Choice(lambda _k, _n: True, oldest, oldest)
        yield _Choice(lambda _k, _n: True, oldest, newest)
        yield _Choice(lambda k, n: k < n - 1, newest, newest)
        yield _Choice(lambda k, n: k == n - 1, newest, newest)
        while True:
            yield _by_chance(chance)

    def _image(self, choice: _Choice) -> Image:
        entries = {directory: dict(names) for directory, names in self._durable.items()}
        is_move_lost = False
        for number, operation in enumerate(self._pending):
            is_move = self._moves_directory(operation)
            if choice.keeps_change(number, len(self._pending)) and not (is_move and is_move_lost):
                _apply(entries, operation)
            elif is_move:
                is_move_lost = True
        image: Image = {}
        self._collect(image, entries, ROOT, "", choice, {})
        return image

    def _collect(
        self,
        image: Image,
        entries: dict[int, dict[str, int]],
        directory: int,
        prefix: str,
        choice: _Choice,
        contents: dict[int, bytes],
    ) -> None:
        for name, number in entries.get(directory, {}).items():
            path = prefix + name
            if number in self._directories:
                image[path] = None
                self._collect(image, entries, number, path + "/", choice, contents)
                continue
            if number not in contents:  # a file of two names has one content
                contents[number] = _survived(self._files.get(number, _File()), number, choice)
            image[path] = contents[number]


def _by_chance(chance: random.Random) -> _Choice:
    kept, data = chance.choice((0.1, 0.5, 0.9)), chance.choice((0.1, 0.5, 0.9))
    return _Choice(
        lambda _k, _n: chance.random() < kept,
        lambda _, length: length - 1 if chance.random() < data else chance.randrange(length),
        lambda _, length: length - 1 if chance.random() < data else chance.randrange(length),
    )


def _apply(entries: dict[int, dict[str, int]], operation: Renamed) -> None:
    for directory, name, number in operation.changes:
        names = entries.setdefault(directory, {})
        if number is None:
            names.pop(name, None)
        else:
            names[name] = number


def _survived(file: _File, number: int, choice: _Choice) -> bytes:
    if not file.pending:
        return file.durable
    sectors, sizes = file.histories()
    size = sizes[choice.size_of(number, len(sizes))]
    content = bytearray(file.durable)
    for sector, contents in sectors.items():
        start = sector * SECTOR_BYTES
        content.extend(bytes(max(0, start + SECTOR_BYTES - len(content))))
        content[start : start + SECTOR_BYTES] = contents[choice.content_of(number, len(contents))]
    del content[size:]
    content.extend(bytes(size - len(content)))
    return bytes(content)


def _newest(file: _File) -> bytes:
    content = bytearray(file.durable)
    for operation in file.pending:
        if isinstance(operation, Written):
            end = operation.offset + len(operation.data)
            content.extend(bytes(max(0, end - len(content))))
            content[operation.offset : end] = operation.data
        else:
            del content[operation.size :]
            content.extend(bytes(operation.size - len(content)))
    return bytes(content)


def write_image(image: Image, root: Path) -> None:
    """Put an image on a real disk, below an empty directory."""
    for path, content in image.items():
        if content is None:
            (root / path).mkdir(mode=0o700)
        else:
            (root / path).write_bytes(content)
