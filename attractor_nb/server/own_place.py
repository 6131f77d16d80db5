"""The folder of a server's own records, beside the runs: ``.server`` of the root.

A root may have come with a stranger's folder, and whoever made it may have planted links in place of ours. What a
server lists, writes and deletes there would then be files of the user elsewhere: a link in its place is refused.
"""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Final

from attractor_nb.errors import StorageError
from attractor_nb.storage.files.disk import Disk, storage_error
from attractor_nb.storage.run_directory import make_directory

if TYPE_CHECKING:
    from pathlib import Path

_FOLDER: Final = "a directory"


def is_own_place(root: Path, name: str) -> bool:
    """Whether a folder of the server's own is there: ``.server/<name>``, neither of both a link."""
    return all(_kind(place) == _FOLDER for place in _places(root, name))


def made_own_place(root: Path, name: str, *, is_synced: bool) -> Path:
    """A folder of the server's own, made unless it is there."""
    for place in _places(root, name):
        make_directory(Disk(), place, is_synced=is_synced)
        if (kind := _kind(place)) != _FOLDER:
            raise StorageError(
                f"{place} is {kind}, and the server keeps its own records there",
                path=str(place),
                hint="remove it, or start the server for another directory of runs",
            )
    return root / ".server" / name


def _places(root: Path, name: str) -> tuple[Path, Path]:
    return root / ".server", root / ".server" / name


def _kind(place: Path) -> str:
    try:
        mode = place.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "not there"
    except OSError as error:
        raise storage_error(error, "read", place) from error
    return _FOLDER if stat.S_ISDIR(mode) else "a link" if stat.S_ISLNK(mode) else "not a directory"
