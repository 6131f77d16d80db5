"""A disk that fails, or ends the process, at a chosen operation.

Pass it to a run: ``pipeline.run(…, disk=FaultyDisk(fail_at=40))``. It counts every operation that changes
the disk, so a test can let each of them fail in turn and check the files that remain.
"""

from __future__ import annotations

import errno
import os
import signal
from typing import TYPE_CHECKING, Any

from attractor_nb.storage.files.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

FOR_EVER = 10**9
"""For ``lasts``: the fault never passes."""


class FaultyDisk(Disk):
    """Counts the operations on the real disk, and lets a chosen one fail.

    A write that fails has written its first half, as on a real disk.

    Attributes:
        operations: The operations so far, in order, as ``("write", "events.jsonl")``: the operation and
            the name of its file or directory.
    """

    def __init__(
        self,
        *,
        fail_at: int | None = None,
        counted: Sequence[str] = (),
        error: int = errno.EIO,
        kill_at: int | None = None,
        lasts: int = 1,
        is_halfway: bool = True,
    ) -> None:
        """Choose the fault.

        Args:
            fail_at: Number of the operation that fails, from 1; None for none.
            counted: Operation and file that ``fail_at`` counts, as in ``operations``; all by default.
            error: The ``errno`` of the failure.
            kill_at: Number of the operation in the middle of which the process kills itself.
            lasts: How many operations fail, from ``fail_at`` on.
            is_halfway: Whether a write that fails has written its first half, rather than nothing.
        """
        self.operations: list[tuple[str, str]] = []
        self._fail_at = fail_at
        self._counted = tuple(counted)
        self._error = error
        self._kill_at = kill_at
        self._lasts = lasts
        self._is_halfway = is_halfway
        self._names: dict[int, str] = {}

    def _count(self, operation: str, name: Path | str = "", *, halfway: Callable[[], Any] | None = None) -> None:
        self.operations.append((operation, str(name)))
        number = len(self.operations)
        if number == self._kill_at:
            self._do_half(halfway)
            os.kill(os.getpid(), signal.SIGKILL)
        if self._counted:
            same = [entry == self._counted for entry in self.operations]
            number = sum(same) if same[-1] else 0
        if self._fail_at is not None and self._fail_at <= number < self._fail_at + self._lasts:
            self._do_half(halfway)
            raise OSError(self._error, os.strerror(self._error), str(name))

    def _do_half(self, halfway: Callable[[], Any] | None) -> None:
        if halfway is not None and self._is_halfway:
            halfway()

    def _opened(self, descriptor: int, name: Path | str) -> int:
        self._names[descriptor] = str(name)
        return descriptor

    def open_directory(self, name: str | Path, parent: int | None = None) -> int:
        """Open a directory; nothing is counted, because nothing changes."""
        return self._opened(super().open_directory(name, parent), name)

    def make_directory(self, name: str | Path, parent: int | None = None) -> None:
        """Count, then make a directory."""
        self._count("make_directory", name)
        super().make_directory(name, parent)

    def create(self, name: str, parent: int) -> int:
        """Count, then create a file."""
        self._count("create", name)
        return self._opened(super().create(name, parent), name)

    def open_update(self, name: str, parent: int, *, is_append: bool = False) -> int:
        """Count, then open a file."""
        self._count("open_update", name)
        return self._opened(super().open_update(name, parent, is_append=is_append), name)

    def write(self, descriptor: int, data: bytes) -> int:
        """Count, then write."""
        name = self._names.get(descriptor, "")
        self._count("write", name, halfway=lambda: os.write(descriptor, data[: len(data) // 2]))
        return super().write(descriptor, data)

    def write_at(self, descriptor: int, data: bytes, offset: int) -> int:
        """Count, then write at an offset."""
        name = self._names.get(descriptor, "")
        self._count("write_at", name, halfway=lambda: os.pwrite(descriptor, data[: len(data) // 2], offset))
        return super().write_at(descriptor, data, offset)

    def sync(self, descriptor: int) -> None:
        """Count, then flush."""
        self._count("sync", self._names.get(descriptor, ""))
        super().sync(descriptor)

    def sync_data(self, descriptor: int) -> None:
        """Count, then flush."""
        self._count("sync_data", self._names.get(descriptor, ""))
        super().sync_data(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """Count, then cut."""
        self._count("truncate", self._names.get(descriptor, ""))
        super().truncate(descriptor, size)

    def rename(self, source: str, target: str, parent: int, target_parent: int | None = None) -> None:
        """Count, then rename."""
        self._count("rename", target)
        super().rename(source, target, parent, target_parent)

    def link(self, source: str, target: str, parent: int) -> None:
        """Count, then link."""
        self._count("link", target)
        super().link(source, target, parent)

    def remove(self, name: str, parent: int) -> None:
        """Count, then remove."""
        self._count("remove", name)
        super().remove(name, parent)

    def make_link(self, target: str, name: str, parent: int) -> None:
        """Count, then make a symbolic link."""
        self._count("make_link", name)
        super().make_link(target, name, parent)

    def set_mode(self, descriptor: int, mode: int) -> None:
        """Count, then change who may open a file."""
        self._count("set_mode", self._names.get(descriptor, ""))
        super().set_mode(descriptor, mode)

    def close(self, descriptor: int) -> None:
        """Give a descriptor back; nothing is counted, because nothing changes."""
        self._names.pop(descriptor, None)
        super().close(descriptor)
