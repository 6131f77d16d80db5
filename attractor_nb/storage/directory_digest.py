"""The hash of a whole directory: of every name, link and content below it."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from attractor_nb.storage.directory_survey import open_plain
from attractor_nb.storage.files.disk import storage_error
from attractor_nb.storage.log.lock import LOCK_NAME, OWNER_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

_MAX_BYTES: Final = 1024**3
_CHUNK_BYTES: Final = 1024**2
_OF_THE_OWNER: Final = frozenset({LOCK_NAME, OWNER_NAME})
"""They change whenever a process takes ownership, and no prompt is made of them."""


def directory_digest(directory: Path) -> str:
    """The number of files below a directory and their hash. Follows no link and waits for no pipe.

    After 1 GiB of content, the other files count with their name and size alone.

    Args:
        directory: A run directory, or that of a map.

    Raises:
        StorageError: It cannot be read.
    """
    whole, count, left = sha256(), 0, _MAX_BYTES

    def refuse(error: OSError) -> NoReturn:
        raise storage_error(error, "read", directory) from error

    try:
        for place, folders, names in os.walk(directory, onerror=refuse):
            folders.sort()
            for path in sorted(Path(place, name) for name in {*names, *folders} - _OF_THE_OWNER):
                facts = path.lstat()
                _add(whole.update, os.fsencode(path.relative_to(directory)))
                if stat.S_ISLNK(facts.st_mode):
                    _add(whole.update, b"-> " + os.fsencode(path.readlink()))
                elif stat.S_ISREG(facts.st_mode):
                    whole.update(b"%d bytes " % facts.st_size)
                    left -= _add_content(whole.update, path, left)
                    count += 1
    except OSError as error:
        refuse(error)
    return f"{count:,} file{'s' * (count != 1)}, SHA-256 {whole.hexdigest()}"


def _add(update: Callable[[bytes], None], data: bytes) -> None:
    """Add one text, so that no two lists of texts have the same hash."""
    update(b"%d:" % len(data) + data)


def _add_content(update: Callable[[bytes], None], path: Path, most: int) -> int:
    """Add the content of a file, up to a number of bytes; how many it added."""
    added = 0
    with os.fdopen(open_plain(path.name, path.parent), "rb") as file:
        while added < most and (chunk := file.read(min(_CHUNK_BYTES, most - added))):
            update(chunk)
            added += len(chunk)
    return added
