"""The truth of a run: ``events.jsonl``, which is only ever appended to (ruling 29).

An append that returned is in the log; with ``is_synced`` in a ``full`` log it survives a power loss.
One that raised is not in the log. With ``is_synced`` it has also been made sure that no process took the run
over before (fencing, see ``FencedDisk``): such an append is a commit, and its caller acts on it.

The file is widened with zeros ahead of the writing, because a flush is cheaper when the size of the file
stays the same; they are cut off at the end.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import TYPE_CHECKING

from msgspec.structs import replace

from attractor_nb.errors import RunError, StorageError
from attractor_nb.gc_pause import gc_paused
from attractor_nb.platforms import O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX, read_from, read_plain_file, sweep, write_whole
from attractor_nb.storage.files.disk import SECOND_NAME, Disk, Durability, entry_names, storage_error, write_all
from attractor_nb.storage.log.event_lines import FIRST_OWNER, LogScan, encode_event, scan_lines
from attractor_nb.storage.log.lock import LOCK_NAME, OwnerLock, taken_over

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attractor_nb.model.events import Event
    from attractor_nb.protocols import Clock
    from attractor_nb.storage.run_directory import RunDirectory


EVENT_LOG_NAME = "events.jsonl"
REPLACEMENT_NAME = "events.jsonl.replaced"
"""Name of another program's file that replaced the log of an active run."""
MAX_LOG_BYTES = 4 * 1024**3
_FIRST_ALLOCATION_BYTES = 64 * 1024
_LARGEST_ALLOCATION_BYTES = 1024 * 1024


