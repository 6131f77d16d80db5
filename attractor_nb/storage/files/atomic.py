"""The durable writer: a file is there whole, or the one before it is (RELIABILITY).

A unique temporary file in the same directory is written, flushed and renamed over its target. It is
the only way in which the store replaces a file; the log alone is appended to. A flush that fails is
fatal for that temporary file: it is thrown away, never flushed again and believed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from attractor_nb.errors import StorageError
from attractor_nb.platforms import O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK
from attractor_nb.storage.files.disk import Disk, entry_names, has_no_links, storage_error, write_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

TEMPORARY_PREFIX = ".attractor-tmp-"
_READ_FLAGS = os.O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
_COUNTER = itertools.count(1)
_PROCESS = os.urandom(5).hex()


def temporary_name() -> str:
    """Unique among all processes that ever wrote here, forked ones included."""
    return f"{TEMPORARY_PREFIX}{_PROCESS}-{os.getpid()}-{next(_COUNTER)}"


def write_whole(
    disk: Disk, parent: int, name: str, data: bytes, *, directory: Path, is_synced: bool, keep_as: str = ""
) -> None:
    """Replace a file by new content, whole or not at all.

    Args:
        disk: Where.
        parent: The open directory.
        name: The file's name in it.
        data: Its new content.
        directory: The directory's path, for messages.
        is_synced: Flush the content before the file gets its name, and the directory after it, so that
            a power loss cannot bring the old file back.
        keep_as: Keep the replaced file under this name.
    """
    try:
        replace_file(disk, parent, name, data, is_synced=is_synced, keep_as=keep_as)
        if is_synced:
            disk.sync(parent)
    except OSError as error:
        raise storage_error(error, "write", directory / name) from error


def replace_file(disk: Disk, parent: int, name: str, data: bytes, *, is_synced: bool, keep_as: str = "") -> None:
    """Replace a file as ``write_whole`` does, without flushing the directory or wording the error."""
    temporary = temporary_name()
    try:
        descriptor = disk.create(temporary, parent)
        try:
            write_all(disk, descriptor, data)
            if is_synced:
                disk.sync(descriptor)
        finally:
            disk.close(descriptor)
        if keep_as:
            _keep(disk, parent, name, keep_as, is_synced=is_synced)
        disk.rename(temporary, name, parent)
    except BaseException:  # an interrupt, too, must leave no temporary file
        with contextlib.suppress(OSError):
            disk.remove(temporary, parent)
        raise


def _keep(disk: Disk, parent: int, name: str, kept_name: str, *, is_synced: bool) -> None:
    """Give the present file a second name, so that at every moment one of both is there.

    Where files have one name alone, a copy gets it (ruling 49).
    """
    second = temporary_name()
    try:
        disk.link(name, second, parent)
    except FileNotFoundError:
        return
    except OSError as error:
        if not has_no_links(error):
            raise
        _copy(disk, parent, name, kept_name, is_synced=is_synced)
        return
    try:
        disk.rename(second, kept_name, parent)
    finally:
        # Two names of one file, as a kill between keeping and replacing leaves them, are not renamed to
        # each other: POSIX then does nothing, and calls it a success.
        with contextlib.suppress(OSError):
            disk.remove(second, parent)


def _copy(disk: Disk, parent: int, name: str, kept_name: str, *, is_synced: bool) -> None:
    try:
        descriptor = os.open(name, _READ_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        return
    try:
        data = read_from(descriptor, 0, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)
    replace_file(disk, parent, kept_name, data, is_synced=is_synced)


def replace_link(disk: Disk, parent: int, name: str, target: str, *, directory: Path, is_synced: bool) -> None:
    """Replace a symbolic link by another one, so that at every moment one of both is there."""
    temporary = temporary_name()
    try:
        disk.make_link(target, temporary, parent)
        try:
            disk.rename(temporary, name, parent)
        except OSError:
            with contextlib.suppress(OSError):
                disk.remove(temporary, parent)
            raise
        if is_synced:
            disk.sync(parent)
    except OSError as error:
        raise storage_error(error, "link", directory / name) from error


def sweep(disk: Disk, parent: int, names: Iterable[str] | None = None) -> int:
    """Remove the temporary files that a killed process left in a directory; how many.

    Only the owner of a run directory may call this; ``names`` are its entries, where they are known already.
    """
    count = 0
    for name in entry_names(parent) if names is None else names:
        if name.startswith(TEMPORARY_PREFIX):
            with contextlib.suppress(OSError):
                disk.remove(name, parent)
                count += 1
    return count


def _is_never_left_out(_: str) -> bool:
    return False


def entries_below(
    directory: Path,
    *,
    is_left_out: Callable[[str], bool] = _is_never_left_out,
    onerror: Callable[[OSError], object] | None = None,
) -> Iterator[tuple[str, os.stat_result]]:
    """The entries below a directory that are no directories: relative paths with ``/``, and facts. No link is followed.

    Each folder's come before those of its folders, in the order of their names; temporary files are not among them.

    Args:
        directory: The directory.
        is_left_out: True for the relative path of an entry, or of a folder, that is passed over.
        onerror: Called with the error of a folder that cannot be listed; without it, such a folder is passed over.
    """
    for folder, folders, names in os.walk(directory, onerror=onerror):
        here = Path(folder)
        before = "" if here == directory else f"{here.relative_to(directory).as_posix()}/"

        def is_wanted(name: str, before: str = before) -> bool:
            return not name.startswith(TEMPORARY_PREFIX) and not is_left_out(before + name)

        folders[:] = sorted(filter(is_wanted, folders))
        links = [name for name in folders if (here / name).is_symlink()]
        for name in sorted([*filter(is_wanted, names), *links]):
            with contextlib.suppress(FileNotFoundError):
                yield before + name, (here / name).lstat()


def read_plain_file(
    name: str | Path,
    parent: int | None = None,
    *,
    directory: Path | str = "",
    max_bytes: int,
    offset: int = 0,
    must_be_own: bool = False,
) -> bytes | None:
    """The content of a plain file, from an offset on; None when there is no file.

    Links are not followed, and nothing is waited for: the file may have been planted.

    Args:
        name: The file.
        parent: Descriptor of its directory, if the name is relative to one.
        directory: The directory's name, for messages.
        max_bytes: A larger file is refused.
        offset: Where to begin.
        must_be_own: Refuse a file of another user, and one that has another name, too (ruling 42).
    """
    try:
        descriptor = os.open(name, _READ_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error, "read", f"{directory}/{name}" if directory else name) from error
    path = f"{directory}/{name}" if directory else str(name)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise StorageError(f"cannot read {path}: not a plain file", path=path, hint="remove it")
        if must_be_own and facts.st_nlink > 1:
            raise StorageError(f"cannot read {path}: a hard link, {facts.st_nlink} names of one file", path=path)
        if must_be_own and facts.st_uid != os.geteuid():
            raise StorageError(f"cannot read {path}: it belongs to another user", path=path)
        if facts.st_size > max_bytes:
            raise StorageError(
                f"cannot read {path}: {facts.st_size} bytes are more than the {max_bytes} allowed", path=path
            )
        return read_from(descriptor, offset, facts.st_size)
    except OSError as error:
        raise storage_error(error, "read", path) from error
    finally:
        os.close(descriptor)


def read_from(descriptor: int, offset: int, size: int) -> bytes:
    """The content of an open file from an offset up to a size; less where the file ends before."""
    pieces: list[bytes] = []
    while offset < size and (piece := os.pread(descriptor, size - offset, offset)):
        pieces.append(piece)
        offset += len(piece)
    return b"".join(pieces)
