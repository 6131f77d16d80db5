"""The files that an attempt left in its directory, for display: names, sizes, the beginning of a text.

Links are not followed and pipes are not opened: a stage's program may have planted some. A directory is
listed as it is now, and its owner may continue to write.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING, Final

import msgspec

from attractor_nb.errors import StorageError
from attractor_nb.storage.files.atomic import TEMPORARY_PREFIX
from attractor_nb.storage.files.disk import open_below, storage_error
from attractor_nb.storage.run_directory import VISITS_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MAX_LISTED: Final = 200
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class StageFile(msgspec.Struct, frozen=True):
    """A file of an attempt."""

    name: str  #: Its path in the directory, with ``/`` between folders.
    size: int  #: Bytes.
    problem: str = ""  #: Why it cannot be read, or empty.


class Listing(msgspec.Struct, frozen=True):
    """The files of an attempt."""

    files: tuple[StageFile, ...]  #: In the order of their names, folders last.
    is_cut: bool = False  #: There are more than are listed.


def list_stage(directory: Path, root: Path, limit: int = MAX_LISTED) -> Listing:
    """The files of an attempt; those of other visits are not among them. Nothing when there is no directory.

    Args:
        directory: The attempt's directory.
        root: The run directory; no link is followed on the way from it.
        limit: The maximum number of files to list.
    """
    found: list[StageFile] = []
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        for name, facts in _entries(directory / inside if inside else directory, root):
            path = f"{inside}/{name}" if inside else name
            if name.startswith(TEMPORARY_PREFIX) or path == VISITS_NAME:
                continue
            if stat.S_ISDIR(facts.st_mode):
                waiting.append(path)
            elif len(found) == limit:
                return Listing(tuple(found), is_cut=True)
            else:
                problem = "" if stat.S_ISREG(facts.st_mode) else "not a plain file; it is not opened"
                found.append(StageFile(path, facts.st_size if not problem else 0, problem))
    return Listing(tuple(found))


def _entries(directory: Path, root: Path) -> list[tuple[str, os.stat_result]]:
    try:
        descriptor = open_below(root, directory.relative_to(root).parts)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise storage_error(error, "list", directory) from error
    try:
        with os.scandir(descriptor) as listing:
            return sorted(_present(listing))
    except OSError as error:
        raise storage_error(error, "list", directory) from error
    finally:
        os.close(descriptor)


def _present(entries: Iterable[os.DirEntry[str]]) -> Iterator[tuple[str, os.stat_result]]:
    for entry in entries:
        with contextlib.suppress(FileNotFoundError):  # its owner has just renamed or removed it
            yield entry.name, entry.stat(follow_symlinks=False)


def read_beginning(directory: Path, name: str, max_bytes: int, root: Path) -> tuple[str, int] | None:
    """The beginning of a file of an attempt, undecodable bytes replaced, and its size; None without one.

    Args:
        directory: The attempt's directory.
        name: The file, with ``/`` between folders.
        max_bytes: So much of it is read.
        root: The run directory; no link is followed on the way from it.
    """
    *folders, last = name.split("/")
    if any(part in {"", ".", ".."} or "\0" in part for part in (*folders, last)):
        raise StorageError(f"{name!r} is not a file of a stage", hint="use a name that the list of files has")
    opened = list[int]()
    try:
        opened.append(open_below(root, (*directory.relative_to(root).parts, *folders)))
        opened.append(os.open(last, _OPEN, dir_fd=opened[-1]))
        facts = os.fstat(opened[-1])
        if not stat.S_ISREG(facts.st_mode):
            raise StorageError(f"{directory / name} is not a plain file; it is not opened", path=name)
        return _text(os.pread(opened[-1], max_bytes, 0), is_whole=facts.st_size <= max_bytes), facts.st_size
    except FileNotFoundError:
        return None
    except OSError as error:
        raise storage_error(error, "read", directory / name) from error
    finally:
        for descriptor in reversed(opened):
            os.close(descriptor)


def _text(data: bytes, *, is_whole: bool) -> str:
    """Bytes as text; a character that was cut in two at the end is left out."""
    if is_whole:
        return data.decode("utf-8", "replace")
    for back in range(4):
        try:
            return data[: len(data) - back].decode("utf-8")
        except UnicodeDecodeError as error:
            if error.end < len(data) - back:
                break
    return data.decode("utf-8", "replace")