class EventLog:
    """The log of a run that this process owns.

    Attributes:
        sequence: Number of the last record.
        offset: Byte offset after it.
        acknowledged: Number of the last record that was there when the log was opened, or was appended
            with ``is_synced`` since: no later fault takes it back.
        token: Fencing token of this owner, which each record carries.
    """

    def __init__(
        self,
        disk: Disk,
        parent: int,
        directory: Path,
        durability: Durability,
        *,
        token: int = FIRST_OWNER,
        check_lock: Callable[[], None] | None = None,
    ) -> None:
        """Open the log, or make it; what a killed process left unfinished at its end is cut off.

        Args:
            disk: Where.
            parent: The run directory, open.
            directory: Its path.
            durability: ``full`` or ``fast``.
            token: Fencing token of this owner; the log raises it above all that wrote to it.
            check_lock: Raises ``RunLocked`` when the lock was lost. From the moment on at which it is looked
                at with the file open, a take-over can be seen on the file itself.
        """
        self._disk = disk
        self._parent = parent
        self._directory = directory
        self._check_lock = check_lock
        self._path = directory / EVENT_LOG_NAME
        self._is_full = durability == "full"
        self._is_writing = False
        self._is_broken = False
        self._is_lost = False
        self._is_taken_over = False
        self._is_put_back = False
        try:
            self._descriptor = disk.open_update(EVENT_LOG_NAME, parent)
        except OSError as error:
            raise storage_error(error, "open", self._path) from error
        try:
            self._inode = os.fstat(self._descriptor).st_ino  # no other file gets it as long as this one is open
            if check_lock is not None:
                check_lock()
            self.scan = self._recover(parent, directory)
        except BaseException:  # an interrupt, too, must leave no file open
            disk.close(self._descriptor)
            raise
        self.token = max(token, self.scan.token + 1)
        self.sequence = self.acknowledged = self.scan.sequence
        self.offset = self._synced_offset = self._allocated = self.scan.offset

    def _recover(self, parent: int, directory: Path) -> LogScan:
        scan = read_log(directory, parent)
        try:
            self._disk.truncate(self._descriptor, scan.offset)
            os.lseek(self._descriptor, scan.offset, os.SEEK_SET)
            if scan.is_line_end_missing:
                write_all(self._disk, self._descriptor, b"\n")
                end = scan.offset + 1
                scan = replace(scan, ends=(*scan.ends[:-1], end), offset=end, is_line_end_missing=False)
            if self._is_full:
                self._disk.sync(self._descriptor)
                self._disk.sync(parent)
        except OSError as error:
            raise storage_error(error, "open", self._path) from error
        return scan

    def append(self, event: Event, *, is_synced: bool) -> None:
        """Add the next event."""
        if self._is_lost:
            raise self._loss()
        if self._is_writing:
            self._withdraw(self.offset)  # an interrupt left the last append half done
        if event.sequence != self.sequence + 1 or self._is_broken:
            raise self._unfit(event)
        line = encode_event(event, self.token)
        end = self.offset + len(line)
        self._is_writing = True
        try:
            if self._is_full and end > self._allocated:
                self._allocate(end)
            if self._disk.write(self._descriptor, line) != len(line):
                self._finish_short_write(line)
        except OSError as error:
            self._withdraw(self.offset)
            raise storage_error(error, "write", self._path) from error
        if is_synced:
            if self._is_full:
                self._sync(end)
            self.check()
        self.sequence += 1
        self.offset = end
        self._is_writing = False
        if is_synced:
            self.acknowledged = self.sequence

    def check(self) -> None:
        """Check that the run is still ours, and that the log is still the file of that name (ruling 49).

        A program that works on the user's files may remove the log or put an older one in its place, as
        ``git reset --hard`` does with a committed run. What is appended then goes to a file
        without a name. The log is put back, if the directory is still there, and takes nothing more.
        """
        if self._descriptor < 0:
            return
        if not self._is_lost:
            try:  # one call of the system: of the file of that name, which is the open one or not
                named = os.stat(EVENT_LOG_NAME, dir_fd=self._parent, follow_symlinks=False)
            except FileNotFoundError:
                named = None
            except OSError as error:
                raise storage_error(error, "look at", self._path) from error
            if named is not None and named.st_ino == self._inode and named.st_mode & OPEN_BIT:
                return
            self._is_lost = self._is_broken = True
            # Asked once more: a new owner closes the log before another file gets its name.
            self._is_taken_over = not os.fstat(self._descriptor).st_mode & OPEN_BIT
            if not self._is_taken_over:
                self._put_back()
        raise self._loss()

    def _put_back(self) -> None:
        """Write what was recorded under the name of the log again, so that a resume finds all of it."""
        with contextlib.suppress(RunError):  # the directory is gone, or has another owner: the error says so
            if self._check_lock is not None:
                self._check_lock()
            data = read_from(self._descriptor, 0, self.offset)
            write_whole(
                self._disk,
                self._parent,
                EVENT_LOG_NAME,
                data,
                directory=self._directory,
                is_synced=self._is_full,
                keep_as=REPLACEMENT_NAME,
            )
            self._is_put_back = True

    def _loss(self) -> RunError:
        """The error of a process that has lost the run's log or its ownership: nothing it does counts any more."""
        if self._is_taken_over:
            return taken_over(self._directory, self.token)
        what = f"another program removed {self._path} or put another file in its place while the run was active"
        if self._is_put_back:
            hint = f"the log was put back, the other file is {REPLACEMENT_NAME}: resume the run"
        else:
            hint = "restore the run directory and resume the run, or start it anew"
        return StorageError(what, path=str(self._path), hint=f"{hint}; keep run directories out of version control")

    def sync(self) -> None:
        """Flush every record written so far, in a ``full`` log."""
        if self._is_full and self._synced_offset < self.offset:
            self._sync(self.offset)

    def close(self) -> None:
        """Cut off the free space and give the file back."""
        with contextlib.suppress(OSError):  # what was acknowledged is safe already
            if not self._is_lost and (self._allocated > self.offset or self._is_writing):
                self._disk.truncate(self._descriptor, self.offset)
            if self._is_full and not self._is_broken:
                self._disk.sync(self._descriptor)
        self._disk.close(self._descriptor)
        self._descriptor = -1
        self._is_broken = True

    def _allocate(self, end: int) -> None:
        size = min(max(self.offset, _FIRST_ALLOCATION_BYTES), _LARGEST_ALLOCATION_BYTES)
        target = end + size
        done = self._allocated
        while done < target:
            done += self._disk.write_at(self._descriptor, bytes(target - done), done)
        self._disk.sync(self._descriptor)
        self._synced_offset = self.offset
        self._allocated = target

    def _finish_short_write(self, line: bytes) -> None:
        written = os.lseek(self._descriptor, 0, os.SEEK_CUR) - self.offset
        write_all(self._disk, self._descriptor, line[written:])

    def _sync(self, end: int) -> None:
        try:
            self._disk.sync_data(self._descriptor)
        except OSError as error:
            # A page whose flush failed may look clean forever: nothing after the last flush that
            # succeeded is known to be on disk, so it is taken back and the file is not used again.
            self._withdraw(self._synced_offset)
            self._is_broken = True
            raise storage_error(error, "flush", self._path) from error
        self._synced_offset = end

    def _withdraw(self, offset: int) -> None:
        """Take back everything behind an offset."""
        try:
            self._disk.truncate(self._descriptor, offset)
            os.lseek(self._descriptor, offset, os.SEEK_SET)
        except OSError:
            self._is_broken = True
        self._allocated = offset
        self._is_writing = False

    def _unfit(self, event: Event) -> StorageError:
        path = str(self._path)
        if self._is_broken:
            return StorageError(
                f"{path} takes nothing more: it is closed, or an earlier write to it failed",
                path=path,
                hint="resume the run; all that was recorded is intact",
            )
        return StorageError(f"{path}: event {event.sequence} does not follow event {self.sequence}", path=path)


def log_size(directory: Path) -> int:
    """The size of a run's log in bytes; 0 without a readable log."""
    try:
        return (directory / EVENT_LOG_NAME).stat().st_size
    except OSError:
        return 0


