"""The hash of a whole directory: of every name, link and content below it."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from attractor_nb.errors import StorageError
from attractor_nb.storage.directory_survey import open_plain
from attractor_nb.storage.files.disk import storage_error

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_BYTES: Final = 1024**3
_CHUNK_BYTES: Final = 1024**2


def directory_digest(directory: Path) -> str:
    """The number of files below a directory and their hash. Follows no link and waits for no pipe.

    Args:
        directory: A run directory, or that of a map.
    """
    whole, count, left = sha256(), 0, _MAX_BYTES

    def refuse(error: OSError) -> NoReturn:
        raise storage_error(error, "read", directory) from error

    try:
        for place, folders, names in os.walk(directory, onerror=refuse):
            folders.sort()
            for path in sorted(Path(place, name) for name in {*names, *folders}):
                facts = path.lstat()
                _add(whole.update, os.fsencode(path.relative_to(directory)))
                if stat.S_ISLNK(facts.st_mode):
                    _add(whole.update, b"-> " + os.fsencode(path.readlink()))
                elif stat.S_ISREG(facts.st_mode):
                    whole.update(b"%d bytes " % facts.st_size)
                    if (left := left - facts.st_size) < 0:
                        raise _too_large(directory)
                    _add_content(whole.update, path)
                    count += 1
    except OSError as error:
        refuse(error)
    return f"{count:,} file{'s' * (count != 1)}, SHA-256 {whole.hexdigest()}"


def _add(update: Callable[[bytes], None], data: bytes) -> None:
    """Add one text, so that no two lists of texts have the same hash."""
    update(b"%d:" % len(data) + data)


def _add_content(update: Callable[[bytes], None], path: Path) -> None:
    with os.fdopen(open_plain(path.name, path.parent), "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            update(chunk)


def _too_large(directory: Path) -> StorageError:
    return StorageError(
        f"{directory} has more than 1 GiB, too much to be trusted by a hash",
        path=str(directory),
        hint="move away what the run does not need, or trust all of it: trust=True, --trust",
    )
