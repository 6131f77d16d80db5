"""Files that the user owns and names: sources that are mended, drawings that are kept."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import StorageError
from attractor_nb.platforms import O_BINARY, O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


def write_file(path: Path, text: str) -> None:
    """Write a text as ``write_bytes`` does."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file whole, or not at all; one that was there keeps its rights, a link its target.

    A pipe or a device is written to: another file in its place would take it from everybody.
    """
    place = path.resolve()
    temporary: Path | None = None
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            with path.open("wb") as target:
                target.write(data)
            return
        mode = place.stat().st_mode & 0o7777 if place.exists() else 0o666 & ~_creation_mask()
        with tempfile.NamedTemporaryFile("wb", dir=place.parent, prefix=f".{place.name}.", delete=False) as file:
            temporary = Path(file.name)
            file.write(data)
        temporary.chmod(mode)
        temporary.replace(place)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        reason = error.strerror or type(error).__name__
        raise StorageError(f"{path} cannot be written: {reason}", path=str(path)) from None


def _creation_mask() -> int:
    """The process's mask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# Reading a file below a folder, and never one elsewhere: links on the way are followed, and looked at.

_MAX_SEEN: Final = 1000
_NO_FILE: Final = "it is not a file"


class Outside(Exception):
    """A name leads out of its folder, or is none.

    Attributes:
        message: What is wrong with it, as the end of a sentence.
        remedy: What to do.
    """

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(message)
        self.message, self.remedy = message, remedy


def read_below(folder: Path, name: str, *, max_bytes: int, kinds: Collection[str] = ()) -> bytes:
    """The bytes of a file below a folder; one more than allowed, of one that is too large.

    Args:
        folder: The folder, its links followed (``os.path.realpath``).
        name: The file, relative to it.
        max_bytes: How large it may be.
        kinds: What its name may end with, such as ``.md``; then it may not be hidden either. Anything without.
    """
    pure = PurePosixPath(name)
    if not name or "\0" in name or "\n" in name:
        raise Outside("is not a file name", "name a file")
    if pure.is_absolute() or Path(name).is_absolute() or ".." in pure.parts:
        raise Outside(f"is named by a path that may lead out of {folder}", "give a path below that folder, without ..")
    place = Path(os.path.realpath(folder / name))
    if not place.is_relative_to(folder):
        raise Outside(f"leads out of {folder} by a link", "copy the file into the folder")
    if kinds:
        check_visible(pure, kinds)
        check_visible(place.relative_to(folder), kinds)  # where a link ends counts as well
    descriptor = os.open(place, os.O_RDONLY | O_BINARY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, _NO_FILE)
        return file.read(max_bytes + 1)


def check_visible(path: PurePath, kinds: Collection[str]) -> None:
    """Refuse what is hidden or of another kind: keys and settings are there (ruling 43).

    Args:
        path: The file, relative to its folder.
        kinds: What its name may end with.
    """
    if any(part.startswith(".") for part in path.parts):
        raise Outside("is hidden, and a hidden file is not read, with trust or without", "name a file that is not")
    if path.suffix.lower() not in kinds:
        raise Outside(f"is none of {' '.join(sorted(kinds))}, and no other kind is read", "rename the file")


def names_below(folder: Path) -> Iterator[str]:
    """Names of files that could have been meant, without hidden ones; of a large folder only some."""
    seen = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(each for each in files if not each.startswith(".")):
            yield (Path(place) / name).relative_to(folder).as_posix()
        seen += 1 + len(files)
        if seen > _MAX_SEEN:
            return
