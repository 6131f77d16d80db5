"""The one seam between the store and the operating system.

Every operation that changes what is on disk goes through a ``Disk``, so that a test can count them,
make the k-th one fail, or kill the process there. A disk speaks in file descriptors and raises plain
``OSError``; ``storage_error`` is where such an error becomes a ``StorageError``. It knows nothing of runs.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import sys
from typing import TYPE_CHECKING, Literal

from attractor_nb.errors import OptionError, StorageError
from attractor_nb.platforms import O_CLOEXEC, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK, check_posix

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

Durability = Literal["full", "fast"]
"""``full`` flushes to stable storage; ``fast`` survives the death of the process, not a power loss."""

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
SECOND_NAME = "the file has a second name somewhere"
_FLAGS = O_CLOEXEC | O_NOFOLLOW
_NO_LINKS = frozenset({errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})
"""Errors of network, FAT and sandboxed file systems without links, or with too many."""
_F_FULLFSYNC = 51
"""macOS: ``fsync`` alone leaves the data in the drive's cache."""


class Disk:
    """The operations of the real disk. Names are relative to an open directory, never followed links."""

    def open_directory(self, name: str | Path, parent: int | None = None) -> int:
        """Open a directory; a symbolic link in its place is refused."""
        check_posix()
        return os.open(name, os.O_RDONLY | O_DIRECTORY | _FLAGS, dir_fd=parent)

    def make_directory(self, name: str | Path, parent: int | None = None) -> None:
        """Make a directory that is not there yet."""
        os.mkdir(name, DIRECTORY_MODE, dir_fd=parent)

    def create(self, name: str, parent: int) -> int:
        """Create a file that is not there yet, for writing."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS
        return os.open(name, flags, FILE_MODE, dir_fd=parent)

    def open_update(self, name: str, parent: int, *, is_append: bool = False) -> int:
        """Open a file for reading and writing, making it if need be; refuse what is not a plain file."""
        flags = os.O_RDWR | os.O_CREAT | O_NONBLOCK | _FLAGS | (os.O_APPEND if is_append else 0)
        descriptor = os.open(name, flags, FILE_MODE, dir_fd=parent)
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink > 1:
            os.close(descriptor)
            if stat.S_ISREG(facts.st_mode):  # what is written here would change that other file as well
                raise OSError(errno.EMLINK, SECOND_NAME, name)
            raise OSError(errno.EINVAL, "not a plain file", name)
        return descriptor

    def write(self, descriptor: int, data: bytes) -> int:
        """Write some of the data; how much."""
        return os.write(descriptor, data)

    def write_at(self, descriptor: int, data: bytes, offset: int) -> int:
        """Write some of the data at an offset; how much."""
        return os.pwrite(descriptor, data, offset)

    def sync(self, descriptor: int) -> None:
        """Put a file, or the entries of a directory, on stable storage."""
        if sys.platform == "darwin":
            import fcntl  # noqa: PLC0415 - Windows has none

            with contextlib.suppress(OSError):  # some file systems do not know it
                fcntl.fcntl(descriptor, _F_FULLFSYNC)
                return
        os.fsync(descriptor)

    def sync_data(self, descriptor: int) -> None:
        """Put a file's data on stable storage; cheaper when its size did not change."""
        if sys.platform == "darwin":
            self.sync(descriptor)
        else:
            os.fdatasync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        """Cut a file, or widen it with zeros."""
        os.ftruncate(descriptor, size)

    def set_mode(self, descriptor: int, mode: int) -> None:
        """Change who may open a file from now on; descriptors that are open stay so."""
        os.fchmod(descriptor, mode)

    def rename(self, source: str, target: str, parent: int, target_parent: int | None = None) -> None:
        """Rename a file, replacing another one in the same breath."""
        to = parent if target_parent is None else target_parent
        os.rename(source, target, src_dir_fd=parent, dst_dir_fd=to)

    def link(self, source: str, target: str, parent: int) -> None:
        """Give a file a second name; see ``has_no_links`` for where that cannot be done."""
        try:
            os.link(source, target, src_dir_fd=parent, dst_dir_fd=parent, follow_symlinks=False)
        except (AttributeError, NotImplementedError):  # Android has no such call, other systems not this form of it
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP), target) from None

    def make_link(self, target: str, name: str, parent: int) -> None:
        """Make a symbolic link that is not there yet; its target is relative to the directory."""
        os.symlink(target, name, dir_fd=parent)

    def remove(self, name: str, parent: int) -> None:
        """Remove a file."""
        os.unlink(name, dir_fd=parent)

    def close(self, descriptor: int) -> None:
        """Give a descriptor back; changes nothing on disk."""
        os.close(descriptor)