def read_log(directory: Path, parent: int | None = None, *, offset: int = 0, sequence: int = 0) -> LogScan:
    """Read the log of a run, or its end from a byte offset on; its owner may be writing meanwhile.

    Args:
        directory: The run directory.
        parent: The same as an open directory, if there is one.
        offset: Where to begin.
        sequence: Number of the record that ends there.
    """
    name = EVENT_LOG_NAME if parent is not None else directory / EVENT_LOG_NAME
    data = read_plain_file(
        name, parent, directory="" if parent is None else directory, max_bytes=MAX_LOG_BYTES, offset=offset
    )
    path = str(directory / EVENT_LOG_NAME)
    with gc_paused(len(data or b"")):
        return scan_lines(data or b"", path=path, offset=offset, sequence=sequence)


# Becoming the owner of a run directory: lock, sweep, fence, log, in the one order that is safe.
#
# The order matters against an earlier owner who is frozen at any point of its work and continues later.
# First the lock changes hands, which stops an owner who has not opened its log yet; then the log is fenced,
# which stops one who has; only then are temporary files swept for good and the log is believed.


class Ownership:
    """A run directory that this process owns, from construction to ``release``.

    Attributes:
        disk: What everything but the log writes through: it refuses once the run is lost.
        is_fenced: An earlier owner may still live, and was locked out.
    """

    def __init__(
        self, disk: Disk, root: RunDirectory, durability: Durability, clock: Clock, *, take_over: bool
    ) -> None:
        """Take the lock, and remove what a killed owner left half written."""
        self._bare_disk = disk
        self._root = root
        self._durability: Durability = durability
        self._lock = OwnerLock(disk, root, clock, take_over=take_over, is_synced=durability == "full")
        self.disk = FencedDisk(disk, self._lock.check)
        try:
            sweep(self.disk, root.descriptor)
            self.is_fenced = self._must_be_fenced()
        except BaseException:  # an interrupt, too, must free the lock
            self._lock.release()
            raise

    def _must_be_fenced(self) -> bool:
        """True if an earlier owner may still write to the log."""
        try:
            facts = os.stat(EVENT_LOG_NAME, dir_fd=self._root.descriptor, follow_symlinks=False)
        except OSError:  # no log, or none that can be read: opening it says so
            return False
        return self._lock.is_contested or is_closed_mode(facts.st_mode)

    def announce(self) -> None:
        """Write down who owns the run."""
        self._lock.announce(self.disk, self._lock.token, is_fenced=not self.is_fenced)

    def open_log(self) -> EventLog:
        """Open the log as the only one who can write to it; from here on the fence is on the log."""
        root = self._root
        if self.is_fenced:
            is_synced = self._durability == "full"
            # The log is closed first and temporary files are swept after it: an earlier owner looks at the log before
            # each rename, so what he can still rename was swept before he looked, or he sees the fence.
            fence_log(self._bare_disk, self.disk, root, EVENT_LOG_NAME, is_synced=is_synced)
            sweep_stages(self.disk, root, except_with=LOCK_NAME)
        log = EventLog(
            self._bare_disk,
            root.descriptor,
            root.path,
            self._durability,
            token=self._lock.token,
            check_lock=self._lock.check,
        )
        self.disk.check = log.check
        if self.is_fenced or log.token != self._lock.token:
            try:
                self._lock.announce(self.disk, log.token, is_fenced=True)
            except BaseException:  # an interrupt, too, must leave no file open
                log.close()
                raise
        return log

    def release(self) -> None:
        """Give ownership up."""
        self._lock.release()


# Makes an owner who was frozen and thaws lose (RELIABILITY: fencing).
#
# A frozen process holds its lock and knows nothing of a take-over: it may continue in the middle of any
# operation. Its work after that must not count, in any order of events. Three means together:
#
# - The log's inode is the fence. A new owner closes the old log to writing, which its owner sees
# after each commit, then copies it to a new file under the old name. A commit that was acknowledged was
# written before the fence, so it is in the copy; one that is written after it is refused, and its bytes
# go to a file without a name.
# - Every other file is replaced by renaming a temporary one. The old owner looks at the fence between making
# the temporary file and renaming it, and the new one sweeps temporary files away after setting the fence:
# so either the look fails or there is nothing left to rename.
# - The directory of a stage is replaced by a new one when the new owner opens it first
# (``stage_directories.py``), so that open handles of the old owner reach its own evidence alone.
#
# A file system that shows one machine's changes to another late, as NFS does, breaks the first two.

_READ_FLAGS = os.O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
CLOSED_MODE = 0o400
"""Mode of a log that takes nothing more."""
OPEN_BIT = stat.S_IWUSR
"""Mode bit of a log that its owner may still write to."""


def is_closed_mode(mode: int) -> bool:
    """True if a log of that mode was closed to its owner."""
    return not mode & OPEN_BIT


class FencedDisk(Disk):
    """The disk of an owner: everything that changes what others see is refused once the run is lost.

    Attributes:
        check: Raises ``RunLocked`` when the run is lost.
    """

    def __init__(self, disk: Disk, check: Callable[[], None]) -> None:
        self.check = check
        self._disk = disk
        # What goes to our open file, or to one that no other process knows, needs no look.
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
        new owner replaces. What is created there after all is evidence that we kept.
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
    """Close a log to other processes that have it open, and put a copy that is ours in its place.

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
        except_with: A directory with an entry of this name is left alone: a separate run.
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
