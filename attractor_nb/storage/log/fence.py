"""Makes an owner who was frozen and thaws lose (RELIABILITY: fencing).

A frozen process holds its lock and knows nothing of a take-over: it may go on in the middle of any
operation. What it does then must not count, in whatever order things happen. Three means together:

- The log's inode is the fence. Whoever takes over closes the old log to writing, which its owner sees
  after each commit, then copies it to a new file under the old name. A commit that was acknowledged was
  written before the fence, so it is in the copy; one that is written after it is refused, and its bytes
  go to a file without a name.
- Every other file is replaced by renaming a temporary one. The old owner looks at the fence between making
  the temporary file and renaming it, and the new one sweeps temporary files away after setting the fence:
  so either the look fails or there is nothing left to rename.
- The directory of a stage is replaced by a new one when the new owner opens it first
  (``stage_directories.py``), so that open handles of the old owner reach its own evidence alone.

A file system that shows one machine's changes to another late, as NFS does, breaks the first two.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_plain_file, sweep, write_whole
from attractor_nb.storage.files.disk import SECOND_NAME, Disk, entry_names, storage_error

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attractor_nb.storage.run_directory import RunDirectory

_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
CLOSED_MODE = 0o400
"""Mode of a log that takes nothing more."""
OPEN_BIT = stat.S_IWUSR
"""What the mode of a log has for as long as its owner may write to it."""


def is_closed_mode(mode: int) -> bool:
    """Whether a log of that mode was closed to its owner."""
    return not mode & OPEN_BIT


class FencedDisk(Disk):
    """The disk of an owner: everything that changes what others see is refused once the run is lost.

    Attributes:
        check: Raises ``RunLocked`` when the run is lost.
    """

    def __init__(self, disk: Disk, check: Callable[[], None]) -> None:
        self.check = check
        self._disk = disk
        # What goes to an open file of ours, or to one that nobody else knows, needs no look.
        self.open_directory = disk.open_directory
        self.write = disk.write
        self.write_at = disk.write_at
        self.sync = disk.sync
        self.sync_data = disk.sync_data
        self.truncate = disk.truncate
        self.link = disk.link
        self.make_link = disk.make_link
        self.set_mode = disk.set_mode
        self.close = disk.close

    def make_directory(self, name: str | Path, parent: int | None = None) -> None:
        """Look, then make a directory."""
        self.check()
        self._disk.make_directory(name, parent)

    def create(self, name: str, parent: int) -> int:
        """Look, then create a file; a temporary one is looked after when it is renamed.

        The directory was open when we looked, so it is one of before the fence: that of a stage, which the
        new owner replaces. What is created there after all is evidence of ours.
        """
        if not name.startswith(TEMPORARY_PREFIX):
            self.check()
        return self._disk.create(name, parent)

    def open_update(self, name: str, parent: int, *, is_append: bool = False) -> int:
        """Look, open a file, and look again: it is then one of before the fence."""
        self.check()
        descriptor = self._disk.open_update(name, parent, is_append=is_append)
        try:
            self.check()
        except BaseException:  # an interrupt, too, must leave no file open
            self._disk.close(descriptor)
            raise
        return descriptor

    def rename(self, source: str, target: str, parent: int, target_parent: int | None = None) -> None:
        """Look, then rename; that the source is gone may be the new owner's sweep."""
        self.check()
        try:
            self._disk.rename(source, target, parent, target_parent)
        except FileNotFoundError:
            self.check()
            raise

    def remove(self, name: str, parent: int) -> None:
        """Look, then remove; a temporary file is only ever one's own, or a dead owner's."""
        if not name.startswith(TEMPORARY_PREFIX):
            self.check()
        self._disk.remove(name, parent)


def fence_log(disk: Disk, fenced: FencedDisk, root: RunDirectory, name: str, *, is_synced: bool) -> None:
    """Close a log to whoever has it open, and put a copy that is ours in its place.

    Args:
        disk: The disk itself.
        fenced: The same, for what must not happen when we ourselves have lost the run meanwhile.
        root: The run directory.
        name: The log's name.
        is_synced: Flush the copy.
    """
    path = root.path / name
    try:
        descriptor = os.open(name, _READ_FLAGS, dir_fd=root.descriptor)
        try:
            facts = os.fstat(descriptor)
            if facts.st_nlink > 1:  # the mode belongs to the other name as well
                raise OSError(errno.EMLINK, SECOND_NAME, name)
            if stat.S_ISREG(facts.st_mode):
                disk.set_mode(descriptor, CLOSED_MODE)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise storage_error(error, "take over", path) from error
    data = read_plain_file(name, root.descriptor, directory=root.path, max_bytes=2**62) or b""
    write_whole(fenced, root.descriptor, name, data.rstrip(b"\0"), directory=root.path, is_synced=is_synced)


def sweep_stages(disk: Disk, root: RunDirectory, *, except_with: str) -> None:
    """Remove the temporary files in the directories of stages and artifacts.

    Args:
        disk: Where.
        root: The run directory.
        except_with: A directory with an entry of this name is left alone: a run of its own.
    """
    for name in entry_names(root.descriptor):
        try:
            descriptor = disk.open_directory(name, root.descriptor)
        except OSError:  # a file, a link: not ours to look into
            continue
        try:
            names = entry_names(descriptor)
            if except_with not in names:
                sweep(disk, descriptor, names)
        finally:
            disk.close(descriptor)