def open_below(root: Path, names: Iterable[str]) -> int:
    """Open a directory below another one, component by component; a symbolic link on the way is refused."""
    check_posix()
    flags = os.O_RDONLY | O_DIRECTORY | O_CLOEXEC
    descriptor = os.open(root, flags)
    try:
        for name in names:
            outer, descriptor = descriptor, os.open(name, flags | O_NOFOLLOW, dir_fd=descriptor)
            os.close(outer)
    except BaseException:  # an interrupt, too, must leave no directory open
        os.close(descriptor)
        raise
    return descriptor


def has_no_links(error: OSError) -> bool:
    """True if giving a file a second name failed because this file system or platform has no such names (ruling 49)."""
    return error.errno in _NO_LINKS


def owner_of(descriptor: int) -> object:
    """An owner that closes a descriptor as soon as nothing refers to it any more.

    An object of C: our own ``__del__`` would be Python code, and Ctrl-C within it would be shown as an ignored
    exception, and lost. These classes close what they are given, whatever it is, and do nothing else here.
    """
    kind = select.epoll if sys.platform == "linux" else select.kqueue
    return kind.fromfd(descriptor)


def entry_names(descriptor: int) -> list[str]:
    """The names in an open directory."""
    return os.listdir(descriptor)


def write_all(disk: Disk, descriptor: int, data: bytes) -> None:
    """Write all of the data, however little the system takes at a time."""
    done = disk.write(descriptor, data)
    while done < len(data):
        written = disk.write(descriptor, data[done:])
        if written == 0:
            raise OSError(errno.EIO, "the disk took no more data")
        done += written


def check_durability(durability: str) -> Durability:
    """The durability of that name."""
    if durability == "full":
        return "full"
    if durability == "fast":
        return "fast"
    raise OptionError(f"durability {durability!r} is not known", hint="use full or fast")


_RESUMABLE = "; the run can then be resumed"
_HINTS = {
    errno.ENOSPC: f"free some space{_RESUMABLE}",
    errno.EDQUOT: f"the quota is used up: free some space{_RESUMABLE}",
    errno.EACCES: f"check who owns the run directory and its permissions{_RESUMABLE}",
    errno.EPERM: f"check who owns the run directory and its permissions{_RESUMABLE}",
    errno.EROFS: f"make the file system writable, or choose another run directory{_RESUMABLE}",
    errno.EIO: "copy the run directory to a sound disk, and resume the run there",
    errno.EMLINK: "put a copy of the file in its place",
    errno.ELOOP: "a symbolic link is in its place; remove it",
    errno.ENOTDIR: "a file is in the place of a directory: name another place, or move it away",
    errno.EINVAL: "something that is not a plain file is in its place; remove it",
    errno.EMFILE: "close some files, or raise the limit of open files",
    errno.ENAMETOOLONG: "choose a shorter run directory",
}


def storage_error(error: OSError, action: str, path: Path | str) -> StorageError:
    """Our error for one of the system's; ``action`` completes "cannot …"."""
    reason = error.strerror or type(error).__name__
    hint = _HINTS.get(error.errno or 0, "")
    return StorageError(f"cannot {action} {path}: {reason.lower()}", path=str(path), hint=hint)


def before_a_record(error: StorageError) -> StorageError:
    """The error of a run that has no record yet: there is nothing to be resumed."""
    anew = "; then start the run anew, for nothing of it was recorded"
    return StorageError(error.message, path=error.path, hint=error.hint.replace(_RESUMABLE, anew))
